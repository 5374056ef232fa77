/**
 * What retries of instances run once more, with what that comes to in children, which live anywhere: each is asked
 * of its owner, and nothing is kept.
 */

import type { ShardClient } from '../../../actors/shard/client.js';
import type { RunsAgain, RunsAgainBlock } from '../../../schema/explanation.js';
import { REPEATS_MAX } from '../../../schema/explanation.js';
import { summaryOf } from '../../core/retry-words.js';
import type { Standing } from '../../core/waits.js';
import { EngineError } from '../../errors.js';

/** Children of one instance, and theirs, that are asked; of more it is taken that they repeat something. */
const CHILDREN_ASKED_MAX = 50;
/** Instances that are asked at once: they may have to be loaded. */
const ASKED_AT_ONCE = 10;

interface Left {
  asks: number;
}

export class RetryPreviews {
  readonly #client: Pick<ShardClient, 'ask' | 'shardOf'>;

  constructor(client: Pick<ShardClient, 'ask' | 'shardOf'>) {
    this.#client = client;
  }

  async standing(tenant: string, id: string): Promise<Standing> {
    const shard = this.#client.shardOf(id);
    const { body } = await this.#client.ask(shard, 'instances.standing', tenant, id, undefined);
    return JSON.parse(body) as Standing;
  }

  /** With what retries of children repeat. */
  async whole(tenant: string, again: RunsAgain): Promise<RunsAgain> {
    return this.#whole(tenant, again, { asks: CHILDREN_ASKED_MAX });
  }

  /** How many of the instances would repeat effects; some may be gone, or not be retried at all. */
  async repeating(tenant: string, ids: readonly string[]): Promise<number> {
    let count = 0;
    for (let i = 0; i < ids.length; i += ASKED_AT_ONCE) {
      const some = ids.slice(i, i + ASKED_AT_ONCE);
      const asked = await Promise.allSettled(some.map((id) => this.#repeats(tenant, id)));
      for (const one of asked) {
        if (one.status === 'rejected') throw one.reason;
        if (one.value) count += 1;
      }
    }
    return count;
  }

  async #repeats(tenant: string, id: string): Promise<boolean> {
    const again = await this.#againOf(tenant, id);
    if (again === null) return false;
    return again.repeats_effects || (await this.whole(tenant, again)).repeats_effects;
  }

  /** Null: it does not go on by a retry, or is gone. */
  async #againOf(tenant: string, id: string): Promise<RunsAgain | null> {
    try {
      return (await this.standing(tenant, id)).again;
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return null;
      throw error;
    }
  }

  async #whole(tenant: string, again: RunsAgain, left: Left): Promise<RunsAgain> {
    const blocks: RunsAgainBlock[] = [];
    for (const block of again.blocks) {
      const repeats = await this.#repeatsIn(tenant, block, left);
      if (repeats === undefined) blocks.push(block);
      else {
        const more = { ...block, repeats: repeats.slice(0, REPEATS_MAX), repeats_effects: true };
        blocks.push({ ...more, summary: summaryOf(more) });
      }
    }
    return { ...again, blocks, repeats_effects: blocks.some((block) => block.repeats_effects) };
  }

  /** What the retry of the child repeats; undefined: nothing, or none is retried. */
  async #repeatsIn(tenant: string, { child_id }: RunsAgainBlock, left: Left) {
    if (child_id === undefined) return undefined;
    left.asks -= 1;
    if (left.asks < 0) return [];
    const again = await this.#againOf(tenant, child_id);
    if (again === null) return undefined;
    const { blocks, repeats_effects } = await this.#whole(tenant, again, left);
    return repeats_effects ? blocks.flatMap(({ repeats }) => repeats) : undefined;
  }
}
