/**
 * What can be done about an instance now, each as a request that can be made (docs/reference/explain.md):
 * by its state, and by what it waits for.
 */

import type { NextAction, RunsAgain, Wait } from '../../../schema/explanation.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import type { Standing } from '../../../src/core/waits.js';
import { retryText } from './retry-words.js';

export function nextActions(standing: Standing, waits: readonly Wait[]): NextAction[] {
  const { id, state, root, continuity_id, again } = standing;
  const at = `/instances/${id}`;
  const owner = waits.find(({ kind }) => kind === 'handoff');
  if (owner !== undefined) {
    const path = `/continuity/executions/${continuity_id ?? id}`;
    const why = 'Shows which runtime owns it, and with it where it can be changed.';
    return [{ action: 'look', method: 'GET', path, why }];
  }
  if (isEnded(state)) {
    const actions: NextAction[] = [];
    if (state === 'failed') {
      const retry = { action: 'retry', method: 'POST', path: `${at}/retry` };
      actions.push({ ...retry, ...whatRuns(again) });
    }
    if (root !== null) actions.push(...resumed(at, root, standing.owed));
    if (state === 'failed') {
      actions.push(
        signal(
          at,
          'cancel',
          `Takes it off the dead letter queue for good${givenUp(standing.owed)}.`,
        ),
      );
    }
    return actions;
  }
  const actions = waits
    .flatMap((wait) => ACTIONS[wait.kind]?.(wait, at, state) ?? [])
    // To resume what was paused while it was failed is to retry it.
    .map((one) => (one.action === 'resume' && again ? { ...one, ...whatRuns(again) } : one));
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

function whatRuns(again: RunsAgain | null): Pick<NextAction, 'why' | 'runs_again'> {
  if (again === null) return { why: 'Runs it again from where it failed.' };
  return { why: retryText(again), runs_again: again };
}

/** What is still to be taken back or cleaned up, and never will be. */
function givenUp(owed: readonly string[]): string {
  if (owed.length === 0) return '';
  const paths = owed.slice(0, 5).join(', ');
  return `, and gives up what is still to be cleaned up: ${paths}${owed.length > 5 ? ' and more' : ''}`;
}

function resumed(at: string, root: string, owed: readonly string[]): NextAction[] {
  return [
    {
      action: 'resume_from',
      method: 'POST',
      path: `${at}/resume-from/${encodeURIComponent(root)}`,
      why:
        `Runs it again from the block ${root}, as if that had never been reached: what was done outside from there on ` +
        `happens once more, and children are started anew${givenUp(owed)}.`,
    },
    {
      action: 'fork',
      method: 'POST',
      path: `${at}/fork`,
      body: { from_block_id: root, dry_run: true },
      why: `Tries it in a copy that runs from the block ${root}, without effects outside.`,
    },
  ];
}

function signal(at: string, signal_type: string, why: string): NextAction {
  const path = `${at}/signals`;
  return { action: signal_type, method: 'POST', path, body: { signal_type }, why };
}

/** The hard stop. */
function stop(at: string): NextAction {
  const why =
    'Ends it at once: the protected work that goes on is dropped, and so is its clean-up.';
  return {
    action: 'stop',
    method: 'PATCH',
    path: `${at}/state`,
    body: { state: 'cancelled' },
    why,
  };
}

/** Only what stands in `next_fire_at` can be brought forward. */
function startNow(at: string, state: InstanceState, why: string): NextAction[] {
  if (state !== 'scheduled') return [];
  const body = { state: 'running' };
  return [{ action: 'start_now', method: 'PATCH', path: `${at}/state`, body, why }];
}

/** What ends a wait, beside what the engine does by itself. */
const ACTIONS: Readonly<
  Partial<Record<Wait['kind'], (wait: Wait, at: string, state: InstanceState) => NextAction[]>>
> = {
  pause: (_wait, at) => [signal(at, 'resume', 'Lets it go on.')],
  start: (_wait, at, state) => startNow(at, state, 'Goes on now instead of then.'),
  signal: (_wait, at) => [signal(at, 'custom:continue', 'Any signal wakes it.')],
  slot: ({ holders = [] }) =>
    holders.slice(0, 1).map(({ instance_id }) => ({
      action: 'look_at_holder',
      method: 'GET',
      path: `/instances/${instance_id}/explain`,
      why: 'Says what the instance that holds a slot waits for.',
    })),
  task: ({ handler, queue }, _at, state) => {
    // It is not offered then: the instance is paused, put off, or without its slot.
    if (state === 'paused' || state === 'scheduled') return [];
    const poll: NextAction = {
      action: 'poll',
      method: 'POST',
      path: queue == null ? '/workers/tasks/poll' : '/workers/tasks/poll/queue',
      body: {
        handler_name: handler ?? '',
        worker_id: 'my-worker',
        ...(queue == null ? {} : { queue_name: queue }),
      },
      why: `A worker takes the task by this; without one that polls for ${handler} it waits for ever.`,
    };
    return [poll];
  },
  approval: ({ approval_id, choices = [] }) => [
    {
      action: 'answer',
      method: 'POST',
      path: `/approvals/${approval_id}`,
      body: { value: choices[0] ?? '' },
      why: `Answers for a person; the value is one of ${choices.join(', ')}.`,
    },
  ],
  worker: ({ task_id }) => [
    {
      action: 'look_at_task',
      method: 'GET',
      path: `/workers/tasks/${task_id}/attempts`,
      why: 'Shows who claimed the task, and when.',
    },
  ],
  event: ({ name = '', key, path, since }, at) => [
    {
      action: 'send_event',
      method: 'POST',
      path: '/events',
      body: {
        event_name: name,
        ...(key === undefined ? {} : { correlation_key: key }),
        producer_event_id: `by-hand:${at}/${path} ${since}`,
        payload: {},
      },
      why: 'Ends the wait of every instance of the tenant that waits for this event.',
    },
    signal(
      at,
      `custom:${name}`,
      'Ends the wait of this instance alone, with the payload if one is sent.',
    ),
  ],
  retry: (_wait, at, state) => startNow(at, state, 'Ends the wait: the next try begins now.'),
  delay: (_wait, at, state) => startNow(at, state, 'Ends the wait: the step begins now.'),
  child: ({ child_id }) =>
    child_id === undefined
      ? []
      : [
          {
            action: 'look_at_child',
            method: 'GET',
            path: `/instances/${child_id}/explain`,
            why: 'Says what the child waits for.',
          },
        ],
  rate_limit: ({ key, limit }) =>
    limit == null
      ? []
      : [
          {
            action: 'raise_limit',
            method: 'PUT',
            path: `/rate-limits/${encodeURIComponent(key ?? '')}`,
            body: { max_count: 2 * limit.max_count, window_seconds: limit.window_seconds },
            why: 'Lets more steps with this key begin; those that wait ask again at once.',
          },
        ],
};
