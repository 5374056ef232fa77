/** The changes from one version to another: as a diagram, as a list and as text. */

import type { SequenceDefinition, SequenceListed } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { ErrorBox } from '../../components/error-box.tsx';
import { FieldRow, Select } from '../../components/field.tsx';
import { Place, TextDiff } from '../../components/later.tsx';
import { Panel } from '../../components/page.tsx';
import { DefinitionDiff } from '../../flow/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { definitionText } from './drafts.ts';
import styles from './sequences.module.css';
import { useDefinition } from './use-definition.ts';

/** @param props.versions those that can be chosen, newest first */
export function Comparison(props: {
  readonly sequence: SequenceDefinition;
  readonly versions: readonly SequenceListed[];
}) {
  const { sequence, versions } = props;
  const [filters, change] = useFilters();
  if (versions.length < 2) return null;
  const older = versions.find(({ version }) => version < sequence.version);
  const known = (id: string | undefined) => versions.find((version) => version.id === id)?.id;
  const from = known(filters.from) ?? (older ?? sequence).id;
  const to = known(filters.to) ?? (older === undefined ? versions[0]! : sequence).id;
  const options = versions.map(({ id, version }) => ({ value: id, label: `Version ${version}` }));
  return (
    <Panel title="Compare two versions">
      <div className={styles.stack}>
        <FieldRow>
          <Select
            label="From"
            value={from}
            options={options}
            onChange={(id) => change({ from: id, to })}
          />
          <Select
            label="To"
            value={to}
            options={options}
            onChange={(id) => change({ from, to: id })}
          />
        </FieldRow>
        {from === to ? (
          <p className="dim">Choose two different versions.</p>
        ) : (
          <Differences key={`${from} ${to}`} from={from} to={to} />
        )}
      </div>
    </Panel>
  );
}

function Differences({ from, to }: { readonly from: string; readonly to: string }) {
  const { allowed } = useEngine();
  const [before, after] = [useDefinition(from), useDefinition(to)];
  const said = useRead(
    'sequences.compare',
    [{ baseline_sequence_id: from, candidate_sequence_id: to }],
    { enabled: allowed.publish },
  );
  const error = before.error ?? after.error;
  if (error) return <ErrorBox error={error} />;
  if (before.data === undefined || after.data === undefined) return <Place height={480} />;
  const name = `version ${before.data.version} to version ${after.data.version}`;
  return (
    <>
      {said.error && <ErrorBox error={said.error} />}
      <DefinitionDiff
        before={before.data}
        after={after.data}
        diff={said.data}
        label={`Changes from ${name}`}
      />
      <h3>Text</h3>
      <TextDiff
        label={`Text from ${name}`}
        before={definitionText(before.data, before.data.version)}
        after={definitionText(after.data, after.data.version)}
      />
    </>
  );
}
