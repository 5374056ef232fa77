/**
 * Signals of an instance, and the trace that it follows: what a caller asks for takes effect in the
 * unit that stores it, so it is handled once and in order.
 */

import { isTerminal } from '../../schema/states.js';
import { conflict, invalid } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import { putData } from '../../src/core/loop-items.js';
import type { KeptSignal, Progress } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize, continueAfter } from './advance.js';
import { answerBySignal } from './answers.js';
import { offerSignal } from './arrivals.js';
import type { Signal } from './change-many.js';
import { type LiveInstance, nextId } from './live-instance.js';
import type { KeptSignalRow } from './loads.js';
import { charactersOf, checkSize } from './memory.js';
import type { MessageOf } from './messages.js';
import { SIGNAL } from './output-tables.js';
import { INSTANCE } from './tables.js';

/** @throws EngineError 400 when the instance has ended, 413 when its context would be too large */
export function signal(
  actor: LiveInstance,
  turn: Turn,
  message: MessageOf<'signal'>,
): Progress | 'touched' {
  const { id, snapshot } = actor.record;
  if (isTerminal(snapshot.state)) throw invalid(`instance ${id} is ${snapshot.state}`);
  const { signal_type: signalType, payload } = message.body;
  const { traceparent, by } = message;
  const given = { signalType, payload: (payload ?? null) as JsonValue, traceparent, by };
  const { id: signalId, came } = takeSignal(actor, turn, given);
  turn.reply(message.request, 201, `{"signal_id":"${signalId}"}`);
  return came;
}

/** Stores the signal, and has it take effect. @throws EngineError 409 or 413, before anything is changed */
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
 * Those that no wait has taken are kept by the actor, so that there is an end to them.
 *
 * @param kept before these
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

/** The same for one of many: undefined, or why not. */
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

/** What a wait calls it; undefined for signals that take effect when they come. */
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
 * One that steps wait for has been stored: the wait finds it there.
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
      return snapshot.state === 'paused' ? resume(actor, turn) : 'touched';
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

/** A paused instance goes on: now, or at the time for which it was scheduled. */
export function resume(actor: LiveInstance, turn: Turn): Progress {
  return advance(actor, turn, { kind: 'resume' });
}

/** What the instance does from here on belongs to the trace of whoever asked for it. */
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

/** An instance that was parked by request goes on with the next signal, behind a pause when that ends. */
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
