/** Changes instances on many shards and adds up the results. */

import { valueFor } from '../../../src/base/quota/last-used.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { Shards } from '../../runtime/shards.js';
import { type Change, type ChangeCounts, firstRefusals } from '../change-many.js';
import type { instanceOperations } from '../operations.js';
import type { PurgeReply } from '../purge.js';

type Client = Shards<typeof instanceOperations>;

export class ManyInstances {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Resolves once the outcomes are durable; rejects once no request is in progress any more.
   *
   * @param job the job that changed instances are marked with
   */
  async change(
    tenant: string,
    ids: readonly string[],
    change: Change,
    job?: string,
  ): Promise<ChangeCounts> {
    const counts = await this.#each<ChangeCounts>(ids, (shard, own) =>
      this.#client.ask(shard, 'instances.changeMany', tenant, '', { ids: own, change, job }),
    );
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
   * Removes instances that ended before the time, or with null instances of deleted sequences.
   * Resolves with the number of removed instances.
   */
  async purge(ids: readonly string[], before: UnixMs | null): Promise<number> {
    const replies = await this.#each<PurgeReply>(ids, (shard, own) =>
      this.#client.ask(shard, 'instances.purge', '', '', { ids: own, before }),
    );
    return replies.reduce((sum, { removed }) => sum + removed, 0);
  }

  #each<Reply>(
    ids: readonly string[],
    ask: (shard: number, ids: readonly string[]) => ReturnType<Client['ask']>,
  ): Promise<Reply[]> {
    const byShard = new Map<number, string[]>();
    for (const id of ids) valueFor(byShard, this.#client.shardOf(id), () => []).push(id);
    return allOf([...byShard], async ([shard, own]) => {
      const { body } = await ask(shard, own);
      return JSON.parse(body) as Reply;
    });
  }
}

/** Rejects with the first failure, once no work is in progress any more. */
export async function allOf<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const settled = await Promise.allSettled(items.map(work));
  return settled.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}
