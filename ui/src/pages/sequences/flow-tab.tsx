/** The diagram of a version, with the definition of the selected block. */

import type { SequenceDefinition } from 'durable-workflow-engine-client';
import { useMemo } from 'react';
import { JsonView } from '../../components/json-view.tsx';
import { Facts, Panel } from '../../components/page.tsx';
import { lookName } from '../../flow/kinds.ts';
import { FlowGraph } from '../../flow/later.tsx';
import { type OutlineBlock, outlineOf } from '../../flow/outline.ts';
import { useFilters } from '../../lib/address.ts';
import { countOf } from '../../lib/format.ts';
import styles from './sequences.module.css';

export function FlowTab({ sequence }: { readonly sequence: SequenceDefinition }) {
  const [{ block }, change] = useFilters();
  const outline = useMemo(() => outlineOf(sequence), [sequence]);
  const chosen = block === undefined ? undefined : outline.byPath.get(block);
  return (
    <div className={`${styles.columns} ${styles.beside}`}>
      <FlowGraph
        definition={sequence}
        label={`Flow of ${sequence.name}, version ${sequence.version}`}
        selected={chosen?.path ?? null}
        onSelect={(path) => change({ block: path })}
      />
      {chosen === undefined ? (
        <Panel title="Blocks">
          <p className="dim">
            {countOf(outline.byPath.size, 'block')}. Choose one to see its definition here.
          </p>
        </Panel>
      ) : (
        <BlockPanel block={chosen} />
      )}
    </div>
  );
}

function BlockPanel({ block }: { readonly block: OutlineBlock }) {
  return (
    <Panel title={block.id}>
      <div className={styles.definition}>
        <Facts
          facts={[
            ['Kind', lookName(block.look)],
            block.detail !== '' && ['Runs', block.detail],
            block.size > 0 && ['Inside', countOf(block.size, 'block')],
          ]}
        />
        {block.source && <JsonView label={`Definition of ${block.id}`} value={block.source} />}
      </div>
    </Panel>
  );
}
