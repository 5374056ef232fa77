/** What a shard provides to its rooms; each room picks what it uses. */

import type { Clock } from '../../src/base/clock.js';
import type { IdGenerator } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Meter } from '../../src/metrics/meter.js';
import type { HostDeps } from './host.js';
import type { InternalRequests } from './internal-requests.js';
import type { Measures } from './measures.js';
import type { Reachability } from './reachability.js';
import type { TimerQueue } from './timer.js';

/** The settings of a shard; plain data, which can be posted to its thread. */
export interface ShardSettings {
  readonly shard: number;
  readonly shards: number;
  readonly tickIntervalMs: number;
  readonly cronTickMs: number;
  readonly workerStaleMs: number;
  readonly workerReaperTickMs: number;
  /** The number of lost claims after which a try fails permanently; 0: never. */
  readonly lostClaimsMax: number;
  readonly stepTimeoutMaxMs: number;
  readonly maxBodyBytes: number;
  readonly requireClaimEpoch: boolean;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly maxContextBytes: number;
  readonly maxOutputBytes: number;
  /** Per kind; absent: the limit of the largest heap. */
  readonly residentBytesMax?: number;
  readonly webhookUrls: readonly string[];
  /** How long actions are kept; 0: for ever. */
  readonly activityDays: number;
}

/** @template Loads the statements with which the room reads its rows */
export interface Kernel<Loads = unknown> extends HostDeps {
  readonly settings: ShardSettings;
  readonly loader: Loads;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly random32: () => number;
  readonly ids: IdGenerator;
  /** An id that is routed to this shard. */
  readonly newId: () => string;
  readonly shard: number;
  readonly shards: number;
  readonly reachability: Pick<Reachability, 'since' | 'outageEnd' | 'turnedAway'>;
  readonly timers: TimerQueue;
  readonly meter: Meter;
  readonly measures: Measures;
  readonly internalRequests: InternalRequests;
  /** Handles messages that peers have posted but that are not delivered yet. */
  readonly takeHints: () => void;
}

export function onFirstShard<Part>({ shard }: Pick<Kernel, 'shard'>, make: () => Part) {
  return shard === 0 ? make() : undefined;
}
