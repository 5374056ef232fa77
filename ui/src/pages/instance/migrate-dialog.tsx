/** Migrates an instance to another version of its sequence: shows the differences and the verdict first. */

import type {
  MigratedInstance,
  MigrationVerdict,
  SequenceDefinition,
} from 'durable-workflow-engine-client';
import { useState } from 'react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Checkbox, Select } from '../../components/field.tsx';
import { FormBody, useForm } from '../../components/form.tsx';
import { TextDiff } from '../../components/later.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { DefinitionDiff } from '../../flow/later.tsx';
import { jsonTextOf } from '../../lib/format.ts';
import type { ActionDialogProps } from './action-dialog.tsx';
import styles from './migrate-dialog.module.css';

const VERDICTS: Readonly<Record<MigrationVerdict, readonly [tone: Tone, words: string]>> = {
  automatic: ['ok', 'The instance can be migrated.'],
  approval_required: ['warn', 'The instance can be migrated once somebody approves the findings.'],
  pin: [
    'danger',
    'The instance stays on its version: its current position cannot be carried over.',
  ],
  incompatible: ['danger', 'The instance cannot be migrated to this version.'],
};

export function MigrateDialog({ run }: ActionDialogProps) {
  const { client } = useEngine();
  const { sequence, instance } = run;
  const [chosen, setChosen] = useState<string>();
  const [isApproved, setApproved] = useState(false);
  const versions = useRead(
    'sequences.versions',
    [{ name: sequence?.name ?? '', namespace: sequence?.namespace }],
    {
      enabled: sequence !== undefined,
      select: (all) => all.filter(({ id }) => id !== instance.sequence_id),
    },
  );
  const target = targetIn(versions.data ?? [], chosen);
  const verdict = useRead(
    'migrations.migrate',
    [instance.id, { sequence_id: target?.id, approved: isApproved, dry_run: true }],
    {
      enabled: target !== undefined,
      // Approving evaluates the same target again: the earlier verdict stays until then.
      placeholderData: (before, query) =>
        (query?.queryKey[2] as { sequence_id?: string } | undefined)?.sequence_id === target?.id
          ? before
          : undefined,
      retry: false,
      live: instance.id,
    },
  );
  const form = useForm(
    {},
    () => client.migrations.migrate(instance.id, { sequence_id: target?.id, approved: isApproved }),
    { done: ({ to }) => `The instance now uses version ${to.version}.` },
  );
  const judged = verdict.data?.verdict;
  const isJudged = !verdict.isPlaceholderData;
  const may =
    isJudged && (judged === 'automatic' || (judged === 'approval_required' && isApproved));
  return (
    <Dialog title="Migrate to another version" isWide>
      <Loaded query={versions} height={200}>
        {(others) =>
          target === undefined || sequence === undefined ? (
            <p>
              There is no other version of {sequence?.name} that is not deprecated.{' '}
              <Link href={`/sequences/${instance.sequence_id}`}>Go to the sequence</Link>
            </p>
          ) : (
            <FormBody form={form} label={`Migrate to version ${target.version}`} isDisabled={!may}>
              <Select
                label={`From version ${sequence.version} to`}
                value={target.id}
                options={others.map((one) => ({
                  value: one.id,
                  label: `version ${one.version}${one.status === 'draft' ? ', a draft' : ''}${one.hold ? ', on hold' : ''}`,
                }))}
                onChange={(id) => {
                  setChosen(id);
                  setApproved(false);
                }}
              />
              <Loaded query={verdict} height={72}>
                {(answer) => <Verdict answer={answer} />}
              </Loaded>
              {judged === 'approval_required' && (
                <Checkbox
                  label="I have reviewed the findings and approve the migration"
                  value={isApproved}
                  onChange={setApproved}
                />
              )}
              <Difference before={sequence} after={target} />
            </FormBody>
          )
        }
      </Loaded>
    </Dialog>
  );
}

/** The newest version unless one was chosen; a version on hold only if there are no others. */
function targetIn(versions: readonly SequenceDefinition[], chosen: string | undefined) {
  const isChosen = ({ id }: SequenceDefinition) => id === chosen;
  return versions.find(isChosen) ?? versions.find(({ hold }) => !hold) ?? versions[0];
}

function Verdict({ answer }: { readonly answer: MigratedInstance }) {
  const [tone, words] = VERDICTS[answer.verdict];
  return (
    <div className={styles.verdict} role="status">
      <p>
        <Badge tone={tone}>{answer.verdict.replaceAll('_', ' ')}</Badge> {words}
      </p>
      {answer.findings.length > 0 && (
        <ul className={styles.findings}>
          {answer.findings.map(({ code, path, summary, remedy }) => (
            <li key={`${code} ${path}`}>
              <p>
                {summary} <code className="dim small">{code}</code>
              </p>
              <p className="dim">{remedy}</p>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Difference(props: { before: SequenceDefinition; after: SequenceDefinition }) {
  const { before, after } = props;
  const [isText, setText] = useState(false);
  const label = `Changes from version ${before.version} to version ${after.version}`;
  return (
    <section className={styles.difference} aria-label="Changes">
      <p className={styles.switch}>
        <strong>Changes</strong>
        <Button kind="quiet" onClick={() => setText(!isText)}>
          {isText ? 'As a graph' : 'As text'}
        </Button>
      </p>
      {isText ? (
        <TextDiff label={label} before={definitionText(before)} after={definitionText(after)} />
      ) : (
        <DefinitionDiff label={label} before={before} after={after} />
      )}
    </section>
  );
}

function definitionText({ blocks, input_schema, on_failure, on_cancel }: SequenceDefinition) {
  return jsonTextOf({ blocks, input_schema, on_failure, on_cancel });
}
