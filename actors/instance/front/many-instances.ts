/** What concerns instances of many shards at once: asked of each shard, and added up. */

import type { BackgroundJob } from '../../../src/base/background-job.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { Shards } from '../../runtime/shards.js';
import { type Change, type ChangeCounts, firstRefusals } from '../change-many.js';
import type { instanceOperations } from '../operations.js';
import type { PurgeReply } from '../purge.js';

/** Instances of one unit: their rows are one statement, behind which others wait. */
const REMOVED_AT_ONCE = 50;

export class ManyInstances {
  readonly #client: Shards<typeof instanceOperations>;

  constructor(client: Shards<typeof instanceOperations>) {
    this.#client = client;
  }

  /**
   * Resolves with what became of the instances, once that is durable; rejects when all shards have been
   * heard or given up, so that nothing of it is still asked for.
   *
   * @param tenant whose they are
   * @param job that marks are made for
   */
  async change(
    tenant: string,
    ids: readonly string[],
    change: Change,
    job?: string,
  ): Promise<ChangeCounts> {
    const asked = await Promise.allSettled(
      this.#byShard(ids).map(async ([shard, shardIds]) => {
        const body = { ids: shardIds, change, job };
        const reply = await this.#client.ask(shard, 'instances.changeMany', tenant, '', body);
        return JSON.parse(reply.body) as ChangeCounts;
      }),
    );
    const counts = asked.map((one) => {
      if (one.status === 'rejected') throw one.reason;
      return one.value;
    });
    return counts.reduce(
      (sum, one) => ({
        applied: sum.applied + one.applied,
        skipped: sum.skipped + one.skipped,
        failed: sum.failed + one.failed,
        ...firstRefusals(sum, one),
      }),
      { applied: 0, skipped: 0, failed: 0 },
    );
  }

  /**
   * Removes those that ended before that time, or with null those whose sequence was deleted; resolves
   * with how many they were.
   */
  async purge(ids: readonly string[], before: UnixMs | null): Promise<number> {
    const replies = await Promise.all(
      this.#byShard(ids).map(async ([shard, shardIds]) => {
        const body = { ids: shardIds, before };
        const reply = await this.#client.ask(shard, 'instances.purge', '', '', body);
        return JSON.parse(reply.body) as PurgeReply;
      }),
    );
    return replies.reduce((sum, { removed }) => sum + removed, 0);
  }

  #byShard(ids: readonly string[]): [shard: number, ids: string[]][] {
    const byShard = new Map<number, string[]>();
    for (const id of ids) {
      const shard = this.#client.shardOf(id);
      const shardIds = byShard.get(shard);
      if (shardIds === undefined) byShard.set(shard, [id]);
      else shardIds.push(id);
    }
    return [...byShard];
  }
}

/** Has the instances removed, a few in each step; resolves with how many were. */
export async function removeInSteps(
  job: BackgroundJob,
  ids: readonly string[],
  remove: (some: readonly string[]) => Promise<number>,
): Promise<number> {
  let removed = 0;
  for (let i = 0; i < ids.length && !job.isStopped; i += REMOVED_AT_ONCE) {
    removed += await job.step(() => remove(ids.slice(i, i + REMOVED_AT_ONCE)));
  }
  return removed;
}
