/** Holds what the evaluator has come to against what the model says. */

import assert from 'node:assert/strict';
import type { Block } from '../../schema/blocks.js';
import { isEnded } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { GATE_REF, type OutputRow } from '../../src/core/progress.js';
import { listsOf } from './block-trees.js';
import type { Model } from './model.js';
import { idsIn, type ModelRow } from './model-context.js';
import type { Frame } from './model-frames.js';
import type { Player } from './player.js';

/** Behind the name of a block: the row is the answer of its gate. */
const GATE_MARK = '?';

/** After every event: the state, what is at work, the next wake and the rows. */
export function compareNow(player: Player, model: Model): void {
  assert.equal(player.state, model.state, 'the state');
  assert.deepEqual(
    [...player.open.values()].map(nameOf).sort(),
    [...model.open.keys()].sort(),
    'the tries at work',
  );
  assert.deepEqual(player.awaited, [...model.awaited.keys()].sort(), 'what it waits for');
  assert.equal(player.rows.length, model.context.rows.length, 'the number of rows');
  if (isEnded(player.snapshot.state)) return;
  if (player.state === 'scheduled') {
    assert.equal(player.snapshot.nextFireAt, model.nextFireAt, 'next_fire_at');
  }
  const { wakeAt } = player.last!;
  const { dueAt } = model;
  if (dueAt !== null) assert.ok(wakeAt !== null && wakeAt <= dueAt, `no wake at ${dueAt}`);
}

/** Once it has ended: rows, everything that was given out, the context, and the nodes. */
export function compareEnd(player: Player, model: Model, blocks: readonly Block[]): void {
  // Rows are counted by block, and the order of items side by side within one instant is open.
  const inLanes = new Set(lanesIn(blocks));
  const rows = (list: readonly ModelRow[]) =>
    list
      .flatMap((row) => {
        const [block = '', mark] = row.block.split(GATE_MARK);
        if (!inLanes.has(block)) return [row];
        const uncounted = { ...row, attempt: -1 };
        // The answer of a gate has the number of the next row of its block, which is still to come.
        return mark === undefined ? [uncounted, { block, attempt: row.attempt }] : [uncounted];
      })
      .map((row) => JSON.stringify(sorted(row)))
      .sort();
  assert.deepEqual(rows(player.rows.map(plain)), rows(model.context.rows), 'the rows');
  const given = player.dispatched.map(({ params, overlay, ...step }) => {
    const items = model.dispatched.get(nameOf(step))?.items ?? null;
    return [nameOf(step), { params, items: named(overlay, items) }] as const;
  });
  const children = player.children.flatMap((order) => {
    if (order.kind !== 'start') return [];
    const name = `child:${order.blockId}/${order.iteration}`;
    return [[name, { params: order.input, items: null }] as const];
  });
  assert.deepEqual(new Map([...given, ...children]), model.dispatched, 'what was given out');
  const { _error: noted, ...data } = player.snapshot.data;
  const error = specified(noted);
  const { _error: expected, ...modelData } = model.context.data;
  assert.deepEqual(data, modelData, 'context.data');
  // Two failures of one instant may be caught in either order.
  const isKnown = model.context.errors.some((one) => JSON.stringify(one) === JSON.stringify(error));
  assert.ok(isKnown || error === expected, `context.data._error is ${JSON.stringify(error)}`);
  if (!model.owes) compareNodes(player.tree, blocks, model.root);
}

/** The blocks in items that run side by side. */
function lanesIn(blocks: readonly Block[]): string[] {
  return blocks.flatMap((block) => {
    const inner = listsOf(block).flat();
    const hasLanes = block.type === 'for_each' && (block.concurrency ?? 1) > 1;
    return hasLanes ? idsIn(inner) : lanesIn(inner);
  });
}

function sorted(row: Partial<ModelRow>): [string, JsonValue][] {
  return Object.entries(row as object as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** `block/iteration/try`, as the model names tries. */
export function nameOf(step: { blockId: string; iteration: string; attempt: number }): string {
  return `${step.blockId}/${step.iteration}/${step.attempt}`;
}

/** Of what lies over the data: the items and what was caught. What else lies there shows in the parameters. */
function named(overlay: JsonObject | null, items: JsonObject | null): JsonObject | null {
  if (overlay === null || items === null) return overlay?._error === null ? null : overlay;
  const known = Object.entries(overlay).filter(([key]) => Object.hasOwn(items, key));
  return Object.fromEntries(
    known.map(([key, value]) => [key, key === '_error' ? (specified(value) ?? null) : value]),
  );
}

/** Of `_error`: not why the step failed, which the model does not know. */
function specified(error: JsonValue | undefined): JsonValue | undefined {
  if (error === undefined || error === null) return undefined;
  const { failed_step, failed_blocks, source = null, block_id = null } = error as JsonObject;
  const what = failed_step === undefined ? { failed_blocks: failed_blocks! } : { failed_step };
  return { ...what, source, block_id };
}

/** What is specified of a row: not its reasons, nor what names the snapshot of the items. */
function plain(row: OutputRow): ModelRow {
  return {
    block: row.outputRef === GATE_REF ? `${row.blockId}${GATE_MARK}` : row.blockId,
    iteration: row.iteration,
    number: row.tryNumber,
    attempt: row.attempt,
    output: withoutTexts(row.output),
    isError: row.outputRef === '__error__',
  };
}

function withoutTexts(output: JsonValue): JsonValue {
  if (output === null || typeof output !== 'object' || Array.isArray(output)) return output;
  const { message: _, code: __, _snapshot_ref: ___, ...rest } = output as JsonObject;
  return rest;
}

/** The end of every block that was reached; what stands behind a failure is skipped. */
function compareNodes(
  tree: Readonly<Record<string, string>>,
  list: readonly Block[],
  { inside }: Frame,
): void {
  const failed = list.findIndex(({ id }) => inside.get(id)?.end === 'failed');
  for (const [i, block] of list.entries()) {
    const frame = inside.get(block.id);
    const expected = frame?.end ?? (failed >= 0 && i > failed ? 'skipped' : undefined);
    // One whose time was over when it was stopped has failed.
    const isStopped = expected === 'cancelled' && block.type !== 'step' && block.timeout != null;
    if (isStopped && tree[block.id] === 'failed') continue;
    if (expected !== undefined) assert.equal(tree[block.id], expected, `the end of ${block.id}`);
    // Items side by side are counted there.
    if (block.type === 'for_each' && (block.concurrency ?? 1) > 1) continue;
    if (frame !== undefined) for (const inner of listsOf(block)) compareNodes(tree, inner, frame);
  }
}
