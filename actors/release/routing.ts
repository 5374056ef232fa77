/**
 * The routes of one shard: what the releases that route make of creations. The table is read
 * from the rows, at the start and whenever the owner of the releases says that they have changed;
 * messages are only hints that there is something to read. The owner is told when everything that
 * was decided by an older table is durable, and answers its own caller no earlier.
 *
 *   unknown ──rows──► known ──routes.read──► known, reading ──rows──► the new table ──settled──► owner
 */

import type { TimerHandle } from '../../src/core/clock.js';
import { type Route, RouteTable } from '../../src/core/releases/routes.js';
import { unavailable } from '../../src/errors.js';
import type { Room } from '../runtime/room.js';
import { askedOf, cohortKeyOf, type Routable } from './attribution.js';

export interface RoutingDeps
  extends Pick<Room, 'shard' | 'clock' | 'log' | 'release' | 'schedule'> {
  readonly commits: Pick<Room['commits'], 'whenSettled'>;
  readonly loader: Pick<Room['loader'], 'routingReleases'>;
}

/** How soon rows that could not be read are asked for again. */
const AGAIN_MS = 1_000;

/** The owner looks at a release once a second at most: hints of many ends are one. */
const ENDED_MS = 250;

/** The shard that owns the releases. */
const OWNER = 0;

export class Routing {
  readonly #deps: RoutingDeps;
  #table: RouteTable | undefined;
  #tables = 0;
  /** The version that was settled last. */
  #settled: number | undefined;
  /** Versions that the next read is for. */
  #asked = new Set<number>();
  /** Versions that the read under way is for; undefined: there is none. */
  #reading: ReadonlySet<number> | undefined;
  /** Something may have changed since the read under way began. */
  #isStale = false;
  /** Canaries that the owner is to be told of, and when. */
  readonly #ended = new Set<string>();
  #endedHandle: TimerHandle | undefined;
  #stopped = false;

  constructor(deps: RoutingDeps) {
    this.#deps = deps;
  }

  /** Resolves when the table is known; rejects when the rows cannot be read. */
  async start(): Promise<void> {
    const rows = await this.#deps.loader.routingReleases();
    // What was read behind a message is newer.
    this.#table ??= new RouteTable(rows);
  }

  stop(): void {
    this.#stopped = true;
    this.#deps.clock.clearTimeout(this.#endedHandle);
  }

  /** How many tables there have been: what names lead to may change with each. */
  get tables(): number {
    return this.#tables;
  }

  /**
   * The instance with the route that it takes now: to be called in the turn that makes its unit.
   *
   * @returns the instance itself when no release routes it
   * @throws EngineError 503 while the routes are not known: none is taken for the baseline meanwhile
   */
  routed<Instance extends Routable>(instance: Instance): Instance {
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
    if (this.#reading?.has(version)) return;
    if (version === this.#settled) this.#tellSettled(version);
    else {
      this.#asked.add(version);
      this.#begin();
    }
  }

  /** What became of units under way is not known, and rows can be trusted again. */
  reread(): void {
    this.#isStale = true;
    this.#begin();
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

  #begin(): void {
    if (this.#reading !== undefined || this.#stopped) return;
    const versions = this.#asked;
    this.#asked = new Set();
    this.#isStale = false;
    this.#reading = versions;
    const { loader, schedule, log, clock } = this.#deps;
    loader.routingReleases().then(
      (rows) =>
        schedule(() => {
          this.#table = new RouteTable(rows);
          this.#tables += 1;
          this.#reading = undefined;
          for (const version of versions) this.#tellSettled(version);
          if (this.#asked.size > 0 || this.#isStale) this.#begin();
        }),
      (error: unknown) => {
        log.warn({ err: error }, 'routes could not be read; trying again');
        clock.setTimeout(() => schedule(() => this.#again(versions)), AGAIN_MS);
      },
    );
  }

  #again(versions: ReadonlySet<number>): void {
    this.#reading = undefined;
    for (const version of versions) this.#asked.add(version);
    this.#begin();
  }

  /** The units made so far may rest on an older table: they are settled first. */
  #tellSettled(version: number): void {
    const { commits, release, shard } = this.#deps;
    this.#settled = version;
    commits.whenSettled(() =>
      release([
        { kind: 'peer', shard: OWNER, message: { kind: 'routes.settled', version, shard } },
      ]),
    );
  }
}

const UNKNOWN = unavailable('ENG_SHARD_RESTARTING', 'the releases are being read');
