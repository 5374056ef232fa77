/**
 * Moves an execution to another plan with some of the same blocks: when an instance gets blocks of its own, or is
 * migrated to another version. Entries are keyed by node index, and blocks are matched by id. Ended blocks stay ended,
 * open ones continue, and a list never goes back: new blocks before the open one are skipped.
 */

import {
  COMPLETED,
  type DoneRecord,
  type Execution,
  type ForEachRecord,
  type HookRun,
  type SagaRecord,
  SKIPPED,
  type StepRecord,
} from '../../schema/execution.js';
import { copyOf, recordOf } from './paths.js';
import type { Plan, PlanNode } from './plan-nodes.js';

/** The reason why the execution cannot continue in the plan `to`: the first open block without a counterpart there. */
export function clashOf(execution: Execution, from: Plan, to: Plan): string | undefined {
  const { o, q = [], k = {}, d } = execution;
  for (const index of [...indexesOf(o), ...q, ...indexesOf(k)]) {
    const node = from.nodes[index]!;
    const problem = clashAt(node, execution, from, to);
    if (problem !== undefined) return `block ${node.id} is open and ${problem}`;
  }
  for (const index of [...indexesOf(o), ...indexesOf(k), ...indexesOf(d)]) {
    const problem = slotClashOf(from.nodes[index]!, execution, to);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function clashAt(node: PlanNode, { k = {} }: Execution, from: Plan, to: Plan): string | undefined {
  const target = counterpart(node, to);
  if (target === undefined) return 'is not in the target';
  if (!isSamePlace(from.nodes[node.first]!, target, from, to))
    return 'is at another place in the target';
  if (target.type !== node.type) return `is a ${target.type} in the target`;
  if (node.type === 'step' && target.type === 'step' && node.handler !== target.handler) {
    return `has the handler ${target.handler} in the target`;
  }
  if (node.type === 'sub_sequence' && target.type === 'sub_sequence') {
    const { sequenceName: name } = target;
    if (node.sequenceName !== name) return `starts the sequence ${name} in the target`;
  }
  // Branches, and the choice of a router, are kept by number. A saga that runs again begins with its first step.
  const isKept = k[node.index] !== undefined && node.type !== 'saga';
  const isCounted = node.type === 'parallel' || node.type === 'race' || isKept;
  if (isCounted && node.kind.repeats !== 'items' && node.lists.length !== target.lists.length) {
    return 'has another number of branches in the target';
  }
  return undefined;
}

/** Every item that has begun needs a slot, for a retry as well. */
function slotClashOf(node: PlanNode, execution: Execution, to: Plan): string | undefined {
  const { s } = recordOf(execution, node.index);
  const target = counterpart(node, to);
  if (s === undefined || target?.kind.repeats !== 'items') return undefined;
  const [items, slots] = [itemsInFlight({ s }), target.lists.length];
  if (items <= slots) return undefined;
  return `block ${node.id} is at ${items} items, of which the target runs ${slots} at once`;
}

/** Whether both are in the same list of the same blocks, up to the root. Positions may differ. */
function isSamePlace(a: PlanNode, b: PlanNode, from: Plan, to: Plan): boolean {
  if (a.branch !== b.branch) return false;
  const above = from.nodes[a.parent];
  const targetParent = to.nodes[b.parent];
  if (above === undefined || targetParent === undefined) return above === targetParent;
  return above.id === targetParent.id && isSamePlace(above, targetParent, from, to);
}

/** The execution with the indexes of `to`. Ended blocks without a counterpart are dropped; open ones see `clashOf`. */
export function remapExecution(execution: Execution, from: Plan, to: Plan): Execution {
  const { o, d, q, c, v, k, s, j, ...rest } = execution;
  const indexOf = indexesIn(execution, from, to);
  const remapped = <T>(entries: Readonly<Record<number, T>>, placeOf = indexOf) => {
    const moved: Record<number, T> = {};
    for (const index of indexesOf(entries)) {
      const place = placeOf(index);
      if (place === undefined) continue;
      moved[place] = copied(entries[index]!, from.nodes[index]!, to.nodes[place]!);
    }
    return moved;
  };
  const next: Execution = { ...rest, o: remapped(o), d: {} };
  for (const index of indexesOf(d)) {
    const place = indexOf(index);
    const done = remapDone(from.nodes[index]!, d[index]!, from, to);
    if (done !== undefined && place !== undefined) next.d[place] = done;
  }
  if (q !== undefined) next.q = q.map(indexOf).filter((index) => index !== undefined);
  // Rows and repetitions are counted per block.
  const firstOf = (index: number) => to.indexOf.get(from.nodes[index]!.id);
  if (c !== undefined) next.c = remapped(c, firstOf);
  if (v !== undefined) next.v = remapped(v, firstOf);
  if (k !== undefined) next.k = remapped(k);
  if (j !== undefined) {
    const owed = j.f && remapHooks(j.f, from, to);
    const runs = j.r.map((run) => remapHooks(run, from, to));
    next.j = { ...j, r: runs, ...(owed && { f: owed }) };
  }
  const resumedFrom = s === undefined ? undefined : firstOf(s);
  if (resumedFrom !== undefined) next.s = resumedFrom;
  carryGates(next, execution, from, to);
  for (const index of [...indexesOf(next.o), ...(next.q ?? [])]) skipBefore(next, to, index);
  fillSlots(next, to);
  return next;
}

function remapHooks(run: HookRun, from: Plan, to: Plan): HookRun {
  const [before, after] = [from.hooks?.[run.l], to.hooks?.[run.l]];
  if (before === undefined || after === undefined) return run;
  return { ...run, e: remapExecution(run.e, before, after) };
}

/** Maps node indexes of one plan to the other; undefined without a counterpart. */
export function indexesIn(execution: Execution, from: Plan, to: Plan) {
  return (index: number): number | undefined => {
    const node = from.nodes[index]!;
    const target = counterpart(node, to);
    if (
      target === undefined ||
      (node.concurrentLoops.length === 0 && target.concurrentLoops.length === 0)
    ) {
      return target?.index;
    }
    return copyOf(to, target, (around) => {
      const at = node.loops.findIndex((loop) => from.nodes[loop]!.id === around.id);
      if (at < 0) return 0;
      const record = recordOf(execution, node.loops[at]!);
      return slotIn(record, around.lists.length, node.slots[at]!);
    })?.index;
  };
}

function itemsInFlight({ s }: Partial<ForEachRecord>): number {
  return s === undefined ? 1 : s.filter((item) => item >= 0).length;
}

/** The new number of a slot. If there are fewer slots than before, those with an item move together. */
function slotIn({ s }: Partial<ForEachRecord>, slots: number, slot: number): number {
  if (s === undefined || s.length <= slots) return slot;
  return (s[slot] ?? -1) < 0 ? -1 : itemsInFlight({ s: s.slice(0, slot) });
}

function withSlots(record: ForEachRecord, slots: number): ForEachRecord {
  const { i, e, s, n } = record;
  const size = Math.min(slots, n);
  if (s === undefined) {
    if (slots === 1) return { ...record };
    const { e: _between, ...rest } = record;
    const items = Array.from({ length: size }, (_, slot) => (slot === 0 && e !== 1 ? i : -1));
    return { ...rest, s: items, m: i, i: e === 1 ? i : i + 1 };
  }
  const items = s.length <= size ? s : s.filter((item) => item >= 0);
  return { ...record, s: [...items, ...Array.from({ length: size - items.length }, () => -1)] };
}

/** Queues for_each blocks that have got more slots, so that these take items. */
function fillSlots(next: Execution, to: Plan): void {
  for (const index of indexesOf(next.o)) {
    if (to.nodes[index]!.kind.repeats !== 'items') continue;
    const { s, i, n, r } = next.o[index] as ForEachRecord;
    if (s?.includes(-1) !== true || i >= n || r !== undefined || next.q?.includes(index)) continue;
    next.q = [...(next.q ?? []), index];
  }
}

/** A gate stays open if the target has one, with the target's timeout; otherwise the step continues. */
function carryGates(next: Execution, execution: Execution, from: Plan, to: Plan): void {
  const indexOf = indexesIn(execution, from, to);
  for (const index of indexesOf(execution.o)) {
    const place = indexOf(index);
    const record = next.o[place ?? -1] as StepRecord | undefined;
    if (place === undefined || record?.p !== 'gate') continue;
    const [before, after] = [from.nodes[index], to.nodes[place]].map((node) =>
      node?.type === 'step' ? node.gate : undefined,
    );
    if (after === undefined) {
      const { m: _since, d: _until, ...rest } = record;
      next.o[place] = { ...rest, p: 'ready' };
      next.q = [...(next.q ?? []), place];
    } else if (before?.timeoutMs !== after.timeoutMs) {
      const { d: _until, ...rest } = record;
      const began = (next.t ?? 0) + (record.m ?? 0);
      next.o[place] = after.timeoutMs === null ? rest : { ...rest, d: began + after.timeoutMs };
    }
  }
}

/** Open records are changed in place, so each execution needs its own. */
function copied<T>(value: T, node: PlanNode, target: PlanNode): T {
  if (typeof value !== 'object') return value;
  if (node.type === 'saga' && target.type === 'saga') {
    return withSteps(value as SagaRecord, node.steps, target.steps) as T;
  }
  if (node.kind.repeats !== 'items' || target.kind.repeats !== 'items') return { ...value };
  return withSlots(value as ForEachRecord, target.lists.length) as T;
}

/** The record of a saga with other steps: it continues at the next, and compensates from the last step in both. */
function withSteps(
  { l, n, ...record }: SagaRecord,
  steps: readonly string[],
  targetSteps: readonly string[],
): SagaRecord {
  const upTo = (step: number): number => {
    const known = steps.slice(0, step + 1).findLast((id) => targetSteps.includes(id));
    return known === undefined ? -1 : targetSteps.indexOf(known);
  };
  const at = l >> 1;
  const isCommon = upTo(at) >= 0 && targetSteps[upTo(at)] === steps[at];
  // Which of the two lists runs matters only for a step that exists in both.
  const list = isCommon ? 2 * upTo(at) + (l % 2) : 2 * (upTo(at) + 1);
  return { ...record, l: list, ...(n !== undefined && { n: upTo(n) }) };
}

/** Inside a loop `done` is about the current iteration, so the loops around must be the same. */
function remapDone(node: PlanNode, done: DoneRecord, from: Plan, to: Plan): DoneRecord | undefined {
  const target = counterpart(node, to);
  if (target === undefined) return undefined;
  const loops = node.loops.map((index) => from.nodes[index]!.id);
  const targetLoops = target.loops.map((index) => to.nodes[index]!.id);
  if (loops.join('\n') !== targetLoops.join('\n')) return undefined;
  const [code, began, took, kept] = done;
  if (kept === undefined) return done;
  // A saga only keeps the number of its run.
  const isCounted = node.type !== 'saga' && node.kind.repeats !== 'items';
  const isSame =
    node.type === target.type && (!isCounted || node.lists.length === target.lists.length);
  return isSame ? [code, began, took, copied(kept, node, target)] : [code, began, took];
}

function skipBefore(execution: Execution, plan: Plan, index: number): void {
  const node = plan.nodes[index]!;
  const list = plan.nodes[node.parent]?.lists[node.branch] ?? plan.roots;
  for (const before of list.slice(0, node.position)) {
    execution.d[before] ??= [SKIPPED, execution.o[index]?.b ?? 0, 0];
  }
}

/** How many blocks of the root list have been reached, before which new ones would never run. A retry starts all. */
export function passedRoots({ o, d, q = [], e, s }: Execution, plan: Plan): number {
  const resumedFrom = s === undefined ? 0 : plan.nodes[s]!.position + 1;
  if (e !== undefined && e !== COMPLETED) return resumedFrom;
  const isPassed = (root: number) =>
    o[root] !== undefined || d[root] !== undefined || q.includes(root);
  return Math.max(resumedFrom, plan.roots.findLastIndex(isPassed) + 1);
}

/** Continues a completed root list with appended blocks, if the instance was paused before its end. */
export function continueAfterEnd(execution: Execution, plan: Plan): Execution {
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

const indexesOf = (entries: Readonly<Record<number, unknown>>) => Object.keys(entries).map(Number);
