/** Commands for workers and their tasks. */

import type { QueueInfo, QueueInterval, WorkerInfo, WorkerTask } from '../../client/src/index.js';
import { TASK_STATES, type TaskState } from '../../schema/states.js';
import { type Command, listing } from '../command.js';
import { ago } from '../table.js';
import { toneOf } from '../tones.js';
import { timeOf } from './selection.js';

export const WORKER_COMMANDS: readonly Command[] = [
  listing<WorkerTask>({
    name: 'tasks list',
    summary: 'List tasks of workers, newest first.',
    options: [
      {
        flags: '--state <states>',
        about: 'Only tasks in one of these states.',
        choices: TASK_STATES,
        isMany: true,
      },
      { flags: '--handler <name>', about: 'Only tasks of this handler.' },
      { flags: '--queue <name>', about: 'Only tasks of this queue.' },
      { flags: '--worker <id>', about: 'Only tasks claimed by this worker.' },
      { flags: '--sequence <name>', about: 'Only tasks of this sequence, in any version.' },
      { flags: '--created-after <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
      { flags: '--created-before <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
    ],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      {
        head: 'STATE',
        text: ({ state }) => state,
        tone: ({ state }) => toneOf(state),
        isWhole: true,
      },
      { head: 'HANDLER', text: ({ handler_name }) => handler_name },
      { head: 'BLOCK', text: ({ block_id }) => block_id },
      { head: 'WORKER', text: ({ worker_id }) => worker_id ?? '-' },
      { head: 'TRY', text: ({ attempt }) => String(attempt + 1) },
      { head: 'CREATED', text: ({ created_at }, now) => ago(created_at, now) },
      { head: 'HEARTBEAT', text: ({ heartbeat_at }, now) => ago(heartbeat_at, now) },
      { head: 'INSTANCE', text: ({ instance_id }) => instance_id },
    ],
    ask: ({ client }, given, limit) => {
      const states = given.texts('state') as TaskState[];
      return client.workers.tasks({
        state: states.length === 0 ? undefined : states,
        handler_name: given.text('handler'),
        queue_name: given.text('queue'),
        worker_id: given.text('worker'),
        sequence_name: given.text('sequence'),
        created_after: timeOf(given.text('created-after'), 'created-after', Date.now()),
        created_before: timeOf(given.text('created-before'), 'created-before', Date.now()),
        limit,
      });
    },
  }),
  listing<QueueInfo>({
    name: 'queues list',
    summary: 'List waiting tasks by handler and queue, with the workers that serve them.',
    columns: [
      { head: 'HANDLER', text: ({ handler }) => handler },
      { head: 'QUEUE', text: ({ queue }) => queue ?? '-' },
      { head: 'WAITING', text: ({ waiting }) => String(waiting) },
      { head: 'CLAIMED', text: ({ claimed }) => String(claimed) },
      { head: 'OLDEST', text: ({ oldest_waiting_since }, now) => ago(oldest_waiting_since, now) },
      {
        head: 'WORKERS',
        text: ({ workers }) => String(workers),
        tone: ({ workers, waiting }) => (workers === 0 && waiting > 0 ? 'bad' : undefined),
      },
      { head: 'POLLS', text: ({ open_polls }) => String(open_polls) },
    ],
    ask: async ({ client }) => (await client.queues.list()).queues,
  }),
  listing<QueueInterval>({
    name: 'queues series',
    summary: 'Show what came to a queue, was claimed and ended, by ten minutes of the last hour.',
    args: [{ name: 'handler', about: 'A handler.' }],
    options: [{ flags: '--queue <name>', about: 'A queue; default: tasks without a queue.' }],
    columns: [
      { head: 'AT', text: ({ at }) => at },
      { head: 'ARRIVED', text: ({ arrived }) => String(arrived) },
      { head: 'CLAIMED', text: ({ taken }) => String(taken) },
      { head: 'WITHDRAWN', text: ({ withdrawn }) => String(withdrawn) },
      { head: 'ENDED', text: ({ ended }) => String(ended) },
      { head: 'LONGEST WAIT', text: ({ longest_wait_ms }) => `${longest_wait_ms} ms` },
    ],
    ask: async ({ client }, given) => {
      const place = { handler: given.arg(), queue: given.text('queue') };
      return (await client.queues.series({ ...place, step: 600 })).intervals;
    },
  }),
  listing<WorkerInfo>({
    name: 'workers list',
    summary: 'List workers, most recently seen first.',
    options: [{ flags: '--stale', about: 'Include workers that were not seen for a minute.' }],
    columns: [
      { head: 'WORKER', text: ({ worker_id }) => worker_id },
      {
        head: 'ALIVE',
        text: ({ alive }) => (alive ? 'yes' : 'no'),
        tone: ({ alive }) => (alive ? 'good' : 'bad'),
      },
      { head: 'SEEN', text: ({ last_seen_at }, now) => ago(last_seen_at, now) },
      { head: 'TASKS', text: ({ in_flight }) => String(in_flight) },
      { head: 'HANDLERS', text: ({ handlers }) => handlers.join(', ') },
      { head: 'QUEUES', text: ({ queues }) => queues.join(', ') },
      { head: 'VERSION', text: ({ version }) => version ?? '-' },
    ],
    ask: async ({ client }, given) => client.workers.list({ include_stale: given.flag('stale') }),
  }),
];
