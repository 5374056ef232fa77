/**
 * The clean-up that an instance has yet to run: compensations of completed saga steps, finally and
 * catch lists of blocks that have not ended, and hooks (docs/reference/blocks.md). Operations that
 * drop blocks report the clean-up that is dropped with them.
 */

import type { HookList } from '../../../schema/blocks.js';
import type { MigrationFinding } from '../../../schema/continuity.js';
import {
  CATCH_LIST,
  COMPLETED,
  type Execution,
  FAILED,
  FINALLY_LIST,
  type OpenRecord,
  type RouterRecord,
  type SagaRecord,
  TRY_LIST,
  type TryCatchRecord,
} from '../../../schema/execution.js';
import { owesCatch } from '../../../src/core/blocks/try-catch.js';
import { CLEANUP_REMOVED, migrationFinding } from '../../../src/core/migration-findings.js';
import { iterationOf } from '../../../src/core/paths.js';
import type { NodePlace, Plan, PlanNode } from '../../../src/core/plan-nodes.js';
import { ExecutionWalk } from './execution-walk.js';

interface OwedCleanUp {
  readonly kind: 'compensation' | 'finally' | 'catch' | 'hook';
  /** The id and path of the block that owns the clean-up; for hooks, both are the list name. */
  readonly owner: string;
  readonly path: string;
  readonly step?: string;
  /** False: runs only if the saga fails or is cut off. */
  readonly isDue: boolean;
  readonly leaves: readonly OwedLeaf[];
}

interface OwedLeaf {
  readonly id: string;
  readonly path: string;
  readonly key: string;
}

function owedCleanUps(plan: Plan, execution: Execution): readonly OwedCleanUp[] {
  const walk = new Walk(plan, execution);
  const { e, s = 0, j } = execution;
  if (e === undefined || e === FAILED) walk.list(plan.roots.filter((root) => root >= s));
  const hooks = [...(j?.r ?? []), ...(j?.f === undefined ? [] : [j.f])].flatMap((run) => {
    const own = plan.hooks?.[run.l];
    return own === undefined ? [] : hookCleanUps(own, run.l, run.e);
  });
  return [...walk.found, ...hooks];
}

export function owedPaths(plan: Plan, execution: Execution): readonly string[] {
  const owed = owedCleanUps(plan, execution);
  return [...new Set(owed.flatMap(({ leaves }) => leaves.map(({ path }) => path)))];
}

/** The keys of all leaves in clean-up lists, outside of loops. */
function cleanUpLeaves(plan: Plan): ReadonlySet<string> {
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

class Walk extends ExecutionWalk {
  readonly found: OwedCleanUp[] = [];

  list(list: readonly number[] | undefined): void {
    for (const index of list ?? []) {
      const node = this.plan.nodes[index]!;
      if (!node.kind.isLeaf && !this.isDone(index)) this.#inside(node, this.before.o[index]);
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
    // The block only waits for the clean-up inside.
    if (record?.j !== undefined) this.#all(node);
    else if (node.type === 'saga') this.#saga(node, record as SagaRecord | undefined);
    else if (node.type === 'try_catch') this.#tryCatch(node, record as TryCatchRecord | undefined);
    else if (node.type === 'router' || node.type === 'ab_split') {
      if (record === undefined) this.#all(node);
      else this.list(node.lists[(record as RouterRecord).r]);
    } else if (node.kind.repeats === 'never') this.#all(node);
    else for (const list of this.listsInFlight(node, record ?? {})) this.list(list);
  }

  #all({ lists }: NodePlace): void {
    for (const list of lists) this.list(list);
  }

  #saga(node: PlanNode & { readonly type: 'saga' }, record: SagaRecord | undefined): void {
    if (record === undefined) return;
    const { f, n = node.steps.length, l } = record;
    const by = { owner: node.id, path: this.pathOf(node), isDue: f !== undefined };
    for (const [i, step] of node.steps.entries()) {
      const action = node.lists[2 * i]!;
      if (i > n || !action.every((index) => this.isDone(index))) continue;
      this.owe('compensation', { ...by, step }, node.lists[2 * i + 1]!);
    }
    // The running or failed action may have clean-up inside.
    this.list(node.lists[f === undefined ? l : 2 * (n + 1)]);
  }

  #tryCatch(node: PlanNode, record: TryCatchRecord | undefined): void {
    if (record === undefined) return;
    const { p, f, m, z } = record;
    const by = { owner: node.id, path: this.pathOf(node), isDue: true };
    const isOpen = this.execution.o[node.index] !== undefined;
    const last = node.lists[FINALLY_LIST]!;
    const hasLeft = last.some((index) => !this.isDone(index));
    const isInFinally = p === FINALLY_LIST && (f === COMPLETED || (hasLeft && (isOpen || z === 1)));
    if (isInFinally || p !== FINALLY_LIST) this.owe('finally', by, last);
    if (isInFinally) {
      this.list(last);
      return;
    }
    // After a finally list that ran, a retry continues in the list before it.
    const list = p === CATCH_LIST || m !== undefined ? CATCH_LIST : TRY_LIST;
    const isCatch = list === CATCH_LIST && owesCatch(this.run, node, record);
    if (isCatch) this.owe('catch', by, node.lists[CATCH_LIST]!);
    this.list(node.lists[list]);
  }

  #leavesIn(list: readonly number[]): OwedLeaf[] {
    return list.flatMap((index): OwedLeaf[] => {
      const node = this.plan.nodes[index]!;
      if (this.isDone(index)) return [];
      if (!node.kind.isLeaf) return node.lists.flatMap((inner) => this.#leavesIn(inner));
      const key = keyOf(iterationOf(this.before, node), node.id);
      return [{ id: node.id, path: this.pathOf(node), key }];
    });
  }
}

function keyOf(iteration: string, id: string): string {
  return `${iteration}/${id}`;
}

/** Leaves named in a finding; the rest are counted. */
const LEAVES_NAMED = 5;

/**
 * Clean-up that would be lost in another version of the sequence, because the target lacks the
 * block or its list, has another id for it, or never reaches it.
 *
 * @param carried the execution in the target
 */
export function lostCleanUps(
  source: Plan,
  execution: Execution,
  target: Plan,
  carried: Execution,
): readonly MigrationFinding[] {
  const owed = owedCleanUps(source, execution);
  if (owed.length === 0) return [];
  const kept = new Set(
    owedCleanUps(target, carried).flatMap(({ leaves }) => leaves.map(({ key }) => key)),
  );
  // An execution that starts again reaches every block of the target.
  if (carried.t === null) for (const key of cleanUpLeaves(target)) kept.add(key);
  return owed.flatMap((cleanUp) => {
    const lost = cleanUp.leaves.filter(({ key }) => !kept.has(key)).map(({ id }) => id);
    return lost.length === 0 ? [] : [findingOf(cleanUp, [...new Set(lost)])];
  });
}

function findingOf(cleanUp: OwedCleanUp, lost: readonly string[]): MigrationFinding {
  const { kind, owner, path } = cleanUp;
  const more = lost.length > LEAVES_NAMED ? ` and ${lost.length - LEAVES_NAMED} more` : '';
  const named = lost.slice(0, LEAVES_NAMED).join(', ') + more;
  const about = kind === 'hook' ? {} : { block_id: owner, path };
  const finding = migrationFinding('CLEANUP_REMOVED', WORDS[kind](cleanUp, named), about);
  return { ...finding, code: CLEANUP_REMOVED + owner };
}

const WORDS: Readonly<Record<OwedCleanUp['kind'], (owed: OwedCleanUp, named: string) => string>> = {
  compensation: ({ owner, step, isDue }, named) =>
    isDue
      ? `saga ${owner} still has to compensate its step ${step}: the target would not run ${named}`
      : `step ${step} of saga ${owner} has completed: if the saga fails, the target would not run its compensation ${named}`,
  finally: ({ owner }, named) =>
    `the finally list of ${owner} has yet to end: the target would not run ${named}`,
  catch: ({ owner }, named) =>
    `the catch list of ${owner} has yet to end: the target would not run ${named}`,
  hook: ({ owner }, named) =>
    `the hooks ${owner} have yet to end: the target would not run ${named}`,
};
