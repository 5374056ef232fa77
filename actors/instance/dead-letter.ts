/**
 * The row that a failed instance has in the dead letter queue, with what failures are put together by
 * (docs/decisions/0016-lists.md).
 */

import type { Turn } from '../runtime/turn.js';
import { foldReason } from './core/failure-reason.js';
import { failureOf, type InstanceRecord } from './record.js';
import { DEAD_LETTER } from './tables.js';

/** @param failedAt when it failed */
export function putDeadLetter(record: InstanceRecord, turn: Turn, failedAt: string): void {
  const { id, tenant_id, created_at, namespace, sequence_id } = record;
  const failure = failureOf(record);
  turn.put(DEAD_LETTER.set, id, {
    instance_id: id,
    tenant_id,
    created_at,
    failed_at: failedAt,
    reason: failure?.message ?? '',
    namespace,
    sequence_id,
    failure_code: failure?.code ?? null,
    block_id: failure?.block_id ?? null,
    handler: failure?.handler ?? null,
    folded_reason: failure && foldReason(failure.message),
  });
}
