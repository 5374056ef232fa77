/**
 * The state machine of one instance. Owns its row, context, outputs, signals, worker tasks and audit.
 * A message goes in and its turn is filled: no I/O, no waiting.
 */

import { toUnixMs } from '../../schema/common.js';
import { canPatch, type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { EngineError, notFound } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { UnixMs } from '../../src/base/time.js';
import { checkUnchanged } from '../../src/base/unchanged-since.js';
import { hasHooks, isOfHooks } from '../../src/core/hooks.js';
import { putData } from '../../src/core/loop-items.js';
import type { Progress } from '../../src/core/progress.js';
import { partOf, treeOf } from '../../src/core/tree.js';
import type { KnownRecord } from '../runtime/protocol.js';
import type { ChangeResult, Turn } from '../runtime/turn.js';
import type { Action, Came } from './action.js';
import { advance, advanceTry, checkContextSize, continueAfter } from './advance.js';
import * as answers from './answers.js';
import { eventArrived } from './arrivals.js';
import { type Change, concerns } from './change-many.js';
import { amendedData } from './edits.js';
import * as kin from './family.js';
import * as limits from './limits.js';
import { isSeenBy, type LiveInstance, stepKey } from './live-instance.js';
import type { InstanceMessage, InstanceRequest, MessageOf } from './messages.js';
import * as notes from './notes.js';
import { askAboutFence } from './ownership.js';
import type { AlwaysPrepared } from './preparation.js';
import { putAudit, putTransition } from './progress.js';
import { contextOf, failureOf, isKeyed, permitStatus, wireInstance } from './record.js';
import { settleNew, stateBefore, touch, write } from './settling.js';
import * as signals from './signals.js';
import { BULK_CHANGE } from './tables.js';
import * as tasks from './tasks.js';
import { standingOf } from './waits.js';

/**
 * The unit that creates the instance, advanced as far as it goes without the outside world
 * (eager start): creation and that progress are one commit.
 *
 * @param gated the id comes from an idempotency key, so that the row may be there already
 */
export function create(actor: LiveInstance, turn: Turn, request: number, gated: boolean): void {
  start(actor, turn);
  turn.gate = gated ? 'exists' : 'none';
  turn.reply(request, 201, `{"id":"${actor.record.id}","deduplicated":false}`);
}

/** The same without an answer: one of a batch. */
export function start(actor: LiveInstance, turn: Turn): void {
  settleNew(actor, turn, () => advance(actor, turn, { kind: 'wake' }));
}

/**
 * @param action what the message does, if that was prepared (`preparation.ts`)
 * @throws EngineError for a wrong request, before the first change
 */
export function handle(
  actor: LiveInstance,
  turn: Turn,
  message: InstanceMessage,
  action?: Action,
): void {
  const before = stateBefore(actor);
  if ('tenant' in message) checkTenant(actor, message);
  const came = action === undefined ? apply(actor, turn, message) : action(turn);
  if (came !== undefined) write(actor, turn, came, before);
  notes.putLines(actor, turn);
}

/** A row for each kind of message that needs nothing but the actor, or may do without. */
const HANDLERS: {
  readonly [Kind in Exclude<InstanceMessage['kind'], AlwaysPrepared>]: (
    actor: LiveInstance,
    turn: Turn,
    message: MessageOf<Kind>,
  ) => Came;
} = {
  get,
  tree,
  look: ({ record }, turn, { request, version }) => {
    const { state } = record.snapshot;
    const { updated_at } = record;
    const seen = { state, updated_at, failure: failureOf(record), version };
    answer(turn, request, JSON.stringify(seen));
  },
  standing: (actor, turn, { request, child }) =>
    answer(turn, request, JSON.stringify(standingOf(actor, child))),
  patchState,
  patchContext,
  signal: signals.signal,
  answer: answers.answer,
  retry,
  change,
  saveCheckpoint: notes.saveCheckpoint,
  wake,
  'permit.granted': limits.permitGranted,
  'event.arrived': eventArrived,
  'rate.granted': limits.rateGranted,
  'rate.deferred': limits.rateDeferred,
  'rate.changed': (actor, turn, { kind, step }) => advanceTry(actor, turn, { kind, ...step }),
  'child.found': kin.childFound,
  'child.ended': kin.childEnded,
  'parent.moved': kin.parentMoved,
  'step.outcome': outcome,
  'unit.refused': refused,
  'task.complete': tasks.complete,
  'task.fail': tasks.fail,
  'task.heartbeat': tasks.heartbeat,
  claim: tasks.claim,
  unclaim: tasks.unclaim,
  'secret.missing': tasks.secretMissing,
  reap: tasks.reap,
};

function apply(actor: LiveInstance, turn: Turn, message: InstanceMessage): Came {
  const handler = (HANDLERS as Partial<Record<string, Handler>>)[message.kind];
  if (handler === undefined) throw new Error(`${message.kind} has to be prepared`);
  return handler(actor, turn, message as never);
}

type Handler = (actor: LiveInstance, turn: Turn, message: never) => Came;

function answer(turn: Turn, request: number, body: string): undefined {
  turn.reply(request, 200, body);
}

function get(actor: LiveInstance, turn: Turn, { request }: MessageOf<'get'>): undefined {
  const { text: body, ...known } = knownRecord(actor);
  turn.effects.push({ kind: 'reply', request, status: 200, body, known });
}

/** What a reader is shown of it; to be told behind the units that it has under way. */
export function knownRecord({ record, env }: LiveInstance): Required<KnownRecord> {
  const { id: instance } = record;
  const stamp = env.versions?.stampOf(instance) ?? Number.NaN;
  return { instance, stamp, text: JSON.stringify(wireInstance(record)) };
}

function tree(
  { plan, record: { snapshot, id } }: LiveInstance,
  turn: Turn,
  { request, part = {} }: MessageOf<'tree'>,
): undefined {
  const nodes = partOf(treeOf(plan, snapshot.execution, id), part);
  if (nodes === undefined) throw notFound(`block ${part.block_id} of instance ${id}`);
  return answer(turn, request, JSON.stringify(nodes));
}

function checkTenant(actor: LiveInstance, message: InstanceRequest): void {
  if (isSeenBy(actor, message.tenant)) return;
  throw notFound('task' in message ? `worker task ${message.task}` : `instance ${actor.record.id}`);
}

// -------------------------------------------------------------- state and context

function patchState(
  actor: LiveInstance,
  turn: Turn,
  { request, body }: MessageOf<'patchState'>,
): Progress {
  const { state: to, next_fire_at } = body;
  const from = actor.record.snapshot.state;
  if (!canPatch(from, to)) {
    throw new EngineError(
      'ENG_INVALID_TRANSITION',
      `invalid argument: state cannot go from ${from} to ${to}`,
    );
  }
  const at = next_fire_at == null ? null : (toUnixMs(next_fire_at) ?? null);
  const progress = moveTo(actor, turn, to, at);
  touch(actor);
  turn.reply(request, 200, JSON.stringify(wireInstance(actor.record)));
  return progress;
}

/** One of a change of many. */
function change(
  actor: LiveInstance,
  turn: Turn,
  { group, change, job }: MessageOf<'change'>,
): Came {
  const { snapshot, id: instance_id } = actor.record;
  const { nextFireAt } = snapshot;
  const { result, error } = resultOf(actor, change);
  turn.effects.push({ kind: 'changed', group, instance: instance_id, result, error });
  if (result !== 'applied') return undefined;
  if (job !== undefined) {
    turn.put(BULK_CHANGE.insert, `${job}:${instance_id}`, { job_id: job, instance_id });
  }
  switch (change.kind) {
    case 'state':
      return moveTo(actor, turn, change.state, null);
    case 'reschedule': {
      const at = (nextFireAt ?? actor.env.now()) + change.offsetMs;
      return moveTo(actor, turn, 'scheduled', Math.min(Math.max(at, 0), FIRE_AT_MAX));
    }
    case 'retry':
      putAudit(actor, turn, [{ eventType: 'batch_action', details: { action: 'retry' } }]);
      return moveTo(actor, turn, 'scheduled', null);
    case 'signal': {
      putAudit(actor, turn, [{ eventType: 'batch_action', details: actionOf(change.signalType) }]);
      return signals.takeSignal(actor, turn, change).came;
    }
  }
}

function resultOf(actor: LiveInstance, change: Change): { result: ChangeResult; error?: string } {
  if (!concerns(change, actor.record.snapshot.state)) return { result: 'skipped' };
  const error = change.kind === 'signal' ? signals.noRoom(actor, change) : undefined;
  return error === undefined ? { result: 'applied' } : { result: 'failed', error };
}

/** What a requested state means. */
function moveTo(actor: LiveInstance, turn: Turn, to: InstanceState, at: UnixMs | null): Progress {
  const now = actor.env.now();
  switch (to) {
    case 'scheduled': {
      if (actor.record.snapshot.state === 'paused' && at === null) {
        return signals.resume(actor, turn);
      }
      const retry = actor.record.snapshot.state === 'failed';
      const fireAt = at ?? now;
      const progress = advance(
        actor,
        turn,
        retry ? { kind: 'retry' } : { kind: 'reschedule', at: fireAt },
      );
      if (retry && fireAt > now) return advance(actor, turn, { kind: 'reschedule', at: fireAt });
      if (fireAt <= now) continueAfter(actor, turn);
      return progress;
    }
    case 'running':
      if (actor.record.snapshot.state === 'failed') return moveTo(actor, turn, 'scheduled', null);
      return runNow(actor, turn, needsPermit(actor));
    case 'waiting':
      // One that needs a slot first cannot be parked: it would hold one that nobody gave it.
      return needsPermit(actor)
        ? runNow(actor, turn, true)
        : advance(actor, turn, { kind: 'park' });
    case 'paused':
      return advance(actor, turn, { kind: 'pause' });
    case 'completed':
    case 'failed':
    case 'cancelled':
      return advance(actor, turn, { kind: 'stop', state: to });
  }
}

function needsPermit(actor: LiveInstance): boolean {
  const { record } = actor;
  return isKeyed(record) && !isEnded(record.snapshot.state) && permitStatus(record) !== 'held';
}

/** @param asScheduled a slot of the concurrency key comes first, so that it stays scheduled */
function runNow(actor: LiveInstance, turn: Turn, asScheduled: boolean): Progress {
  const progress = advance(actor, turn, { kind: 'reschedule', at: null });
  const { snapshot } = actor.record;
  if (!asScheduled) {
    putTransition(actor, turn, 'running');
    turn.count('engine_instances_claimed_total');
    snapshot.state = 'running';
    snapshot.nextFireAt = null;
  }
  continueAfter(actor, turn);
  return progress;
}

function patchContext(
  actor: LiveInstance,
  turn: Turn,
  message: MessageOf<'patchContext'>,
): 'touched' {
  const { snapshot } = actor.record;
  const { context, if_unchanged_since } = message.body;
  checkUnchanged(if_unchanged_since, actor.record.updated_at);
  const data = context.data ?? snapshot.data;
  const config = context.config ?? snapshot.config;
  const audit = (context.audit as JsonValue[] | null | undefined) ?? actor.record.context_audit;
  checkContextSize(actor, data, config, audit);
  putData(actor.plan, snapshot, data);
  snapshot.config = config;
  actor.record.context_audit = audit;
  turn.reply(message.request, 200, JSON.stringify({ context: contextOf(actor.record) }));
  return 'touched';
}

function retry(actor: LiveInstance, turn: Turn, { request, body }: MessageOf<'retry'>): Progress {
  const { record } = actor;
  const { snapshot } = record;
  if (snapshot.state !== 'failed') {
    throw new EngineError(
      'ENG_INVALID_TRANSITION',
      `invalid argument: only a failed instance can be retried, this one is ${snapshot.state}`,
    );
  }
  if (body.context != null) {
    const data = amendedData(snapshot.data, body);
    checkContextSize(actor, data, snapshot.config, record.context_audit);
    putData(actor.plan, snapshot, data);
    // Who may read the audit need not be one who may read the data.
    const details = { by: 'retry', context_mode: body.context_mode ?? 'merge' };
    putAudit(actor, turn, [{ eventType: 'data_changed', details }]);
  }
  const progress = moveTo(actor, turn, 'scheduled', null);
  turn.reply(request, 200, `{"id":"${record.id}","state":"scheduled"}`);
  return progress;
}

// -------------------------------------------------------------- the engine's own messages

function wake(
  actor: LiveInstance,
  turn: Turn,
  { recovered }: MessageOf<'wake'>,
): Progress | undefined {
  const { snapshot } = actor.record;
  if (actor.record.fence !== null) {
    askAboutFence(actor, turn);
    return undefined;
  }
  const isAtHooks = hasHooks(snapshot.execution);
  // A hint that came late: what has ended stays as it is, to its last column.
  if (isEnded(snapshot.state) && !recovered && !isAtHooks) return undefined;
  if (recovered) {
    // The outcomes of these steps can never arrive: their process or thread is gone.
    actor.running.clear();
  } else if (
    !isAtHooks &&
    snapshot.state === 'scheduled' &&
    (snapshot.nextFireAt ?? 0) > actor.env.now()
  ) {
    // Before its start only the time-out of an open task is due.
    if ((actor.timer?.fireAt ?? Number.POSITIVE_INFINITY) > actor.env.now()) return undefined;
  }
  return advance(actor, turn, recovered ? { kind: 'wake', recovered: true } : { kind: 'wake' });
}

function outcome(
  actor: LiveInstance,
  turn: Turn,
  { step, outcome }: MessageOf<'step.outcome'>,
): Progress | undefined {
  const key = stepKey(step);
  if (actor.running.get(key)?.attempt === step.attempt) actor.running.delete(key);
  turn.origin = step;
  return advanceTry(actor, turn, { kind: 'step.outcome', ...step, outcome, external: false });
}

function refused(
  actor: LiveInstance,
  turn: Turn,
  { step, code, reason }: MessageOf<'unit.refused'>,
): Progress | undefined {
  const { state, execution } = actor.record.snapshot;
  if (step !== undefined && isOfHooks(step.iteration)) {
    return advanceTry(actor, turn, { kind: 'step.refused', ...step, message: reason });
  }
  if (isEnded(state) && hasHooks(execution)) {
    return advance(actor, turn, { kind: 'hooks.dropped', message: reason });
  }
  if (isTerminal(state)) return undefined;
  return step === undefined
    ? advance(actor, turn, { kind: 'stop', state: 'failed', failure: { code, message: reason } })
    : advance(actor, turn, { kind: 'step.refused', ...step, message: reason });
}

/** The last instant whose year has four digits, as everywhere in the API. */
const FIRE_AT_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const CUSTOM = 'custom:';

/** A batch action as its request named it. */
function actionOf(signalType: string): JsonObject {
  return signalType.startsWith(CUSTOM)
    ? { action: 'signal', signal_type: signalType.slice(CUSTOM.length) }
    : { action: signalType };
}
