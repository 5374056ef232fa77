/** Commands for approvals. */

import type { Approval } from '../../client/src/index.js';
import { acting, type Command, listing } from '../command.js';
import { ago, memberText } from '../table.js';
import { NAMESPACE_OPTION } from './selection.js';

export const APPROVAL_COMMANDS: readonly Command[] = [
  listing<Approval>({
    name: 'approvals list',
    summary: 'List open approvals, oldest first.',
    options: [
      { flags: '--sequence <name>', about: 'Only approvals of this sequence, in any version.' },
      NAMESPACE_OPTION,
    ],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'QUESTION', text: ({ prompt }) => prompt },
      { head: 'CHOICES', text: ({ choices }) => choices.map(({ value }) => value).join(', ') },
      { head: 'WAITS', text: ({ waiting_since }, now) => ago(waiting_since, now) },
      { head: 'UNTIL', text: ({ deadline }, now) => ago(deadline, now) },
      { head: 'INSTANCE', text: ({ instance_id }) => instance_id },
    ],
    ask: ({ client }, given, limit) =>
      client.approvals.list({
        sequence_name: given.text('sequence'),
        namespace: given.text('namespace'),
        limit,
      }),
  }),
  acting({
    name: 'approvals answer',
    summary: 'Answer an approval. Only the first answer counts.',
    args: [
      { name: 'id', about: 'The id of the approval.' },
      { name: 'value', about: 'One of its choices.' },
    ],
    options: [{ flags: '--comment <text>', about: 'A comment, if the approval asks for one.' }],
    ask: ({ client }, given) =>
      client.approvals.answer(given.arg(0), {
        value: given.arg(1),
        comment: given.text('comment'),
      }),
    said: ({ block_id, value, repeated }) =>
      `${memberText(block_id)} was answered with ${memberText(value)}${repeated ? ' by an earlier request' : ''}.`,
  }),
];
