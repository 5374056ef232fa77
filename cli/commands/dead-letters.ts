/** Commands for the dead letter queue: instances that failed. */

import type { FailureGroup, TaskInstance } from '../../client/src/index.js';
import { type Command, listing } from '../command.js';
import { ago } from '../table.js';
import { changing, FAILED_COLUMNS, giveUpOne, RETRYING, withNames } from './instances.js';
import { SELECTION_OPTIONS, selectionOf, timeOf } from './selection.js';

export const DEAD_LETTER_COMMANDS: readonly Command[] = [
  listing<FailureGroup>({
    name: 'failures list',
    summary: 'List the reasons of current failures, most frequent first.',
    options: [
      { flags: '--sequence <name>', about: 'Only instances of this sequence, in any version.' },
      { flags: '--since <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
      { flags: '--failed-before <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
    ],
    columns: [
      { head: 'COUNT', text: ({ count }) => String(count), isWhole: true },
      { head: 'NEW', text: (group) => (group.new === true ? 'new' : '-') },
      { head: 'SEQUENCE', text: ({ sequence_name, version }) => `${sequence_name} v${version}` },
      { head: 'BLOCK', text: ({ block_id }) => block_id ?? '-' },
      { head: 'CODE', text: ({ code }) => code },
      { head: 'REASON', text: ({ reason }) => reason },
      { head: 'LAST', text: ({ last_at }, now) => ago(last_at, now) },
      { head: 'EXAMPLE', text: ({ example_instance_id }) => example_instance_id },
    ],
    ask: async ({ client, namespace }, given) => {
      const { groups } = await client.instances.failures({
        sequence_name: given.text('sequence'),
        namespace,
        failed_after: timeOf(given.text('since'), 'since', Date.now()),
        failed_before: timeOf(given.text('failed-before'), 'failed-before', Date.now()),
      });
      return groups;
    },
  }),
  listing<TaskInstance>({
    name: 'dlq list',
    summary: 'List failed instances, newest first.',
    options: SELECTION_OPTIONS,
    columns: FAILED_COLUMNS,
    completed: withNames,
    ask: (session, given, limit) =>
      session.client.instances.deadLetters({
        ...selectionOf(session, given, Date.now()),
        limit,
      }),
  }),
  changing({ name: 'dlq retry', ...RETRYING }),
  changing({
    name: 'dlq drain',
    summary: 'Discard failed instances: they are cancelled and leave the queue.',
    action: 'cancel',
    done: 'cancelled',
    states: ['failed'],
    one: giveUpOne,
  }),
];
