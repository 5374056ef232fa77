/** What concerns instances of many shards at once: asked of each shard, and added up. */

import type { Change, ChangeCounts, ChangeMany } from '../actors/change-many.js';
import type { ShardClient } from '../actors/client.js';
import type { PurgeReply, PurgeRequest } from '../actors/purge.js';
import type { UnixMs } from './core/time.js';

export class ManyInstances {
  readonly #client: ShardClient;

  constructor(client: ShardClient) {
    this.#client = client;
  }

  /** Resolves with what became of the instances, once that is durable. */
  async change(ids: readonly string[], change: Change): Promise<ChangeCounts> {
    const counts = await Promise.all(
      this.#byShard(ids).map(async ([shard, shardIds]) => {
        const body = JSON.stringify({ ids: shardIds, change } satisfies ChangeMany);
        const reply = await this.#client.ask(shard, 'instances.changeMany', '', '', body);
        return JSON.parse(reply.body) as ChangeCounts;
      }),
    );
    return counts.reduce(
      (sum, { applied, skipped, failed }) => ({
        applied: sum.applied + applied,
        skipped: sum.skipped + skipped,
        failed: sum.failed + failed,
      }),
      { applied: 0, skipped: 0, failed: 0 },
    );
  }

  /** Removes those that ended before that time; resolves with how many they were. */
  async purge(ids: readonly string[], before: UnixMs): Promise<number> {
    const replies = await Promise.all(
      this.#byShard(ids).map(async ([shard, shardIds]) => {
        const body = JSON.stringify({ ids: shardIds, before } satisfies PurgeRequest);
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
