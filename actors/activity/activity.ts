/**
 * Counts committed creations and ends of instances of one shard, by tenant and minute. The counts are written a few
 * times a minute; a crash loses the latest ones (docs/decisions/0038-counters-logs-and-traces.md).
 */

import type { BackgroundJob } from '../../src/base/background-job.js';
import type { TimerHandle } from '../../src/base/clock.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Meter } from '../../src/metrics/meter.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import { type PruningDeps, pruning } from '../runtime/pruning.js';
import type { Effects, Room } from '../runtime/room.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { addTo, type Buckets, bucketOf } from './core/activity.js';
import type { ActivityLoads } from './loads.js';
import { ACTIVITY_LINE } from './tables.js';

interface ActivityDeps extends ServiceDeps, PruningDeps, Pick<Kernel, 'shard'> {
  readonly loader: ActivityLoads;
  readonly meter: Pick<Meter, 'count'>;
}

type Change = 'created' | 'completed' | 'failed' | 'cancelled';

interface Minute extends Record<Change, number> {
  /** The time of the first change. */
  readonly at: UnixMs;
  readonly durations: Buckets;
  isWritten: boolean;
}

const MINUTE_MS = 60_000;
/** Maximum delay of a write. */
const WRITE_MS = 20_000;
/** Of about a kilobyte each. Changes of further tenants are counted in a metric only. */
const TENANTS_MAX = 10_000;
/** Larger units would delay the writer. */
const ROWS_PER_UNIT = 500;
export const ACTIVITY_KEPT_MS = 7 * 24 * 60 * MINUTE_MS;

export class Activity implements Room {
  readonly #deps: ActivityDeps;
  readonly #service: Service;
  readonly #minutes = new Map<string, Minute>();
  readonly parts: readonly [BackgroundJob | undefined];
  #timer: TimerHandle;
  #isStopped = false;

  readonly effects = {
    counted: ({ tenant, change, durationMs }) => this.count(tenant, change, durationMs),
  } satisfies Effects;

  constructor(deps: ActivityDeps) {
    this.#deps = deps;
    this.#service = new Service('activity', deps);
    const oldest = () => deps.loader.oldestActivity();
    const old = { name: 'old activity', by: ACTIVITY_LINE.prune, keptMs: ACTIVITY_KEPT_MS, oldest };
    this.parts = [onFirstShard(deps, () => pruning(deps, old))];
  }

  /** @param durationMs from creation to end, for completed and failed instances */
  count(tenant: string, change: Change, durationMs?: number): void {
    if (this.#deps.commits.suspended.has(tenant)) return;
    const minute = this.#minutes.get(tenant) ?? this.#begin(tenant);
    if (minute === undefined) {
      this.#deps.meter.count('engine_activity_left_out_total');
      return;
    }
    minute[change] += 1;
    minute.isWritten = false;
    if (durationMs !== undefined) addTo(minute.durations, bucketOf(durationMs), 1);
  }

  drain(): void {
    this.#write();
  }

  /** Writes the counts before the suspension, while units are still accepted. */
  tenantLeaves(tenant: string): void {
    this.#write();
    this.#minutes.delete(tenant);
    // The next count sets another timer.
    if (this.#minutes.size === 0) this.#deps.clock.clearTimeout(this.#timer);
  }

  stop(): void {
    this.#isStopped = true;
    this.#deps.clock.clearTimeout(this.#timer);
  }

  #begin(tenant: string): Minute | undefined {
    if (this.#minutes.size >= TENANTS_MAX) return undefined;
    const at = this.#deps.now();
    if (this.#minutes.size === 0) this.#writeLater(at);
    const counts = { created: 0, completed: 0, failed: 0, cancelled: 0 };
    const minute = { at, ...counts, durations: new Map(), isWritten: false };
    this.#minutes.set(tenant, minute);
    return minute;
  }

  /** After `WRITE_MS`, and at the end of the minute. */
  #writeLater(now: UnixMs): void {
    if (this.#isStopped) return;
    const { clock, schedule } = this.#deps;
    const delay = Math.min(WRITE_MS, MINUTE_MS - (now % MINUTE_MS));
    this.#timer = clock.setTimeout(() => schedule(() => this.#tick()), delay);
  }

  #tick(): void {
    const now = this.#deps.now();
    this.#write();
    const minuteBegan = now - (now % MINUTE_MS);
    for (const [tenant, { at }] of this.#minutes) {
      if (at < minuteBegan) this.#minutes.delete(tenant);
    }
    if (this.#minutes.size > 0) this.#writeLater(now);
  }

  #write(): void {
    const { shard } = this.#deps;
    let turn = new Turn();
    let written: Minute[] = [];
    const commit = () => {
      if (written.length > 0) this.#commit(turn, written);
      turn = new Turn();
      written = [];
    };
    for (const [tenant_id, minute] of this.#minutes) {
      if (minute.isWritten) continue;
      const { at, durations, isWritten: _, ...counts } = minute;
      const place = { tenant_id, at: isoTime(at), shard };
      const row = { ...place, ...counts, durations: [...durations] };
      turn.put(ACTIVITY_LINE.set, JSON.stringify([tenant_id, at]), row);
      minute.isWritten = true;
      written.push(minute);
      if (written.length === ROWS_PER_UNIT) commit();
    }
    commit();
  }

  #commit(turn: Turn, minutes: readonly Minute[]): void {
    this.#service.commitNow(turn, {
      settled: (_error, ack) => {
        if (ack.outcome !== 'refused') return;
        for (const minute of minutes) minute.isWritten = false;
        this.#deps.log.warn({ sqlState: ack.sqlState }, 'activity rows refused');
      },
    });
  }
}
