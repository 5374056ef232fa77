/**
 * Where an instance stands in its plan, in the form in which a capsule carries it: one entry for each
 * block that is open or done, under the block's id. An execution itself speaks of the indexes of one
 * plan, and of handlers, tasks and slots that the importer does not have.
 */

import type { DoneRecord, Execution, OpenRecord } from '../execution.js';
import type { JsonObject, JsonValue } from '../json.js';
import { isJsonObject, ownValue } from '../json.js';
import type { Plan, PlanNode } from '../plan-nodes.js';
import { Fields, type Parsed, parsing, refuse } from './parsed.js';

/** What belongs to an instance's place in its plan beside the execution. */
export interface ExecutionTree {
  readonly execution: Execution;
  /** The items of for_each blocks, by their keys. */
  readonly items: ReadonlyMap<string, readonly JsonValue[]>;
  /** Blocks of the instance alone, as they were injected. */
  readonly blocks: readonly JsonObject[];
}

/** @param plan that of the sequence and the blocks of the instance alone */
export function writeTree({ execution, items, blocks }: ExecutionTree, plan: Plan): JsonObject[] {
  const { q, s } = execution;
  const head: JsonObject = { execution: wholeOf(execution) };
  if (q !== undefined) head.queue = q.map((index) => idOf(plan, index));
  if (s !== undefined) head.resumed_from = idOf(plan, s);
  const entries = [head];
  for (const node of plan.nodes) {
    const entry = entryOf(node, execution);
    if (entry !== undefined) entries.push(entry);
  }
  for (const [key, list] of items) entries.push({ items_key: key, items: [...list] });
  for (const block of blocks) entries.push({ own_block: block });
  return entries;
}

/** The blocks of the instance alone, which its plan is compiled with before the rest can be read. */
export function readOwnBlocks(entries: readonly JsonObject[]): JsonObject[] {
  return entries.flatMap((entry) => {
    const block = ownValue(entry, 'own_block');
    return isJsonObject(block) ? [block] : [];
  });
}

/** The way back; the message names the entry that the plan does not go with. */
export function readTree(entries: readonly JsonObject[], plan: Plan): Parsed<ExecutionTree> {
  return parsing(() => {
    const execution: Execution = { t: null, o: {}, d: {} };
    const items = new Map<string, readonly JsonValue[]>();
    for (const [i, entry] of entries.entries()) {
      const fields = new Fields(entry, `execution_tree[${i}]`);
      if (fields.value('execution') !== undefined) readHead(fields, execution, plan);
      else if (fields.value('block_id') !== undefined) readEntry(fields, execution, plan);
      else if (fields.value('items_key') !== undefined) {
        const key = fields.required('items_key', fields.text('items_key'));
        items.set(key, fields.list('items', Number.MAX_SAFE_INTEGER));
      }
    }
    return { execution, items, blocks: readOwnBlocks(entries) };
  });
}

/** The fields of the whole; a slot of a concurrency key, and the wish for one, stay behind. */
const WHOLE = ['t', 'e', 'm', 'h', 'p', 'x', 'f'] as const;

function wholeOf(execution: Execution): JsonObject {
  const whole: JsonObject = {};
  for (const field of WHOLE) {
    const value = execution[field];
    if (value !== undefined) whole[field] = value;
  }
  return whole;
}

function entryOf(node: PlanNode, { o, d, k, c }: Execution): JsonObject | undefined {
  const { index } = node;
  const open = o[index];
  const done = d[index];
  const kept = k?.[index];
  const rows = c?.[index];
  if (open === undefined && done === undefined && kept === undefined && rows === undefined) {
    return undefined;
  }
  const entry: JsonObject = { block_id: node.id };
  if (open !== undefined) entry.open = openOf(node, open);
  if (done !== undefined) entry.done = doneOf(node, done);
  if (kept !== undefined) entry.kept = openOf(node, kept);
  if (rows !== undefined) entry.rows = rows;
  return entry;
}

/**
 * A step that was with a handler, a worker or a rate limit: nobody there answers the importer, where
 * it is begun again with the same try, as after a crash.
 */
const AT_WORK: ReadonlySet<JsonValue> = new Set(['run', 'task', 'asking']);
const BEGIN_AGAIN = 'run';

function openOf({ type }: PlanNode, record: OpenRecord): JsonObject {
  const flat: JsonObject = {};
  for (const [field, value] of Object.entries(record)) {
    if (typeof value === 'number' || typeof value === 'string') flat[field] = value;
  }
  if (type !== 'step' || !AT_WORK.has(flat.p ?? null)) return flat;
  const { b = 0, a = 0 } = flat;
  return { b, p: BEGIN_AGAIN, a, ...(flat.x === undefined ? {} : { x: flat.x }) };
}

function doneOf(node: PlanNode, [code, began, took, kept]: DoneRecord): JsonValue[] {
  return kept === undefined ? [code, began, took] : [code, began, took, openOf(node, kept)];
}

function idOf({ nodes }: Plan, index: number): string {
  const node = nodes[index];
  if (node === undefined) throw new Error(`the plan has no node ${index}`);
  return node.id;
}

// ---------------------------------------------------------------- reading

function readHead(fields: Fields, execution: Execution, plan: Plan): void {
  const whole = fields.inner('execution');
  for (const field of ['t', 'h'] as const) {
    const value = whole.value(field);
    if (isNumber(value)) execution[field] = value;
  }
  const end = whole.integer('e', 0, 3);
  if (end !== undefined) execution.e = end as NonNullable<Execution['e']>;
  const reason = whole.text('m');
  if (reason !== undefined) execution.m = reason;
  for (const field of ['p', 'x', 'f'] as const) {
    if (whole.integer(field, 1, 1) === 1) execution[field] = 1;
  }
  if (fields.value('queue') !== undefined) {
    const queue = fields.list('queue', plan.nodes.length);
    execution.q = queue.map((id, i) => indexIn(plan, id, fields.name(`queue[${i}]`)));
  }
  const from = fields.value('resumed_from');
  if (from !== undefined) execution.s = indexIn(plan, from, fields.name('resumed_from'));
}

function readEntry(fields: Fields, execution: Execution, plan: Plan): void {
  const index = indexIn(plan, fields.value('block_id'), fields.name('block_id'));
  const node = plan.nodes[index] as PlanNode;
  if (fields.value('open') !== undefined) {
    execution.o[index] = readOpen(fields.object('open'), node, fields.name('open'));
  }
  if (fields.value('done') !== undefined) execution.d[index] = readDone(fields, node);
  if (fields.value('kept') !== undefined) {
    execution.k ??= {};
    execution.k[index] = readOpen(fields.object('kept'), node, fields.name('kept'));
  }
  const rows = fields.integer('rows', 0);
  if (rows === undefined) return;
  execution.c ??= {};
  execution.c[index] = rows;
}

const STEP_PHASES: ReadonlySet<unknown> = new Set([
  'ready',
  'delay',
  'limited',
  'backoff',
  'sleep',
  BEGIN_AGAIN,
]);

function readOpen(record: JsonObject, { type }: PlanNode, name: string): OpenRecord {
  const { p, ...numbers } = record;
  const isPhase = type === 'step' ? STEP_PHASES.has(p) : p === undefined || isNumber(p);
  if (!isPhase || !Object.values(numbers).every(isNumber) || !isNumber(record.b)) {
    refuse(name, `must be the record of an open ${type}`);
  }
  // The check above has looked at every member.
  return record as unknown as OpenRecord;
}

function readDone(fields: Fields, node: PlanNode): DoneRecord {
  const [code, began, took, kept] = fields.list('done', 4);
  const isCode = code === 0 || code === 1 || code === 2 || code === 3;
  if (!isCode || !isNumber(began) || !isNumber(took)) {
    fields.refuse('done', 'must be a code and two times');
  }
  if (kept === undefined) return [code, began, took];
  if (!isJsonObject(kept)) fields.refuse('done[3]', 'must be an object');
  return [code, began, took, readOpen(kept, node, fields.name('done[3]'))];
}

/** Times may have fractions. */
function isNumber(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function indexIn(plan: Plan, id: JsonValue | undefined, name: string): number {
  const index = typeof id === 'string' ? plan.indexOf.get(id) : undefined;
  if (index === undefined) refuse(name, 'must be a block of the sequence');
  return index;
}
