/**
 * A room of the front thread: routes, gauges, and work beside the requests. The rooms are called in the order of their
 * list (`src/server/front-rooms.ts`).
 */

import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { Offload } from '../base/offload.js';
import type { OffloadPool } from '../base/offload-pool.js';
import type { UnixMs } from '../base/time.js';
import type { Reads } from '../db/reads.js';
import type { FrontMetricName } from '../metrics/catalog.js';
import type { KeyRegistry } from './key-registry.js';
import type { FrontBodies, FrontOperations } from './operation.js';
import type { Placement } from './ports.js';

export interface FrontRoom {
  /** Parts of the room, which have the same members. They come before the room itself. */
  readonly parts?: readonly (FrontRoom | undefined)[];
  /** Each route, and each gauge, has one room. */
  readonly operations?: Partial<FrontOperations>;
  readonly gauges?: Partial<Readonly<Record<FrontMetricName, () => number>>>;
  /** Reads what must be in memory before requests are served; rejects when the rows cannot be read. */
  prepare?(): Promise<void>;
  /** The engine is about to serve: work beside the requests begins. */
  start?(): void;
  /** Rows may exist that were not reported: a tenant was moved to this cell. */
  wake?(): void;
  /** An event that fires triggers was stored. */
  eventsFired?(): void;
  /**
   * The tenant was moved to this cell and is not served yet: its data in memory is read again.
   *
   * @param stampsFrom audit entries get no earlier time
   */
  tenantComes?(tenant: string, stampsFrom: UnixMs): Promise<void> | void;
  /** The engine stops, and shards still answer: streams end, and what takes long is given up. */
  drain?(): Promise<void> | void;
  /** Threads have stopped. Idempotent; also called when the engine has never served. */
  stop?(): Promise<void> | void;
}

/** What rooms take of the configuration, by the names that it has there. */
export interface FrontSettings {
  readonly shards: number;
  /** Where people reach the server; undefined: where the caller has reached it. */
  readonly publicUrl: string | undefined;
  /** How long ended instances are kept; 0: for ever. */
  readonly retentionDays: number;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly webhookSecret: string | undefined;
}

/** What the engine provides to its front rooms. @typeParam Client how the room calls the shards */
export interface FrontKernel<Client = unknown> {
  readonly client: Client;
  readonly reads: Reads;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  readonly log: Logger;
  readonly offload: Offload;
  /** For jobs that are given up by a signal. */
  readonly offloadPool: Pick<OffloadPool, 'through'>;
  readonly bodies: FrontBodies;
  readonly keys: KeyRegistry;
  /** Decides which tenants are served here; undefined: all of them. */
  readonly placement: Placement | undefined;
  readonly settings: FrontSettings;
}
