/**
 * The contents of a capsule, read while the instance is fenced: its context, and the outputs, the
 * position in the plan, the items of running loops and the injected blocks, so that no finished step
 * runs again.
 */

import type { CheckpointRecord } from '../../schema/continuity.js';
import { PRIORITIES } from '../../schema/states.js';
import { conflict } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { CapsuleFacts } from './core/capsule.js';
import { PAYLOAD_BYTES_MAX } from './core/capsule-payload.js';
import { writeTree } from './core/execution-tree.js';
import type { OutputText, PayloadFrame } from './core/sealed-payload.js';
import type { ExecutionService } from './execution-service.js';
import { checkpointOf, contextOf, placeOf, planOf } from './places.js';

export interface CapsuleContents
  extends Pick<CapsuleFacts, 'sequence_version' | 'sequence_definition' | 'current_step'> {
  readonly frame: PayloadFrame;
  readonly outputs: readonly OutputText[];
}

/**
 * Rejects with 409 when the instance has no checkpoint, is not here, or is too large for a capsule.
 *
 * @param instance fenced, or compared later by `placeSha256`
 * @param chosen absent: the latest checkpoint
 */
export async function contentsOf(
  { rows, plans }: ExecutionService,
  instance: string,
  chosen?: CheckpointRecord,
): Promise<CapsuleContents> {
  const [place, totals] = await Promise.all([
    placeOf(rows, instance),
    rows.one('outputTotals', instance),
  ]);
  if (place === undefined) throw conflict(`instance ${instance} is not here`);
  const checkpoint = chosen ?? (await checkpointOf(rows, instance));
  // Checked before they are read.
  if ((totals?.bytes ?? 0) > PAYLOAD_BYTES_MAX) {
    throw conflict(`the outputs of instance ${instance} are too large for a capsule`);
  }
  const { row, execution, runtime } = place;
  const blocks = JSON.parse(row.injected ?? '[]') as JsonObject[];
  const [outputs, lists, signals, effects, plan] = await Promise.all([
    rows.all('outputs', instance),
    rows.all('items', instance),
    rows.all('signals', instance),
    rows.all('effectIds', instance),
    planOf(plans, row.sequence_id, blocks),
  ]);
  const items = new Map(lists.map(({ key, items: list }) => [key, JSON.parse(list)]));
  const { current_step: step } = runtime;
  return {
    frame: {
      instance: {
        sequence_id: row.sequence_id,
        namespace: row.namespace,
        priority: PRIORITIES[row.priority] ?? 'normal',
        timezone: row.timezone,
        metadata: JSON.parse(row.metadata) as JsonObject,
        context: contextOf(place),
        budget: null,
        parent_instance_id: row.parent_instance_id,
        ...(row.timeout === null ? {} : { timeout: row.timeout }),
      },
      checkpoint,
      execution_tree: writeTree({ execution, items, blocks }, plan),
      effect_ids: effects.map(({ id }) => id),
      pending_waits: [],
      pending_signals: signals.map(({ payload, ...signal }) => {
        return { ...signal, payload: JSON.parse(payload ?? 'null') as JsonValue };
      }),
      artifacts: [],
      stream_cursors: [],
      redacted_audit_context: null,
    },
    outputs,
    sequence_version: row.version,
    sequence_definition: JSON.parse(row.definition) as JsonValue,
    current_step: typeof step === 'string' ? step : null,
  };
}
