/** Builds the explanation of an instance (docs/reference/explain.md). */

import {
  type ExplanationWarning,
  type InstanceExplanation,
  type NextAction,
  POLLED_LATELY_SECS,
  type RunsAgain,
  WARNINGS_MAX,
  type Wait,
} from '../../../schema/explanation.js';
import type { Failure } from '../../../schema/failure.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import { ENDPOINT_WORKER_PREFIX } from '../../../schema/worker.js';
import type { JsonObject } from '../../../src/base/json.js';
import type { UnixMs } from '../../../src/base/time.js';
import { limitFor } from '../../../src/core/rate-patterns.js';
import type { WaitFacts } from '../../../src/core/waits.js';
import type { InstanceStatus } from '../waits.js';
import { retryText } from './retry-words.js';

export interface ExplanationContext {
  readonly now: UnixMs;
  /** Newest first: transitions, and retried attempts. */
  readonly moves: readonly Move[];
  readonly pollers: readonly Poller[];
  readonly holders: NonNullable<Wait['holders']>;
  readonly ahead: number;
  /** Those of the keys, and the patterns of the tenant. */
  readonly limits: readonly {
    readonly limit_key: string;
    readonly max_count: number;
    readonly window_seconds: number;
  }[];
  readonly children: ReadonlyMap<string, InstanceState>;
  readonly approvals: readonly { readonly id: string; readonly prompt: string }[];
}

interface Move {
  readonly to_state?: InstanceState | null | undefined;
  readonly block_id?: string | null | undefined;
  readonly details: JsonObject;
  readonly at: string;
}

export interface Poller {
  readonly handler_name: string;
  readonly queue_name: string;
  readonly worker_id: string;
  readonly last_seen_at: string;
}

export function explain(status: InstanceStatus, context: ExplanationContext): InstanceExplanation {
  const { id, sequence_id, state, failure, count } = status;
  const waits = status.waits.map((facts) => {
    const known = { ...facts, ...relatedFacts(facts, context) };
    return { ...known, summary: SUMMARIES[facts.kind](known) };
  });
  const move = context.moves.find(({ to_state }) => to_state === state);
  const since = failure?.at ?? move?.at ?? status.created_at;
  // Waits of the whole instance began when it entered its state.
  for (const wait of waits) if (wait.block_id === null) wait.since ??= since;
  return {
    id,
    sequence_id,
    state,
    since,
    summary: summaryOf(status, waits, since),
    waiting_for: waits,
    waiting_count: count,
    failure,
    ...(status.cancelling && { cancelling: status.cancelling }),
    ...(status.parent !== null && { parent_instance_id: status.parent }),
    ...(status.cancelOn.length > 0 && {
      cancel_on: status.cancelOn.map(({ n: event, k }) => ({
        event,
        ...(k !== undefined && { key: k }),
      })),
    }),
    next: nextActions(status, waits),
    ...(status.cut.length > 0 && {
      warnings: status.cut.slice(0, WARNINGS_MAX).map(warningOf),
    }),
  };
}

function warningOf(block_id: string): ExplanationWarning {
  const summary = `The output of block ${block_id} was too large to be kept whole: expressions that read it see a note in its place.`;
  return { kind: 'output_truncated', block_id, summary };
}

function relatedFacts(facts: WaitFacts, context: ExplanationContext): Partial<WaitFacts> {
  const { kind, attempt = 0 } = facts;
  const more: Partial<WaitFacts> = {};
  if (attempt > 0) Object.assign(more, lastTry(facts, context.moves));
  if (kind === 'task') more.workers = workersFor(facts, context);
  if (kind === 'slot') {
    more.holders = [...context.holders];
    more.ahead = context.ahead;
  }
  if (kind === 'throttle') more.ahead = context.ahead;
  if (kind === 'child') {
    const state = context.children.get(facts.child_id ?? '');
    if (state !== undefined) more.child_state = state;
  }
  if (kind === 'rate_limit') {
    more.limit = limitOf(facts.key ?? '', context);
  }
  if (kind === 'approval') {
    const approval = context.approvals.find(({ id }) => id === facts.approval_id);
    if (approval !== undefined) more.prompt = approval.prompt;
  }
  return more;
}

function limitOf(key: string, { limits }: ExplanationContext): NonNullable<Wait['limit']> | null {
  const limit = limitFor(limits, key);
  if (limit === undefined) return null;
  const { limit_key: pattern, max_count, window_seconds } = limit;
  return { max_count, window_seconds, ...(pattern !== key && { pattern }) };
}

function lastTry({ kind, block_id, attempt = 0 }: WaitFacts, moves: readonly Move[]) {
  const last = moves.find(
    (move) => move.block_id === block_id && move.details.attempt === attempt - 1,
  );
  if (last === undefined) return {};
  const last_error = String(last.details.message);
  return kind === 'retry' ? { last_error, since: last.at } : { last_error };
}

function workersFor({ handler, queue }: WaitFacts, { pollers, now }: ExplanationContext) {
  const able = pollers.filter(
    ({ handler_name, queue_name }) =>
      handler_name === handler && (queue_name === '' || queue_name === queue),
  );
  const endpoints = able.flatMap(({ worker_id }) => endpointIn(worker_id) ?? []).sort();
  const polling = able.filter(({ worker_id }) => endpointIn(worker_id) === undefined);
  const since = now - POLLED_LATELY_SECS * 1_000;
  const lately = polling.filter(({ last_seen_at }) => Date.parse(last_seen_at) >= since);
  const seen = polling.map(({ last_seen_at }) => last_seen_at).sort();
  return {
    polled_lately: new Set(lately.map(({ worker_id }) => worker_id)).size,
    last_polled_at: seen.at(-1) ?? null,
    ...(endpoints.length === 0 ? {} : { endpoints }),
  };
}

/** The name of the endpoint that is this worker (`front/pollers.ts`). */
function endpointIn(worker: string): string | undefined {
  const isEndpoint = worker.startsWith(ENDPOINT_WORKER_PREFIX);
  return isEndpoint ? worker.slice(ENDPOINT_WORKER_PREFIX.length) : undefined;
}

const SUMMARIES: Readonly<Record<Wait['kind'], (wait: WaitFacts) => string>> = {
  pause: () => 'It is paused: nothing new starts until it is resumed.',
  start: ({ until }) => `It is scheduled to go on at ${until}.`,
  handoff: ({ reason, until }) =>
    reason === 'transferring'
      ? `It is being handed over to another runtime${until === null ? '' : `, which has to take it by ${until}`}.`
      : reason === 'moved'
        ? 'It was handed over to another runtime and goes on there.'
        : 'It was imported, and this runtime does not own it yet.',
  slot: ({ key, max_concurrency, holders = [], ahead = 0 }) =>
    `It waits for a slot of the concurrency key ${key}, of which there are ${max_concurrency}: ` +
    `${holdersText(holders)}, and ${counted(ahead, 'instance waits', 'instances wait')} before it.`,
  throttle: ({ key, ahead = 0 }) =>
    `Its start is put off by the throttle ${key} of its sequence: ` +
    `${counted(ahead, 'instance waits', 'instances wait')} before it.`,
  signal: () => 'It was set to waiting by request, and goes on with the next signal.',
  task: (wait) => `${step(wait)} waits for a worker: ${workersText(wait)}.${lostClaims(wait)}`,
  worker: ({ worker_id, since, heartbeat_at, ...wait }) =>
    `The worker ${worker_id} has been at ${step(wait, 'step')} since ${since}; its last sign of life came at ` +
    `${heartbeat_at}.${lostClaims(wait)}`,
  handler: (wait) => `${step(wait)} is running in the built-in handler ${wait.handler}.`,
  approval: ({ prompt = '', choices = [], approvers = [], since, until, ...wait }) =>
    `${step(wait)} has waited for the answer of a person ` +
    `${approvers.length === 0 ? '' : `of ${approvers.join(' or ')} `}since ${since}` +
    `${prompt === '' ? '' : ` (${prompt})`}: ${choices.join(', ')}` +
    `${until === null ? '' : `; until ${until}`}.`,
  sleep: (wait) => `${step(wait)} sleeps until ${wait.until}.`,
  delay: (wait) => `${step(wait)} waits until ${wait.until} because of its delay or send_window.`,
  retry: (wait) =>
    `${step(wait)} failed${wait.last_error === undefined ? '' : ` (${wait.last_error})`} and is tried ` +
    `again at ${wait.until}: that is try ${(wait.attempt ?? 0) + 1}` +
    (wait.max_attempts == null ? '.' : ` of ${wait.max_attempts}.`),
  child: (wait) =>
    wait.child_id === undefined
      ? `The child of ${step(wait, 'block')} is about to be started.`
      : `${step(wait, 'Block')} waits for its child ${wait.child_id}` +
        (wait.child_state === undefined ? '.' : `, which is ${wait.child_state}.`),
  rate_limit: ({ key, limit, until, ...wait }) =>
    `${step(wait)} waits for a permit of the rate limit ${key}` +
    (limit == null ? '' : ` (${limitText(limit)})`) +
    (until === null ? '.' : `, and asks again at ${until}.`),
  event: (wait) =>
    `${step(wait)} waits for the event ${wait.name}` +
    (wait.key === undefined ? '' : ` with the correlation key ${wait.key}`) +
    (wait.until === null ? '.' : `, until ${wait.until}.`),
  engine: (wait) =>
    wait.block_id === null
      ? 'The engine goes on with it by itself.'
      : `The engine is about to begin ${step(wait, 'step')}.`,
};

function limitText({ max_count, window_seconds, pattern }: NonNullable<Wait['limit']>): string {
  const of = pattern === undefined ? '' : `, by the pattern ${pattern}`;
  return `${max_count} in ${window_seconds} s${of}`;
}

function step({ path }: Pick<WaitFacts, 'path'>, word = 'Step'): string {
  return `${word} ${path}`;
}

function workersText({ handler, queue, workers }: WaitFacts): string {
  const { polled_lately: lately = 0, last_polled_at: last = null, endpoints = [] } = workers ?? {};
  const what = `the handler ${handler}${queue == null ? '' : ` and the queue ${queue}`}`;
  if (lately > 0) {
    const polls = counted(lately, 'worker has', 'workers have');
    return `${polls} polled for ${what} within the last ${POLLED_LATELY_SECS} s`;
  }
  if (endpoints.length > 0) {
    const named = endpoints.join(', ');
    return `the worker endpoint ${named} gets tasks of ${what}, unless it is paused or busy`;
  }
  const ever = last === null ? 'none ever did' : `the last time was ${last}`;
  return `no worker polls for ${what}; ${ever}`;
}

function lostClaims({ lost_claims: claims = 0 }: Pick<WaitFacts, 'lost_claims'>): string {
  if (claims === 0) return '';
  return ` ${counted(claims, 'worker has', 'workers have')} fallen silent over this try before.`;
}

function holdersText(holders: NonNullable<Wait['holders']>): string {
  if (holders.length === 0) return 'none is held';
  const [first, ...rest] = holders;
  const others = rest.length === 0 ? '' : ` and ${counted(rest.length, 'other', 'others')}`;
  return `instance ${first!.instance_id}${others} ${rest.length === 0 ? 'holds one' : 'hold them'}`;
}

function counted(count: number, one: string, many: string): string {
  return `${count === 0 ? 'no' : count} ${count === 1 ? one : many}`;
}

function summaryOf(
  { state, failure, count, cancelling }: InstanceStatus,
  waits: readonly Wait[],
  since: string,
) {
  if (state === 'completed') return `It completed at ${since}.`;
  if (state === 'cancelled') return `It was cancelled at ${since}.`;
  if (state === 'failed') return failedText(failure, since);
  const text = waitingText(waits, count);
  if (cancelling === undefined) return text;
  const why = cancelling.reason === 'cancel' ? 'was cancelled' : 'timed out';
  return `It ${why} at ${cancelling.since}, and ends once its protected work is done. ${text}`;
}

function waitingText(waits: readonly Wait[], count: number): string {
  // A wait of the whole instance comes before those of blocks.
  const [first, second] = waits;
  if (first === undefined) return 'The engine goes on with it by itself.';
  if (second === undefined || first.block_id === null) return first.summary;
  return `It waits for ${count} things at once. The first: ${first.summary}`;
}

function failedText(failure: Failure | null, since: string): string {
  if (failure === null) return `It failed at ${since}; see its audit for details.`;
  const { path, attempt, code, message } = failure;
  const where = path === null ? 'It' : `It failed at ${since} because block ${path}`;
  const which = attempt === null || attempt === 0 ? '' : ` at try ${attempt + 1}`;
  const what = path === null ? `failed at ${since}` : `failed${which}`;
  return `${where} ${what}: ${message} (${code}).`;
}

function nextActions(status: InstanceStatus, waits: readonly Wait[]): NextAction[] {
  const { id, state, root, continuity_id, again } = status;
  const at = `/instances/${id}`;
  const owner = waits.find(({ kind }) => kind === 'handoff');
  if (owner !== undefined) {
    const path = `/continuity/executions/${continuity_id ?? id}`;
    const why = 'Shows which runtime owns it, and with it where it can be changed.';
    return [get('look', path, why)];
  }
  if (isEnded(state)) {
    const actions: NextAction[] = [];
    if (state === 'failed') {
      const retry = { action: 'retry', method: 'POST', path: `${at}/retry` };
      actions.push({ ...retry, ...retryDetails(again) });
    }
    if (root !== null) actions.push(...resumed(at, root, status.owed));
    if (state === 'failed') {
      const why = `Removes it from the dead letter queue permanently${givenUp(status.owed)}.`;
      actions.push(signal(at, 'cancel', why));
    }
    return actions;
  }
  const actions = waits
    .flatMap((wait) => ACTIONS[wait.kind]?.(wait, at, state) ?? [])
    // Resuming an instance that was paused while it was failed retries it.
    .map((one) => (one.action === 'resume' && again ? { ...one, ...retryDetails(again) } : one));
  const seen = new Set<string>();
  const distinct = actions.filter((action) => {
    const key = JSON.stringify([action.action, action.path, action.body]);
    return !seen.has(key) && seen.add(key);
  });
  if (state !== 'paused') {
    distinct.push(signal(at, 'pause', 'Lets nothing new start until it is resumed.'));
  }
  distinct.push(
    status.cancelling === undefined
      ? signal(at, 'cancel', 'Ends it; protected blocks are run first.')
      : stop(at),
  );
  return distinct;
}

function retryDetails(again: RunsAgain | null): Pick<NextAction, 'why' | 'runs_again'> {
  if (again === null) return { why: 'Runs it again from where it failed.' };
  return { why: retryText(again), runs_again: again };
}

function givenUp(owed: readonly string[]): string {
  if (owed.length === 0) return '';
  const paths = owed.slice(0, 5).join(', ');
  return `, and gives up what is still to be cleaned up: ${paths}${owed.length > 5 ? ' and more' : ''}`;
}

function resumed(at: string, root: string, owed: readonly string[]): NextAction[] {
  const path = `${at}/resume-from/${encodeURIComponent(root)}`;
  const why =
    `Runs it again from the block ${root}, as if the block had never been reached: effects outside ` +
    `are repeated from there on, and children are started again${givenUp(owed)}.`;
  const dryRun = { from_block_id: root, dry_run: true };
  const inCopy = `Tries it in a copy that runs from the block ${root}, without effects outside.`;
  return [
    { action: 'resume_from', method: 'POST', path, why },
    post('fork', `${at}/fork`, dryRun, inCopy),
  ];
}

function get(action: string, path: string, why: string): NextAction {
  return { action, method: 'GET', path, why };
}

function post(action: string, path: string, body: JsonObject, why: string): NextAction {
  return { action, method: 'POST', path, body, why };
}

function signal(at: string, signal_type: string, why: string): NextAction {
  return post(signal_type, `${at}/signals`, { signal_type }, why);
}

function stop(at: string): NextAction {
  const why =
    'Ends it at once: the protected work that goes on is dropped, and so is its clean-up.';
  const body = { state: 'cancelled' };
  return { action: 'stop', method: 'PATCH', path: `${at}/state`, body, why };
}

/** Only scheduled instances have a time that can be advanced. */
function startNow(at: string, state: InstanceState, why: string): NextAction[] {
  if (state !== 'scheduled') return [];
  const body = { state: 'running' };
  return [{ action: 'start_now', method: 'PATCH', path: `${at}/state`, body, why }];
}

const ACTIONS: Readonly<
  Partial<Record<Wait['kind'], (wait: Wait, at: string, state: InstanceState) => NextAction[]>>
> = {
  pause: (_wait, at) => [signal(at, 'resume', 'Resumes it.')],
  start: (_wait, at, state) => startNow(at, state, 'Starts now instead of at the scheduled time.'),
  signal: (_wait, at) => [signal(at, 'custom:continue', 'Any signal wakes it.')],
  slot: ({ holders = [] }) =>
    holders.slice(0, 1).map(({ instance_id }) => {
      const why = 'Shows why the instance that holds a slot waits.';
      return get('look_at_holder', `/instances/${instance_id}/explain`, why);
    }),
  task: ({ handler, queue, workers }, _at, state) => {
    // The task is not offered: the instance is paused, deferred, or has no slot.
    if (state === 'paused' || state === 'scheduled') return [];
    const { polled_lately: lately = 0, endpoints = [] } = workers ?? {};
    if (lately === 0 && endpoints.length > 0) {
      const why = 'Shows whether it is paused, until when, and its last error.';
      return endpoints.map((name) => get('look_at_endpoint', `/worker-endpoints/${name}`, why));
    }
    const path = queue == null ? '/workers/tasks/poll' : '/workers/tasks/poll/queue';
    const worker = { handler_name: handler ?? '', worker_id: 'my-worker' };
    const body = queue == null ? worker : { ...worker, queue_name: queue };
    const why = `A worker takes the task by this; without one that polls for ${handler} it waits for ever.`;
    return [post('poll', path, body, why)];
  },
  approval: ({ approval_id, choices = [] }) => {
    const why = `Answers for a person; the value is one of ${choices.join(', ')}.`;
    return [post('answer', `/approvals/${approval_id}`, { value: choices[0] ?? '' }, why)];
  },
  worker: ({ task_id }) => {
    const why = 'Shows who claimed the task, and when.';
    return [get('look_at_task', `/workers/tasks/${task_id}/attempts`, why)];
  },
  event: ({ name = '', key, path, since }, at) => {
    const body = {
      event_name: name,
      ...(key === undefined ? {} : { correlation_key: key }),
      producer_event_id: `by-hand:${at}/${path} ${since}`,
      payload: {},
    };
    const why = 'Ends the wait of every instance of the tenant that waits for this event.';
    const alone = 'Ends the wait of this instance alone, with the payload if one is sent.';
    return [post('send_event', '/events', body, why), signal(at, `custom:${name}`, alone)];
  },
  retry: (_wait, at, state) => startNow(at, state, 'Ends the wait: the next try begins now.'),
  delay: (_wait, at, state) => startNow(at, state, 'Ends the wait: the step begins now.'),
  child: ({ child_id }) =>
    child_id === undefined
      ? []
      : [get('look_at_child', `/instances/${child_id}/explain`, 'Shows why the child waits.')],
  rate_limit: ({ key, limit }) => {
    if (limit == null) return [];
    const path = `/rate-limits/${encodeURIComponent(key ?? '')}`;
    const body = { max_count: 2 * limit.max_count, window_seconds: limit.window_seconds };
    const why = 'Lets more steps with this key begin; those that wait ask again at once.';
    return [{ action: 'raise_limit', method: 'PUT', path, body, why }];
  },
};
