/** The diagram of a version with the statistics of its runs, and the selected block beside it. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { SequenceDefinition, StepStatistics } from 'durable-workflow-engine-client';
import { X } from 'lucide-react';
import { useMemo } from 'react';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { IconButton } from '../../components/button.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { NotReadAgain } from '../../components/loaded.tsx';
import { Facts, Panel } from '../../components/page.tsx';
import { lookName } from '../../flow/kinds.ts';
import { FlowGraph } from '../../flow/later.tsx';
import { type OutlineBlock, outlineOf } from '../../flow/outline.ts';
import { hrefOf, useFilters } from '../../lib/address.ts';
import { countOf } from '../../lib/format.ts';
import { FlowLimits } from './flow-limits.tsx';
import styles from './sequences.module.css';
import { SlowestRuns } from './slowest-runs.tsx';
import { StepFacts, StepTable } from './step-table.tsx';
import { StepWindow, windowIn } from './step-window.tsx';

/** Counts are written every 20 s. */
const READ_EVERY_MS = 20_000;

export function FlowTab({ sequence }: { readonly sequence: SequenceDefinition }) {
  const { client } = useEngine();
  const maySee = useMaySee();
  const [filters, change] = useFilters();
  const outline = useMemo(() => outlineOf(sequence), [sequence]);
  const chosen = filters.block === undefined ? undefined : outline.byPath.get(filters.block);
  const span = windowIn(filters);
  const { id } = sequence;
  const query = useQuery({
    queryKey: ['sequences.steps', id, span],
    queryFn: ({ signal }) => {
      const since = new Date(Date.now() - span.spanMs).toISOString();
      const asked = { since, all_versions: span.isOfAll };
      return client.sequences.steps(id, asked, { signal });
    },
    placeholderData: keepPreviousData,
    meta: { live: 'all', paceMs: READ_EVERY_MS },
    refetchInterval: READ_EVERY_MS,
  });
  const steps = query.data?.steps;
  const select = (path: string | undefined) => change({ block: path });
  return (
    <div className={chosen ? `${styles.columns} ${styles.beside}` : styles.columns}>
      <div className={styles.stack}>
        <NotReadAgain query={query} />
        <FlowGraph
          definition={sequence}
          label={`Flow of ${sequence.name}, version ${sequence.version}`}
          selected={chosen?.path ?? null}
          onSelect={select}
          statistics={steps}
          tools={<StepWindow span={span} onChange={change} />}
        />
        {query.data && <Bounds data={query.data} />}
        <FlowLimits sequence={sequence} />
        <div className={chosen ? styles.stack : `${styles.columns} ${styles.halves}`}>
          <StepTable
            query={query}
            outline={outline}
            hrefOf={(path) => hrefOf(`/sequences/${id}`, { ...filters, block: path })}
          />
          {maySee('/instances') && (
            <Panel title="Slowest instances" isFlush>
              <SlowestRuns sequence={sequence} />
            </Panel>
          )}
        </div>
      </div>
      {chosen && (
        <BlockPanel
          key={chosen.path}
          sequence={sequence}
          block={chosen}
          step={steps?.find(({ block_id }) => block_id === chosen.id)}
          onClose={() => select(undefined)}
        />
      )}
    </div>
  );
}

function Bounds({ data }: { readonly data: { complete: boolean; here_complete: boolean } }) {
  const parts = [
    !data.complete && 'Older runs of this period are not counted.',
    !data.here_complete && '“Here” counts open executions of the newest 3,000 instances.',
  ].filter(Boolean);
  return parts.length === 0 ? null : <p className="dim small">{parts.join(' ')}</p>;
}

function BlockPanel(props: {
  readonly sequence: SequenceDefinition;
  readonly block: OutlineBlock;
  readonly step: StepStatistics | undefined;
  readonly onClose: () => void;
}) {
  const { sequence, block, step, onClose } = props;
  const maySee = useMaySee();
  return (
    <Panel title={block.id} actions={<IconButton label="Close" icon={X} onClick={onClose} />}>
      <div className={styles.definition}>
        <Facts
          facts={{
            Kind: lookName(block.look),
            About: block.detail !== '' && block.detail,
            Inside: block.size > 0 && countOf(block.size, 'block'),
          }}
        />
        {step && <StepFacts step={step} />}
        {step && maySee('/instances') && (
          <section className={styles.stack}>
            <h3>Slowest runs</h3>
            <SlowestRuns sequence={sequence} block={block} />
          </section>
        )}
        {block.source && <JsonView label={`Definition of ${block.id}`} value={block.source} />}
      </div>
    </Panel>
  );
}
