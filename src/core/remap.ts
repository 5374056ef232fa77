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
  type ForEachRecord,
  type HookRun,
  type OpenRecord,
  type SagaRecord,
  SKIPPED,
  type StepRecord,
} from '../../schema/execution.js';
import { copyOf, recordOf } from './paths.js';
import type { Plan, PlanNode } from './plan-nodes.js';

/**
 * Why the execution cannot go on in the plan `to`: a sentence that names the first open block which
 * is not there at the same place; undefined when it can.
 */
export function clashOf(execution: Execution, from: Plan, to: Plan): string | undefined {
  const { o, q = [], k = {}, d } = execution;
  for (const index of [...indexesOf(o), ...q, ...indexesOf(k)]) {
    const node = from.nodes[index]!;
    const problem = problemWith(node, execution, from, to);
    if (problem !== undefined) return `block ${node.id} is open and ${problem}`;
  }
  for (const index of [...indexesOf(o), ...indexesOf(k), ...indexesOf(d)]) {
    const problem = crowdingOf(from.nodes[index]!, execution, to);
    if (problem !== undefined) return problem;
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
  if (!isSamePlace(from.nodes[node.first]!, target, from, to))
    return 'is at another place in the target';
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
  // Branches are counted; the choice of a router stands by its number until the list is entered. A saga
  // that is to run again begins with its first step.
  const isKept = k[node.index] !== undefined && node.type !== 'saga';
  const isCounted = node.type === 'parallel' || node.type === 'race' || isKept;
  if (isCounted && node.kind.repeats !== 'items' && node.lists.length !== target.lists.length) {
    return 'has another number of branches in the target';
  }
  return undefined;
}

/** Every item that has begun needs a slot, also for a retry. */
function crowdingOf(node: PlanNode, execution: Execution, to: Plan): string | undefined {
  const { s } = recordOf(execution, node.index);
  const target = counterpart(node, to);
  if (s === undefined || target?.kind.repeats !== 'items') return undefined;
  const [items, slots] = [itemsInFlight({ s }), target.lists.length];
  if (items <= slots) return undefined;
  return `block ${node.id} is at ${items} items, of which the target runs ${slots} at once`;
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
  const { o, d, q, c, v, k, s, j, ...rest } = execution;
  const indexOf = indexesIn(execution, from, to);
  const next: Execution = { ...rest, o: remapped(o, indexOf, from, to), d: {} };
  for (const index of indexesOf(d)) {
    const place = indexOf(index);
    const done = remapDone(from.nodes[index]!, d[index]!, from, to);
    if (done !== undefined && place !== undefined) next.d[place] = done;
  }
  if (q !== undefined) next.q = q.map(indexOf).filter((index) => index !== undefined);
  // Rows and repetitions are counted by block.
  const firstOf = (index: number) => to.indexOf.get(from.nodes[index]!.id);
  if (c !== undefined) next.c = remapped(c, firstOf, from, to);
  if (v !== undefined) next.v = remapped(v, firstOf, from, to);
  if (k !== undefined) next.k = remapped(k, indexOf, from, to);
  if (j !== undefined) {
    const owed = j.f && remapHooks(j.f, from, to);
    const runs = j.r.map((run) => remapHooks(run, from, to));
    next.j = { ...j, r: runs, ...(owed && { f: owed }) };
  }
  const resumedFrom = s === undefined ? undefined : firstOf(s);
  if (resumedFrom !== undefined) next.s = resumedFrom;
  carryGates(next, from, to, indexOf, o);
  for (const index of [...indexesOf(next.o), ...(next.q ?? [])]) skipBefore(next, to, index);
  fillSlots(next, to);
  return next;
}

function remapHooks(run: HookRun, from: Plan, to: Plan): HookRun {
  const [before, after] = [from.hooks?.[run.l], to.hooks?.[run.l]];
  if (before === undefined || after === undefined) return run;
  return { ...run, e: remapExecution(run.e, before, after) };
}

/** Where the nodes of one plan are in the other; undefined for those that it has not. */
export function indexesIn(execution: Execution, from: Plan, to: Plan) {
  return (index: number): number | undefined => {
    const node = from.nodes[index]!;
    const target = counterpart(node, to);
    if (target === undefined || (node.lanes.length === 0 && target.lanes.length === 0)) {
      return target?.index;
    }
    return copyOf(to, target, (lane) => {
      const at = node.loops.findIndex((loop) => from.nodes[loop]!.id === lane.id);
      if (at < 0) return 0;
      const record = recordOf(execution, node.loops[at]!);
      return slotIn(record, lane.lists.length, node.slots[at]!);
    })?.index;
  };
}

function itemsInFlight({ s }: Partial<ForEachRecord>): number {
  return s === undefined ? 1 : s.filter((item) => item >= 0).length;
}

/** The place of a slot among `slots`; where there are fewer than before, those at an item move together. */
function slotIn({ s }: Partial<ForEachRecord>, slots: number, slot: number): number {
  if (s === undefined || s.length <= slots) return slot;
  return (s[slot] ?? -1) < 0 ? -1 : itemsInFlight({ s: s.slice(0, slot) });
}

/** The record of a for_each as it is with so many slots. */
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

/** The block comes up to give its free slots items, where it has got more of them. */
function fillSlots(next: Execution, to: Plan): void {
  for (const index of indexesOf(next.o)) {
    if (to.nodes[index]!.kind.repeats !== 'items') continue;
    const { s, i, n, r } = next.o[index] as ForEachRecord;
    if (s?.includes(-1) !== true || i >= n || r !== undefined || next.q?.includes(index)) continue;
    next.q = [...(next.q ?? []), index];
  }
}

function remapped<T>(
  entries: Readonly<Record<number, T>>,
  indexOf: (index: number) => number | undefined,
  from: Plan,
  to: Plan,
): Record<number, T> {
  const next: Record<number, T> = {};
  for (const index of indexesOf(entries)) {
    const place = indexOf(index);
    if (place !== undefined) {
      next[place] = copied(entries[index]!, from.nodes[index]!, to.nodes[place]!);
    }
  }
  return next;
}

/**
 * A person is still asked where the target has a gate, too: from when the wait began, for as long as that
 * says. Where it has none the step goes on.
 */
function carryGates(
  next: Execution,
  from: Plan,
  to: Plan,
  indexOf: (index: number) => number | undefined,
  open: Execution['o'],
): void {
  for (const index of indexesOf(open)) {
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

/** Open records are changed in place, and each execution has its own. */
function copied<T>(value: T, node: PlanNode, target: PlanNode): T {
  if (typeof value !== 'object') return value;
  if (node.type === 'saga' && target.type === 'saga') {
    return withSteps(value as SagaRecord, node.steps, target.steps) as T;
  }
  if (node.kind.repeats !== 'items' || target.kind.repeats !== 'items') return { ...value };
  return withSlots(value as ForEachRecord, target.lists.length) as T;
}

/**
 * The record of a saga whose steps are those. Its lists are counted by its steps: one that the target has not is
 * passed over for the next one, and compensations go back from the last one that both have.
 */
function withSteps(
  { l, n, ...record }: SagaRecord,
  steps: readonly string[],
  stepsThere: readonly string[],
): SagaRecord {
  const upTo = (step: number): number => {
    const known = steps.slice(0, step + 1).findLast((id) => stepsThere.includes(id));
    return known === undefined ? -1 : stepsThere.indexOf(known);
  };
  const at = l >> 1;
  const isThere = upTo(at) >= 0 && stepsThere[upTo(at)] === steps[at];
  // Which list is at work matters only for one that is there.
  const list = isThere ? 2 * upTo(at) + (l % 2) : 2 * (upTo(at) + 1);
  return { ...record, l: list, ...(n !== undefined && { n: upTo(n) }) };
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
  // What a saga keeps is which run of it was the last one.
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
