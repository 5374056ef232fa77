/**
 * `sequences migrate`: migrates the instances of one version to another. Evaluates all of them first, asks for
 * confirmation with the count, and reports why others cannot be migrated.
 */

import { storedDefinition } from '../../client/src/builder/apply.js';
import type {
  InstancesMigrated,
  MigrateInstances,
  SequenceDefinition,
} from '../../client/src/index.js';
import { expectAgreement, instances } from '../bulk.js';
import type { Command, Given } from '../command.js';
import { CommandError, EXIT, type ExitCode, usageError } from '../exit.js';
import type { Output } from '../output.js';
import { byName } from '../sequence-names.js';
import type { Session } from '../session.js';
import {
  AGREED_OPTIONS,
  APPROVED_OPTION,
  NARROWING_OPTIONS,
  STATE_OPTION,
  selectionOf,
  statesOf,
} from './selection.js';

/** Instances per request: a few seconds, after which the progress is updated. */
const LOOKED_AT = 200;
const EXAMPLES_MAX = 5;

type Finding = InstancesMigrated['findings'][number];

/** The combined result of all requests. */
interface Total
  extends Omit<InstancesMigrated, 'done' | 'next_cursor' | 'findings' | 'migrations'> {
  readonly findings: readonly Finding[];
  readonly migrations: InstancesMigrated['migrations'];
}

const COUNTS = [
  'count',
  'automatic',
  'migrated',
  'approval_required',
  'pinned',
  'incompatible',
  'failed',
] as const;

/** Why instances are not migrated. */
const STAYING: readonly (readonly [count: (typeof COUNTS)[number], words: string])[] = [
  ['approval_required', 'need approval (use --approved)'],
  ['pinned', 'are pinned'],
  ['incompatible', 'are incompatible'],
  ['failed', 'were refused'],
];

export const migrateMany: Command = {
  name: 'sequences migrate',
  summary:
    'Migrate the open instances of a version to another one, where that is safe; counts them and asks first.',
  args: [{ name: 'sequence', about: 'The name of a sequence.' }],
  options: [
    { flags: '--from <n>', about: 'The current version of the instances.' },
    {
      flags: '--to <n>',
      about: 'The target version; default: the newest active one.',
    },
    STATE_OPTION,
    ...NARROWING_OPTIONS,
    APPROVED_OPTION,
    ...AGREED_OPTIONS,
  ],
  run: async (session, given) => {
    const { out } = session;
    given.required('from');
    const [source, target] = await Promise.all([
      versionOf(session, given, given.count('from')),
      versionOf(session, given, given.count('to')),
    ]);
    if (source.id === target.id) {
      throw usageError(
        `${given.arg()} cannot be migrated from version ${source.version} to itself`,
      );
    }
    const { namespace, ...selection } = selectionOf(session, given, Date.now());
    const approved = given.flag('approved');
    const filter = { ...selection, states: statesOf(given) };
    const asked = { sequence_id: target.id, filter, approved };
    const way = `migrated from version ${source.version} to ${target.version}`;
    const found = await migrateAll(session, source.id, { ...asked, dry_run: true }, 'judged');
    const movable = found.automatic + (approved ? found.approval_required : 0);
    const staying = stayingText(found, approved);
    if (given.flag('dry-run') || movable === 0) {
      if (out.isJson) out.json(found);
      else {
        out.line(`${instances(movable)} would be ${way}${staying}.`);
        tellFindings(out, found.findings);
      }
      return EXIT.ok;
    }
    if (!out.isJson) tellFindings(out, found.findings);
    await expectAgreement(
      session,
      { isAgreed: given.flag('yes'), done: `${way}${staying}` },
      movable,
    );
    const total = await migrateAll(session, source.id, asked, way);
    if (out.isJson) out.json(total);
    else out.line(`${instances(total.migrated)} ${way}${stayingText(total, approved)}.`);
    return exitOf(total);
  },
};

const exitOf = ({ failed }: Total): ExitCode => (failed > 0 ? EXIT.failed : EXIT.ok);

/**
 * A version of the sequence that the first argument names.
 *
 * @param version undefined: the newest active one
 * @throws CommandError if there is none
 */
export async function versionOf(
  session: Session,
  given: Given,
  version: number | undefined,
): Promise<SequenceDefinition> {
  const name = given.arg();
  const { client, namespaceOfName: namespace } = session;
  return byName(session, name, async () => {
    const found = await storedDefinition(client.sequences, { name, namespace, version });
    if (found !== undefined) return found;
    throw new CommandError('notFound', `no version ${version ?? 'in use'} of ${name} found`);
  });
}

/** As many requests as needed. Migrated instances leave the version, so the cursor skips none. */
async function migrateAll(
  { client, out }: Session,
  sequence: string,
  asked: MigrateInstances,
  done: string,
): Promise<Total> {
  const counts = Object.fromEntries(COUNTS.map((name) => [name, 0])) as Record<
    (typeof COUNTS)[number],
    number
  >;
  const findings = new Map<string, Finding>();
  const migrations: InstancesMigrated['migrations'][number][] = [];
  for (let cursor: string | null | undefined; ; ) {
    const page = await client.sequences.migrateInstances(sequence, {
      ...asked,
      limit: LOOKED_AT,
      cursor,
    });
    for (const name of COUNTS) counts[name] += page[name];
    for (const finding of page.findings) {
      findings.set(finding.code, together(findings.get(finding.code), finding));
    }
    migrations.push(...page.migrations);
    if (page.done) break;
    cursor = page.next_cursor;
    out.progress(`${instances(counts.count)} ${done}`);
  }
  out.endProgress();
  const told = [...findings.values()].sort((a, b) => b.count - a.count);
  return { ...counts, findings: told, migrations, dry_run: asked.dry_run === true };
}

function together(before: Finding | undefined, { example_ids, count, ...more }: Finding): Finding {
  const examples = [...(before?.example_ids ?? []), ...example_ids].slice(0, EXAMPLES_MAX);
  return { ...more, count: count + (before?.count ?? 0), example_ids: examples };
}

/** `; 2 are incompatible`, or empty. */
function stayingText(total: Total, isApproved: boolean): string {
  return STAYING.filter(
    ([name]) => total[name] > 0 && !(isApproved && name === 'approval_required'),
  )
    .map(([name, words]) => `; ${total[name].toLocaleString('en')} ${words}`)
    .join('');
}

function tellFindings(out: Output, findings: readonly Finding[]): void {
  for (const { code, count, summary, remedy, example_ids } of findings) {
    out.note(`  ${count} × ${code}: ${summary}: ${remedy} (as ${example_ids[0]})`);
  }
}
