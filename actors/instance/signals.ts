/**
 * Signals of an instance, and the trace that it follows: what a caller asks for takes effect in the
 * unit that stores it, so it is handled once and in order.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '../../src/core/json.js';
import type { Progress } from '../../src/core/progress.js';
import { isTerminal } from '../../src/core/states.js';
import { isoTime } from '../../src/core/time.js';
import { invalid } from '../../src/errors.js';
import type { Turn } from '../runtime/turn.js';
import { advance, checkContextSize, continueAfter, touchContext } from './advance.js';
import { type LiveInstance, nextId } from './live-instance.js';
import type { MessageOf } from './messages.js';

export interface Signal {
  readonly signalType: string;
  readonly payload: JsonValue;
  /** Of the request that brings it; undefined: it is in no trace. */
  readonly traceparent?: string | undefined;
}

/** @throws EngineError 400 when the instance has ended, 413 when its context would be too large */
export function signal(
  actor: LiveInstance,
  turn: Turn,
  message: MessageOf<'signal'>,
): Progress | 'touched' {
  const { id, snapshot } = actor.record;
  if (isTerminal(snapshot.state)) throw invalid(`instance ${id} is ${snapshot.state}`);
  const { signal_type: signalType, payload } = message.body;
  const { traceparent } = message;
  const given = { signalType, payload: (payload ?? null) as JsonValue, traceparent };
  const progress = deliverSignal(actor, turn, given);
  const signalId = storeSignal(actor, turn, given);
  turn.reply(message.request, 201, `{"signal_id":"${signalId}"}`);
  return progress;
}

/** @returns the id of its row */
export function storeSignal(actor: LiveInstance, turn: Turn, given: Signal): string {
  const { record } = actor;
  const id = nextId(actor);
  record.signal_count += 1;
  turn.put('signal.insert', id, {
    id,
    instance_id: record.id,
    seq: record.signal_count,
    signal_type: given.signalType,
    payload: given.payload,
    traceparent: given.traceparent,
    created_at: isoTime(actor.env.now()),
  });
  turn.count('engine_signals_delivered_total');
  return id;
}

/** @throws EngineError 413, before anything is changed */
export function deliverSignal(
  actor: LiveInstance,
  turn: Turn,
  { signalType, payload, traceparent }: Signal,
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
      snapshot.data = data;
      touchContext(actor, turn);
      return unpark(actor, turn);
    }
    default:
      return unpark(actor, turn);
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
  turn.put('instance.trace', record.id, { id: record.id, traceparent });
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
