/** The state machine of one instance. A message is handled within one turn, without I/O. */

import { toUnixMs } from '../../schema/common.js';
import { canPatch, type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { notFound } from '../../src/base/errors.js';
import { type JsonObject, type JsonValue, textOfJson } from '../../src/base/json.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { checkUnchanged } from '../../src/base/unchanged-since.js';
import { hasHooks, isOfHooks } from '../../src/core/hooks.js';
import { putData } from '../../src/core/loop-items.js';
import type { Progress } from '../../src/core/progress.js';
import { partOf, treeOf } from '../../src/core/tree.js';
import type { KnownRecord, Parking } from '../runtime/protocol.js';
import type { ChangeResult, Turn } from '../runtime/turn.js';
import { advance, advanceTry, checkContextSize, continueAfter } from './advance.js';
import { type Change, concerns } from './change-many.js';
import * as edits from './edits.js';
import * as family from './family.js';
import { fork } from './forks.js';
import * as limits from './limits.js';
import {
  type Action,
  type Handled,
  type Handler,
  isSeenBy,
  type LiveInstance,
  type Preparation,
  type Prepare,
  type Sources,
  stepKey,
} from './live-instance.js';
import type { Creation, InstanceMessage } from './messages.js';
import * as notes from './notes.js';
import { askAboutFence, carryOut } from './ownership.js';
import { putAudit, putTransition } from './progress.js';
import { failureOf, isKeyed, permitStatus } from './record.js';
import { recallTask } from './restore.js';
import { settleNew, stateBefore, touch, write } from './settling.js';
import * as signals from './signals.js';
import { BULK_CHANGE, BULK_RETRY } from './tables.js';
import * as tasks from './tasks.js';
import { standingOf } from './waits.js';
import { resultText, wireContext, wireInstance } from './wire-texts.js';

/** Creates and starts an instance. `gated`: its id follows from a key, so its row may exist. */
/** The request of a creation, and how long it waits for the end. */
interface Asked extends Pick<Creation, 'request'>, Pick<Creation['instance'], 'waitMs'> {}

export function create(
  actor: LiveInstance,
  turn: Turn,
  { request, waitMs }: Asked,
  gated: boolean,
): void {
  if (waitMs !== undefined) actor.shown = new Map();
  start(actor, turn);
  turn.gate = gated ? 'exists' : 'none';
  const { id, tenant_id: tenant } = actor.record;
  if (waitMs === undefined) turn.reply(request, 201, `{"id":"${id}","deduplicated":false}`);
  else {
    const parking = { instance: id, tenant, until: actor.env.now() + waitMs, deduplicated: false };
    replyResult(actor, turn, request, parking, actor.shown);
    actor.shown = undefined;
  }
}

/** @param outputs as JSON, by block; only for an ended instance */
function replyResult(
  { record }: LiveInstance,
  turn: Turn,
  request: number,
  parking: Parking,
  outputs: ReadonlyMap<string, string> | undefined,
): void {
  const hasEnded = isEnded(record.snapshot.state);
  const body = resultText(record, parking.deduplicated, hasEnded ? outputs : undefined);
  if (hasEnded) turn.reply(request, 200, body);
  else turn.effects.push({ kind: 'reply', request, status: 202, body, parking });
}

/** For a request that waits, after the units of the instance that are in flight. */
const result: Preparation<'result'> = async (actor, { rows }, { request, parking }) => {
  const { record } = actor;
  const { signal } = parking;
  if (signal !== undefined) {
    return (turn) => {
      signals.answerSender(actor, turn, request, { ...parking, signal });
      return undefined;
    };
  }
  const kept = isEnded(record.snapshot.state) ? await rows.outputs(record.id, 'all') : undefined;
  const texts = [...(kept ?? [])].map(([id, { output }]) => [id, textOfJson(output)] as const);
  return (turn) => {
    replyResult(actor, turn, request, parking, new Map(texts));
    return undefined;
  };
};

/** The same without a reply, for an instance of a batch. */
export function start(actor: LiveInstance, turn: Turn): void {
  settleNew(actor, turn, () => advance(actor, turn, { kind: 'wake' }));
}

/** @param action from the preparation. @throws EngineError before the first change */
export function handle(
  actor: LiveInstance,
  turn: Turn,
  message: InstanceMessage,
  action?: Action,
): void {
  const before = stateBefore(actor);
  if ('tenant' in message && !isSeenBy(actor, message.tenant)) {
    const what = 'task' in message ? `worker task ${message.task}` : `instance ${actor.record.id}`;
    throw notFound(what);
  }
  const handled = action === undefined ? apply(actor, turn, message) : action(turn);
  if (handled !== undefined) write(actor, turn, handled, before);
  notes.putLines(actor, turn);
}

function apply(actor: LiveInstance, turn: Turn, message: InstanceMessage): Handled {
  const handler = (HANDLERS as Partial<Record<Kind, Handles>>)[message.kind];
  if (handler === undefined) throw new Error(`${message.kind} has to be prepared`);
  return handler(actor, turn, message as never);
}

export function preparationOf(
  { tasks }: LiveInstance,
  message: InstanceMessage,
): Prepare | undefined {
  const isRecalled = 'task' in message && 'request' in message && !tasks.has(message.task);
  if (isRecalled) return (actor, sources) => recallTask(actor, sources, message.task);
  const prepare = (PREPARATIONS as Partial<Record<Kind, Prepares>>)[message.kind];
  return prepare && ((actor, sources) => prepare(actor, sources, message as never));
}

const get: Handler<'get'> = (actor, turn, { request }) => {
  const { text: body, ...known } = knownRecord(actor);
  turn.effects.push({ kind: 'reply', request, status: 200, body, known });
  return undefined;
};

/** The record for readers. Release it only after the units of the instance that are in flight. */
export function knownRecord({ record, env }: LiveInstance): Required<KnownRecord> {
  const { id: instance } = record;
  const stamp = env.versions?.stampOf(instance) ?? Number.NaN;
  return { instance, stamp, text: wireInstance(record) };
}

const tree: Handler<'tree'> = (
  { plan, record: { snapshot, id } },
  turn,
  { request, part = {} },
) => {
  const nodes = partOf(treeOf(plan, snapshot.execution, id), part);
  if (nodes === undefined) throw notFound(`block ${part.block_id} of instance ${id}`);
  turn.reply(request, 200, JSON.stringify(nodes));
  return undefined;
};

const patchState: Handler<'patchState'> = (actor, turn, { request, body }) => {
  const { state: to, next_fire_at } = body;
  const from = actor.record.snapshot.state;
  if (!canPatch(from, to)) throw edits.invalidTransition(`state cannot go from ${from} to ${to}`);
  const at = next_fire_at == null ? null : (toUnixMs(next_fire_at) ?? null);
  const progress = moveTo(actor, turn, to, at);
  touch(actor);
  turn.reply(request, 200, wireInstance(actor.record));
  return progress;
};

const change: Handler<'change'> = (actor, turn, { group, change, job }) => {
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
      if (job !== undefined) {
        const retried_at = isoTime(actor.env.now());
        turn.put(BULK_RETRY.insert, `${job}:${instance_id}`, {
          job_id: job,
          instance_id,
          retried_at,
        });
      }
      putAudit(actor, turn, [{ eventType: 'batch_action', details: { action: 'retry' } }]);
      return moveTo(actor, turn, 'scheduled', null);
    case 'signal': {
      putAudit(actor, turn, [{ eventType: 'batch_action', details: actionOf(change.signalType) }]);
      return signals.takeSignal(actor, turn, change).handled;
    }
  }
};

function resultOf(actor: LiveInstance, change: Change): { result: ChangeResult; error?: string } {
  if (!concerns(change, actor.record.snapshot.state)) return { result: 'skipped' };
  const error = change.kind === 'signal' ? signals.roomError(actor, change) : undefined;
  return error === undefined ? { result: 'applied' } : { result: 'failed', error };
}

function moveTo(actor: LiveInstance, turn: Turn, to: InstanceState, at: UnixMs | null): Progress {
  const now = actor.env.now();
  const { state } = actor.record.snapshot;
  switch (to) {
    case 'scheduled': {
      if (state === 'paused' && at === null) return advance(actor, turn, { kind: 'resume' });
      const fireAt = at ?? now;
      const reschedule = { kind: 'reschedule', at: fireAt } as const;
      const isRetry = state === 'failed';
      const progress = advance(actor, turn, isRetry ? { kind: 'retry' } : reschedule);
      if (isRetry && fireAt > now) return advance(actor, turn, reschedule);
      if (fireAt <= now) continueAfter(actor, turn);
      return progress;
    }
    case 'running':
      if (state === 'failed') return moveTo(actor, turn, 'scheduled', null);
      return runNow(actor, turn, needsPermit(actor));
    case 'waiting':
      // Parking would take a slot that was not granted: the instance waits for one first.
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

function needsPermit({ record }: LiveInstance): boolean {
  return isKeyed(record) && !isEnded(record.snapshot.state) && permitStatus(record) !== 'held';
}

/** @param asScheduled stays scheduled until the concurrency key grants a slot */
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

const patchContext: Handler<'patchContext'> = (actor, turn, message) => {
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
  turn.reply(message.request, 200, `{"context":${wireContext(actor.record)}}`);
  return 'touched';
};

const retry: Handler<'retry'> = (actor, turn, { request, body }) => {
  const { record } = actor;
  const { snapshot } = record;
  if (snapshot.state !== 'failed') {
    throw edits.invalidTransition(
      `only a failed instance can be retried, this one is ${snapshot.state}`,
    );
  }
  if (body.context != null) {
    const data = edits.amendedData(snapshot.data, body);
    checkContextSize(actor, data, snapshot.config, record.context_audit);
    putData(actor.plan, snapshot, data);
    // Without the data: the audit may have readers who may not see it.
    const details = { by: 'retry', context_mode: body.context_mode ?? 'merge' };
    putAudit(actor, turn, [{ eventType: 'data_changed', details }]);
  }
  const progress = moveTo(actor, turn, 'scheduled', null);
  turn.reply(request, 200, `{"id":"${record.id}","state":"scheduled"}`);
  return progress;
};

const wake: Handler<'wake'> = (actor, turn, { recovered }) => {
  const { snapshot } = actor.record;
  if (actor.record.fence !== null) {
    askAboutFence(actor, turn);
    return undefined;
  }
  const isAtHooks = hasHooks(snapshot.execution);
  // A late hint does not change an ended instance.
  if (isEnded(snapshot.state) && !recovered && !isAtHooks) return undefined;
  if (recovered) {
    // The outcomes of these steps will never arrive: their process or thread has died.
    actor.running.clear();
    return advance(actor, turn, { kind: 'wake', recovered: true });
  }
  const now = actor.env.now();
  const isEarly = snapshot.state === 'scheduled' && (snapshot.nextFireAt ?? 0) > now;
  // Before its start only the timeout of an open task can be due.
  const isDue = (actor.timer?.fireAt ?? Number.POSITIVE_INFINITY) <= now;
  if (isEarly && !isAtHooks && !isDue) return undefined;
  return advance(actor, turn, { kind: 'wake' });
};

const outcome: Handler<'step.outcome'> = (actor, turn, { step, outcome }) => {
  const key = stepKey(step);
  if (actor.running.get(key)?.attempt === step.attempt) actor.running.delete(key);
  turn.origin = step;
  return advanceTry(actor, turn, { kind: 'step.outcome', ...step, outcome, external: false });
};

const refused: Handler<'unit.refused'> = (actor, turn, { step, code, reason }) => {
  const { id, snapshot } = actor.record;
  const { state, execution } = snapshot;
  // It runs again since the instance was loaded.
  if (step !== undefined && actor.running.delete(stepKey(step))) {
    turn.effects.push({ kind: 'abort', instance: id, step });
  }
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
};

/** The API accepts years of four digits only. */
const FIRE_AT_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

function actionOf(signalType: string): JsonObject {
  const name = signals.nameOf(signalType);
  return name === undefined ? { action: signalType } : { action: 'signal', signal_type: name };
}

type Kind = InstanceMessage['kind'];
type Handles = (actor: LiveInstance, turn: Turn, message: never) => Handled;
type Prepares = (actor: LiveInstance, sources: Sources, message: never) => Promise<Action>;

/** Messages whose handlers read rows before the turn. */
const PREPARATIONS = {
  injectBlocks: edits.injectBlocks,
  resumeFrom: edits.resumeFrom,
  fork,
  migrate: edits.migrate,
  order: carryOut,
  pruneCheckpoints: notes.pruneCheckpoints,
  result,
} satisfies { readonly [K in Kind]?: Preparation<K> };

const HANDLERS: { readonly [K in Exclude<Kind, keyof typeof PREPARATIONS>]: Handler<K> } = {
  get,
  tree,
  look: ({ record }, turn, { request, version }) => {
    const { state } = record.snapshot;
    const { updated_at } = record;
    const seen = { state, updated_at, failure: failureOf(record), version };
    turn.reply(request, 200, JSON.stringify(seen));
    return undefined;
  },
  standing: (actor, turn, { request, child }) => {
    turn.reply(request, 200, JSON.stringify(standingOf(actor, child)));
    return undefined;
  },
  patchState,
  patchContext,
  signal: signals.signal,
  answer: signals.answer,
  retry,
  change,
  saveCheckpoint: notes.saveCheckpoint,
  wake,
  'permit.granted': limits.permitGranted,
  'permit.denied': limits.permitDenied,
  'start.granted': limits.startGranted,
  'event.arrived': signals.eventArrived,
  'event.cancel': signals.eventCancel,
  'rate.granted': limits.rateGranted,
  'rate.deferred': limits.rateDeferred,
  'rate.changed': (actor, turn, { kind, step }) => advanceTry(actor, turn, { kind, ...step }),
  'child.found': family.childFound,
  'child.ended': family.childEnded,
  'parent.moved': family.parentMoved,
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
