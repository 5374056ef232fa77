/** The requests that can be made about an instance, by its state and its waits (docs/reference/explain.md). */

import type { NextAction, RunsAgain, Wait } from '../../../schema/explanation.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import type { JsonObject } from '../../../src/base/json.js';
import type { InstanceStatus } from '../waits.js';
import { retryText } from './retry-words.js';

export function nextActions(standing: InstanceStatus, waits: readonly Wait[]): NextAction[] {
  const { id, state, root, continuity_id, again } = standing;
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
    if (root !== null) actions.push(...resumed(at, root, standing.owed));
    if (state === 'failed') {
      const why = `Takes it off the dead letter queue for good${givenUp(standing.owed)}.`;
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
    standing.cancelling === undefined
      ? signal(at, 'cancel', 'Ends it; protected blocks are run first.')
      : stop(at),
  );
  return distinct;
}

function retryDetails(again: RunsAgain | null): Pick<NextAction, 'why' | 'runs_again'> {
  if (again === null) return { why: 'Runs it again from where it failed.' };
  return { why: retryText(again), runs_again: again };
}

/** The clean-up that will never run. */
function givenUp(owed: readonly string[]): string {
  if (owed.length === 0) return '';
  const paths = owed.slice(0, 5).join(', ');
  return `, and gives up what is still to be cleaned up: ${paths}${owed.length > 5 ? ' and more' : ''}`;
}

function resumed(at: string, root: string, owed: readonly string[]): NextAction[] {
  const path = `${at}/resume-from/${encodeURIComponent(root)}`;
  const why =
    `Runs it again from the block ${root}, as if that had never been reached: what was done outside from there on ` +
    `happens once more, and children are started anew${givenUp(owed)}.`;
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

/** The hard stop, which drops protected work. */
function stop(at: string): NextAction {
  const why =
    'Ends it at once: the protected work that goes on is dropped, and so is its clean-up.';
  const body = { state: 'cancelled' };
  return { action: 'stop', method: 'PATCH', path: `${at}/state`, body, why };
}

/** Only what `next_fire_at` shows can be started earlier. */
function startNow(at: string, state: InstanceState, why: string): NextAction[] {
  if (state !== 'scheduled') return [];
  const body = { state: 'running' };
  return [{ action: 'start_now', method: 'PATCH', path: `${at}/state`, body, why }];
}

const ACTIONS: Readonly<
  Partial<Record<Wait['kind'], (wait: Wait, at: string, state: InstanceState) => NextAction[]>>
> = {
  pause: (_wait, at) => [signal(at, 'resume', 'Lets it go on.')],
  start: (_wait, at, state) => startNow(at, state, 'Goes on now instead of then.'),
  signal: (_wait, at) => [signal(at, 'custom:continue', 'Any signal wakes it.')],
  slot: ({ holders = [] }) =>
    holders.slice(0, 1).map(({ instance_id }) => {
      const why = 'Says what the instance that holds a slot waits for.';
      return get('look_at_holder', `/instances/${instance_id}/explain`, why);
    }),
  task: ({ handler, queue }, _at, state) => {
    // The task is not offered now: the instance is paused, deferred, or without its slot.
    if (state === 'paused' || state === 'scheduled') return [];
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
      : [get('look_at_child', `/instances/${child_id}/explain`, 'Says what the child waits for.')],
  rate_limit: ({ key, limit }) => {
    if (limit == null) return [];
    const path = `/rate-limits/${encodeURIComponent(key ?? '')}`;
    const body = { max_count: 2 * limit.max_count, window_seconds: limit.window_seconds };
    const why = 'Lets more steps with this key begin; those that wait ask again at once.';
    return [{ action: 'raise_limit', method: 'PUT', path, body, why }];
  },
};
