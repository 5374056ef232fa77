/** What a shard gives to its rooms: each of them names what it takes. */

import type { Clock } from '../../src/base/clock.js';
import type { IdGenerator } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Meter } from '../../src/metrics/meter.js';
import type { HostDeps } from './host.js';
import type { InternalRequests } from './internal-requests.js';
import type { Measures } from './measures.js';
import type { TimerQueue } from './timer.js';

/** The settings of a shard; plain data, so that they can cross to its thread. */
export interface ShardSettings {
  readonly shard: number;
  readonly shards: number;
  readonly tickIntervalMs: number;
  readonly cronTickMs: number;
  readonly workerStaleMs: number;
  readonly workerReaperTickMs: number;
  /** After so many lost claims a try has failed for good; 0: never. */
  readonly lostClaimsMax: number;
  /** The longest time that a call inside the process may take. */
  readonly stepTimeoutMaxMs: number;
  readonly maxBodyBytes: number;
  readonly requireClaimEpoch: boolean;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly maxContextBytes: number;
  readonly maxOutputBytes: number;
  /** What the actors of one kind may take in memory; absent: as much as in the largest heap. */
  readonly residentBytesMax?: number;
  /** Whom to tell of ended instances. */
  readonly webhookUrls: readonly string[];
}

/** From when on workers can be heard, as `actors/shard/hearing.ts` has it. */
export interface Heard {
  /** The silence of workers of this tenant counts from here. */
  since(tenant: string): UnixMs;
  /** Of the last outage; now while it lasts, 0 when there was none. */
  readonly outageEnd: UnixMs;
  /** Somebody was told that what he asks for cannot be done now: he may have been a worker. */
  turnedAway(): void;
}

/** @template Loads what the room reads its rows by */
export interface Kernel<Loads = unknown> extends HostDeps {
  readonly settings: ShardSettings;
  readonly loader: Loads;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly random32: () => number;
  readonly ids: IdGenerator;
  /** An id that falls on this shard. */
  readonly newId: () => string;
  readonly shard: number;
  readonly shards: number;
  readonly hearing: Heard;
  readonly timers: TimerQueue;
  readonly meter: Meter;
  readonly measures: Measures;
  /** Requests that rooms make of instances. */
  readonly internalRequests: InternalRequests;
  /** Takes in what peers have posted and what has not been delivered yet. */
  readonly takeHints: () => void;
}

/** What the first shard alone has. */
export function onFirstShard<Part>({ shard }: Pick<Kernel, 'shard'>, make: () => Part) {
  return shard === 0 ? make() : undefined;
}
