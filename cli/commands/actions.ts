/** What people and keys have changed. */

import type { Action, ActionsListQuery } from '../../client/src/index.js';
import { type Command, listing } from '../command.js';
import { ago } from '../table.js';

export const ACTION_COMMANDS: readonly Command[] = [
  listing<Action>({
    name: 'actions list',
    summary: 'List what people and keys have changed, newest first.',
    options: [
      { flags: '--by <name>', about: 'Only actions of the key with this name.' },
      { flags: '--kind <kind>', about: 'Only about objects of this kind, such as sequence.' },
      { flags: '--target <id>', about: 'Only about the object with this id or name.' },
      { flags: '--operation <name>', about: 'Only this operation, such as sequences.deprecate.' },
      { flags: '--since <time>', about: 'Only actions after this time (RFC 3339).' },
      { flags: '--until <time>', about: 'Only actions before this time (RFC 3339).' },
    ],
    columns: [
      { head: 'WHEN', text: ({ at }, now) => ago(at, now) },
      { head: 'BY', text: ({ by }) => by },
      { head: 'ACTION', text: ({ summary }) => summary },
      { head: 'TARGET', text: ({ target }) => target, isWhole: true },
    ],
    ask: ({ client }, given, limit) =>
      client.actions.list({
        by: given.text('by'),
        kind: given.text('kind') as ActionsListQuery['kind'],
        target: given.text('target'),
        operation: given.text('operation'),
        since: given.text('since'),
        until: given.text('until'),
        limit,
      }),
  }),
];
