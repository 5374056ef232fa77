/** Commands for schedules. */

import type { CreateSchedule, CronSchedule, UpdateSchedule } from '../../client/src/index.js';
import {
  type Argument,
  acting,
  type Command,
  type Given,
  listing,
  type Option,
  showing,
} from '../command.js';
import { usageError } from '../exit.js';
import { objectOf } from '../json-input.js';
import { ago, memberText } from '../table.js';
import { NAMESPACE_DEFAULT, NAMESPACE_OPTION } from './selection.js';

const ID: Argument = { name: 'id', about: 'Of a schedule.' };
type Overlap = NonNullable<CreateSchedule['overlap_policy']>;
/** All of them, as the compiler sees to. */
const OVERLAPS = Object.keys({
  allow: true,
  skip: true,
  buffer_one: true,
  cancel_previous: true,
} satisfies Record<Overlap, true>);

const EXPRESSION: Argument = {
  name: 'expression',
  about: "Seven, six or five fields, as '0 9 * * mon-fri', or @daily.",
};

const ZONE_OPTION: Option = {
  flags: '--timezone <name>',
  about: 'Time zone, such as Europe/Berlin; UTC if none was set.',
};

const SETTINGS: readonly Option[] = [
  ZONE_OPTION,
  { flags: '--data <json>', about: 'Input data of its instances: JSON, @file or -.' },
  {
    flags: '--metadata <name=value>',
    about: 'Copied to its instances; may be repeated.',
    isMany: true,
  },
  {
    flags: '--overlap <word>',
    about: 'What a fire does while an earlier run is unfinished.',
    choices: OVERLAPS,
  },
];

/** What a creation and a change have in common; what was not given is left out. */
function settingsOf(given: Given) {
  const data = objectOf(given.text('data'), '--data');
  return {
    timezone: given.text('timezone'),
    context: data === undefined ? undefined : { data },
    metadata: given.pairs('metadata'),
    overlap_policy: given.text('overlap') as Overlap | undefined,
  };
}

function changesOf(given: Given): UpdateSchedule {
  if (given.flag('enable') && given.flag('disable')) throw usageError('give --enable or --disable');
  const enabled = given.flag('enable') ? true : given.flag('disable') ? false : undefined;
  return {
    cron_expr: given.text('expression'),
    enabled,
    if_unchanged_since: given.text('if-unchanged-since'),
    ...settingsOf(given),
  };
}

export const CRON_COMMANDS: readonly Command[] = [
  acting({
    name: 'cron create',
    summary: 'Create a schedule that starts instances of a sequence; prints its id.',
    args: [
      EXPRESSION,
      { name: 'sequence', about: 'The name of a sequence, looked up at each fire.' },
    ],
    options: [
      NAMESPACE_OPTION,
      { flags: '--sequence-version <n>', about: 'Always this version.' },
      { flags: '--disabled', about: 'It does not fire until it is enabled.' },
      ...SETTINGS,
    ],
    ask: (session, given) => {
      const body: CreateSchedule = {
        tenant_id: session.tenant,
        namespace: given.text('namespace') ?? NAMESPACE_DEFAULT,
        cron_expr: given.arg(0),
        sequence: given.arg(1),
        version: given.count('sequence-version'),
        enabled: !given.flag('disabled'),
        ...settingsOf(given),
      };
      return session.client.cron.create(body);
    },
    said: ({ id }) => id,
    noted: ({ next_fire_at }) => `It fires next at ${next_fire_at ?? 'no time: it is disabled'}.`,
  }),
  listing<CronSchedule>({
    name: 'cron list',
    summary: 'List schedules, oldest first.',
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'EXPRESSION', text: ({ cron_expr }) => cron_expr },
      { head: 'SEQUENCE', text: ({ sequence, sequence_id }) => sequence ?? sequence_id ?? '-' },
      {
        head: 'NEXT',
        text: ({ next_fire_at, enabled }, now) => (enabled ? ago(next_fire_at, now) : 'disabled'),
        tone: ({ enabled }) => (enabled ? undefined : 'quiet'),
      },
      { head: 'LAST', text: ({ last_triggered_at }, now) => ago(last_triggered_at, now) },
      {
        head: 'ERROR',
        text: ({ last_error }) => last_error ?? '-',
        tone: ({ last_error }) => (last_error === null ? undefined : 'bad'),
      },
      { head: 'TIMEZONE', text: ({ timezone }) => timezone },
    ],
    ask: ({ client }, _given, limit) => client.cron.list({ limit }),
  }),
  showing({
    name: 'cron get',
    summary: 'Show a schedule.',
    args: [ID],
    ask: ({ client }, given) => client.cron.get(given.arg()),
  }),
  acting({
    name: 'cron update',
    summary: 'Change a schedule; values not given stay.',
    args: [ID],
    options: [
      { flags: '--expression <text>', about: 'When it fires.' },
      {
        flags: '--if-unchanged-since <time>',
        about: 'The updated_at that you read: refused if it changed since.',
      },
      { flags: '--enable', about: 'Enable it.' },
      { flags: '--disable', about: 'It does not fire until it is enabled.' },
      ...SETTINGS,
    ],
    ask: ({ client }, given) => client.cron.update(given.arg(), changesOf(given)),
    said: ({ id, cron_expr, enabled, next_fire_at }) =>
      `${id} ${memberText(cron_expr)}: ${enabled ? `fires next at ${next_fire_at}` : 'is disabled'}.`,
  }),
  acting({
    name: 'cron delete',
    summary: 'Delete a schedule; its instances continue.',
    args: [ID],
    ask: ({ client }, given) => client.cron.delete(given.arg()),
    said: (_, given) => `${memberText(given.arg())} is deleted.`,
  }),
  acting({
    name: 'cron run',
    summary: 'Run a schedule now; its next fire does not change.',
    args: [ID],
    options: [{ flags: '--key <text>', about: 'Idempotency key: a repetition runs only once.' }],
    ask: ({ client }, given) =>
      client.cron.run(given.arg(), { idempotency_key: given.text('key') }),
    said: ({ instance_id }) => instance_id,
  }),
  showing({
    name: 'cron preview',
    summary: 'List the next fires of an expression, in its zone and in UTC.',
    args: [EXPRESSION],
    options: [
      ZONE_OPTION,
      { flags: '--count <n>', about: 'Default 5, at most 100.' },
      { flags: '--from <time>', about: 'Fires after it; after now unless given.' },
    ],
    ask: ({ client }, given) =>
      client.cron.preview({
        cron_expr: given.arg(),
        timezone: given.text('timezone'),
        count: given.count('count'),
        from: given.text('from'),
      }),
    lines: (_, { fires }) => fires.map(({ at, local }) => `${local}  ${at}`),
  }),
  showing({
    name: 'cron next',
    summary: 'List the next fires of a schedule.',
    args: [ID],
    options: [{ flags: '--count <n>', about: 'Default 5, at most 50.' }],
    ask: ({ client }, given) => client.cron.nextFires(given.arg(), { n: given.count('count') }),
    lines: (_, { fires }) => fires,
  }),
];
