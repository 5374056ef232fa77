/**
 * Signals and events of an instance, and the waits that take them. A signal takes effect in the unit that stores it,
 * so that it is handled once and in order; so does the row of an event that a wait took.
 */

import type { StepRecord } from '../../schema/execution.js';
import { isTerminal } from '../../schema/states.js';
import { conflict, invalid } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import { putData } from '../../src/core/loop-items.js';
import { iterationOf } from '../../src/core/paths.js';
import type { KeptSignal, Progress, StepTry } from '../../src/core/progress.js';
import { EVENT_TAKE, EVENT_WAIT } from '../event/tables.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize, continueAfter } from './advance.js';
import { answerBySignal } from './answers.js';
import type { Signal } from './change-many.js';
import { type Handler, type LiveInstance, nextId } from './live-instance.js';
import type { KeptSignalRow } from './loads.js';
import { charactersOf, checkSize } from './memory.js';
import { SIGNAL } from './output-tables.js';
import { tellPeer } from './progress.js';
import { INSTANCE } from './tables.js';

/** @throws EngineError 400 when the instance has ended, 413 when its context would be too large */
export const signal: Handler<'signal'> = (actor, turn, message) => {
  const { id, snapshot } = actor.record;
  if (isTerminal(snapshot.state)) throw invalid(`instance ${id} is ${snapshot.state}`);
  const { signal_type: signalType, payload } = message.body;
  const { traceparent, by } = message;
  const given = { signalType, payload: (payload ?? null) as JsonValue, traceparent, by };
  const { id: signalId, came } = takeSignal(actor, turn, given);
  turn.reply(message.request, 201, `{"signal_id":"${signalId}"}`);
  return came;
};

/** Stores and delivers the signal. @throws EngineError 409 or 413, before anything is changed */
export function takeSignal(
  actor: LiveInstance,
  turn: Turn,
  given: Signal,
): { readonly id: string; readonly came: Progress | 'touched' } {
  if (nameOf(given.signalType) === undefined) {
    const came = deliverSignal(actor, turn, given);
    return { id: storeSignal(actor, turn, given), came };
  }
  checkRoom(actor, [given]);
  const id = storeSignal(actor, turn, given);
  return { id, came: deliverSignal(actor, turn, given) };
}

/**
 * Limits the signals that are kept for waits.
 *
 * @param kept the present ones
 * @throws EngineError 409 when there are too many, 413 when a payload is too large for an output
 */
export function checkRoom(
  { record, env }: LiveInstance,
  given: readonly Signal[],
  kept: readonly KeptSignal[] = record.snapshot.signals ?? [],
): void {
  const more = given.filter(({ signalType }) => nameOf(signalType) !== undefined);
  if (more.length === 0) return;
  for (const { payload } of more) checkSize('payload is', payload, env.maxOutputBytes);
  const most = LIMITS.keptSignalsMax;
  const longest = LIMITS.keptSignalCharactersMax;
  const what = `instance ${record.id} keeps ${kept.length} signals that no step has waited for`;
  if (kept.length + more.length > most) throw conflict(`${what}: ${most} is the most`);
  const characters = keptCharacters(kept) + charactersOf(more.map(({ payload }) => payload));
  if (characters > longest) throw conflict(`${what}: ${longest} characters is the most`);
}

/** The message of the error that `checkRoom` would throw. */
export function noRoom(actor: LiveInstance, given: Signal): string | undefined {
  try {
    checkRoom(actor, [given]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function keptCharacters(kept: readonly KeptSignal[]): number {
  return kept.reduce((sum, { characters }) => sum + characters, 0);
}

const CUSTOM = 'custom:';

/** The name by which steps wait for it; undefined for built-in signals. */
function nameOf(signalType: string): string | undefined {
  return signalType.startsWith(CUSTOM) ? signalType.slice(CUSTOM.length) : undefined;
}

export function keptSignal({ id, seq, signal_type, payload, sent_by }: KeptSignalRow): KeptSignal {
  const text = payload ?? 'null';
  const name = nameOf(signal_type) ?? '';
  const kept = { id, seq, name, payload: JSON.parse(text) as JsonValue, characters: text.length };
  return sent_by === null ? kept : { ...kept, by: sent_by };
}

/** @returns the id of its row */
export function storeSignal(actor: LiveInstance, turn: Turn, given: Signal): string {
  const { record } = actor;
  const id = nextId(actor);
  record.signal_count += 1;
  const name = nameOf(given.signalType);
  if (name !== undefined) {
    const { payload } = given;
    const kept: KeptSignal = {
      id,
      seq: record.signal_count,
      name,
      payload,
      characters: charactersOf(payload),
      ...(given.by !== undefined && { by: given.by }),
    };
    record.snapshot.signals = [...(record.snapshot.signals ?? []), kept];
  }
  turn.put(SIGNAL.insert, id, {
    id,
    instance_id: record.id,
    seq: record.signal_count,
    signal_type: given.signalType,
    payload: given.payload,
    traceparent: given.traceparent,
    sent_by: given.by,
    created_at: isoTime(actor.env.now()),
    ...(name === undefined ? {} : { status: 'kept' }),
  });
  turn.count('engine_signals_delivered_total');
  return id;
}

/**
 * Call it after `storeSignal` for a signal that steps may wait for.
 *
 * @throws EngineError 400 or 413, before anything is changed
 */
export function deliverSignal(
  actor: LiveInstance,
  turn: Turn,
  { signalType, payload, traceparent, by }: Signal,
): Progress | 'touched' {
  const { snapshot } = actor.record;
  const data = signalType === 'update_context' ? mergedData(actor, payload) : undefined;
  followTrace(actor, turn, traceparent);
  switch (signalType) {
    case 'pause':
      return advance(actor, turn, { kind: 'pause' });
    case 'resume':
      if (snapshot.state !== 'paused') return 'touched';
      return advance(actor, turn, { kind: 'resume' });
    case 'cancel':
      return advance(actor, turn, { kind: 'cancel' });
    case 'update_context': {
      if (data === undefined) return 'touched';
      putData(actor.plan, snapshot, data, payload as JsonObject);
      return unpark(actor, turn);
    }
    default: {
      const taken =
        answerBySignal(actor, turn, { signalType, payload, by }) ??
        offerSignal(actor, turn, nameOf(signalType) ?? '');
      return taken ?? unpark(actor, turn);
    }
  }
}

/** The instance joins the trace of the request. */
export function followTrace(
  { record }: LiveInstance,
  turn: Turn,
  traceparent: string | undefined,
): void {
  if (traceparent === undefined || traceparent === record.traceparent) return;
  record.traceparent = traceparent;
  turn.put(INSTANCE.trace, record.id, { id: record.id, traceparent });
}

function mergedData(actor: LiveInstance, payload: JsonValue): JsonObject | undefined {
  if (!isJsonObject(payload)) return undefined;
  const { snapshot, context_audit } = actor.record;
  const data = { ...snapshot.data, ...payload };
  checkContextSize(actor, data, snapshot.config, context_audit);
  return data;
}

/** An instance that was parked by request continues with the next signal, or after its pause. */
function unpark(actor: LiveInstance, turn: Turn): Progress | 'touched' {
  const { execution, state } = actor.record.snapshot;
  if (execution.p === undefined) return 'touched';
  if (state === 'paused') {
    delete execution.p;
    return 'touched';
  }
  const progress = advance(actor, turn, { kind: 'reschedule', at: null });
  continueAfter(actor, turn);
  return progress;
}

// ---------------------------------------------------------------- waits for signals and events

/** Returns an event whose wait has ended. */
export const eventArrived: Handler<'event.arrived'> = (
  actor,
  turn,
  { key, event, wait, payload },
) => {
  const step = waitOf(actor, ({ v }) => v?.i === wait);
  if (step === undefined) {
    // Remove the wait, so that it gets no other event.
    turn.put(EVENT_WAIT.clear, wait, { instance_id: actor.record.id, id: wait });
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
  turn.put(EVENT_TAKE.insert, `${event}:${wait}`, {
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
};

/** The oldest wait takes the signal that is kept under its name. */
function offerSignal(actor: LiveInstance, turn: Turn, name: string): Progress | undefined {
  const step = waitOf(actor, ({ v }) => v?.n === name);
  if (step === undefined) return undefined;
  const { blockId: _, ...given } = step;
  return advance(actor, turn, { kind: 'event.arrived', ...given });
}

/** The oldest of the matching waits: their ids ascend. */
function waitOf(
  { record, plan }: LiveInstance,
  isAddressed: (step: StepRecord) => boolean,
): (StepTry & { readonly blockId: string }) | undefined {
  const { execution } = record.snapshot;
  let oldest: { readonly node: number; readonly id: string } | undefined;
  for (const key in execution.o) {
    const step = execution.o[key] as StepRecord;
    if (step.p !== 'event' || !isAddressed(step)) continue;
    const id = step.v!.i ?? '';
    if (oldest === undefined || id < oldest.id) oldest = { node: Number(key), id };
  }
  const node = oldest && plan.nodes[oldest.node];
  if (node === undefined) return undefined;
  const { a: attempt } = execution.o[node.index] as StepRecord;
  const iteration = iterationOf(execution, node);
  return { node: node.index, iteration, attempt, blockId: node.id };
}
