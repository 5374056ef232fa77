/**
 * Receipts of in-process effects: in the record of the open step, then in the row of its output, or
 * in a separate row without an output. The row of a worker's task is its receipt.
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

export interface OutputEffect {
  readonly id: string;
  readonly text: string;
}

/** The execution to which the instance's effects belong, by default the instance itself. */
export function continuityIdOf({ continuity_id, id }: InstanceRecord): string {
  return continuity_id ?? id;
}

/** A try that is dispatched again after a crash keeps its receipt. */
export function recordEffect(actor: LiveInstance, dispatch: Dispatch, key: string): void {
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

/** Stores receipts of ended tries, and returns the receipts that belong in output rows. */
export function settleEffects(
  { record, env }: LiveInstance,
  turn: Turn,
  effects: readonly EndedEffect[],
  outputs: readonly OutputRow[],
): ReadonlyMap<OutputRow, OutputEffect> {
  const stored = new Map<OutputRow, OutputEffect>();
  for (const ended of effects) {
    const isDone = ended.outcome === 'success';
    const output = isDone ? outputs.find((row) => isOutputOf(row, ended)) : undefined;
    const { effect, iteration, attempt, outcome } = ended;
    const inProcess = inProcessReceipt({
      ...effect,
      tenant_id: record.tenant_id,
      continuity_id: continuityIdOf(record),
      instance_id: record.id,
      attempt,
      outcome,
      output: output?.output ?? null,
      updated_at: isoTime(env.now()),
    });
    const receipt = { ...inProcess, iteration };
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
