/** Commands for instances: start, show, watch and change. */

import type { SignalAnswer, TaskInstance } from '../../client/src/index.js';
import type { InstanceState } from '../../schema/states.js';
import { changeMany, type ManyChange } from '../bulk.js';
import {
  type Argument,
  type Command,
  firstOf,
  type Given,
  listing,
  type Option,
  showing,
} from '../command.js';
import { CommandError, type ExitCode, exitOf, usageError } from '../exit.js';
import { followInstance } from '../follow.js';
import { treeLines } from '../instance-tree.js';
import { jsonOf, objectOf } from '../json-input.js';
import { linesOf, resumeOne, retryOne } from '../retry.js';
import { byName, sequenceNames } from '../sequence-names.js';
import type { Session } from '../session.js';
import { ago, type Column, memberText, toned } from '../table.js';
import { toneOf } from '../tones.js';
import {
  AGREED_OPTIONS,
  APPROVED_OPTION,
  SELECTION_OPTIONS,
  STATE_OPTION,
  selectionOf,
  statesOf,
  timeOf,
} from './selection.js';

const ID: Argument = { name: 'id', about: 'The id of an instance.' };

/** With the name of its sequence. */
interface Listed extends TaskInstance {
  readonly called?: string;
}

const COLUMNS: readonly Column<Listed>[] = [
  { head: 'ID', text: ({ id }) => id, isWhole: true },
  { head: 'STATE', text: ({ state }) => state, tone: ({ state }) => toneOf(state), isWhole: true },
  { head: 'SEQUENCE', text: ({ called, sequence_id }) => called ?? sequence_id },
  { head: 'CREATED', text: ({ created_at }, now) => ago(created_at, now) },
  { head: 'UPDATED', text: ({ updated_at }, now) => ago(updated_at, now) },
  { head: 'FAILURE', text: ({ failure }) => failure?.message ?? '-' },
  { head: 'NAMESPACE', text: ({ namespace }) => namespace },
];

/** More than a user reads in a terminal. */
const TREE_NODES_MAX = 100_000;

/** The dead letter queue shows the reason of the failure. */
export const FAILED_COLUMNS: readonly Column<Listed>[] = [
  { head: 'ID', text: ({ id }) => id, isWhole: true },
  { head: 'FAILED', text: ({ failure, updated_at }, now) => ago(failure?.at ?? updated_at, now) },
  { head: 'SEQUENCE', text: ({ called, sequence_id }) => called ?? sequence_id },
  { head: 'BLOCK', text: ({ failure }) => failure?.path ?? failure?.block_id ?? '-' },
  { head: 'FAILURE', text: ({ failure }) => failure?.message ?? '-' },
];

export const withNames = async (
  session: Session,
  items: readonly TaskInstance[],
): Promise<Listed[]> => {
  const names = await sequenceNames(session, items);
  return items.map((item) => ({
    ...item,
    called: names.get(item.sequence_id) ?? item.sequence_id,
  }));
};

// ---------------------------------------------------------------- start

const START_OPTIONS: readonly Option[] = [
  {
    flags: '--data <json>',
    about: 'Its input data: JSON, @file or - for standard input.',
  },
  { flags: '--config <json>', about: 'Its config, in the same forms.' },
  {
    flags: '--sequence-version <n>',
    about: 'This version; default: the newest active one.',
  },
  {
    flags: '--key <text>',
    about: 'Idempotency key: an existing instance with it is returned instead.',
  },
  { flags: '--metadata <name=value>', about: 'May be repeated.', isMany: true },
  {
    flags: '--priority <word>',
    about: 'Default normal.',
    choices: ['low', 'normal', 'high', 'critical'],
  },
  { flags: '--at <time>', about: 'Start time: RFC 3339, or a delay such as 2h.' },
  {
    flags: '--concurrency-key <text>',
    about: 'Concurrency key: instances with the same key share its slots.',
  },
  { flags: '--max-concurrency <n>', about: 'How many instances of the key run at once.' },
  { flags: '--dry-run', about: 'No outside effects: steps report what they would do.' },
  { flags: '--wait', about: 'Wait for the end; exits with 1 unless it completes.' },
];

async function start(session: Session, given: Given): Promise<ExitCode | undefined> {
  const { out, client, tenant } = session;
  const data = objectOf(given.text('data'), '--data');
  const config = objectOf(given.text('config'), '--config');
  const optional = {
    version: given.count('sequence-version'),
    context: data === undefined && config === undefined ? undefined : { data, config },
    metadata: given.pairs('metadata'),
    priority: given.text('priority') as 'normal' | undefined,
    next_fire_at: timeOf(given.text('at'), 'at', Date.now(), 1),
    concurrency_key: given.text('concurrency-key'),
    max_concurrency: given.count('max-concurrency'),
    idempotency_key: given.text('key'),
    dry_run: given.flag('dry-run') || undefined,
  };
  const created = await byName(session, given.arg(), () =>
    client.instances.create({
      tenant_id: tenant,
      namespace: session.namespaceOfName,
      sequence: given.arg(),
      ...optional,
    }),
  );
  if (created.skipped) {
    if (out.isJson) out.json(created);
    else out.note(`Skipped: instance ${created.id} holds the key.`);
    return undefined;
  }
  if (given.flag('wait')) {
    if (out.isJson) out.jsonLine({ type: 'created', ...created });
    else out.note(created.id);
    return followInstance(session, created.id);
  }
  if (out.isJson) out.json(created);
  else {
    if (created.deduplicated) out.note('An instance with this key already exists.');
    out.line(created.id);
  }
  return undefined;
}

// ---------------------------------------------------------------- explanation

const explain = showing({
  name: 'instances explain',
  summary: 'Explain what an instance does or waits for, and suggest actions.',
  args: [ID],
  ask: ({ client }, given) => client.instances.explain(given.arg()),
  lines: ({ out }, told) => [
    `${toned(told.state, toneOf(told.state), out.paint)} since ${told.since}`,
    memberText(told.summary),
    ...(told.warnings ?? []).map(({ summary }) => out.paint.yellow(memberText(summary))),
    ...(told.waiting_for.length === 0 ? [] : ['', out.paint.dim('Waiting for')]),
    ...told.waiting_for.map((wait) => `  ${wait.kind.padEnd(10)} ${memberText(wait.summary)}`),
    ...(told.next.length === 0 ? [] : ['', out.paint.dim('Suggested actions')]),
    ...told.next.flatMap(({ action, why, runs_again }) => [
      `  ${action.padEnd(10)} ${memberText(why)}`,
      ...(runs_again === undefined ? [] : linesOf(runs_again)).map(
        (line) => `  ${' '.repeat(10)} ${memberText(line)}`,
      ),
    ]),
  ],
});

// ---------------------------------------------------------------- changes of instances

const ALL_OPTION: Option = {
  flags: '--all',
  about: 'Every instance of the tenant to which the action applies.',
};

const PACE_OPTION: Option = {
  flags: '--per-minute <n>',
  about: 'Change at most this many instances per minute, when options select.',
};

type Action = ManyChange['action'];

/** A command for instances that are given by id, or selected by options. */
export function changing(
  row: Pick<Command, 'name' | 'summary' | 'args' | 'options'> & {
    readonly action: Action;
    readonly done: string;
    /** Changes one instance. */
    readonly one: (session: Session, id: string, given: Given) => Promise<unknown>;
    /** The states to which the action applies: others would count towards the limit. */
    readonly states: readonly InstanceState[];
    readonly many?: (given: Given) => Pick<ManyChange, 'signalType' | 'payload' | 'orphans'>;
    /** Position of the first id. */
    readonly idsAt?: number;
  },
): Command {
  const { action, done, one, states, many, idsAt = 0, ...words } = row;
  const hasStates = states.length > 1;
  return {
    ...words,
    args: [
      ...(words.args ?? []),
      {
        name: 'ids',
        about: 'The ids of instances; without ids, options select them.',
        isOptional: true,
        isMany: true,
      },
    ],
    options: [
      ...(words.options ?? []),
      ...(hasStates ? [STATE_OPTION] : []),
      ...SELECTION_OPTIONS,
      ALL_OPTION,
      PACE_OPTION,
      ...AGREED_OPTIONS,
    ],
    run: async (session, given) => {
      const ids = given.rest(idsAt);
      const selection = { ...selectionOf(session, given, Date.now()), ...statesFilter(given) };
      // The namespace of a profile or the environment restricts a selection, and is none.
      const { namespace: _, ...others } = selection;
      const isSelected = session.options.namespace !== undefined || Object.keys(others).length > 0;
      if (ids.length > 0) {
        if (isSelected || given.flag('all')) {
          throw usageError('use ids or options that select instances, not both');
        }
        if (given.flag('dry-run'))
          throw usageError('--dry-run needs options that select instances, not ids');
        return changeEach(session, ids, done, given, one);
      }
      if (!isSelected && !given.flag('all')) {
        throw usageError(
          'no instances are selected',
          'Give ids, options such as --sequence, or --all.',
        );
      }
      return changeMany(session, {
        action,
        done,
        filter: { states, ...selection },
        isAgreed: given.flag('yes'),
        isDryRun: given.flag('dry-run'),
        perMinute: given.count('per-minute'),
        ...many?.(given),
      });
    },
  };
}

function statesFilter(given: Given): { readonly states?: readonly InstanceState[] } {
  const states = statesOf(given);
  return states === undefined ? {} : { states };
}

/** One by one; a refusal does not stop the others. */
async function changeEach(
  session: Session,
  ids: readonly string[],
  done: string,
  given: Given,
  one: (session: Session, id: string, given: Given) => Promise<unknown>,
): Promise<ExitCode | undefined> {
  const { out } = session;
  const answers: unknown[] = [];
  let exit: ExitCode | undefined;
  for (const id of ids) {
    try {
      answers.push(await one(session, id, given));
      if (!out.isJson) out.line(`${id} ${done}`);
    } catch (error) {
      exit = exitOf(error);
      if (exit === undefined || ids.length === 1) throw error;
      out.failure(`${id}: ${(error as Error).message}`);
    }
  }
  if (out.isJson) out.json(ids.length === 1 ? answers[0] : answers);
  return exit;
}

const signalOne =
  (type: string) =>
  ({ client }: Session, id: string) =>
    client.instances.signal(id, { signal_type: type });

const cancelOne = signalOne('cancel');

/** Refuses live instances, so that a wrong id cancels none. */
export async function giveUpOne(session: Session, id: string): Promise<unknown> {
  const { state } = await session.client.instances.get(id);
  if (state === 'failed') return cancelOne(session, id);
  throw new CommandError('refused', `instance ${id} is ${state}, not in the dead letter queue`);
}

const signal = changing({
  name: 'instances signal',
  summary: 'Send a signal: pause, resume, cancel, update_context, or a custom name.',
  args: [{ name: 'signal', about: 'One of these signals, or the name of a custom signal.' }],
  options: [
    {
      flags: '--payload <json>',
      about: 'The payload of the signal: JSON, @file or - for standard input.',
    },
    {
      flags: '--wait',
      about: 'Wait up to a minute for a step to take it, and print its reply; for signals to ids.',
    },
  ],
  action: 'signal',
  states: ['scheduled', 'running', 'waiting', 'paused', 'failed'],
  done: 'signalled',
  idsAt: 1,
  one: async ({ client, out }, id, given) => {
    const signal = { signal_type: signalType(given.arg()), ...payloadOf(given) };
    if (!given.flag('wait')) return client.instances.signal(id, signal);
    const answer = await client.instances.signal(id, signal, { query: { wait_ms: 60_000 } });
    if ('taken' in answer && !out.isJson) out.line(answerText(answer));
    return answer;
  },
  many: (given) => {
    const type = signalType(given.arg());
    if (!type.startsWith('custom:')) {
      throw usageError(
        `a signal cannot ${type} several instances`,
        'Use instances pause, resume or cancel.',
      );
    }
    return { signalType: type.slice('custom:'.length), ...payloadOf(given) };
  },
});

function answerText({ taken, block_id, reply }: SignalAnswer): string {
  if (block_id === undefined) return taken ? 'it took effect' : 'no step has taken it';
  if (!taken) return `step ${block_id} refused its payload`;
  return `step ${block_id} took it${reply === undefined ? '' : `: ${JSON.stringify(reply)}`}`;
}

const BUILT_IN_SIGNALS: ReadonlySet<string> = new Set([
  'pause',
  'resume',
  'cancel',
  'update_context',
]);

function signalType(word: string): string {
  return BUILT_IN_SIGNALS.has(word) || word.startsWith('custom:') ? word : `custom:${word}`;
}

function payloadOf(given: Given): { payload?: unknown } {
  const text = given.text('payload');
  return text === undefined ? {} : { payload: jsonOf(text, '--payload') };
}

// ---------------------------------------------------------------- migrate

const migrate: Command = {
  name: 'instances migrate',
  summary: 'Migrate instances to another version of their sequence, where that is safe.',
  args: [{ name: 'ids', about: 'The ids of instances.', isMany: true }],
  options: [
    { flags: '--to <id>', about: 'The id of the target version.' },
    { flags: '--to-version <n>', about: 'The number of the target version, instead of its id.' },
    APPROVED_OPTION,
    { flags: '--dry-run', about: 'Report the verdicts without migrating.' },
  ],
  run: async (session, given) => {
    const { out, client } = session;
    const version = given.count('to-version');
    const target = given.text('to');
    if ((version === undefined) === (target === undefined)) {
      throw usageError('use either --to ID or --to-version N');
    }
    const answers = [];
    for (const id of given.rest()) {
      const answer = await client.migrations.migrate(id, {
        ...(version === undefined ? { target_sequence_id: target } : { version }),
        approved: given.flag('approved'),
        dry_run: given.flag('dry-run'),
      });
      answers.push(answer);
      if (out.isJson) continue;
      const where = `version ${answer.from.version} → ${answer.to.version}`;
      out.line(
        `${id} ${answer.migrated ? 'migrated' : 'not migrated'}: ${where}, ${answer.verdict}`,
      );
      for (const { summary, remedy } of answer.findings) out.line(`  ${summary}: ${remedy}`);
    }
    if (out.isJson) out.json(answers.length === 1 ? answers[0] : answers);
    return undefined;
  },
};

/** Options of the commands that retry instances. */
const WITH_ORPHANS = {
  options: [
    {
      flags: '--orphans',
      about: 'Include children whose parents continued without them, when options select.',
    },
  ],
  many: (given: Given) => ({ orphans: given.flag('orphans') }),
} as const;

/** The part that `instances retry` and `dlq retry` share. */
export const RETRYING = {
  summary: 'Retry failed instances from where they failed.',
  action: 'retry',
  done: 'retried',
  states: ['failed'],
  one: retryOne,
  ...WITH_ORPHANS,
} as const;

// ---------------------------------------------------------------- the rows

export const INSTANCE_COMMANDS: readonly Command[] = [
  {
    name: 'instances start',
    summary: 'Start an instance of a sequence by name; prints its id.',
    args: [{ name: 'sequence', about: 'The name of a sequence.' }],
    options: START_OPTIONS,
    run: start,
  },
  listing<TaskInstance>({
    name: 'instances list',
    summary: 'List instances, newest first.',
    options: [STATE_OPTION, ...SELECTION_OPTIONS],
    columns: COLUMNS,
    completed: withNames,
    ask: (session, given, limit) =>
      session.client.instances.list({
        ...selectionOf(session, given, Date.now()),
        state: statesOf(given),
        limit,
      }),
  }),
  showing({
    name: 'instances get',
    summary: 'Show an instance.',
    args: [ID],
    ask: ({ client }, given) => client.instances.get(given.arg()),
  }),
  showing({
    name: 'instances tree',
    summary: 'Show the execution tree of an instance.',
    args: [ID],
    ask: ({ client }, given) => firstOf(client.instances.tree(given.arg()), TREE_NODES_MAX),
    lines: treeLines,
  }),
  {
    name: 'instances watch',
    summary:
      'Follow the states and outputs of an instance until it ends; exits with 1 unless it completes.',
    args: [ID],
    run: (session, given) => followInstance(session, given.arg()),
  },
  explain,
  signal,
  changing({
    name: 'instances pause',
    summary: 'Pause instances: no new steps start.',
    action: 'pause',
    states: ['scheduled', 'running', 'waiting'],
    done: 'paused',
    one: signalOne('pause'),
  }),
  changing({
    name: 'instances resume',
    summary: 'Resume paused instances.',
    action: 'resume',
    states: ['paused'],
    done: 'resumed',
    one: resumeOne,
    ...WITH_ORPHANS,
  }),
  changing({
    name: 'instances cancel',
    summary: 'Cancel instances; their finally blocks and hooks run.',
    action: 'cancel',
    states: ['scheduled', 'running', 'waiting', 'paused'],
    done: 'cancelled',
    one: cancelOne,
  }),
  changing({ name: 'instances retry', ...RETRYING }),
  migrate,
];
