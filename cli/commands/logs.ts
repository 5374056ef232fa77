/** The log of a tenant. */

import type { LogLine } from '../../client/src/index.js';
import { type Command, listing } from '../command.js';

export const LOG_COMMANDS: readonly Command[] = [
  listing<LogLine>({
    name: 'logs',
    summary: 'List what the steps of all instances logged, newest first.',
    options: [
      { flags: '--text <text>', about: 'Only lines that contain it, in any case.' },
      { flags: '--level <words>', about: 'Only lines of these levels, such as warn,error.' },
      { flags: '--sequence <name>', about: 'Only lines of sequences with this name.' },
      { flags: '--block <id>', about: 'Only lines of blocks with this id.' },
      { flags: '--instance <id>', about: 'Only lines of this instance.' },
      { flags: '--since <time>', about: 'Only lines stored after this time (RFC 3339).' },
    ],
    columns: [
      { head: 'TIME', text: ({ ts }) => ts },
      { head: 'LEVEL', text: ({ level }) => level },
      { head: 'SEQUENCE', text: ({ sequence_name }) => sequence_name },
      { head: 'BLOCK', text: ({ block_id }) => block_id },
      { head: 'MESSAGE', text: ({ message }) => message },
      { head: 'INSTANCE', text: ({ instance_id }) => instance_id, isWhole: true },
    ],
    ask: ({ client }, given, limit) =>
      client.logs.list({
        text: given.text('text'),
        level: given.text('level')?.split(','),
        sequence: given.text('sequence'),
        block_id: given.text('block'),
        instance_id: given.text('instance'),
        since: given.text('since'),
        limit,
      }),
  }),
];
