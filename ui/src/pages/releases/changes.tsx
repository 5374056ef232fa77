/** The changes from the baseline to the candidate: as a list, as a diagram and as text. */

import type { DiffEntry, Release, SequenceDefinition } from 'durable-workflow-engine-client';
import { useRead } from '../../api/read.ts';
import { ErrorBox } from '../../components/error-box.tsx';
import { Place, TextDiff } from '../../components/later.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { StateWord } from '../../components/state-word.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { DefinitionDiff } from '../../flow/later.tsx';
import { countOf, jsonTextOf, wordsOf } from '../../lib/format.ts';
import { useDefinition } from '../sequences/use-definition.ts';

const COLUMNS: readonly Column<DiffEntry>[] = [
  { name: 'Severity', cell: ({ severity }) => <StateWord state={severity} /> },
  {
    name: 'Block',
    cell: ({ block_id }) =>
      block_id === undefined ? <span className="dim">sequence</span> : <code>{block_id}</code>,
  },
  { name: 'Change', cell: ({ category }) => wordsOf(category) },
  { name: 'Effect', cell: ({ summary }) => summary },
];

export function Changes({ release }: { readonly release: Release }) {
  const diff = useRead('releases.diff', [release.id]);
  const [before, after] = [
    useDefinition(release.baseline_sequence_id),
    useDefinition(release.candidate_sequence_id),
  ];
  const error = before.error ?? after.error;
  const versions = `version ${release.baseline_version} to version ${release.candidate_version}`;
  return (
    <>
      <Panel title="Effects" isFlush>
        <Loaded query={diff} height={160}>
          {({ entries, entries_omitted: omitted = 0, candidate_lint: lint = [] }) => (
            <>
              <Table
                label="Changes, most severe first"
                columns={COLUMNS}
                rows={entries}
                idOf={({ category, block_id, summary }) => `${category} ${block_id} ${summary}`}
                empty={<p className="dim">Both versions behave the same.</p>}
              />
              {omitted > 0 && (
                <p className="dim small">{countOf(omitted, 'less severe change')} not shown.</p>
              )}
              {lint.map((finding) => (
                <p key={finding} className="small">
                  {finding}
                </p>
              ))}
            </>
          )}
        </Loaded>
      </Panel>
      {error && <ErrorBox error={error} />}
      <Panel title="Diagram">
        {before.data && after.data ? (
          <DefinitionDiff
            before={before.data}
            after={after.data}
            diff={diff.data}
            label={`Changes from ${versions}`}
          />
        ) : (
          <Place height={480} />
        )}
      </Panel>
      <Panel title="Text">
        {before.data && after.data ? (
          <TextDiff
            label={`Text from ${versions}`}
            before={textOf(before.data)}
            after={textOf(after.data)}
          />
        ) : (
          <Place height={320} />
        )}
      </Panel>
    </>
  );
}

/** Without the members that differ between any two versions. */
function textOf({
  id: _,
  version: __,
  created_at: ___,
  ...definition
}: SequenceDefinition): string {
  return jsonTextOf(definition);
}
