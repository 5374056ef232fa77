/**
 * Signals and events of an instance, the waits that take them, and answers to approval gates. A
 * signal takes effect in the unit that stores it, so that it is handled once and in order. The same
 * holds for an event that a wait takes.
 */

import type { ApprovalAnswered } from '../../schema/approval.js';
import type { Execution, StepRecord } from '../../schema/execution.js';
import { GATE_SIGNAL } from '../../schema/instance.js';
import { isEnded, isTerminal } from '../../schema/states.js';
import { conflict, invalid, UNKNOWN_OUTCOME } from '../../src/base/errors.js';
import { groupsIn, groupsText } from '../../src/base/groups.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import {
  choicesText,
  type GateAnswer,
  type GatePlan,
  isAddressed,
  isChoice,
  mayAnswer,
  notApprover,
  parseAnswer,
  refusalOf,
} from '../../src/core/blocks/gate.js';
import { putData } from '../../src/core/loop-items.js';
import { iterationOf, pathOf } from '../../src/core/paths.js';
import type { Plan, StepNode } from '../../src/core/plan-nodes.js';
import type { KeptSignal, Progress, StepTry } from '../../src/core/progress.js';
import { EVENT_CANCEL, EVENT_TAKE, EVENT_WAIT } from '../event/tables.js';
import type { Parking } from '../runtime/protocol.js';
import type { Effect, Turn } from '../runtime/turn.js';
import { advance, checkContextSize, continueAfter } from './advance.js';
import { signalAnswer } from './answers.js';
import type { Signal } from './change-many.js';
import { type OpenGate, openGates } from './gate-rows.js';
import { type Handler, type LiveInstance, nextId } from './live-instance.js';
import type { KeptSignalRow } from './loads.js';
import { charactersOf, checkSize } from './memory.js';
import { SIGNAL } from './output-tables.js';
import { putAudit, putTaken, sendToPeer } from './progress.js';
import { INSTANCE } from './tables.js';

/** @throws EngineError 400 when the instance has ended, 403, 413 when its context would be too large */
export const signal: Handler<'signal'> = (actor, turn, message) => {
  const { id, snapshot } = actor.record;
  if (isTerminal(snapshot.state)) throw invalid(`instance ${id} is ${snapshot.state}`);
  const { signal_type: signalType, payload } = message.body;
  const { request, tenant, traceparent, by, groups, waitMs } = message;
  checkApprover(actor.plan, signalType, groups);
  const given = { signalType, payload: (payload ?? null) as JsonValue, traceparent, by, groups };
  const { id: signalId, handled } = takeSignal(actor, turn, given);
  if (waitMs === undefined) turn.reply(request, 201, `{"signal_id":"${signalId}"}`);
  else {
    const { signal_count: seq } = actor.record;
    const until = actor.env.now() + waitMs;
    const parking = { instance: id, tenant, until, deduplicated: false };
    replyTaken(actor, turn, request, { ...parking, signal: { id: signalId, seq } });
  }
  return handled;
};

/** Early answers, too. A gate that later has other approvers refuses the kept signal. @throws EngineError 403 */
function checkApprover(plan: Plan, signalType: string, groups: Signal['groups']): void {
  const node = gateOf(plan, signalType);
  if (node === undefined || mayAnswer(node.gate, groups)) return;
  throw notApprover(node.gate.approvers);
}

/** The step that a signal answers. */
function gateOf(plan: Plan, signalType: string) {
  if (!plan.hasGates || !signalType.startsWith(GATE_SIGNAL)) return undefined;
  const node = plan.nodes[plan.indexOf.get(signalType.slice(GATE_SIGNAL.length)) ?? -1];
  return node?.type === 'step' && node.gate !== undefined
    ? (node as StepNode & { readonly gate: GatePlan })
    : undefined;
}

/** The reply to a sender who waits until a step has taken the signal. */
function replyTaken(
  { record }: LiveInstance,
  turn: Turn,
  request: number,
  parking: Parking & Required<Pick<Parking, 'signal'>>,
): void {
  const { id, seq } = parking.signal;
  const { signals = [], state } = record.snapshot;
  if (signals.some((kept) => kept.seq === seq)) {
    const body = signalAnswer(id, { taken: false });
    const more = isEnded(state) ? {} : { parking };
    turn.effects.push({ kind: 'reply', request, status: 202, body, ...more });
    return;
  }
  const taken = turn.effects.find(
    (effect) => effect.kind === 'signal.taken' && effect.seq === seq,
  ) as Extract<Effect, { kind: 'signal.taken' }> | undefined;
  // One that is not custom takes effect at once.
  turn.reply(request, 200, signalAnswer(id, taken?.answer ?? { taken: true }));
}

/** For a sender who has waited. The unit in which a step took the signal may have been lost to this thread. */
export function answerSender(
  actor: LiveInstance,
  turn: Turn,
  request: number,
  parking: Parking & Required<Pick<Parking, 'signal'>>,
): void {
  const { signals = [] } = actor.record.snapshot;
  if (signals.some(({ seq }) => seq === parking.signal.seq))
    replyTaken(actor, turn, request, parking);
  else turn.fail(request, UNKNOWN_OUTCOME);
}

/** @throws EngineError 409 or 413, before the first change */
export function takeSignal(
  actor: LiveInstance,
  turn: Turn,
  given: Signal,
): { readonly id: string; readonly handled: Progress | 'touched' } {
  if (nameOf(given.signalType) === undefined) {
    const handled = deliverSignal(actor, turn, given);
    return { id: storeSignal(actor, turn, given), handled };
  }
  checkRoom(actor, [given]);
  const id = storeSignal(actor, turn, given);
  return { id, handled: deliverSignal(actor, turn, given) };
}

/** Limits the signals that no step has taken yet. @throws EngineError 409 or 413 */
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
  const what = `instance ${record.id} keeps ${kept.length} signals that no step has taken`;
  if (kept.length + more.length > most) throw conflict(`${what}: the limit is ${most}`);
  const present = kept.reduce((sum, { characters }) => sum + characters, 0);
  const characters = present + charactersOf(more.map(({ payload }) => payload));
  if (characters > longest) throw conflict(`${what}: the limit is ${longest} characters`);
}

export function roomError(actor: LiveInstance, given: Signal): string | undefined {
  try {
    checkRoom(actor, [given]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const CUSTOM = 'custom:';

/** The name of a custom signal; undefined for built-in signals. */
export function nameOf(signalType: string): string | undefined {
  return signalType.startsWith(CUSTOM) ? signalType.slice(CUSTOM.length) : undefined;
}

export function keptSignal(row: KeptSignalRow): KeptSignal {
  const { id, seq, signal_type, payload, sent_by, sent_groups } = row;
  const text = payload ?? 'null';
  const name = nameOf(signal_type) ?? '';
  const kept = { id, seq, name, payload: JSON.parse(text) as JsonValue, characters: text.length };
  return {
    ...kept,
    ...(sent_by !== null && { by: sent_by }),
    ...(sent_groups !== null && { groups: groupsIn(sent_groups) }),
  };
}

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
      ...(given.groups !== undefined && { groups: given.groups }),
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
    sent_groups: given.groups && groupsText(given.groups),
    created_at: isoTime(actor.env.now()),
    ...(name === undefined ? {} : { status: 'kept' }),
  });
  turn.count('engine_signals_delivered_total');
  return id;
}

/** Follows `storeSignal` if custom. @throws EngineError 400 or 413, before the first change */
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
      const progress = answerBySignal(actor, turn, { signalType, payload, by });
      if (progress !== undefined) return progress;
      const name = nameOf(signalType) ?? '';
      const step = waitOf(actor, ({ v }) => v?.n === name);
      if (step === undefined) return unpark(actor, turn);
      const { blockId: _, ...given } = step;
      return advance(actor, turn, { kind: 'event.arrived', ...given });
    }
  }
}

/** Adds the instance to the trace of the request. */
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

/** A parked instance continues with the next signal, or after its pause. */
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

/** An event whose wait has ended is returned. */
export const eventArrived: Handler<'event.arrived'> = (
  actor,
  turn,
  { key, event, wait, payload },
) => {
  const step = waitOf(actor, ({ v }) => v?.i === wait);
  if (step === undefined) {
    // Remove the wait, so that it receives no further event.
    turn.put(EVENT_WAIT.clear, wait, { instance_id: actor.record.id, id: wait });
    sendToPeer(actor, turn, key, { kind: 'event.taken', key, event, wait, outcome: 'gone' });
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
  sendToPeer(actor, turn, key, { kind: 'event.taken', key, event, wait, outcome });
  return progress;
};

/** While the instance is handed over, the order stays pending. */
export const eventCancel: Handler<'event.cancel'> = (actor, turn, { event, name, key }) => {
  const { id, fence, snapshot } = actor.record;
  turn.effects.push({ kind: 'event.cancelled', instance: id, event });
  const isPending = fence !== null && fence.reason !== 'moved';
  // The order may come again before its outcome is read.
  if (isPending || actor.cancelledBy === event) return undefined;
  const isLive = fence === null && !isEnded(snapshot.state);
  turn.put(EVENT_CANCEL.settle, `${id}:${event}`, {
    instance_id: id,
    event_id: event,
    outcome: isLive ? 'cancelled' : 'ended',
    taken_at: isoTime(actor.env.now()),
  });
  if (!isLive) return undefined;
  actor.cancelledBy = event;
  const details = {
    event_id: event,
    event_name: name,
    ...(key !== null && { correlation_key: key }),
  };
  putAudit(actor, turn, [{ eventType: 'cancelled_by_event', details }]);
  turn.count('engine_events_cancelled_total');
  return advance(actor, turn, { kind: 'cancel' });
};

/** The oldest matching wait; ids of waits ascend. */
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

/** @throws EngineError 400, 409 or 413, before the first change */
export const answer: Handler<'answer'> = (actor, turn, { request, approval, given }) => {
  const { plan, record } = actor;
  const open = openGates(plan, record.snapshot.execution).find(
    ({ record: { k } }) => k === approval,
  );
  if (open === undefined) throw conflict(`approval ${approval} is no longer open`);
  if (!isChoice(open.gate, given.value)) {
    throw invalid(`value must be one of ${choicesText(open.gate)}`);
  }
  if (given.comment !== null && !open.gate.allowComment) {
    throw invalid('comment must be absent: this approval does not allow one');
  }
  const progress = answerGate(actor, turn, open, { ...given, more: {} });
  const reply: ApprovalAnswered = {
    id: approval,
    instance_id: record.id,
    block_id: open.node.id,
    value: given.value,
    comment: given.comment,
    answered_by: given.by,
    answered_at: isoTime(progress.gates?.find(({ id }) => id === approval)?.at ?? actor.env.now()),
    repeated: false,
  };
  turn.reply(request, 200, JSON.stringify(reply));
  return progress;
};

/**
 * Answers a gate by the signal that was stored last; undefined when no gate accepts it. A signal
 * that comes before its gate is kept; an invalid or repeated answer is consumed.
 *
 * @throws EngineError 413, before the first change
 */
function answerBySignal(
  actor: LiveInstance,
  turn: Turn,
  { signalType, payload, by }: Signal,
): Progress | undefined {
  const { plan, record } = actor;
  const node = gateOf(plan, signalType);
  if (node === undefined) return undefined;
  const { execution } = record.snapshot;
  const open = openGates(plan, execution).find(
    (one) =>
      one.node.id === node.id &&
      isAddressed(payload, iterationOf(execution, one.node), pathOf(plan, execution, one.node)),
  );
  if (open === undefined) {
    if (isAnswered(execution, node)) {
      putTaken(actor, turn, [{ seq: consumeLast(actor), blockId: node.id, status: 'refused' }]);
    }
    return undefined;
  }
  const given = parseAnswer(open.gate, payload, by ?? null);
  const seq = consumeLast(actor);
  const taken = { seq, blockId: node.id };
  if (given !== undefined) {
    const progress = answerGate(actor, turn, open, given);
    const { reply } = progress;
    putTaken(actor, turn, [{ ...taken, status: 'taken', ...(reply !== undefined && { reply }) }]);
    return progress;
  }
  putTaken(actor, turn, [{ ...taken, status: 'refused' }]);
  putAudit(actor, turn, [refusalOf(node, payload)]);
  return undefined;
}

/** Removes the signal that was stored last. @returns its number */
function consumeLast({ record: { snapshot } }: LiveInstance): number {
  const last = snapshot.signals!.at(-1)!;
  snapshot.signals = snapshot.signals!.slice(0, -1);
  return last.seq;
}

function answerGate(
  actor: LiveInstance,
  turn: Turn,
  { node, record, gate }: OpenGate,
  given: GateAnswer,
): Progress {
  const { snapshot, context_audit } = actor.record;
  const data = { ...snapshot.data, ...Object.fromEntries([[gate.storeAs, given.value]]) };
  checkContextSize(actor, data, snapshot.config, context_audit);
  const iteration = iterationOf(snapshot.execution, node);
  const step = { node: node.index, iteration, attempt: record.a };
  return advance(actor, turn, { kind: 'gate.answered', ...step, answer: given });
}

/** Whether the gate has an answer already, or has ended without one. */
function isAnswered(execution: Execution, node: StepNode): boolean {
  const record = execution.o[node.index] as StepRecord | undefined;
  const hasAnswer = record?.k !== undefined && record.p !== 'gate';
  return hasAnswer || (node.loops.length === 0 && execution.d[node.index] !== undefined);
}
