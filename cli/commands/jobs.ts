/** Commands for bulk changes that run as jobs on the server. */

import type { BulkJob } from '../../client/src/index.js';
import { type Argument, acting, type Command, listing, showing } from '../command.js';
import { ago } from '../table.js';
import { toneOf } from '../tones.js';

const ID: Argument = { name: 'id', about: 'The id of a job.' };

const said = ({ id, state, applied, matched }: BulkJob) =>
  `${id} is ${state}: ${applied} of ${matched} so far.`;

export const JOB_COMMANDS: readonly Command[] = [
  listing<BulkJob>({
    name: 'jobs list',
    summary: 'List changes of many instances, newest first.',
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'STATE', text: ({ state }) => state, tone: ({ state }) => toneOf(state) },
      { head: 'CHANGED', text: ({ applied, matched }) => `${applied}/${matched}` },
      { head: 'KIND', text: ({ operation, request }) => String(request.action ?? operation) },
      { head: 'FAILED', text: ({ failed }) => String(failed) },
      { head: 'BY', text: ({ requested_by }) => requested_by ?? '-' },
      { head: 'CREATED', text: ({ created_at }, now) => ago(created_at, now) },
    ],
    ask: ({ client }, _given, limit) => client.bulkJobs.list({ limit }),
  }),
  showing({
    name: 'jobs get',
    summary: 'Show the progress of a bulk change, and the outcome of a retry.',
    args: [ID],
    ask: ({ client }, given) => client.bulkJobs.get(given.arg()),
  }),
  acting({
    name: 'jobs cancel',
    summary: 'Stop a bulk change; instances that it has changed stay changed.',
    args: [ID],
    ask: ({ client }, given) => client.bulkJobs.cancel(given.arg()),
    said,
  }),
];
