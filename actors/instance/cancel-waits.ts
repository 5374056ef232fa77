/**
 * The events that cancel an instance (`cancel_on` of its sequence, docs/concurrency.md). Rows exist while the instance
 * is live, so that an event finds it, and each is written in the unit that makes it live or ends it. The event's unit
 * inserts an order to cancel for each of them, which the instance carries out (`signals.ts`).
 */

import type { CancelEvent } from '../../schema/execution.js';
import { isEnded } from '../../schema/states.js';
import { eventKeyId, eventNameId } from '../../src/base/ids.js';
import { CANCEL_WAIT } from '../event/tables.js';
import type { Turn } from '../runtime/turn.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceRecord } from './record.js';

/** Whether the rows exist, by what the row of the instance has. */
export function awaitsCancel({ snapshot, fence }: InstanceRecord): boolean {
  const isElsewhere = fence !== null && fence.reason !== 'transferring';
  return snapshot.execution.E !== undefined && !isEnded(snapshot.state) && !isElsewhere;
}

/** For a new instance that is inserted in its first state. */
export function putCancelWaits(record: InstanceRecord, turn: Turn): void {
  for (const key of keysOf(record)) {
    turn.put(CANCEL_WAIT.set, `${record.id}:${key}`, { instance_id: record.id, key_id: key });
  }
}

/** Makes the rows match the state. */
export function recordCancelWaits(actor: LiveInstance, turn: Turn): void {
  const { record } = actor;
  if (record.snapshot.execution.E === undefined) return;
  const isAwaited = awaitsCancel(record);
  if (isAwaited === actor.awaitsCancel) return;
  actor.awaitsCancel = isAwaited;
  if (isAwaited) {
    putCancelWaits(record, turn);
    return;
  }
  for (const key of keysOf(record)) {
    turn.put(CANCEL_WAIT.clear, `${record.id}:${key}`, { instance_id: record.id, key_id: key });
  }
}

const keysOf = ({ tenant_id, snapshot }: InstanceRecord) =>
  cancelKeys(tenant_id, snapshot.execution.E ?? []);

export function cancelKeys(tenant: string, events: readonly CancelEvent[]): Set<string> {
  const keys = events.map(({ n, k }) =>
    k === undefined ? eventNameId(tenant, n) : eventKeyId(tenant, n, k),
  );
  return new Set(keys);
}
