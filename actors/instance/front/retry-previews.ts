/**
 * Previews of what retries of instances run again, including their children and parents. These are anywhere in the
 * cluster: each owner is asked, and nothing is stored.
 */

import type { RunsAgain, RunsAgainBlock, RunsAgainParent } from '../../../schema/explanation.js';
import { REPEATS_MAX } from '../../../schema/explanation.js';
import type { InstanceState } from '../../../schema/states.js';
import { EngineError } from '../../../src/base/errors.js';
import { LIMITS } from '../../../src/base/limits.js';
import type { Shards } from '../../runtime/shards.js';
import {
  isOrphan,
  type ParentFacts,
  parentText,
  type RunsAgainFacts,
  summaryOf,
} from '../core/retry-words.js';
import type { instanceOperations } from '../operations.js';
import type { InstanceStatus } from '../waits.js';
import { allOf } from './many-instances.js';

/** Descendants of one instance that are asked; further ones are assumed to repeat effects. */
const CHILDREN_ASKED_MAX = 50;
/** Instances that are asked at once: they may have to be loaded. */
const ASKED_AT_ONCE = 10;

/** The descendants that may still be asked. */
interface Left {
  asks: number;
}

type Client = Pick<Shards<typeof instanceOperations>, 'ask' | 'shardOf'>;

export class RetryPreviews {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** @param child for which the report includes whether the instance still takes its result */
  async standing(tenant: string, id: string, child?: string): Promise<InstanceStatus> {
    const shard = this.#client.shardOf(id);
    const asked = child === undefined ? undefined : { child };
    const { body } = await this.#client.ask(shard, 'instances.standing', tenant, id, asked);
    return JSON.parse(body) as InstanceStatus;
  }

  /** Includes the retries of children, and whether its parent takes the result. */
  async whole(tenant: string, standing: InstanceStatus): Promise<RunsAgain | null> {
    const { again, parent, id, is_dry_run } = standing;
    if (again === null) return null;
    const own = await this.#withChildren(tenant, again, { asks: CHILDREN_ASKED_MAX });
    if (parent === null) return own;
    const above = await this.#parentOf(tenant, id, parent);
    const isAsked = isOrphan(above) && actsFurther(own) && !is_dry_run;
    return { ...own, parent: above, repeats_effects: own.repeats_effects || isAsked };
  }

  /** How many of the instances would repeat effects; some may be deleted, or not be retried at all. */
  async repeating(tenant: string, ids: readonly string[]): Promise<number> {
    const repeats = await inSlices(ids, async (id) => {
      const standing = await this.#found(tenant, id);
      const again = standing && (await this.whole(tenant, standing));
      return again?.repeats_effects === true;
    });
    return repeats.filter(Boolean).length;
  }

  /** The instances whose results no parent would take. */
  async orphans(tenant: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const isOrphaned = await inSlices(ids, async (id) => {
      const standing = await this.#found(tenant, id);
      if (standing?.again == null || standing.parent === null) return false;
      if (!actsFurther(standing.again)) return false;
      return isOrphan(await this.#parentOf(tenant, id, standing.parent));
    });
    return new Set(ids.filter((_, at) => isOrphaned[at]));
  }

  /** Undefined: it does not exist any more. */
  async #found(tenant: string, id: string, child?: string): Promise<InstanceStatus | undefined> {
    try {
      return await this.standing(tenant, id, child);
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** If an ancestor has continued without it, so has the parent. */
  async #parentOf(tenant: string, child: string, id: string): Promise<RunsAgainParent> {
    let direct: ParentFacts | undefined;
    for (let at = { child, id }, depth = 0; depth < LIMITS.childDepthMax; depth += 1) {
      const parent = await this.#found(tenant, at.id, at.child);
      const { stands = 'ended', state } = parent ?? {};
      const facts = { id: at.id, stands, state };
      if (isOrphan(facts) && direct !== undefined) {
        return { id: direct.id, stands, summary: parentText(direct, at.id) };
      }
      direct ??= facts;
      // An instance that waits continues by itself.
      if (stands !== 'takes' || parent?.parent == null) break;
      at = { child: at.id, id: parent.parent };
    }
    const { id: parent, stands } = direct!;
    return { id: parent, stands, summary: parentText(direct!) };
  }

  async #withChildren(tenant: string, again: RunsAgain, left: Left): Promise<RunsAgain> {
    const blocks: RunsAgainBlock[] = [];
    for (const block of again.blocks) blocks.push(await this.#withChild(tenant, block, left));
    return { ...again, blocks, repeats_effects: blocks.some((block) => block.repeats_effects) };
  }

  /** Includes the state of the child, and what a retry of it repeats. */
  async #withChild(tenant: string, block: RunsAgainBlock, left: Left): Promise<RunsAgainBlock> {
    const { child_id, summary: _before, ...facts } = block;
    if (child_id === undefined) return block;
    const described = (more: Partial<RunsAgainFacts>, child_state?: InstanceState) => {
      const known = { ...facts, ...more };
      return { ...known, summary: summaryOf({ ...known, child_state }) };
    };
    left.asks -= 1;
    if (left.asks < 0) return described({ child_id, repeats_effects: true });
    const child = await this.#found(tenant, child_id);
    if (child === undefined || child.state === 'cancelled') {
      // Clean-up that was left is given up.
      if (facts.cleans_up === true) return described({ child_id }, 'cancelled');
      return described({ repeats: [facts.path], repeats_effects: true });
    }
    const { again, owes, state } = child;
    if (again === null || (facts.cleans_up === true && !owes))
      return described({ child_id }, state);
    const { blocks, repeats_effects } = await this.#withChildren(tenant, again, left);
    const repeats = blocks.flatMap((one) => one.repeats).slice(0, REPEATS_MAX);
    return described({ child_id, ...(repeats_effects && { repeats, repeats_effects }) }, state);
  }
}

/** An instance that only cleans up has no further effects. */
function actsFurther({ ends }: RunsAgain): boolean {
  return ends === undefined;
}

async function inSlices<T>(ids: readonly string[], ask: (id: string) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  for (let i = 0; i < ids.length; i += ASKED_AT_ONCE) {
    answers.push(...(await allOf(ids.slice(i, i + ASKED_AT_ONCE), ask)));
  }
  return answers;
}
