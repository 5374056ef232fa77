/**
 * loop and for_each (docs/reference/blocks.md). An iteration ends by queueing the block again, so iterations do not
 * nest and a turn can stop between them. The items of a for_each are snapshotted once, and the current item is visible
 * in context.data. A concurrent for_each has one list of nodes per slot; a slot takes the next item when it is done
 * with one (docs/decisions/0024-blocks-loops-and-items.md).
 */

import {
  COLLECTED_BYTES_MAX,
  type ForEachBlock,
  ITEM_VAR_DEFAULT,
  type LoopBlock,
  MAX_ITERATIONS_DEFAULT,
} from '../../../schema/blocks.js';
import {
  COMPLETED,
  FAILED,
  type ForEachRecord,
  type LoopRecord,
} from '../../../schema/execution.js';
import type { FailureCode } from '../../../schema/failure.js';
import { clip } from '../../base/bounds.js';
import type { JsonValue } from '../../base/json.js';
import { type BlockCompiler, conditionOf } from '../block-compiler.js';
import { type Condition, holds } from '../condition.js';
import type { Evaluation } from '../evaluation.js';
import { follow, isRootedPath } from '../expression/scope.js';
import { collected, collectOutput, outputsOf } from '../loop-items.js';
import { iterationAt } from '../paths.js';
import type { NodePlace } from '../plan-nodes.js';
import { renderTemplate } from '../template.js';
import { concurrencyOf } from '../tree-rules.js';
import { composite } from './kind.js';
import { afterChild, type ListEnd, startList } from './list.js';

export interface LoopNode extends NodePlace {
  readonly type: 'loop';
  /** Undefined when it does not parse, which counts as false. */
  readonly condition: Condition | undefined;
  readonly maxIterations: number;
}

export interface ForEachNode extends NodePlace, Readonly<ReturnType<typeof compileForEach>> {
  readonly type: 'for_each';
}

export const loop = composite<LoopBlock, LoopNode, LoopRecord>({
  repeats: 'iterations',
  carriesOutputs: true,
  isKept: true,
  compile: (block, compiler) => ({
    condition: conditionOf(compiler, block.condition, { member: 'condition', isRepeated: true }),
    maxIterations: block.max_iterations ?? MAX_ITERATIONS_DEFAULT,
  }),
  lists: (block) => [block.body],
  enter(run, node) {
    const kept = run.takeKept(node) as LoopRecord | undefined;
    const record: LoopRecord = { b: run.offset, i: kept?.i ?? 0 };
    run.open(node, record);
    // A retry continues the iteration that failed: its condition has been evaluated.
    if (kept === undefined) testLoop(run, node, record);
    else if (kept.e === 1) loop.revisit(run, node, record);
    else if (!startList(run, node, 0)) endIteration(run, node, record);
  },
  revisit(run, node, record) {
    delete record.e;
    run.reset(node);
    testLoop(run, node, record);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node, child, code);
    if (result === COMPLETED) endIteration(run, node, record);
    else if (result !== 'open') run.finish(node, result);
  },
});

function testLoop(run: Evaluation, node: LoopNode, record: LoopRecord): void {
  const isNext = record.i < node.maxIterations && holds(node.condition, run.scopeOf(node));
  if (!isNext || !startList(run, node, 0)) run.finish(node, COMPLETED);
}

function endIteration(run: Evaluation, node: LoopNode, record: LoopRecord): void {
  record.i += 1;
  record.e = 1;
  run.storeOutput(node, 0, { _iterations: record.i }, null, record.i);
  run.push(node.index);
}

export const forEach = composite<ForEachBlock, ForEachNode, ForEachRecord>({
  repeats: 'items',
  outputRow: 'last',
  isKept: true,
  compile: compileForEach,
  lists: (block) => [block.body],
  copies: ({ concurrency }) => concurrency,
  /** Earlier blocks never give the last output: a step without `when` has an output, or the item fails. */
  lastOutputFrom({ body }) {
    const last = body.findLastIndex((block) => block.type === 'step' && block.when == null);
    return Math.max(last, 0);
  },
  enter(run, node) {
    const kept = run.takeKept(node) as ForEachRecord | undefined;
    if (kept !== undefined) {
      resumeItems(run, node, kept);
      return;
    }
    const items = collect(run, node);
    if (items === undefined) return;
    if (items.length === 0) {
      run.finish(node, COMPLETED);
      return;
    }
    const record: ForEachRecord = { b: run.offset, i: 0, n: items.length };
    run.open(node, record);
    run.putSnapshot(node, items);
    storeRow(run, node, record, 0);
    if (node.concurrency === 1) startList(run, node, 0);
    else {
      record.s = Array.from({ length: Math.min(node.concurrency, items.length) }, () => NO_ITEM);
      record.m = 0;
      fill(run, node, record as SlotRecord);
    }
  },
  revisit(run, node, record) {
    if (hasSlots(record)) fill(run, node, record);
    else {
      delete record.e;
      run.reset(node);
      startList(run, node, 0);
    }
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node, child, code);
    if (result === 'open') return;
    if (hasSlots(record)) slotEnded(run, node, record, child.branch, result);
    else if (result === COMPLETED) endItem(run, node, record);
    else run.finish(node, result);
  },
  item(run, node, record, slot) {
    const item = iterationAt(record, slot);
    const names: [string, JsonValue][] = [[node.itemVar, run.snapshotOf(node)[item] ?? null]];
    if (node.indexVar !== undefined) names.push([node.indexVar, item]);
    return names;
  },
});

function compileForEach(block: ForEachBlock, compiler: BlockCompiler) {
  const text = block.collection.trim();
  const isTemplate = text.includes('{{');
  if (!isTemplate) checkCollection(text, compiler);
  const itemVar = block.item_var ?? ITEM_VAR_DEFAULT;
  if (block.index_var === itemVar) {
    compiler.refuse('index_var', `index_var ${clip(itemVar)} is the name of the item`);
  }
  return {
    /** A path under context.data, or a template. */
    collection: isTemplate ? compiler.template(text, 'collection') : text.split('.'),
    itemVar,
    indexVar: block.index_var ?? undefined,
    concurrency: concurrencyOf(block.concurrency),
    maxIterations: block.max_iterations ?? MAX_ITERATIONS_DEFAULT,
  };
}

/** Warns about a path without braces that begins with a root: it is looked up in context.data like any other key. */
function checkCollection(text: string, compiler: BlockCompiler): void {
  if (!isRootedPath(text)) return;
  const message = `${clip(text)} is looked up in context.data, as data.${clip(text)}`;
  const key = /^(?:context\.)?data\.(.+)$/.exec(text)?.[1];
  compiler.warn('collection', message, key ?? `{{ ${clip(text)} }}`);
}

function collect(run: Evaluation, node: ForEachNode): readonly JsonValue[] | undefined {
  const scope = run.scopeOf(node);
  let value: JsonValue | undefined;
  if ('root' in node.collection) {
    const rendered = renderTemplate(node.collection, scope);
    if (!rendered.ok) return refuse(run, node, 'expression_error', rendered.message);
    value = rendered.value;
  } else value = follow(scope.data, node.collection, 0);
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    return refuse(run, node, 'invalid_collection', 'the collection is not an array');
  }
  if (value.length <= node.maxIterations) return value;
  const { length } = value;
  const message = `${length} items are more than max_iterations, ${node.maxIterations}`;
  return refuse(run, node, 'invalid_collection', message);
}

function refuse(run: Evaluation, node: ForEachNode, code: FailureCode, message: string): undefined {
  run.noteFailure(node, code, `for_each ${node.id}: ${message}`);
  run.finish(node, FAILED);
  return undefined;
}

/** Continues after a retry of the instance: first the items that have not ended, then new ones. */
function resumeItems(run: Evaluation, node: ForEachNode, { i, n, e, s, m, v, t }: ForEachRecord) {
  const record: ForEachRecord = { b: run.offset, i, n };
  run.open(node, record);
  if (s === undefined) {
    if (e === 1) forEach.revisit(run, node, record);
    else if (!startList(run, node, 0)) endItem(run, node, record);
    return;
  }
  Object.assign(record, { s: [...s], m }, v && { v }, t && { t });
  for (const [slot, item] of s.entries()) {
    if (item === NO_ITEM || startList(run, node, slot)) continue;
    slotEnded(run, node, record as SlotRecord, slot, COMPLETED);
  }
  if (run.execution.o[node.index] === record) fill(run, node, record as SlotRecord);
}

function endItem(run: Evaluation, node: ForEachNode, record: ForEachRecord): void {
  record.i += 1;
  if (record.i < record.n) {
    storeRow(run, node, record, record.i);
    record.e = 1;
    run.push(node.index);
  } else complete(run, node, record);
}

/** The outputs of the items become the output of the block, in a row after that of the last item. */
function complete(run: Evaluation, node: ForEachNode, { n }: ForEachRecord): void {
  const output = collected(outputsOf(run, node), n);
  if (!Array.isArray(output)) {
    const details = { path: run.pathOf(node), count: n, limit_bytes: COLLECTED_BYTES_MAX };
    run.audit('output_truncated', node, details);
  }
  run.storeOutput(node, 0, output, null, n);
  collectOutput(run, node, output);
  run.dropSnapshot(run.snapshotKey(node));
  // The first slot keeps the state of its last item for the tree.
  run.resetLists(node, 1, node.lists.length);
  run.finish(node, COMPLETED);
}

function storeRow(run: Evaluation, node: ForEachNode, { n }: ForEachRecord, ended: number): void {
  const row = {
    _index: ended,
    _total: n,
    _item_var: node.itemVar,
    _snapshot_ref: run.snapshotKey(node),
  };
  run.storeProgress(node, row, ended);
}

type SlotRecord = ForEachRecord & Required<Pick<ForEachRecord, 's' | 'm'>>;
const NO_ITEM = -1;
const hasSlots = (record: ForEachRecord): record is SlotRecord => record.s !== undefined;

function fill(run: Evaluation, node: ForEachNode, record: SlotRecord): void {
  for (const [slot, item] of record.s.entries()) {
    if (item === NO_ITEM) takeNext(run, node, record, slot);
  }
}

/** Items begin in order, and no more begin after one has failed. */
function takeNext(run: Evaluation, node: ForEachNode, record: SlotRecord, slot: number): void {
  if (record.i >= record.n || record.r !== undefined) return;
  record.s[slot] = record.i;
  record.i += 1;
  run.resetLists(node, slot, slot + 1);
  startList(run, node, slot);
}

/** Items in flight continue when one has failed, as the branches of a parallel do. */
function slotEnded(
  run: Evaluation,
  node: ForEachNode,
  record: SlotRecord,
  slot: number,
  code: ListEnd,
): void {
  const item = record.s[slot]!;
  if (code === COMPLETED) {
    record.m += 1;
    if (record.m < record.n) storeRow(run, node, record, record.m);
    record.s[slot] = NO_ITEM;
    if (record.v !== undefined) delete record.v[item];
    run.leaveItem(node, item);
    takeNext(run, node, record, slot);
  } else {
    record.f = (record.f ?? 0) + 1;
    if (record.r !== FAILED) record.r = code;
    if (code === FAILED && run.cause !== undefined) record.y ??= run.cause;
  }
  if (record.i > record.m + (record.f ?? 0)) return;
  if (record.r === undefined) complete(run, node, record);
  else run.end(node, record.r, record.y);
}
