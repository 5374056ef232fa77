/** The rows of open waits for events. Their ids identify late and repeated events. */

import type { StepRecord } from '../../schema/execution.js';
import { eventKeyId } from '../../src/base/ids.js';
import { EVENT_WAIT } from '../event/tables.js';
import type { Turn } from '../runtime/turn.js';
import { type LiveInstance, nextId } from './live-instance.js';
import { sendToPeer } from './progress.js';
import type { InstanceRecord } from './record.js';

export function storedWaits(record: InstanceRecord): Map<string, string> {
  const waits = new Map<string, string>();
  for (const { v } of waitingSteps(record)) {
    if (v?.i !== undefined) waits.set(v.i, eventKeyId(record.tenant_id, v.n, v.k));
  }
  return waits;
}

/** Updates the rows to match the open waits, and notifies the actors of their keys. */
export function recordEventWaits(actor: LiveInstance, turn: Turn): void {
  const { record, eventWaits } = actor;
  const { id: instance } = record;
  const open = new Set<string>();
  for (const step of waitingSteps(record)) {
    const wait = step.v!.i ?? nextId(actor);
    step.v = { ...step.v!, i: wait };
    open.add(wait);
    if (eventWaits.has(wait)) continue;
    const key = eventKeyId(record.tenant_id, step.v.n, step.v.k);
    eventWaits.set(wait, key);
    turn.put(EVENT_WAIT.set, wait, { instance_id: instance, id: wait, key_id: key });
    sendToPeer(actor, turn, key, { kind: 'event.wanted', key, wait, instance });
  }
  for (const [wait, key] of eventWaits) {
    if (!open.has(wait)) leave(actor, turn, wait, key);
  }
}

/** Writes the rows again after a handover or a rollback. */
export function renewEventWaits(actor: LiveInstance, turn: Turn): void {
  const known = [...actor.eventWaits];
  actor.eventWaits.clear();
  recordEventWaits(actor, turn);
  for (const [wait, key] of known) {
    if (!actor.eventWaits.has(wait)) leave(actor, turn, wait, key);
  }
}

/** Removes all waits of an instance that has moved to another engine. */
export function dropEventWaits(actor: LiveInstance, turn: Turn): void {
  for (const [wait, key] of actor.eventWaits) leave(actor, turn, wait, key);
}

function leave(actor: LiveInstance, turn: Turn, wait: string, key: string): void {
  actor.eventWaits.delete(wait);
  turn.put(EVENT_WAIT.clear, wait, { instance_id: actor.record.id, id: wait });
  sendToPeer(actor, turn, key, { kind: 'event.unwanted', key, wait });
}

function waitingSteps({ snapshot }: InstanceRecord): StepRecord[] {
  const steps = Object.values(snapshot.execution.o) as StepRecord[];
  return steps.filter(({ p }) => p === 'event');
}
