/** Commands for changes of many instances that go on behind their answer. */

import type { BulkJob } from '../../client/src/index.js';
import { type Argument, acting, type Command, listing, showing } from '../command.js';
import { ago } from '../table.js';
import { toneOf } from '../tones.js';

const ID: Argument = { name: 'id', about: 'Of a job.' };

const said = ({ id, state, applied, matched }: BulkJob) =>
  `${id} is ${state}: ${applied} of ${matched} so far.`;

export const JOB_COMMANDS: readonly Command[] = [
  listing<BulkJob>({
    name: 'jobs list',
    summary: 'List bulk changes that became jobs, newest first.',
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'STATE', text: ({ state }) => state, tone: ({ state }) => toneOf(state) },
      { head: 'CHANGED', text: ({ applied, matched }) => `${applied}/${matched}` },
      { head: 'KIND', text: ({ operation }) => operation },
      { head: 'FAILED', text: ({ failed }) => String(failed) },
      { head: 'CREATED', text: ({ created_at }, now) => ago(created_at, now) },
    ],
    ask: ({ client }, _given, limit) => client.bulkJobs.list({ limit }),
  }),
  showing({
    name: 'jobs get',
    summary: 'Show the progress of a bulk change.',
    args: [ID],
    ask: ({ client }, given) => client.bulkJobs.get(given.arg()),
  }),
  acting({
    name: 'jobs cancel',
    summary: 'Stop a bulk change; what is changed stays changed.',
    args: [ID],
    ask: ({ client }, given) => client.bulkJobs.cancel(given.arg()),
    said,
  }),
];
