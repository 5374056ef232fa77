/** Commands for approvals. */

import type { Approval } from '../../client/src/index.js';
import { type Argument, acting, type Command, listing, showing } from '../command.js';
import { CommandError } from '../exit.js';
import { ago, memberText } from '../table.js';

const ID: Argument = { name: 'id', about: 'The id of an approval.' };

export const APPROVAL_COMMANDS: readonly Command[] = [
  listing<Approval>({
    name: 'approvals list',
    summary: 'List open approvals, oldest first.',
    options: [
      { flags: '--sequence <name>', about: 'Only approvals of this sequence, in any version.' },
      { flags: '--group <name>', about: 'Only approvals that name this group.' },
    ],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'QUESTION', text: ({ prompt }) => prompt },
      { head: 'CHOICES', text: ({ choices }) => choices.map(({ value }) => value).join(', ') },
      { head: 'APPROVERS', text: ({ approvers }) => approvers.join(', ') || 'any' },
      { head: 'WAITS', text: ({ waiting_since }, now) => ago(waiting_since, now) },
      { head: 'UNTIL', text: ({ deadline }, now) => ago(deadline, now) },
      { head: 'INSTANCE', text: ({ instance_id }) => instance_id },
    ],
    ask: ({ client, namespace }, given, limit) =>
      client.approvals.list({
        group: given.text('group'),
        sequence_name: given.text('sequence'),
        namespace,
        limit,
      }),
  }),
  showing({
    name: 'approvals get',
    summary: 'Show an approval with the data of its instance.',
    args: [ID],
    ask: async ({ client }, given) => {
      for await (const approval of client.approvals.list({})) {
        if (approval.id !== given.arg()) continue;
        const { context } = await client.instances.get(approval.instance_id);
        return { ...approval, data: context.data };
      }
      throw new CommandError('notFound', `no open approval ${given.arg()}`);
    },
  }),
  acting({
    name: 'approvals answer',
    summary: 'Answer an approval. Only the first answer counts.',
    args: [ID, { name: 'value', about: 'One of its choices.' }],
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
