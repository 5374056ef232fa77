/**
 * What an instance has to do with events: it says what its open steps wait for, in a row for each wait,
 * and takes what the actor of the event's key has for them. A wait has an id of its own, so that what
 * is late or comes twice is recognised; that it took an event is a row, too.
 */

import type { StepRecord } from '../../src/core/execution.js';
import { eventKeyId } from '../../src/core/ids.js';
import type { JsonValue } from '../../src/core/json.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Progress, StepTry } from '../../src/core/progress.js';
import { isoTime } from '../../src/core/time.js';
import type { Turn } from '../runtime/turn.js';
import { advance } from './advance.js';
import { type LiveInstance, nextId } from './live-instance.js';
import type { MessageOf } from './messages.js';
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
    turn.put('eventWait.set', wait, { instance_id: instance, id: wait, key_id: key });
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
  turn.put('eventWait.clear', wait, { instance_id: actor.record.id, id: wait });
  tellPeer(actor, turn, key, { kind: 'event.unwanted', key, wait });
}

/** One that is for a wait that is over is given back. */
export function eventArrived(
  actor: LiveInstance,
  turn: Turn,
  { key, event, wait, payload }: MessageOf<'event.arrived'>,
): Progress | undefined {
  const step = waitOf(actor, ({ v }) => v?.i === wait);
  if (step === undefined) {
    // Whatever brought it here, it shall not bring another one.
    turn.put('eventWait.clear', wait, { instance_id: actor.record.id, id: wait });
    tellPeer(actor, turn, key, { kind: 'event.taken', key, event, wait, outcome: 'gone' });
    return undefined;
  }
  const { blockId, ...given } = step;
  const progress = advance(actor, turn, {
    kind: 'event.arrived',
    ...given,
    event: { id: event, payload: JSON.parse(payload) as JsonValue },
  });
  const outcome = actor.eventWaits.has(wait) ? 'refused' : 'taken';
  turn.put('eventTake.insert', `${event}:${wait}`, {
    instance_id: actor.record.id,
    event_id: event,
    wait_id: wait,
    block_id: blockId,
    outcome,
    taken_at: isoTime(actor.env.now()),
  });
  if (outcome === 'taken') turn.count('engine_events_matched_total');
  tellPeer(actor, turn, key, { kind: 'event.taken', key, event, wait, outcome });
  return progress;
}

/** Lets the wait that began first take the signal that is kept under its name. */
export function offerSignal(actor: LiveInstance, turn: Turn, name: string): Progress | undefined {
  const step = waitOf(actor, ({ v }) => v?.n === name);
  if (step === undefined) return undefined;
  const { blockId: _, ...given } = step;
  return advance(actor, turn, { kind: 'event.arrived', ...given });
}

/** The oldest of the waits that are meant: their ids ascend. */
function waitOf(
  { record, plan }: LiveInstance,
  isMeant: (step: StepRecord) => boolean,
): (StepTry & { readonly blockId: string }) | undefined {
  const { execution } = record.snapshot;
  let oldest: { readonly node: number; readonly id: string } | undefined;
  for (const key in execution.o) {
    const step = execution.o[key] as StepRecord;
    if (step.p !== 'event' || !isMeant(step)) continue;
    const id = step.v!.i ?? '';
    if (oldest === undefined || id < oldest.id) oldest = { node: Number(key), id };
  }
  const node = oldest && plan.nodes[oldest.node];
  if (node === undefined) return undefined;
  const { a: attempt } = execution.o[node.index] as StepRecord;
  const iteration = iterationOf(execution, node);
  return { node: node.index, iteration, attempt, blockId: node.id };
}

function waitingSteps({ snapshot }: InstanceRecord): StepRecord[] {
  const steps = Object.values(snapshot.execution.o) as StepRecord[];
  return steps.filter(({ p }) => p === 'event');
}
