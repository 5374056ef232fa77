/**
 * What one shard counts of its committed units: creations and ends of instances by tenant, ends of blocks by version,
 * and tasks by queue.
 */

import type { BackgroundJob } from '../../src/base/background-job.js';
import type { EndedBlock } from '../../src/core/progress.js';
import type { Meter } from '../../src/metrics/meter.js';
import { onFirstShard } from '../runtime/kernel.js';
import { type PruningDeps, pruning } from '../runtime/pruning.js';
import type { Effects, Room } from '../runtime/room.js';
import type { Effect, TaskChange } from '../runtime/turn.js';
import { addTo, type Buckets, bucketOf } from './core/activity.js';
import type { BlockCounts } from './core/steps.js';
import { Counts, type CountsDeps, MINUTE_MS } from './counts.js';
import type { ActivityLoads } from './loads.js';
import { ACTIVITY_LINE, QUEUE_LINE, STEP_LINE } from './tables.js';

type EffectOf<Kind extends Effect['kind']> = Extract<Effect, { kind: Kind }>;

interface ActivityDeps extends CountsDeps, PruningDeps {
  readonly loader: ActivityLoads;
  readonly meter: Pick<Meter, 'count'>;
}

type Change = 'created' | 'completed' | 'failed' | 'cancelled';
/** As the columns of a row. `longest_wait` in milliseconds. */
type QueueCounts = Record<TaskChange | 'longest_wait', number>;
type Minute = Record<Change, number> & { readonly durations: Buckets };

/** Of about a kilobyte each. Changes of further tenants are counted in a metric only. */
const TENANTS_MAX = 10_000;
/** As above, of all tenants and versions together. */
const BLOCKS_MAX = 20_000;
/** The queues of all tenants, by handler. */
const QUEUES_MAX = 10_000;
/** No name has it. */
const BETWEEN = '\0';
const queueIn = (key: string) => key.slice(key.indexOf(BETWEEN) + 1);
/** Longer than a minute, so that a week of a sequence is read in some milliseconds. */
const STEPS_INTERVAL_MS = 5 * MINUTE_MS;
export const ACTIVITY_KEPT_MS = 7 * 24 * 60 * MINUTE_MS;

export class Activity implements Room {
  readonly #deps: ActivityDeps;
  readonly #minutes: Counts<Minute>;
  readonly #blocks: Counts<BlockCounts>;
  readonly #queues: Counts<QueueCounts>;
  readonly parts: readonly (BackgroundJob | undefined)[];

  readonly effects = {
    counted: ({ tenant, change, durationMs }) => this.count(tenant, change, durationMs),
    ended: ({ tenant, sequence, blocks }) => this.countBlocks(tenant, sequence, blocks),
    tasked: (effect) => this.countTask(effect),
  } satisfies Effects;

  constructor(deps: ActivityDeps) {
    this.#deps = deps;
    this.#minutes = new Counts(deps, {
      name: 'activity',
      intervalMs: MINUTE_MS,
      partsMax: TENANTS_MAX,
      empty: () => ({ created: 0, completed: 0, failed: 0, cancelled: 0, durations: new Map() }),
      put(turn, place, key, parts) {
        const { durations, ...counts } = parts.get('')!;
        const row = { ...place, ...counts, durations: [...durations] };
        turn.put(ACTIVITY_LINE.set, JSON.stringify([key, place.at]), row);
      },
    });
    this.#blocks = new Counts(deps, {
      name: 'step activity',
      intervalMs: STEPS_INTERVAL_MS,
      partsMax: BLOCKS_MAX,
      empty: () => ({ runs: 0, failures: 0, ms: 0, durations: new Map() }),
      put(turn, place, sequence_id, parts) {
        const blocks = [...parts].map(([id, { runs, failures, ms, durations }]) => {
          return [id, runs, failures, ms, [...durations]];
        });
        const row = { ...place, sequence_id, blocks };
        turn.put(STEP_LINE.set, JSON.stringify([sequence_id, place.at]), row);
      },
    });
    this.#queues = new Counts(deps, {
      name: 'queue activity',
      intervalMs: MINUTE_MS,
      partsMax: QUEUES_MAX,
      empty: () => ({ arrived: 0, taken: 0, withdrawn: 0, ended: 0, longest_wait: 0 }),
      put(turn, place, key, parts) {
        for (const [handler_name, counts] of parts) {
          const queue_name = queueIn(key);
          const id = JSON.stringify([key, handler_name, place.at]);
          turn.put(QUEUE_LINE.set, id, { ...place, handler_name, queue_name, ...counts });
        }
      },
    });
    const old = { keptMs: ACTIVITY_KEPT_MS };
    const { oldestActivity, oldestSteps, oldestQueueMinutes } = deps.loader;
    const kinds = [
      { ...old, name: 'old activity', by: ACTIVITY_LINE.prune, oldest: oldestActivity },
      { ...old, name: 'old step activity', by: STEP_LINE.prune, oldest: oldestSteps },
      { ...old, name: 'old queue activity', by: QUEUE_LINE.prune, oldest: oldestQueueMinutes },
    ];
    this.parts = kinds.map((kind) => onFirstShard(deps, () => pruning(deps, kind)));
  }

  /** @param durationMs from creation to end, for completed and failed instances */
  count(tenant: string, change: Change, durationMs?: number): void {
    const { commits, meter } = this.#deps;
    if (commits.suspended.has(tenant)) return;
    const minute = this.#minutes.part(tenant, tenant, '');
    if (minute === undefined) {
      meter.count('engine_activity_left_out_total');
      return;
    }
    minute[change] += 1;
    if (durationMs !== undefined) addTo(minute.durations, bucketOf(durationMs), 1);
  }

  countBlocks(tenant: string, sequence: string, blocks: readonly EndedBlock[]): void {
    const { commits, meter } = this.#deps;
    if (commits.suspended.has(tenant)) return;
    for (const { id, isFailed, ms } of blocks) {
      const counts = this.#blocks.part(tenant, sequence, id);
      if (counts === undefined) {
        meter.count('engine_steps_left_out_total');
        continue;
      }
      counts.runs += 1;
      if (isFailed) counts.failures += 1;
      counts.ms += ms;
      addTo(counts.durations, bucketOf(ms), 1);
    }
  }

  countTask({ tenant, handler, queue, change, waitedMs }: EffectOf<'tasked'>): void {
    const { commits, meter } = this.#deps;
    if (commits.suspended.has(tenant)) return;
    const counts = this.#queues.part(tenant, `${tenant}${BETWEEN}${queue}`, handler);
    if (counts === undefined) {
      meter.count('engine_queue_changes_left_out_total');
      return;
    }
    counts[change] += 1;
    if (waitedMs > counts.longest_wait) counts.longest_wait = waitedMs;
  }

  drain(): void {
    this.#minutes.write();
    this.#blocks.write();
    this.#queues.write();
  }

  tenantLeaves(tenant: string): void {
    this.#minutes.tenantLeaves(tenant);
    this.#blocks.tenantLeaves(tenant);
    this.#queues.tenantLeaves(tenant);
  }

  stop(): void {
    this.#minutes.stop();
    this.#blocks.stop();
    this.#queues.stop();
  }
}
