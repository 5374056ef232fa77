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
import { byName } from '../sequence-names.js';
import { ago, memberText } from '../table.js';

const ID: Argument = { name: 'id', about: 'The id of a schedule.' };
type Overlap = NonNullable<CreateSchedule['overlap_policy']>;
/** The type makes the list complete. */
const OVERLAPS = Object.keys({
  allow: true,
  skip: true,
  buffer_one: true,
  cancel_previous: true,
} satisfies Record<Overlap, true>);

const EXPRESSION: Argument = {
  name: 'expression',
  about: "Seven, six or five fields, such as '0 9 * * mon-fri', or @daily.",
};

const ZONE_OPTION: Option = {
  flags: '--timezone <name>',
  about: 'Time zone, such as Europe/Berlin; default UTC.',
};

const SETTINGS: readonly Option[] = [
  ZONE_OPTION,
  { flags: '--data <json>', about: 'Input data of its instances: JSON, @file or -.' },
  {
    flags: '--metadata <name=value>',
    about: 'Metadata of its instances; may be repeated.',
    isMany: true,
  },
  {
    flags: '--overlap <word>',
    about: 'What to do if the previous run is still open.',
    choices: OVERLAPS,
  },
];

/** The settings that creation and update share; options that were not given are left out. */
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
  if (given.flag('enable') && given.flag('disable'))
    throw usageError('use either --enable or --disable');
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
      { name: 'sequence', about: 'The name of a sequence, resolved at each run.' },
    ],
    options: [
      { flags: '--sequence-version <n>', about: 'Always start this version.' },
      { flags: '--disabled', about: 'Create the schedule disabled.' },
      ...SETTINGS,
    ],
    ask: (session, given) => {
      const body: CreateSchedule = {
        tenant_id: session.tenant,
        namespace: session.namespaceOfName,
        cron_expr: given.arg(0),
        sequence: given.arg(1),
        version: given.count('sequence-version'),
        enabled: !given.flag('disabled'),
        ...settingsOf(given),
      };
      return byName(session, given.arg(1), () => session.client.cron.create(body));
    },
    said: ({ id }) => id,
    noted: ({ next_fire_at }) =>
      `${next_fire_at ? `Next run: ${next_fire_at}.` : 'The schedule is disabled.'}`,
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
    summary: 'Change a schedule; values that are not given do not change.',
    args: [ID],
    options: [
      { flags: '--expression <text>', about: 'The new cron expression.' },
      {
        flags: '--if-unchanged-since <time>',
        about: 'The updated_at that you read; refused if the schedule has changed since.',
      },
      { flags: '--enable', about: 'Enable the schedule.' },
      { flags: '--disable', about: 'Disable the schedule.' },
      ...SETTINGS,
    ],
    ask: ({ client }, given) => client.cron.update(given.arg(), changesOf(given)),
    said: ({ id, cron_expr, enabled, next_fire_at }) =>
      `${id} ${memberText(cron_expr)}: ${enabled ? `next run at ${next_fire_at}` : 'disabled'}.`,
  }),
  acting({
    name: 'cron delete',
    summary: 'Delete a schedule; its instances continue.',
    args: [ID],
    ask: ({ client }, given) => client.cron.delete(given.arg()),
    said: (_, given) => `${memberText(given.arg())} was deleted.`,
  }),
  acting({
    name: 'cron run',
    summary: 'Run a schedule now; its next run does not change.',
    args: [ID],
    options: [
      { flags: '--key <text>', about: 'Idempotency key: a repeated command starts only one run.' },
    ],
    ask: ({ client }, given) =>
      client.cron.run(given.arg(), { idempotency_key: given.text('key') }),
    said: ({ instance_id }) => instance_id,
  }),
  showing({
    name: 'cron preview',
    summary: 'List the next runs of an expression, in its time zone and in UTC.',
    args: [EXPRESSION],
    options: [
      ZONE_OPTION,
      { flags: '--count <n>', about: 'Default 5, at most 100.' },
      { flags: '--from <time>', about: 'Runs after this time; default: now.' },
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
    summary: 'List the next runs of a schedule.',
    args: [ID],
    options: [{ flags: '--count <n>', about: 'Default 5, at most 50.' }],
    ask: ({ client }, given) => client.cron.nextFires(given.arg(), { n: given.count('count') }),
    lines: (_, { fires }) => fires,
  }),
];
