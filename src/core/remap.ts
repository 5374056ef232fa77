/**
 * Moves an execution from one plan to another that has the same blocks and others: when an instance
 * gets blocks of its own, and when it goes over to another version of its sequence. Everything an
 * execution says is under the indexes of nodes; blocks are recognised by their ids.
 *
 * What is finished stays finished, what is open goes on, and a list never goes back: blocks that the
 * new plan puts before the one that is open are skipped.
 */

import {
  COMPLETED,
  type DoneRecord,
  type Execution,
  type OpenRecord,
  SKIPPED,
} from './execution.js';
import type { Plan, PlanNode } from './plan-nodes.js';

/**
 * Why the execution cannot go on in the plan `to`: a sentence that names the first open block which
 * is not there at the same place; undefined when it can.
 */
export function clashOf(execution: Execution, from: Plan, to: Plan): string | undefined {
  const { o, q = [], k = {} } = execution;
  for (const index of [...indexesOf(o), ...q, ...indexesOf(k)]) {
    const node = from.nodes[index]!;
    const problem = problemWith(node, execution, from, to);
    if (problem !== undefined) return `block ${node.id} is open and ${problem}`;
  }
  return undefined;
}

function problemWith(
  node: PlanNode,
  { k = {} }: Execution,
  from: Plan,
  to: Plan,
): string | undefined {
  const target = counterpart(node, to);
  if (target === undefined) return 'is not in the target';
  if (!isSamePlace(node, target, from, to)) return 'is at another place in the target';
  if (target.type !== node.type) return `is a ${target.type} in the target`;
  if (node.type === 'step' && target.type === 'step' && node.handler !== target.handler) {
    return `has the handler ${target.handler} in the target`;
  }
  const { type } = node;
  if (
    type === 'sub_sequence' &&
    target.type === type &&
    node.sequenceName !== target.sequenceName
  ) {
    return `starts the sequence ${target.sequenceName} in the target`;
  }
  // Branches are counted; the choice of a router stands by its number until the list is entered.
  const isCounted = node.type === 'parallel' || node.type === 'race' || k[node.index] !== undefined;
  if (isCounted && node.lists.length !== target.lists.length) {
    return 'has another number of branches in the target';
  }
  return undefined;
}

/** The same list of the same blocks, up to the root; the position in it may differ. */
function isSamePlace(a: PlanNode, b: PlanNode, from: Plan, to: Plan): boolean {
  if (a.branch !== b.branch) return false;
  const above = from.nodes[a.parent];
  const aboveThere = to.nodes[b.parent];
  if (above === undefined || aboveThere === undefined) return above === aboveThere;
  return above.id === aboveThere.id && isSamePlace(above, aboveThere, from, to);
}

/**
 * The execution under the indexes of `to`. What is open must have its place there, see `clashOf`; of
 * finished blocks those that `to` has not are forgotten.
 */
export function remapExecution(execution: Execution, from: Plan, to: Plan): Execution {
  const { o, d, q, c, k, s, ...rest } = execution;
  const indexOf = (index: number) => to.indexOf.get(from.nodes[index]!.id);
  const next: Execution = { ...rest, o: remapped(o, indexOf), d: {} };
  for (const index of indexesOf(d)) {
    const done = remapDone(from.nodes[index]!, d[index]!, from, to);
    if (done !== undefined) next.d[indexOf(index)!] = done;
  }
  if (q !== undefined) next.q = q.map(indexOf).filter((index) => index !== undefined);
  if (c !== undefined) next.c = remapped(c, indexOf);
  if (k !== undefined) next.k = remapped(k, indexOf);
  const resumedFrom = s === undefined ? undefined : indexOf(s);
  if (resumedFrom !== undefined) next.s = resumedFrom;
  for (const index of [...indexesOf(next.o), ...(next.q ?? [])]) skipBefore(next, to, index);
  return next;
}

function remapped<T>(
  entries: Readonly<Record<number, T>>,
  indexOf: (index: number) => number | undefined,
): Record<number, T> {
  const next: Record<number, T> = {};
  for (const index of indexesOf(entries)) {
    const place = indexOf(index);
    if (place !== undefined) next[place] = copyOf(entries[index]!);
  }
  return next;
}

/** Open records are changed in place, and each execution has its own. They are flat. */
function copyOf<T>(value: T): T {
  return typeof value === 'object' ? { ...value } : value;
}

/** Inside a loop `done` is about the present iteration, so the loops around have to be the same. */
function remapDone(node: PlanNode, done: DoneRecord, from: Plan, to: Plan): DoneRecord | undefined {
  const target = counterpart(node, to);
  if (target === undefined) return undefined;
  const loops = node.loops.map((index) => from.nodes[index]!.id);
  const loopsThere = target.loops.map((index) => to.nodes[index]!.id);
  if (loops.join('\n') !== loopsThere.join('\n')) return undefined;
  const [code, began, took, kept] = done;
  if (kept === undefined) return done;
  const isSame = node.type === target.type && node.lists.length === target.lists.length;
  return isSame ? [code, began, took, { ...kept }] : [code, began, took];
}

function skipBefore(execution: Execution, plan: Plan, index: number): void {
  const node = plan.nodes[index]!;
  const list = plan.nodes[node.parent]?.lists[node.branch] ?? plan.roots;
  for (const before of list.slice(0, node.position)) {
    execution.d[before] ??= [SKIPPED, execution.o[index]?.b ?? 0, 0];
  }
}

/**
 * How many roots the list of the root has passed, the present one included: a block that is put
 * before would never run. After a failure it may: a retry starts every root that is not done.
 */
export function passedRoots({ o, d, q = [], e, s }: Execution, plan: Plan): number {
  const resumedFrom = s === undefined ? 0 : plan.nodes[s]!.position + 1;
  if (e !== undefined && e !== COMPLETED) return resumedFrom;
  const isPassed = (root: number) =>
    o[root] !== undefined || d[root] !== undefined || q.includes(root);
  return Math.max(resumedFrom, plan.roots.findLastIndex(isPassed) + 1);
}

/**
 * Lets a list of the root that has ended well go on with what the plan has got behind its end; for an
 * instance that has not ended with it, because it was paused.
 */
export function goOnBehindEnd(execution: Execution, plan: Plan): Execution {
  const next = plan.roots[passedRoots(execution, plan)];
  if (execution.e !== COMPLETED || next === undefined) return execution;
  const { e: _ended, ...rest } = execution;
  const reopened: Execution = { ...rest, q: [next] };
  skipBefore(reopened, plan, next);
  return reopened;
}

function counterpart(node: PlanNode, plan: Plan): PlanNode | undefined {
  const index = plan.indexOf.get(node.id);
  return index === undefined ? undefined : plan.nodes[index];
}

function indexesOf(entries: Readonly<Record<number, OpenRecord | unknown>>): number[] {
  return Object.keys(entries).map(Number);
}
