/** Commands for instances that are yet to start from collected creations. */

import type { PendingStart } from '../../client/src/index.js';
import { type Argument, acting, type Command, listing, showing } from '../command.js';
import { ago, memberText } from '../table.js';

const ID: Argument = { name: 'id', about: 'The id of the instance.' };

export const PENDING_START_COMMANDS: readonly Command[] = [
  listing<PendingStart>({
    name: 'pending-starts list',
    summary: 'List instances that are yet to start from collected creations, oldest first.',
    options: [{ flags: '--sequence <name>', about: 'Only of this sequence.' }],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'SEQUENCE', text: ({ sequence }) => sequence },
      { head: 'KIND', text: ({ kind }) => kind },
      { head: 'KEY', text: ({ key }) => key ?? '-' },
      { head: 'COUNT', text: ({ count }) => String(count) },
      { head: 'STARTS', text: ({ starts_at }, now) => ago(starts_at, now) },
      {
        head: 'ERROR',
        text: ({ error }) => error ?? '-',
        tone: ({ error }) => (error === null ? undefined : 'bad'),
      },
    ],
    ask: ({ client, connection }, given, limit) =>
      client.pendingStarts.list({
        namespace: connection.namespace,
        sequence: given.text('sequence'),
        limit,
      }),
  }),
  showing({
    name: 'pending-starts get',
    summary: 'Show an instance that is yet to start.',
    args: [ID],
    ask: ({ client }, given) => client.pendingStarts.get(given.arg()),
  }),
  acting({
    name: 'pending-starts start',
    summary: 'Start the instance now, without waiting for more creations.',
    args: [ID],
    ask: ({ client }, given) => client.pendingStarts.start(given.arg()),
    said: ({ id }) => id,
  }),
  acting({
    name: 'pending-starts drop',
    summary: 'Drop the collected creations: the instance does not start.',
    args: [ID],
    ask: ({ client }, given) => client.pendingStarts.drop(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was dropped.`,
  }),
];
