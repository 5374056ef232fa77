/**
 * The position of an instance in its plan, as carried by a capsule: one entry for each open or done
 * block, by block id. The stored execution instead refers to indexes of one plan, and to handlers,
 * tasks and slots that the importer does not have.
 */

import type { TreeEntry } from '../../../schema/capsule.js';
import type {
  DoneRecord,
  Execution,
  ForEachRecord,
  OpenRecord,
  StepPhase,
  StepRecord,
} from '../../../schema/execution.js';
import type { JsonObject, JsonValue } from '../../../src/base/json.js';
import { type Parsed, parsing, refuse } from '../../../src/core/parsed.js';
import { copyOf } from '../../../src/core/paths.js';
import type { Plan, PlanNode } from '../../../src/core/plan-nodes.js';

export interface ExecutionTree {
  readonly execution: Execution;
  readonly items: ReadonlyMap<string, readonly JsonValue[]>;
  readonly blocks: readonly JsonObject[];
}

export function writeTree({ execution, items, blocks }: ExecutionTree, plan: Plan): TreeEntry[] {
  const { q, s, t, j } = execution;
  const head: TreeEntry = { execution: { t, ...wholeOf(execution) } };
  if (q !== undefined) {
    const queued = q.map((index) => nodeIn(plan, index));
    head.queue = queued.map(({ id }) => id);
    if (queued.some(({ concurrentLoops }) => concurrentLoops.length > 0))
      head.queue_slots = queued.map(slotsOf);
  }
  if (s !== undefined) head.resumed_from = nodeIn(plan, s).id;
  // Keeps the rows of later hooks apart from those of earlier ones.
  if (j !== undefined) head.hook_runs = j.n;
  const entries = [head];
  for (const node of plan.nodes) {
    const entry = entryOf(node, execution);
    if (entry !== undefined) entries.push(entry);
  }
  for (const [key, list] of items) entries.push({ items_key: key, items: [...list] });
  for (const block of blocks) entries.push({ own_block: block });
  return entries;
}

/** The plan is compiled with these blocks before the other entries can be read. */
export function readOwnBlocks(entries: readonly TreeEntry[]): JsonObject[] {
  return entries.flatMap(({ own_block }) => (own_block == null ? [] : [own_block]));
}

export function readTree(entries: readonly TreeEntry[], plan: Plan): Parsed<ExecutionTree> {
  return parsing(() => {
    const execution: Execution = { t: null, o: {}, d: {} };
    const items = new Map<string, readonly JsonValue[]>();
    for (const [i, entry] of entries.entries()) {
      const name = `execution_tree[${i}]`;
      if (entry.execution != null) readHead(entry, execution, plan, name);
      else if (entry.block_id != null) readEntry(entry, execution, plan, name);
      else if (entry.items_key != null) items.set(entry.items_key, entry.items ?? []);
    }
    return { execution, items, blocks: readOwnBlocks(entries) };
  });
}

/** Carried fields: not the slot of a concurrency key, nor a request for one. */
const WHOLE = ['t', 'e', 'y', 'h', 'p', 'x', 'f', 'g', 'z', 'u', 'a', 'E'] as const;

function wholeOf(from: NonNullable<TreeEntry['execution']>): Partial<Execution> {
  return Object.fromEntries(
    WHOLE.flatMap((name) => (from[name] == null ? [] : [[name, from[name]]])),
  );
}

function entryOf(node: PlanNode, { o, d, k, c, v }: Execution): TreeEntry | undefined {
  const { index, id: block_id } = node;
  const [open, done, kept, rows] = [o[index], d[index], k?.[index], c?.[index]];
  const repeats = v?.[index];
  if ([open, done, kept, rows, repeats].every((part) => part === undefined)) return undefined;
  return {
    block_id,
    ...(node.concurrentLoops.length > 0 && { slots: slotsOf(node) }),
    ...(open && { open: openOf(node, open) }),
    ...(done && { done: doneOf(node, done) }),
    ...(kept && { kept: openOf(node, kept) }),
    ...(rows !== undefined && { rows }),
    ...(repeats !== undefined && { repeats }),
  };
}

/** Slots in the enclosing parallel for_each blocks, outermost first. */
function slotsOf({ concurrentLoops, loops, slots }: PlanNode): number[] {
  return concurrentLoops.map((loop) => slots[loops.indexOf(loop)]!);
}

/** The importer gets no reply of a handler, worker or rate limit: the step repeats its try. */
const AT_WORK: ReadonlySet<StepPhase> = new Set(['run', 'task', 'asking']);
const BEGIN_AGAIN = 'run';
/** Pending and caught errors of a block, and the slots of a for_each. */
const NOT_FLAT: ReadonlySet<string> = new Set(['y', 'm', 's', 'v', 't']);

function openOf({ type }: PlanNode, record: OpenRecord): OpenRecord {
  const values = Object.entries(record).filter(
    ([name, value]) => NOT_FLAT.has(name) || typeof value !== 'object',
  );
  const flat = Object.fromEntries(values) as unknown as StepRecord;
  if (type !== 'step') return flat;
  if (flat.v !== undefined) {
    // The row of the wait is not carried; the importer inserts a new one.
    const { i: _, ...wait } = flat.v;
    flat.v = wait;
  }
  // Only for people: a deferred step renders its rate limit key again.
  delete flat.l;
  // The importer assigns a new id to the gate, which was requested already.
  if (flat.k !== undefined) flat.k = '';
  if (!AT_WORK.has(flat.p)) return flat;
  const { b, a, x, h, k } = flat;
  const begun = { ...(x && { x }), ...(h !== undefined && { h }), ...(k !== undefined && { k }) };
  return { b, p: BEGIN_AGAIN, a, ...begun };
}

function doneOf(node: PlanNode, [code, began, took, kept]: DoneRecord): DoneRecord {
  // A leaf needs no record of children.
  if (kept === undefined || node.kind.isLeaf) return [code, began, took];
  return [code, began, took, openOf(node, kept)];
}

function nodeIn({ nodes }: Plan, index: number): PlanNode {
  const node = nodes[index];
  if (node === undefined) throw new Error(`the plan has no node ${index}`);
  return node;
}

function readHead(
  { execution: whole, queue, queue_slots, resumed_from, hook_runs }: TreeEntry,
  execution: Execution,
  plan: Plan,
  name: string,
): void {
  Object.assign(execution, wholeOf(whole ?? {}));
  if (queue != null)
    execution.q = queue.map((id, i) => indexIn(plan, id, queue_slots?.[i], `${name}.queue[${i}]`));
  if (hook_runs != null) execution.j = { n: hook_runs, r: [] };
  if (resumed_from != null) execution.s = indexIn(plan, resumed_from, null, `${name}.resumed_from`);
}

function readEntry(
  { block_id, slots, open, done, kept, rows, repeats }: TreeEntry,
  execution: Execution,
  plan: Plan,
  name: string,
): void {
  const index = indexIn(plan, block_id, slots, `${name}.block_id`);
  const node = plan.nodes[index] as PlanNode;
  if (open != null) execution.o[index] = readOpen(open, node, `${name}.open`);
  if (done != null) {
    const [, , , last] = done;
    if (last !== undefined) readOpen(last, node, `${name}.done[3]`);
    execution.d[index] = done;
  }
  if (kept != null) {
    execution.k ??= {};
    execution.k[index] = readOpen(kept, node, `${name}.kept`);
  }
  if (rows != null) execution.c = { ...execution.c, [index]: rows };
  if (repeats != null) execution.v = { ...execution.v, [index]: repeats };
}

const STEP_PHASES: ReadonlySet<unknown> = new Set<StepPhase>([
  ...(['ready', 'delay', 'limited', 'backoff', 'sleep', 'event', 'gate'] as const),
  BEGIN_AGAIN,
]);

function readOpen(record: OpenRecord, node: PlanNode, name: string): OpenRecord {
  const { type } = node;
  const { p, v } = record as Partial<StepRecord>;
  const { s, n = 0 } = record as Partial<ForEachRecord>;
  const isSlots = node.kind.repeats === 'items' && (s?.length ?? 0) <= node.lists.length;
  if (s !== undefined && !(isSlots && s.every((item) => Number.isInteger(item) && item < n))) {
    refuse(`${name}.s`, 'must be the items of its slots');
  }
  const isPhase =
    type === 'step'
      ? STEP_PHASES.has(p) && (v !== undefined) === (p === 'event')
      : type === 'sub_sequence'
        ? p === 'child'
        : typeof p !== 'string';
  if (!isPhase) refuse(name, `must be the record of an open ${type}`);
  return record;
}

function indexIn(
  plan: Plan,
  id: string | null | undefined,
  slots: readonly number[] | null | undefined,
  name: string,
): number {
  const first = plan.nodes[plan.indexOf.get(id ?? '') ?? -1];
  const node =
    first && copyOf(plan, first, ({ concurrentLoops }) => slots?.[concurrentLoops.length] ?? 0);
  if (node === undefined) refuse(name, 'must be a block of the sequence');
  return node.index;
}
