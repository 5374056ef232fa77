/**
 * A room (module) of the front thread: routes, gauges and background work. The rooms are called in the order of their
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
  readonly parts?: readonly (FrontRoom | undefined)[];
  /** Each route and each gauge belongs to one room. */
  readonly operations?: Partial<FrontOperations>;
  readonly gauges?: Partial<Readonly<Record<FrontMetricName, () => number>>>;
  /** Loads the data that must be in memory before requests are served; rejects when the rows cannot be read. */
  prepare?(): Promise<void>;
  /** The engine is about to serve: start background work. */
  start?(): void;
  /** A tenant was moved to this cell: there may be new rows without a notification. */
  wake?(): void;
  eventsFired?(): void;
  /** The tenant was moved to this cell: reload its data. @param stampsFrom minimum time of audit entries */
  tenantComes?(tenant: string, stampsFrom: UnixMs): Promise<void> | void;
  /** The engine is stopping and shards still answer: end streams and cancel long work. */
  drain?(): Promise<void> | void;
  /** The threads have stopped. Idempotent; also called when the engine never served. */
  stop?(): Promise<void> | void;
}

/** The part of the configuration that rooms use, with the same names. */
export interface FrontSettings {
  readonly shards: number;
  /** Undefined: the address of the request. */
  readonly publicUrl: string | undefined;
  /** How long ended instances are retained; 0: for ever. */
  readonly retentionDays: number;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly webhookSecret: string | undefined;
}

/** The services of the engine for its front rooms. @typeParam Client how the room calls the shards */
export interface FrontKernel<Client = unknown> {
  readonly client: Client;
  readonly reads: Reads;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  readonly log: Logger;
  readonly offload: Offload;
  readonly offloadPool: Pick<OffloadPool, 'through'>;
  readonly bodies: FrontBodies;
  readonly keys: KeyRegistry;
  /** Undefined: all tenants are served here. */
  readonly placement: Placement | undefined;
  readonly settings: FrontSettings;
}
