/** Reads outputs to keep in memory: for expressions, and for items of open for_each blocks. */

import type { CarriedOutput } from '../../schema/capsule.js';
import { isJsonObject, type JsonValue } from '../../src/base/json.js';
import {
  type ItemOutputs,
  isProgressNote,
  noItemOutputs,
  setLast,
  setOwn,
} from '../../src/core/loop-items.js';
import { nodeAt, recordOf } from '../../src/core/paths.js';
import type { Plan, PlanNode } from '../../src/core/plan.js';
import type { KeptOutput, Snapshot } from '../../src/core/progress.js';
import type { InstanceLoads } from './loads.js';
import type { ItemOutputRow, ItemsRequest } from './output-loads.js';

export interface KeptOutputs {
  readonly outputs: Map<string, KeptOutput>;
  readonly items?: Record<string, ItemOutputs>;
}

/** The parts of a snapshot from which the open for_each blocks follow. */
export type Place = Pick<Snapshot, 'id' | 'runtime' | 'execution'> & {
  readonly snapshots: readonly string[];
};

export async function keptOutputs(
  rows: InstanceLoads,
  plan: Plan,
  place: Place,
): Promise<KeptOutputs> {
  const [outputs, items] = await Promise.all([
    rows.outputs(place.id, plan.outputRefs),
    place.snapshots.length === 0
      ? undefined
      : itemOutputsOf((ask) => rows.itemOutputs(ask), plan, place),
  ]);
  return items === undefined ? { outputs } : { outputs, items };
}

type ReadItems = (ask: ItemsRequest) => Promise<readonly ItemOutputRow[]>;

/** The outputs of open for_each blocks, by the keys of their item lists. */
export async function itemOutputsOf(
  read: ReadItems,
  plan: Plan,
  place: Place,
): Promise<Record<string, ItemOutputs>> {
  const runs = await Promise.all(place.snapshots.map((key) => readItems(read, plan, place, key)));
  return Object.fromEntries(runs.flat());
}

/** Reads from the given rows (oldest first) with the result of the SQL statement. */
export function itemsAmong(rows: readonly CarriedOutput[]): ReadItems {
  return async ({ prefix, depth, blocks, items }) => {
    const latest = new Map<string, ItemOutputRow>();
    for (const { block_id, iteration, output = null, output_ref = null } of rows) {
      if (!blocks.includes(block_id) || !iteration.startsWith(prefix)) continue;
      const item = Number(iteration.split('.')[depth - 1] || Number.NaN);
      const isWanted =
        items === null ? output_ref === null && !isProgressNote(output) : items.includes(item);
      if (Number.isNaN(item) || !isWanted) continue;
      const name = items === null ? `${item}` : `${item}:${block_id}`;
      latest.delete(name);
      const text = JSON.stringify(output);
      latest.set(name, { item, block_id, iteration, output: text, output_ref, fits: true });
    }
    return [...latest.values()];
  };
}

async function readItems(
  read: ReadItems,
  plan: Plan,
  { id: instance, execution, runtime }: Place,
  key: string,
): Promise<[string, ItemOutputs][]> {
  const colon = key.indexOf(':');
  const iteration = key.slice(0, colon);
  const node = nodeAt(plan, execution, key.slice(colon + 1), iteration);
  if (node === undefined) return [];
  const first = plan.nodes[node.first]!;
  const inside = plan.nodes
    .slice(first.index + 1, first.end)
    .filter((block) => block.index === block.first);
  const run = { instance, prefix: iteration && `${iteration}.`, depth: node.loops.length + 1 };
  const collected = inside.filter(
    ({ kind, collectors }) => kind.repeats !== 'iterations' && collectors.includes(first.index),
  );
  const kept = inside.filter(
    (block) =>
      block.concurrentLoops.includes(first.index) &&
      // The item itself reads the output, as in the evaluator.
      (block.isRead || (block.type === 'step' && block.isMerged)),
  );
  const items = (recordOf(execution, node.index).s ?? []).filter((item) => item >= 0);
  const [lasts, own] = await Promise.all([
    read({ ...run, blocks: idsOf(collected), items: null }),
    items.length === 0 || kept.length === 0 ? [] : read({ ...run, blocks: idsOf(kept), items }),
  ]);
  const found = noItemOutputs();
  for (const row of lasts) {
    if (row.fits) setLast(found, row.item, outputOf(row));
    else delete found.lasts;
  }
  const isDry = runtime.dry_run === true;
  for (const row of own) {
    const block = kept.find(({ id }) => id === row.block_id)!;
    const merged = block.concurrentLoops.at(-1) === first.index && isMerged(block, row, isDry);
    const output = { iteration: row.iteration, output: outputOf(row) };
    setOwn(found, row.item, block.id, output, merged);
  }
  return [[key, found]];
}

function isMerged(block: PlanNode, row: ItemOutputRow, isDry: boolean): boolean {
  if (block.type !== 'step' || !block.isMerged || row.output_ref !== null) return false;
  // A dry run has not executed the handler.
  const isSimulated = isDry && (block.mode === 'external' || block.mode === 'in_process');
  return !isSimulated && isJsonObject(outputOf(row));
}

function outputOf({ output }: ItemOutputRow): JsonValue {
  return output === null ? null : (JSON.parse(output) as JsonValue);
}

function idsOf(blocks: readonly PlanNode[]): string[] {
  return blocks.map(({ id }) => id);
}
