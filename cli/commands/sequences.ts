/** Commands for sequences and their definitions. */

import type {
  Client,
  SequenceDefinition,
  SequenceListed,
  StepStatistics,
} from '../../client/src/index.js';
import type { Finding } from '../../schema/finding.js';
import {
  type Argument,
  acting,
  type Command,
  type Given,
  listing,
  type Option,
  showing,
} from '../command.js';
import { differenceLines, textDifferences } from '../definition-texts.js';
import {
  type Applied,
  applyDefinition,
  DefinitionError,
  definitionFiles,
  findingLines,
  type InFile,
  readDefinitions,
  validateDefinition,
} from '../definitions.js';
import { CommandError, EXIT, type ExitCode, usageError } from '../exit.js';
import { treeLines } from '../instance-tree.js';
import type { Output } from '../output.js';
import { byName } from '../sequence-names.js';
import type { Session } from '../session.js';
import { ago, memberText, spanText, toned } from '../table.js';
import { toneOf } from '../tones.js';
import { isId, VERSION_REFERENCE, versionGiven } from '../version-reference.js';
import { timeOf } from './selection.js';
import { migrateMany, versionOf } from './sequence-migration.js';

const FILES: Argument = {
  name: 'files',
  about:
    'JSON or YAML files with one or more definitions, or modules (.ts, .js) that export them; folders, recursively; - for standard input.',
  isMany: true,
  completes: 'files',
};
const STRICT: Option = { flags: '--strict', about: 'Treat warnings as errors.' };

/** Handles definitions one by one, so that an error in one does not hide those in others. */
async function eachDefinition<T>(
  session: Session,
  given: Given,
  act: (found: InFile) => Promise<T>,
  told: (answer: T, found: InFile) => void,
): Promise<ExitCode | undefined> {
  const { out } = session;
  const answers: unknown[] = [];
  let exit: ExitCode | undefined;
  const read = (file: string) =>
    readDefinitions(file).catch((error: unknown): InFile[] => {
      if (!(error instanceof CommandError)) throw error;
      exit = error.exitCode;
      answers.push({ file, error: error.message, errors: [] });
      out.failure(error.message, error.hint);
      return [];
    });
  for (const file of definitionFiles(given.rest())) {
    for (const found of await read(file)) {
      const { name, namespace = session.namespaceOfName } = found.definition;
      try {
        const answer = await act({ file, definition: { ...found.definition, namespace } });
        answers.push({ file, ...answer });
        if (!out.isJson) told(answer, found);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        exit = error.exitCode;
        const findings = error instanceof DefinitionError ? error : undefined;
        answers.push({ file, name, error: error.message, errors: findings?.errors ?? [] });
        out.failure(
          `${file}: ${memberText(name)}${findings === undefined ? `: ${error.message}` : ' is not valid'}`,
          error.hint,
        );
        if (findings !== undefined) tellFindings(out, findings.errors, findings.warnings);
      }
    }
  }
  if (out.isJson) out.json(answers);
  return exit;
}

export function tellFindings(
  out: Output,
  errors: readonly Finding[],
  warnings: readonly Finding[],
): void {
  for (const line of findingLines(errors)) out.note(`  ${line}`);
  for (const line of findingLines(warnings)) out.note(`  warning: ${line}`);
}

const CHANGES: Readonly<Record<Applied['change'], string>> = {
  created: 'created',
  changed: 'new version',
  unchanged: 'unchanged',
};

/** `hello v2: new version`, followed by the differences. */
export function appliedLines({ name, version, change, hold, differences }: Applied): string[] {
  return [
    `${memberText(name)} v${version}: ${CHANGES[change]}${hold ? ', on hold' : ''}`,
    ...differences.map((difference) => `  ${memberText(difference)}`),
  ];
}

const apply: Command = {
  name: 'sequences apply',
  summary:
    'Publish definitions: a changed one becomes the next version, an unchanged one is skipped.',
  args: [FILES],
  options: [
    STRICT,
    {
      flags: '--hold',
      about:
        'Publish on hold: the name does not refer to the version until sequences unhold or a promotion.',
    },
    { flags: '--dry-run', about: 'Report what would be published, without publishing.' },
  ],
  run: (session, given) =>
    eachDefinition(
      session,
      given,
      (found) =>
        applyDefinition(session.client, found, {
          isStrict: given.flag('strict'),
          isOnHold: given.flag('hold'),
          isDryRun: given.flag('dry-run'),
        }),
      (applied) => {
        for (const line of appliedLines(applied)) session.out.line(line);
        tellFindings(session.out, [], applied.warnings);
      },
    ),
};

const validate: Command = {
  name: 'sequences validate',
  summary: 'Validate definitions without publishing them; lists every error with its position.',
  args: [FILES],
  options: [STRICT],
  run: (session, given) =>
    eachDefinition(
      session,
      given,
      async ({ definition }) => ({
        name: definition.name,
        valid: true,
        warnings: await validateDefinition(session.client, definition, given.flag('strict')),
      }),
      ({ name, warnings }) => {
        session.out.line(`${memberText(name)}: valid`);
        tellFindings(session.out, [], warnings);
      },
    ),
};

const dryRun: Command = {
  name: 'sequences dry-run',
  summary:
    'Run definitions without publishing them, on the initial data of an instance and without outside effects; exits with 1 unless they complete.',
  args: [FILES],
  options: [
    { flags: '--on <id>', about: 'The id of the instance with the data and config (required).' },
  ],
  run: async (session, given) => {
    const { client, out } = session;
    const id = given.required('on');
    let hasFailed = false;
    const exit = await eachDefinition(
      session,
      given,
      async ({ definition }) => {
        await validateDefinition(client, definition, false);
        const run = await client.instances.dryRun(id, { version: 1, ...definition });
        if (run.state !== 'completed') hasFailed = true;
        return { name: definition.name, ...run };
      },
      ({ name, state, failure, tree }) => {
        out.line(`${memberText(name)}: ${toned(state, toneOf(state), out.paint)}`);
        if (failure !== null) {
          out.line(`  ${memberText(failure.path)}: ${memberText(failure.message)}`);
        }
        for (const line of treeLines(session, tree)) out.line(`  ${line}`);
      },
    );
    return exit ?? (hasFailed ? EXIT.failed : undefined);
  },
};

const diff: Command = {
  name: 'sequences diff',
  summary: 'Show the differences between two published versions; exits with 1 if there are any.',
  args: [
    { name: 'sequence', about: 'The name of a sequence.' },
    { name: 'from', about: 'A version.' },
    { name: 'to', about: 'Another version; default: the newest active one.', isOptional: true },
  ],
  run: async (session, given) => {
    const { client, out } = session;
    const [from, to] = given.args.slice(1) as (string | undefined)[];
    const [baseline, candidate] = await Promise.all([
      versionOf(session, given, versionNumber(from)),
      versionOf(session, given, versionNumber(to)),
    ]);
    const told = await client.sequences.compare({
      tenant_id: session.tenant,
      baseline_sequence_id: baseline.id,
      candidate_sequence_id: candidate.id,
    });
    const texts = textDifferences(meaningOf(baseline), meaningOf(candidate));
    if (out.isJson) out.json({ ...told, texts });
    else {
      out.note(`v${baseline.version} → v${candidate.version}`);
      out.table(
        [
          { head: 'SEVERITY', text: ({ severity }) => severity, isWhole: true },
          { head: 'CHANGE', text: ({ summary }) => summary },
          { head: 'CATEGORY', text: ({ category }) => category },
        ],
        told.entries,
      );
      for (const line of texts.flatMap(differenceLines)) out.line(memberText(line));
    }
    return texts.length === 0 ? EXIT.ok : EXIT.failed;
  },
};

/** A definition without what differs between any two versions. */
function meaningOf({
  id,
  version,
  created_at,
  deprecated,
  hold,
  status,
  ...meaning
}: SequenceDefinition) {
  return meaning;
}

/** @throws CommandError */
function versionNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw usageError(`the version must be a whole number, not ${text}`);
}

/** A command that changes one version. */
function changing(row: {
  readonly name: string;
  readonly summary: string;
  readonly change: (client: Client, id: string) => Promise<void>;
  readonly said: (version: Pick<SequenceDefinition, 'name' | 'version'>) => string;
}): Command {
  const { name, summary, change, said } = row;
  return acting({
    name,
    summary,
    args: [VERSION_REFERENCE],
    ask: async (session, given) => {
      const version = await versionGiven(session, given.arg());
      await change(session.client, version.id);
      return { id: version.id, name: memberText(version.name), version: version.version };
    },
    said,
  });
}

const VERSION: Option = {
  flags: '--sequence-version <n>',
  about: 'This version; default: the newest active one.',
};

/** The definition that is given by name or id. */
function definitionGiven(session: Session, given: Given): Promise<SequenceDefinition> {
  const { client, namespaceOfName: namespace } = session;
  const name = given.arg();
  if (isId(name)) return client.sequences.get(name);
  const version = given.count('sequence-version');
  return byName(session, name, () => client.sequences.byName({ name, namespace, version }));
}

export const SEQUENCE_COMMANDS: readonly Command[] = [
  apply,
  validate,
  dryRun,
  diff,
  migrateMany,
  changing({
    name: 'sequences unhold',
    summary: 'Lift the hold of a version, so that its name can refer to it.',
    change: ({ sequences }, id) => sequences.update(id, { hold: false }),
    said: ({ name, version }) =>
      `${name} v${version} is no longer on hold and can be started by name.`,
  }),
  changing({
    name: 'sequences deprecate',
    summary: 'Deprecate a version permanently: neither its name nor a release refers to it.',
    change: ({ sequences }, id) => sequences.deprecate(id),
    said: ({ name, version }) =>
      `${name} v${version} was deprecated: new instances can use it only by id or pin.`,
  }),
  listing<SequenceListed>({
    name: 'sequences list',
    summary: 'List definitions by namespace, name and descending version.',
    options: [
      { flags: '--name <text>', about: 'Only sequences whose name contains this text.' },
      { flags: '--newest', about: 'Only the newest version of each name.' },
    ],
    columns: [
      { head: 'NAME', text: ({ name }) => name },
      { head: 'VERSION', text: ({ version }) => String(version), isWhole: true },
      {
        head: 'STATUS',
        text: ({ status, deprecated, hold }) =>
          deprecated ? 'deprecated' : hold ? 'on hold' : status,
        tone: ({ deprecated, hold }) => (deprecated ? 'quiet' : hold ? 'busy' : undefined),
      },
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      { head: 'NAMESPACE', text: ({ namespace }) => namespace },
      { head: 'CREATED', text: ({ created_at }, now) => ago(created_at, now) },
    ],
    ask: ({ client, out, namespace }, given, limit) =>
      client.sequences.list({
        namespace,
        name_contains: given.text('name'),
        newest_only: given.flag('newest'),
        // With --json, definitions are included.
        include_definition: out.isJson,
        limit,
      }),
  }),
  listing<StepStatistics>({
    name: 'sequences steps',
    summary: 'Show where the time of a version goes: runs, failures and durations of its blocks.',
    args: [{ name: 'sequence', about: 'A name or an id.' }],
    options: [
      VERSION,
      { flags: '--since <time>', about: 'RFC 3339, or an age such as 2h or 7d; default: 1h.' },
      { flags: '--all-versions', about: 'Runs of all versions of the name.' },
    ],
    columns: [
      { head: 'BLOCK', text: ({ block_id }) => block_id },
      { head: 'RUNS', text: ({ runs }) => String(runs) },
      {
        head: 'FAILED',
        text: ({ failures }) => String(failures),
        tone: ({ failures }) => (failures > 0 ? 'bad' : undefined),
      },
      { head: 'P50', text: ({ duration_p50_ms }) => spanText(duration_p50_ms) },
      { head: 'P95', text: ({ duration_p95_ms }) => spanText(duration_p95_ms) },
      { head: 'SHARE', text: ({ share }) => `${Math.round(share * 100)} %` },
      { head: 'HERE', text: ({ here_now }) => String(here_now) },
    ],
    ask: async (session, given, _limit, most) => {
      const { id } = await definitionGiven(session, given);
      const { steps } = await session.client.sequences.steps(id, {
        since: timeOf(given.text('since'), 'since', Date.now()),
        all_versions: given.flag('all-versions'),
      });
      return steps.slice(0, most);
    },
  }),
  showing({
    name: 'sequences get',
    summary: 'Show a definition by name or id.',
    args: [{ name: 'sequence', about: 'A name or an id.' }],
    options: [VERSION],
    ask: definitionGiven,
  }),
];
