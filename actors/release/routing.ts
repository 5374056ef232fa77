/**
 * The routes of one shard: what the releases that route make of creations. The table is read
 * from the rows, at the start and whenever the owner of the releases says that they have changed;
 * messages are only hints that there is something to read. The owner is told when everything that
 * was decided by an older table is durable, and answers its own caller no earlier.
 *
 *   unknown ──rows──► known ──routes.read──► known, reading ──rows──► the new table ──settled──► owner
 */

import type { TimerHandle } from '../../src/base/clock.js';
import { unavailable } from '../../src/base/errors.js';
import type { Kernel } from '../runtime/kernel.js';
import { Replica } from '../runtime/replica.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import { askedOf, cohortKeyOf, isPinned, type Routable } from './attribution.js';
import { type Route, RouteTable } from './core/routes.js';
import type { ReleaseLoads } from './loads.js';

export interface RoutingDeps
  extends Pick<Kernel, 'shard' | 'clock' | 'log' | 'release' | 'schedule'> {
  readonly commits: Pick<Kernel['commits'], 'whenSettled'>;
  readonly loader: Pick<ReleaseLoads, 'routingReleases'>;
}

/** The owner looks at a release once a second at most: hints of many ends are one. */
const ENDED_MS = 250;

/** The shard that owns the releases. */
const OWNER = 0;

/** All rows make one table. */
const ALL = 'all';

export class Routing implements Room {
  readonly #deps: RoutingDeps;
  #table: RouteTable | undefined;
  #tables = 0;
  readonly #rows: Replica<typeof ALL>;
  /** Canaries that the owner is to be told of, and when. */
  readonly #ended = new Set<string>();
  #endedHandle: TimerHandle | undefined;

  readonly messages = { 'routes.read': ({ version }) => this.read(version) } satisfies Messages;
  readonly effects = { 'release.ended': ({ release }) => this.ended(release) } satisfies Effects;

  constructor(deps: RoutingDeps) {
    this.#deps = deps;
    this.#rows = new Replica(deps, {
      read: async () => {
        const rows = await deps.loader.routingReleases();
        return () => {
          this.#table = new RouteTable(rows);
          this.#tables += 1;
        };
      },
      failed: (err) => deps.log.warn({ err }, 'routes could not be read; trying again'),
      settled: (version) => this.#tellSettled(version),
    });
  }

  /** Resolves when the table is known; rejects when the rows cannot be read. */
  prepare(): Promise<void> {
    return this.#rows.start([ALL]);
  }

  stop(): void {
    this.#rows.stop();
    this.#deps.clock.clearTimeout(this.#endedHandle);
  }

  /** How many tables there have been: what names lead to may change with each. */
  get tables(): number {
    return this.#tables;
  }

  /**
   * The instance with the route that it takes now: to be called in the turn that makes its unit.
   *
   * @returns the instance itself when no release routes it, or none may
   * @throws EngineError 503 while the routes are not known: none is taken for the baseline meanwhile
   */
  routed<Instance extends Routable>(instance: Instance): Instance {
    if (isPinned(instance.body)) return instance;
    const { tenant_id } = instance.body;
    const route = this.route(askedOf(instance), tenant_id, () => cohortKeyOf(instance));
    return route === undefined ? instance : { ...instance, route };
  }

  /** @throws EngineError 503, see `routed` */
  route(sequenceId: string, tenant: string, keyOf: () => string): Route | undefined {
    if (this.#table === undefined) throw UNKNOWN;
    return this.#table.route(sequenceId, tenant, keyOf);
  }

  /** The rows have changed: the owner waits for `routes.settled` with this version. */
  read(version: number): void {
    this.#rows.changed(version, [ALL]);
  }

  /** Resolves when the table was read again: a tenant that is admitted brings rows. */
  tenantComes(): Promise<void> {
    return this.#rows.readAnew([ALL]);
  }

  /** What became of units under way is not known, and rows can be trusted again. */
  writerReady(): void {
    this.#rows.reread([ALL]);
  }

  /** An instance of the release has ended, whose owner is told so unless it cannot matter any more. */
  ended(release: string): void {
    if (this.#table?.isCanary(release) !== true) return;
    this.#ended.add(release);
    const { clock, schedule } = this.#deps;
    this.#endedHandle ??= clock.setTimeout(() => schedule(() => this.#tellEnded()), ENDED_MS);
  }

  #tellEnded(): void {
    this.#endedHandle = undefined;
    const ended = [...this.#ended];
    this.#ended.clear();
    this.#deps.release(
      ended.map((release) => ({
        kind: 'peer',
        shard: OWNER,
        message: { kind: 'release.ended', release },
      })),
    );
  }

  /** The units made so far may rest on an older table: they are settled first. */
  #tellSettled(version: number): void {
    const { commits, release, shard } = this.#deps;
    commits.whenSettled(() =>
      release([
        { kind: 'peer', shard: OWNER, message: { kind: 'routes.settled', version, shard } },
      ]),
    );
  }
}

const UNKNOWN = unavailable('ENG_SHARD_RESTARTING', 'the releases are being read');
