/**
 * What is stored beside an instance, brought back to what a rollback capsule has of it: what the
 * target did without any effect is forgotten, so that the source can do it again.
 */

import { readTree } from '../../src/core/continuity/execution-tree.js';
import type { OpenedCapsule } from '../../src/core/continuity/sealed-payload.js';
import type { JsonValue } from '../../src/core/json.js';
import { conflict } from '../../src/errors.js';
import type { OrderedRestore } from '../instance/orders.js';
import type { Turn } from '../runtime/turn.js';
import type { ExecutionService } from './execution-service.js';

interface StoredOutput {
  readonly block_id: string;
  readonly iteration: string;
  readonly attempt: number;
  readonly output: JsonValue;
  readonly output_ref: string | null;
}

export interface ReturnAddress {
  readonly instance: string;
  /** The version that the capsule is of. */
  readonly sequenceId: string;
  readonly opened: OpenedCapsule;
}

/** Puts the rows into the unit. @returns what of them the instance has in memory */
export async function putProgress(
  service: ExecutionService,
  turn: Turn,
  { instance, sequenceId, opened }: ReturnAddress,
): Promise<Pick<OrderedRestore, 'dropped' | 'outputs' | 'items'>> {
  const { rows, plans } = service;
  const [present, presentItems, stored] = await Promise.all([
    rows.outputKeys(instance),
    rows.frozenItems(instance),
    plans.load(sequenceId),
  ]);
  if (stored === undefined) throw conflict(`sequence ${sequenceId} is not there any more`);
  const tree = readTree(opened.frame.execution_tree, stored.plan);
  if (!tree.ok) throw conflict(tree.message);
  const items = [...tree.value.items];
  for (const { key } of presentItems) {
    if (tree.value.items.has(key)) continue;
    turn.put('snapshot.clear', `${instance}:${key}`, { instance_id: instance, key });
  }
  for (const [key, list] of items) {
    turn.put('snapshot.set', `${instance}:${key}`, { instance_id: instance, key, items: list });
  }
  return { ...putOutputs(service, turn, instance, present, opened.outputs), items };
}

/** All rows of the blocks that have others than in the capsule, or lack one. */
function putOutputs(
  service: ExecutionService,
  turn: Turn,
  instance: string,
  present: readonly Pick<StoredOutput, 'block_id' | 'iteration' | 'attempt'>[],
  texts: readonly string[],
): Pick<OrderedRestore, 'dropped' | 'outputs'> {
  const kept = texts.map((text) => ({ text, row: JSON.parse(text) as StoredOutput }));
  const isPresent = new Set(present.map(nameOf));
  const isKept = new Set(kept.map(({ row }) => nameOf(row)));
  const changed = [
    ...present.filter((row) => !isKept.has(nameOf(row))),
    ...kept.map(({ row }) => row).filter((row) => !isPresent.has(nameOf(row))),
  ];
  const blocks = new Set(changed.map(({ block_id }) => block_id));
  if (blocks.size === 0) return { dropped: [], outputs: [] };
  const dropped = [...blocks];
  turn.put('output.dropBlocks', instance, { instance_id: instance, block_ids: dropped });
  const outputs = new Map<string, JsonValue>();
  for (const { text, row } of kept) {
    if (!blocks.has(row.block_id)) continue;
    const id = service.newIdLike(instance);
    turn.put('output.insert', id, `{"id":"${id}","instance_id":"${instance}",${text.slice(1)}`);
    // Oldest first: the latest one stays.
    if (row.output_ref === null || row.output_ref === '__error__') {
      outputs.set(row.block_id, row.output);
    }
  }
  return { dropped, outputs: [...outputs] };
}

function nameOf(row: Pick<StoredOutput, 'block_id' | 'iteration' | 'attempt'>): string {
  return JSON.stringify([row.block_id, row.iteration, row.attempt]);
}
