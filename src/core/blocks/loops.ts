/**
 * loop and for_each (docs/reference/blocks.md). An iteration ends by putting the block into the
 * queue again, so that iterations do not nest and a turn can stop between them. The items of a
 * for_each are a snapshot of their own, taken once; the item of the present iteration lies over
 * context.data.
 */

import {
  type ForEachBlock,
  ITEM_VAR_DEFAULT,
  type LoopBlock,
  MAX_ITERATIONS_DEFAULT,
} from '../../../schema/blocks.js';
import type { FailureCode } from '../../../schema/failure.js';
import { type BlockCompiler, conditionOf } from '../block-compiler.js';
import { type Condition, evaluateCondition, isTruthy } from '../condition.js';
import type { Evaluation } from '../evaluation.js';
import { COMPLETED, FAILED, type ForEachRecord, type LoopRecord } from '../execution.js';
import { clip } from '../expression/bounds.js';
import { follow, isRootedPath } from '../expression/scope.js';
import type { JsonValue } from '../json.js';
import type { NodePlace } from '../plan-nodes.js';
import { renderTemplate, type Template } from '../template.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';

export interface LoopNode extends NodePlace {
  readonly type: 'loop';
  /** One that does not parse is undefined: false. */
  readonly condition: Condition | undefined;
  readonly maxIterations: number;
}

export interface ForEachNode extends NodePlace {
  readonly type: 'for_each';
  /** A path under context.data, or a template. */
  readonly collection: readonly string[] | Template;
  readonly itemVar: string;
  readonly maxIterations: number;
}

export const loop = composite<LoopBlock, LoopNode, LoopRecord>({
  repeats: 'passes',
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
    // After a retry the iteration that failed goes on: its condition has been tested.
    if (kept === undefined) testLoop(run, node, record);
    else if (kept.e === 1) loop.again(run, node, record);
    else if (!startAt(run, node.lists[0]!, 0)) endLoopPass(run, node, record);
  },
  again(run, node, record) {
    delete record.e;
    run.reset(node);
    testLoop(run, node, record);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[0]!, child, code);
    if (result === COMPLETED) endLoopPass(run, node, record);
    else if (result !== 'open') run.finish(node, result);
  },
});

/** Reaching max_iterations completes the block. */
function testLoop(run: Evaluation, node: LoopNode, record: LoopRecord): void {
  const holds =
    record.i < node.maxIterations &&
    node.condition !== undefined &&
    isTruthy(evaluateCondition(node.condition, run.scopeOf(node)));
  if (!holds || !startAt(run, node.lists[0]!, 0)) run.finish(node, COMPLETED);
}

function endLoopPass(run: Evaluation, node: LoopNode, record: LoopRecord): void {
  record.i += 1;
  record.e = 1;
  run.storeOutput(node, 0, { _iterations: record.i }, null, record.i);
  run.push(node.index);
}

export const forEach = composite<ForEachBlock, ForEachNode, ForEachRecord>({
  repeats: 'items',
  isKept: true,
  compile(block, compiler) {
    const text = block.collection.trim();
    const isTemplate = text.includes('{{');
    if (!isTemplate) checkCollection(text, compiler);
    return {
      collection: isTemplate ? compiler.template(text, 'collection') : text.split('.'),
      itemVar: block.item_var ?? ITEM_VAR_DEFAULT,
      maxIterations: block.max_iterations ?? MAX_ITERATIONS_DEFAULT,
    };
  },
  lists: (block) => [block.body],
  enter(run, node) {
    const kept = run.takeKept(node) as ForEachRecord | undefined;
    if (kept !== undefined) {
      const record: ForEachRecord = { b: run.offset, i: kept.i, n: kept.n };
      run.open(node, record);
      if (kept.e === 1) forEach.again(run, node, record);
      else if (!startAt(run, node.lists[0]!, 0)) endItem(run, node, record);
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
    storeRow(run, node, record);
    startAt(run, node.lists[0]!, 0);
  },
  again(run, node, record) {
    delete record.e;
    run.reset(node);
    startAt(run, node.lists[0]!, 0);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[0]!, child, code);
    if (result === COMPLETED) endItem(run, node, record);
    else if (result !== 'open') run.finish(node, result);
  },
  item: (run, node, record) => [node.itemVar, run.snapshotOf(node)[record.i] ?? null],
});

/** A path without braces is one of context.data, where a root is a key like any other. */
function checkCollection(text: string, compiler: BlockCompiler): void {
  if (!isRootedPath(text)) return;
  const message = `${clip(text)} is looked up in context.data, as data.${clip(text)}`;
  const key = /^(?:context\.)?data\.(.+)$/.exec(text)?.[1];
  compiler.warn('collection', message, key ?? `{{ ${clip(text)} }}`);
}

/** The items; undefined when the block has failed. */
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

function endItem(run: Evaluation, node: ForEachNode, record: ForEachRecord): void {
  record.i += 1;
  storeRow(run, node, record);
  if (record.i < record.n) {
    record.e = 1;
    run.push(node.index);
    return;
  }
  run.dropSnapshot(node);
  run.finish(node, COMPLETED);
}

function storeRow(run: Evaluation, node: ForEachNode, record: ForEachRecord): void {
  const row = {
    _index: record.i,
    _total: record.n,
    _item_var: node.itemVar,
    _snapshot_ref: run.snapshotKey(node),
  };
  run.storeOutput(node, 0, row, null, record.i);
}
