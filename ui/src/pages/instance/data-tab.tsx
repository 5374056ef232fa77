/** The data of the instance, the outputs of its blocks, and its checkpoints. */

import type { BlockOutput } from 'durable-workflow-engine-client';
import { Braces } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { Button } from '../../components/button.tsx';
import { JsonView } from '../../components/json-view.tsx';
import { useList } from '../../components/list.tsx';
import { ListPanel } from '../../components/list-panel.tsx';
import { Panel } from '../../components/page.tsx';
import type { Column } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { shownIteration } from '../../flow/iteration.ts';
import { formatCount } from '../../lib/format.ts';
import { Awaited } from './awaited.tsx';
import { choicesOf } from './choices.ts';
import styles from './instance.module.css';
import { pathIn, type Run } from './run.ts';

export function Data({ run }: { readonly run: Run }) {
  const { allowed } = useEngine();
  const { metadata, context } = run.instance;
  const { data, config, audit, runtime } = context;
  const canChange = choicesOf(run.instance, allowed).menu.includes('change-data');
  return (
    <div className={styles.stack}>
      <Panel
        title="Data"
        actions={canChange && <Button onClick={() => run.ask('change-data')}>Change…</Button>}
      >
        <JsonView value={data} label="context.data" />
      </Panel>
      <Outputs run={run} />
      <Checkpoints run={run} />
      {Object.keys(metadata).length > 0 && (
        <Panel title="Metadata">
          <JsonView value={metadata} label="metadata" />
        </Panel>
      )}
      {Object.keys(config).length > 0 && (
        <Panel title="Configuration">
          <JsonView value={config} label="context.config" />
        </Panel>
      )}
      {audit.length > 0 && (
        <Panel title="Audit notes">
          <JsonView value={audit} label="context.audit" />
        </Panel>
      )}
      <Panel title="Runtime">
        <JsonView value={runtime} label="context.runtime" />
      </Panel>
    </div>
  );
}

/** Answers and errors are stored as outputs, too. */
const REFS: Readonly<Record<string, string>> = {
  human_input: 'answer to an approval',
  __error__: 'error',
};

/** Longer values are shown in full with their block. */
const PREVIEW_CHARACTERS = 160;
const BYTES = 512 * 1024;

function Outputs({ run }: { readonly run: Run }) {
  const { id } = run.instance;
  const list = useList('instances.outputs', [id, { max_bytes: BYTES }], {
    cursorName: 'outputs',
    live: id,
  });
  const columns: readonly Column<BlockOutput>[] = [
    {
      name: 'Block',
      cell: ({ block_id, iteration }) => (
        <Link href={run.hrefOfBlock(pathIn(run, block_id), iteration)}>{block_id}</Link>
      ),
    },
    { name: 'Iteration', cell: ({ iteration }) => (iteration ? shownIteration(iteration) : '') },
    {
      name: 'Output',
      cell: ({ output, output_ref }) => (
        <>
          {output_ref !== null && <span className="dim">{REFS[output_ref] ?? output_ref} </span>}
          <code className={styles.mono}>{previewOf(output)}</code>
        </>
      ),
    },
    { name: 'Bytes', isNumber: true, cell: ({ output_size }) => formatCount(output_size) },
    { name: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
  ];
  return (
    <ListPanel
      title="Outputs, oldest first"
      label="Outputs"
      list={list}
      columns={columns}
      idOf={(row) => row.id}
      empty={{
        title: 'No outputs yet',
        icon: Braces,
        about: 'The outputs of finished blocks are listed here.',
      }}
    />
  );
}

function previewOf(output: unknown): string {
  const text = JSON.stringify(output) ?? '';
  return text.length > PREVIEW_CHARACTERS ? `${text.slice(0, PREVIEW_CHARACTERS)}…` : text;
}

function Checkpoints({ run }: { readonly run: Run }) {
  const { id } = run.instance;
  const query = useRead('instances.checkpoints', [id], { live: id });
  const { data } = query;
  if (data === undefined) return <Awaited query={query} />;
  if (data.length === 0) return null;
  return (
    <Panel title="Checkpoints, newest first">
      <ul className={styles.stack}>
        {data.map(({ id: checkpoint, checkpoint_data, created_at }) => (
          <li key={checkpoint}>
            <p className="dim small">
              <Time at={created_at} />
            </p>
            <JsonView value={checkpoint_data} label="Checkpoint" />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
