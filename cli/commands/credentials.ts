/** Commands for the credentials of steps. A secret is never an argument, which every process list would show. */

import type { Credential } from '../../client/src/index.js';
import {
  type Argument,
  acting,
  type Command,
  type Given,
  listing,
  type Option,
} from '../command.js';
import { usageError } from '../exit.js';
import { secretIn } from '../json-input.js';
import type { Session } from '../session.js';
import { ago, memberText } from '../table.js';
import { timeOf } from './selection.js';

type Kind = Credential['kind'];

const ID: Argument = {
  name: 'id',
  about: 'Its id, by which templates use it: {{secrets.id}}.',
};
const KINDS = Object.keys({
  api_key: true,
  oauth2: true,
  basic: true,
} satisfies Record<Kind, true>);

const SETTINGS: readonly Option[] = [
  {
    flags: '--value-file <file>',
    about: 'A file with the secret, or - for standard input; asked for on a terminal otherwise.',
    completes: 'files',
  },
  { flags: '--kind <word>', about: 'A label for people.', choices: KINDS },
  { flags: '--description <text>', about: 'What it is for.' },
  { flags: '--expires-at <time>', about: 'Steps cannot use it from then on: RFC 3339, or 30d.' },
];

const settingsOf = (given: Given) => ({
  kind: given.text('kind') as Kind | undefined,
  description: given.text('description'),
  expires_at: timeOf(given.text('expires-at'), 'expires-at', Date.now(), 1),
});

/** @throws CommandError without a file and a terminal */
async function valueGiven({ asker }: Session, given: Given): Promise<string> {
  const file = given.text('value-file');
  if (file !== undefined) return secretIn(file, '--value-file');
  if (!asker.isThere) throw usageError('--value-file is required: a file with the secret, or -');
  const value = await asker.secret('Secret (hidden)');
  if (value === '') throw usageError('the secret must not be empty');
  return value;
}

export const CREDENTIAL_COMMANDS: readonly Command[] = [
  acting({
    name: 'credentials create',
    summary: 'Store a secret for steps; prints its id.',
    args: [ID],
    options: SETTINGS,
    ask: async (session, given) =>
      session.client.credentials.create({
        id: given.arg(),
        value: await valueGiven(session, given),
        ...settingsOf(given),
      }),
    said: ({ id }) => id,
  }),
  acting({
    name: 'credentials update',
    summary: 'Change a credential; the next call of a step uses the new secret.',
    args: [ID],
    options: [
      ...SETTINGS,
      { flags: '--enable', about: 'Let steps use it again.' },
      { flags: '--disable', about: 'Steps that use it fail.' },
    ],
    ask: ({ client }, given) => {
      if (given.flag('enable') && given.flag('disable')) {
        throw usageError('use either --enable or --disable');
      }
      const file = given.text('value-file');
      return client.credentials.update(given.arg(), {
        ...(file === undefined ? {} : { value: secretIn(file, '--value-file') }),
        ...(given.flag('enable') || given.flag('disable') ? { enabled: given.flag('enable') } : {}),
        ...settingsOf(given),
      });
    },
    said: ({ id }) => `${memberText(id)} was changed.`,
  }),
  listing<Credential>({
    name: 'credentials list',
    summary: 'List credentials, oldest first, without their secrets.',
    options: [{ flags: '--kind <word>', about: 'Only these.', choices: KINDS }],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'KIND', text: ({ kind }) => kind },
      {
        head: 'STATE',
        text: ({ enabled }) => (enabled ? 'enabled' : 'disabled'),
        tone: ({ enabled }) => (enabled ? undefined : 'quiet'),
      },
      { head: 'EXPIRES', text: ({ expires_at }, now) => ago(expires_at, now) },
      { head: 'UPDATED', text: ({ updated_at }, now) => ago(updated_at, now) },
      { head: 'DESCRIPTION', text: ({ description }) => description ?? '-' },
    ],
    ask: ({ client }, given, limit) =>
      client.credentials.list({ kind: given.text('kind') as Kind | undefined, limit }),
  }),
  acting({
    name: 'credentials delete',
    summary: 'Delete a credential; steps that use it fail from then on.',
    args: [ID],
    ask: ({ client }, given) => client.credentials.delete(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was deleted.`,
  }),
];
