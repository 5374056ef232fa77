/**
 * The routing table of one shard, which routes creations by the releases. It is read from rows at the start and
 * whenever the release owner reports a change. The shard confirms a table version when all units decided by an older
 * table are durable; then the owner answers its caller.
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

/** Ends of instances within this time are reported to the owner as one hint. */
const ENDED_MS = 250;
const OWNER = 0;

/** The only key of the replica, because all rows form one table. */
const ALL = 'all';

export class Routing implements Room {
  readonly #deps: RoutingDeps;
  #table: RouteTable | undefined;
  /** The number of tables so far. Names may resolve differently with each. */
  tables = 0;
  readonly #rows: Replica<typeof ALL>;
  /** Canaries with ended instances not yet reported to the owner. */
  readonly #ended = new Set<string>();
  #endedHandle: TimerHandle | undefined;
  readonly messages = {
    'routes.read': ({ version }) => this.#rows.changed(version, [ALL]),
  } satisfies Messages;
  readonly effects = { 'release.ended': ({ release }) => this.ended(release) } satisfies Effects;

  constructor(deps: RoutingDeps) {
    this.#deps = deps;
    this.#rows = new Replica(deps, {
      read: async () => {
        const rows = await deps.loader.routingReleases();
        return () => {
          this.#table = new RouteTable(rows);
          this.tables += 1;
        };
      },
      failed: (err) => deps.log.warn({ err }, 'routes could not be read; trying again'),
      // Earlier units may be based on an older table, so they must be settled first.
      settled: (version) => {
        const { commits, release, shard } = deps;
        const message = { kind: 'routes.settled', version, shard } as const;
        commits.whenSettled(() => release([{ kind: 'peer', shard: OWNER, message }]));
      },
    });
  }

  /** Resolves when the table is loaded; rejects when the rows cannot be read. */
  prepare(): Promise<void> {
    return this.#rows.start([ALL]);
  }

  stop(): void {
    this.#rows.stop();
    this.#deps.clock.clearTimeout(this.#endedHandle);
  }

  /**
   * Adds the route to the instance. Call it in the turn that makes its unit.
   * @returns the instance itself when no release routes it
   * @throws EngineError 503 while the routes are unknown: creations must not fall back to the baseline
   */
  routed<Instance extends Routable>(instance: Instance): Instance {
    if (isPinned(instance.body)) return instance;
    const { tenant_id } = instance.body;
    const route = this.route(askedOf(instance), tenant_id, () => cohortKeyOf(instance));
    return route === undefined ? instance : { ...instance, route };
  }

  route(sequenceId: string, tenant: string, keyOf: () => string): Route | undefined {
    if (this.#table === undefined) throw UNKNOWN;
    return this.#table.route(sequenceId, tenant, keyOf);
  }

  /** Resolves when the table, with the rows of the admitted tenant, was read again. */
  tenantComes(): Promise<void> {
    return this.#rows.readAnew([ALL]);
  }

  writerReady(): void {
    this.#rows.reread([ALL]);
  }

  /** Reports the end of an instance to the owner while the release is a canary. */
  ended(release: string): void {
    if (this.#table?.isCanary(release) !== true) return;
    this.#ended.add(release);
    const { clock, schedule } = this.#deps;
    this.#endedHandle ??= clock.setTimeout(() => schedule(() => this.#reportEnded()), ENDED_MS);
  }

  #reportEnded(): void {
    this.#endedHandle = undefined;
    const hints = [...this.#ended].map((release) => {
      return { kind: 'peer', shard: OWNER, message: { kind: 'release.ended', release } } as const;
    });
    this.#ended.clear();
    this.#deps.release(hints);
  }
}

const UNKNOWN = unavailable('ENG_SHARD_RESTARTING', 'the releases are being read');
