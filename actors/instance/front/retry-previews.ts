/**
 * Previews of retries, including children and parents. Each shard reports the state of its
 * instances; nothing is stored.
 */

import {
  REPEATS_MAX,
  type RunsAgain,
  type RunsAgainBlock,
  type RunsAgainParent,
} from '../../../schema/explanation.js';
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

/** Descendants that are read per instance; more are assumed to repeat effects. */
const CHILDREN_READ_MAX = 50;
/** Bounded, because instances may have to be loaded. */
const READ_AT_ONCE = 10;
/** The remaining reads of descendants of one instance. */
type Budget = { reads: number };
type Client = Pick<Shards<typeof instanceOperations>, 'ask' | 'shardOf'>;

export class RetryPreviews {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** @param child for the report of whether its result is still used */
  async standing(tenant: string, id: string, child?: string): Promise<InstanceStatus> {
    const shard = this.#client.shardOf(id);
    const body = child === undefined ? undefined : { child };
    const reply = await this.#client.ask(shard, 'instances.standing', tenant, id, body);
    return JSON.parse(reply.body) as InstanceStatus;
  }

  /** Includes retries of children, and whether the parent uses the result. */
  async whole(tenant: string, status: InstanceStatus): Promise<RunsAgain | null> {
    const { again, parent, id, is_dry_run } = status;
    if (again === null) return null;
    const own = await this.#withChildren(tenant, again, { reads: CHILDREN_READ_MAX });
    if (parent === null) return own;
    const above = await this.#parentOf(tenant, id, parent);
    const isRepeated = isOrphan(above) && actsFurther(own) && !is_dry_run;
    return { ...own, parent: above, repeats_effects: own.repeats_effects || isRepeated };
  }

  /** The number of instances that would repeat effects. */
  async repeating(tenant: string, ids: readonly string[]): Promise<number> {
    const repeats = await inSlices(ids, async (id) => {
      const status = await this.#found(tenant, id);
      const again = status && (await this.whole(tenant, status));
      return again?.repeats_effects === true;
    });
    return repeats.filter(Boolean).length;
  }

  /** The instances with a parent that would not use their results. */
  async orphans(tenant: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const isOrphaned = await inSlices(ids, async (id) => {
      const status = await this.#found(tenant, id);
      if (status?.again == null || status.parent === null) return false;
      if (!actsFurther(status.again)) return false;
      return isOrphan(await this.#parentOf(tenant, id, status.parent));
    });
    return new Set(ids.filter((_, at) => isOrphaned[at]));
  }

  /** Undefined if the instance no longer exists. */
  async #found(tenant: string, id: string, child?: string): Promise<InstanceStatus | undefined> {
    try {
      return await this.standing(tenant, id, child);
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** If an ancestor has continued without the parent, the parent counts as continued, too. */
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
      // Other parents need no retry of an ancestor.
      if (stands !== 'takes' || parent?.parent == null) break;
      at = { child: at.id, id: parent.parent };
    }
    const { id: parent, stands } = direct!;
    return { id: parent, stands, summary: parentText(direct!) };
  }

  async #withChildren(tenant: string, again: RunsAgain, budget: Budget): Promise<RunsAgain> {
    const blocks: RunsAgainBlock[] = [];
    for (const block of again.blocks) blocks.push(await this.#withChild(tenant, block, budget));
    return { ...again, blocks, repeats_effects: blocks.some((block) => block.repeats_effects) };
  }

  /** Includes the state of the child, and the effects that its retry repeats. */
  async #withChild(tenant: string, block: RunsAgainBlock, budget: Budget): Promise<RunsAgainBlock> {
    const { child_id, summary: _before, ...facts } = block;
    if (child_id === undefined) return block;
    const described = (more: Partial<RunsAgainFacts>, child_state?: InstanceState) => {
      const known = { ...facts, ...more };
      return { ...known, summary: summaryOf({ ...known, child_state }) };
    };
    budget.reads -= 1;
    if (budget.reads < 0) return described({ child_id, repeats_effects: true });
    const child = await this.#found(tenant, child_id);
    if (child === undefined || child.state === 'cancelled') {
      // Its remaining clean-up was given up.
      if (facts.cleans_up === true) return described({ child_id }, 'cancelled');
      return described({ repeats: [facts.path], repeats_effects: true });
    }
    const { again, owes, state } = child;
    if (again === null || (facts.cleans_up === true && !owes))
      return described({ child_id }, state);
    const { blocks, repeats_effects } = await this.#withChildren(tenant, again, budget);
    const repeats = blocks.flatMap((one) => one.repeats).slice(0, REPEATS_MAX);
    return described({ child_id, ...(repeats_effects && { repeats, repeats_effects }) }, state);
  }
}

/** False: the retry only cleans up. */
function actsFurther({ ends }: RunsAgain): boolean {
  return ends === undefined;
}

async function inSlices<T>(ids: readonly string[], ask: (id: string) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  for (let i = 0; i < ids.length; i += READ_AT_ONCE) {
    answers.push(...(await allOf(ids.slice(i, i + READ_AT_ONCE), ask)));
  }
  return answers;
}
