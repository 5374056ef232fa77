/**
 * What the open steps of an instance wait for, in a row for each wait. A wait has an id of its own, so that
 * what is late or comes twice is recognised. `arrivals.ts` has what becomes of an event that comes.
 */

import type { StepRecord } from '../../schema/execution.js';
import { eventKeyId } from '../../src/base/ids.js';
import { EVENT_WAIT } from '../event/tables.js';
import type { Turn } from '../runtime/turn.js';
import { type LiveInstance, nextId } from './live-instance.js';
import { tellPeer } from './progress.js';
import type { InstanceRecord } from './record.js';

/** The open waits of its rows, each with the key whose events end it. */
export function storedWaits(record: InstanceRecord): Map<string, string> {
  const waits = new Map<string, string>();
  for (const { v } of waitingSteps(record)) {
    if (v?.i !== undefined) waits.set(v.i, eventKeyId(record.tenant_id, v.n, v.k));
  }
  return waits;
}

/** Keeps the rows of its waits equal to what is open, and tells the actors of their keys. */
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
    tellPeer(actor, turn, key, { kind: 'event.wanted', key, wait, instance });
  }
  for (const [wait, key] of eventWaits) {
    if (!open.has(wait)) leave(actor, turn, wait, key);
  }
}

/** Of an instance that has come from elsewhere, or back to where it was: its rows say nothing. */
export function renewEventWaits(actor: LiveInstance, turn: Turn): void {
  const known = [...actor.eventWaits];
  actor.eventWaits.clear();
  recordEventWaits(actor, turn);
  for (const [wait, key] of known) {
    if (!actor.eventWaits.has(wait)) leave(actor, turn, wait, key);
  }
}

/** Of one that goes on elsewhere: what comes here is not for it. */
export function dropEventWaits(actor: LiveInstance, turn: Turn): void {
  for (const [wait, key] of actor.eventWaits) leave(actor, turn, wait, key);
}

function leave(actor: LiveInstance, turn: Turn, wait: string, key: string): void {
  actor.eventWaits.delete(wait);
  turn.put(EVENT_WAIT.clear, wait, { instance_id: actor.record.id, id: wait });
  tellPeer(actor, turn, key, { kind: 'event.unwanted', key, wait });
}

function waitingSteps({ snapshot }: InstanceRecord): StepRecord[] {
  const steps = Object.values(snapshot.execution.o) as StepRecord[];
  return steps.filter(({ p }) => p === 'event');
}
