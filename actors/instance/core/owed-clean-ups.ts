/**
 * The clean-ups that an instance has yet to run: compensations of what completed in its sagas, finally lists
 * and catch lists of blocks that have not ended, and hooks. Read off the execution, by the rules by which these
 * kinds go on (docs/reference/blocks.md). Whoever forgets blocks has to say which of these are forgotten with them.
 */

import type { HookList } from '../../../schema/blocks.js';
import {
  CATCH_LIST,
  COMPLETED,
  type Execution,
  FAILED,
  FINALLY_LIST,
  type ForEachRecord,
  type OpenRecord,
  type RouterRecord,
  type SagaRecord,
  SKIPPED,
  TRY_LIST,
  type TryCatchRecord,
} from '../../../schema/execution.js';
import { iterationOf, pathOf, withEnded } from '../../../src/core/paths.js';
import type { NodePlace, Plan, PlanNode } from '../../../src/core/plan-nodes.js';

export interface OwedCleanUp {
  readonly kind: 'compensation' | 'finally' | 'catch' | 'hook';
  /** The id of the block that owes it, and its path; of hooks the name of their list. */
  readonly owner: string;
  readonly path: string;
  /** The step of a saga that has completed. */
  readonly step?: string;
  /** It is to run in any case; otherwise only if the saga fails or is cut off. */
  readonly isDue: boolean;
  /** What of it has not completed, without blocks that only hold others. */
  readonly leaves: readonly OwedLeaf[];
}

export interface OwedLeaf {
  readonly id: string;
  readonly path: string;
  /** With the iteration of the loops around it. */
  readonly key: string;
}

export function owedCleanUps(plan: Plan, execution: Execution): readonly OwedCleanUp[] {
  const walk = new Walk(plan, execution);
  const { e, s = 0, j } = execution;
  if (e === undefined || e === FAILED) walk.list(plan.roots.filter((root) => root >= s));
  const hooks = [...(j?.r ?? []), ...(j?.f === undefined ? [] : [j.f])].flatMap((run) => {
    const own = plan.hooks?.[run.l];
    return own === undefined ? [] : hookCleanUps(own, run.l, run.e);
  });
  return [...walk.found, ...hooks];
}

/** Of everything that is owed, what would run. */
export function owedPaths(plan: Plan, execution: Execution): readonly string[] {
  const owed = owedCleanUps(plan, execution);
  return [...new Set(owed.flatMap(({ leaves }) => leaves.map(({ path }) => path)))];
}

/** What clean-ups of a plan run wherever they begin: the keys of their leaves outside of loops. */
export function cleanUpLeaves(plan: Plan): ReadonlySet<string> {
  const isCleanUp = ({ parent, branch }: NodePlace): boolean => {
    const above = plan.nodes[parent];
    return above !== undefined && (above.kind.cleansUp(branch) || isCleanUp(above));
  };
  const leaves = plan.nodes.filter((node) => node.kind.isLeaf && isCleanUp(node));
  return new Set(leaves.map(({ id }) => keyOf('', id)));
}

function hookCleanUps(plan: Plan, list: HookList, execution: Execution): readonly OwedCleanUp[] {
  const walk = new Walk(plan, execution);
  walk.owe('hook', { owner: list, path: list, isDue: true }, plan.roots);
  return walk.found.map(({ leaves, ...owed }) => ({
    ...owed,
    leaves: leaves.map((leaf) => ({ ...leaf, key: `${list}/${leaf.key}` })),
  }));
}

class Walk {
  readonly found: OwedCleanUp[] = [];
  readonly #plan: Plan;
  readonly #execution: Execution;
  /** As it stood when the blocks around were open, for iterations and paths. */
  readonly #before: Execution;

  constructor(plan: Plan, execution: Execution) {
    this.#plan = plan;
    this.#execution = execution;
    this.#before = withEnded(execution);
  }

  list(list: readonly number[] | undefined): void {
    for (const index of list ?? []) {
      const node = this.#plan.nodes[index]!;
      if (!node.kind.isLeaf && !this.#isDone(index)) this.#inside(node, this.#before.o[index]);
    }
  }

  owe(
    kind: OwedCleanUp['kind'],
    by: Omit<OwedCleanUp, 'kind' | 'leaves'>,
    list: readonly number[],
  ): void {
    const leaves = this.#leavesIn(list);
    if (leaves.length > 0) this.found.push({ kind, ...by, leaves });
  }

  #inside(node: PlanNode, record: OpenRecord | undefined): void {
    // It ends when what is to be cleaned up inside has been.
    if (record?.j !== undefined) this.#all(node);
    else if (node.type === 'saga') this.#saga(node, record as SagaRecord | undefined);
    else if (node.type === 'try_catch') this.#tryCatch(node, record as TryCatchRecord | undefined);
    else if (node.type === 'router' || node.type === 'ab_split') {
      if (record === undefined) this.#all(node);
      else this.list(node.lists[(record as RouterRecord).r]);
    } else if (node.kind.repeats !== 'never') this.#pass(node, record as ForEachRecord | undefined);
    else this.#all(node);
  }

  #all({ lists }: NodePlace): void {
    for (const list of lists) this.list(list);
  }

  #pass(node: NodePlace, { e, s }: Partial<ForEachRecord> = {}): void {
    if (e === 1) return;
    for (const [slot, list] of node.lists.entries()) {
      if (s === undefined || (s[slot] ?? -1) >= 0) this.list(list);
    }
  }

  #saga(node: PlanNode & { readonly type: 'saga' }, record: SagaRecord | undefined): void {
    if (record === undefined) return;
    const { f, n = node.steps.length, l } = record;
    const by = { owner: node.id, path: this.#pathOf(node), isDue: f !== undefined };
    for (const [i, step] of node.steps.entries()) {
      const action = node.lists[2 * i]!;
      if (i > n || !action.every((index) => this.#isDone(index))) continue;
      this.owe('compensation', { ...by, step }, node.lists[2 * i + 1]!);
    }
    // Its action that is at work, or that failed and may have to clean up inside.
    this.list(node.lists[f === undefined ? l : 2 * (n + 1)]);
  }

  #tryCatch(node: PlanNode, record: TryCatchRecord | undefined): void {
    if (record === undefined) return;
    const { p, f, m, z } = record;
    const by = { owner: node.id, path: this.#pathOf(node), isDue: true };
    const isOpen = this.#execution.o[node.index] !== undefined;
    const isInFinally = p === FINALLY_LIST && (isOpen || z === 1 || f === COMPLETED);
    if (isInFinally || p !== FINALLY_LIST) this.owe('finally', by, node.lists[FINALLY_LIST]!);
    if (isInFinally) {
      this.list(node.lists[FINALLY_LIST]);
      return;
    }
    // Behind a finally list that ran, a retry goes on in the list before it.
    const list = p === CATCH_LIST || m !== undefined ? CATCH_LIST : TRY_LIST;
    if (list === CATCH_LIST) this.#catch(by, node.lists[CATCH_LIST]!);
    this.list(node.lists[list]);
  }

  /** One that has come to `fail` is done with what it had to do. */
  #catch(by: Omit<OwedCleanUp, 'kind' | 'leaves'>, list: readonly number[]): void {
    const next = list.find((index) => !this.#isDone(index));
    const node = this.#plan.nodes[next ?? -1];
    if (node?.type === 'step' && node.handler === 'fail') return;
    this.owe('catch', by, list);
  }

  #leavesIn(list: readonly number[]): OwedLeaf[] {
    return list.flatMap((index): OwedLeaf[] => {
      const node = this.#plan.nodes[index]!;
      if (this.#isDone(index)) return [];
      if (!node.kind.isLeaf) return node.lists.flatMap((inner) => this.#leavesIn(inner));
      const key = keyOf(iterationOf(this.#before, node), node.id);
      return [{ id: node.id, path: this.#pathOf(node), key }];
    });
  }

  #isDone(index: number): boolean {
    const code = this.#execution.d[index]?.[0];
    return code === COMPLETED || code === SKIPPED;
  }

  #pathOf(node: NodePlace): string {
    return pathOf(this.#plan, this.#before, node);
  }
}

function keyOf(iteration: string, id: string): string {
  return `${iteration}/${id}`;
}
