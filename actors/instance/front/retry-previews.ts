/**
 * What retries of instances run once more, with what that comes to in children, and what parents make of it. They
 * live anywhere: each is asked of its owner, and nothing is kept.
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

/** Children of one instance, and theirs, that are asked; of more it is taken that they repeat something. */
const CHILDREN_ASKED_MAX = 50;
/** Instances that are asked at once. */
const ASKED_AT_ONCE = 10;

interface Left {
  asks: number;
}

export class RetryPreviews {
  readonly #client: Pick<Shards<typeof instanceOperations>, 'ask' | 'shardOf'>;

  constructor(client: Pick<Shards<typeof instanceOperations>, 'ask' | 'shardOf'>) {
    this.#client = client;
  }

  /** @param child one that it started: what that is to it is told, too */
  async standing(tenant: string, id: string, child?: string): Promise<InstanceStatus> {
    const shard = this.#client.shardOf(id);
    const asked = child === undefined ? undefined : { child };
    const { body } = await this.#client.ask(shard, 'instances.standing', tenant, id, asked);
    return JSON.parse(body) as InstanceStatus;
  }

  /** With what retries of children repeat, and what its parent makes of it. */
  async whole(tenant: string, standing: InstanceStatus): Promise<RunsAgain | null> {
    const { again, parent, id, is_dry_run } = standing;
    if (again === null) return null;
    const own = await this.#withChildren(tenant, again, { asks: CHILDREN_ASKED_MAX });
    if (parent === null) return own;
    const above = await this.#parentOf(tenant, id, parent);
    const isAsked = isOrphan(above) && actsFurther(own) && !is_dry_run;
    return { ...own, parent: above, repeats_effects: own.repeats_effects || isAsked };
  }

  /** How many of the instances would repeat effects; some may be gone, or not be retried at all. */
  async repeating(tenant: string, ids: readonly string[]): Promise<number> {
    const asked = await inTurn(ids, (id) => this.#wholeOf(tenant, id));
    return asked.filter((again) => again?.repeats_effects === true).length;
  }

  /** Those of the children that would go on for nobody. */
  async orphans(tenant: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const asked = await inTurn(ids, async (id) => {
      const standing = await this.#found(tenant, id);
      if (standing?.again == null || standing.parent === null) return false;
      if (!actsFurther(standing.again)) return false;
      return isOrphan(await this.#parentOf(tenant, id, standing.parent));
    });
    return new Set(ids.filter((_, at) => asked[at]));
  }

  async #wholeOf(tenant: string, id: string): Promise<RunsAgain | null> {
    const standing = await this.#found(tenant, id);
    return standing === undefined ? null : this.whole(tenant, standing);
  }

  /** Undefined: it is gone. */
  async #found(tenant: string, id: string, child?: string): Promise<InstanceStatus | undefined> {
    try {
      return await this.standing(tenant, id, child);
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Where one above it has gone on, the parent has, too. */
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
      // One that waits goes on by itself.
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

  /** With what is known of the child, and what a retry of it repeats. */
  async #withChild(tenant: string, block: RunsAgainBlock, left: Left): Promise<RunsAgainBlock> {
    const { child_id, summary: _before, ...facts } = block;
    if (child_id === undefined) return block;
    const told = (more: Partial<RunsAgainFacts>, child_state?: InstanceState) => {
      const known = { ...facts, ...more };
      return { ...known, summary: summaryOf({ ...known, child_state }) };
    };
    left.asks -= 1;
    if (left.asks < 0) return told({ child_id, repeats_effects: true });
    const child = await this.#found(tenant, child_id);
    if (child === undefined || child.state === 'cancelled') {
      // What was only to be cleaned up is given up.
      if (facts.cleans_up === true) return told({ child_id }, 'cancelled');
      return told({ repeats: [facts.path], repeats_effects: true });
    }
    const { again, owes, state } = child;
    if (again === null || (facts.cleans_up === true && !owes)) return told({ child_id }, state);
    const { blocks, repeats_effects } = await this.#withChildren(tenant, again, left);
    const repeats = blocks.flatMap((one) => one.repeats).slice(0, REPEATS_MAX);
    return told({ child_id, ...(repeats_effects && { repeats, repeats_effects }) }, state);
  }
}

/** Where it is only cleaned up, nothing is shipped or charged by that. */
function actsFurther({ ends }: RunsAgain): boolean {
  return ends === undefined;
}

/** Not all at once: they may have to be loaded. */
async function inTurn<T>(ids: readonly string[], ask: (id: string) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  for (let i = 0; i < ids.length; i += ASKED_AT_ONCE) {
    const asked = await Promise.allSettled(ids.slice(i, i + ASKED_AT_ONCE).map(ask));
    for (const one of asked) {
      if (one.status === 'rejected') throw one.reason;
      answers.push(one.value);
    }
  }
  return answers;
}
