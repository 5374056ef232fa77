/**
 * Receipts of the steps that act outside from within the process. None has a row or a
 * commit of its own while all goes well: the facts of the request are in the record of the open step,
 * which the unit of the dispatch writes anyway, and then in the row of the output. Only a try that
 * gave no output leaves a row. The receipt of a worker's task is its row, see `worker-task.ts`.
 */

import type { StepRecord } from '../../schema/execution.js';
import { isoTime } from '../../src/base/time.js';
import { deadlineHandlerOf } from '../../src/core/deadline-handlers.js';
import { effectRequest, inProcessReceipt } from '../../src/core/effects.js';
import { openRecord } from '../../src/core/hooks.js';
import type { Dispatch, EndedEffect, OutputRow } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { type LiveInstance, nextId } from './live-instance.js';
import { EFFECT } from './output-tables.js';
import type { InstanceRecord } from './record.js';

/** The receipt of an output, as it is stored in its row; `id` is that of the row. */
export interface OutputEffect {
  readonly id: string;
  readonly text: string;
}

/** The execution that the instance's effects belong to: without one it is a scope of its own. */
export function continuityIdOf({ continuity_id, id }: InstanceRecord): string {
  return continuity_id ?? id;
}

/**
 * A try that is dispatched again, because its process is gone, keeps its receipt.
 *
 * @param key that goes along
 */
export function noteEffect(actor: LiveInstance, dispatch: Dispatch, key: string): void {
  const { blockId, handler, params } = dispatch;
  const { execution } = actor.record.snapshot;
  const open =
    deadlineHandlerOf(execution, dispatch) ?? (openRecord(execution, dispatch) as StepRecord);
  open.u ??= {
    id: nextId(actor),
    block_id: blockId,
    handler_name: handler,
    epoch: actor.record.ownership_epoch,
    ...effectRequest(handler, params, key),
    created_at: isoTime(actor.env.now()),
  };
}

/** The receipts of tries that ended: of those with an output for its row, of the others as rows. */
export function settleEffects(
  actor: LiveInstance,
  turn: Turn,
  effects: readonly EndedEffect[],
  outputs: readonly OutputRow[],
): ReadonlyMap<OutputRow, OutputEffect> {
  const stored = new Map<OutputRow, OutputEffect>();
  for (const ended of effects) {
    const isDone = ended.outcome === 'success';
    const output = isDone ? outputs.find((row) => isOutputOf(row, ended)) : undefined;
    const receipt = receiptOf(actor, ended, output);
    if (output === undefined) turn.put(EFFECT.insert, receipt.id, receipt);
    else stored.set(output, { id: receipt.id, text: JSON.stringify(receipt) });
  }
  return stored;
}

function isOutputOf(row: OutputRow, { effect, iteration, attempt }: EndedEffect): boolean {
  return (
    row.blockId === effect.block_id &&
    row.iteration === iteration &&
    row.tryNumber === attempt &&
    row.outputRef === null
  );
}

function receiptOf(
  { record, env }: LiveInstance,
  { effect, iteration, attempt, outcome }: EndedEffect,
  output: OutputRow | undefined,
) {
  const receipt = inProcessReceipt({
    ...effect,
    tenant_id: record.tenant_id,
    continuity_id: continuityIdOf(record),
    instance_id: record.id,
    attempt,
    outcome,
    output: output?.output ?? null,
    updated_at: isoTime(env.now()),
  });
  return { ...receipt, iteration };
}
