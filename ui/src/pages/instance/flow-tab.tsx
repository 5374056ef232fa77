/** The sequence with the states of its blocks, and beside it everything about the one that is selected. */

import { FlowGraph } from '../../flow/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { Awaited } from './awaited.tsx';
import { BlockPanel } from './block-panel.tsx';
import { useTriesOf } from './block-tries.tsx';
import styles from './instance.module.css';
import { passIn, passOf } from './places.ts';
import { NOTHING_ASKED_OF_BLOCK, pathIn, type Run, useDrawn } from './run.ts';

/** Of the address: whoever closed the panel does not want it to come back. */
const NOTHING = 'none';

export function FlowTab({ run }: { readonly run: Run }) {
  const { drawn, awaited } = useDrawn(run);
  const [filters, change] = useFilters();
  const { failure } = run.instance;
  // What failed is what one came for: its tries are asked for before it can be drawn.
  const failed = failure?.block_id ?? undefined;
  const isFirst = filters.block === undefined;
  useTriesOf(run, isFirst ? failed : undefined, passIn(passOf(failure?.path ?? '')));
  if (drawn === undefined) return <Awaited query={awaited} height={480} />;
  const first = failed === undefined ? undefined : pathIn(run, failed);
  const chosen = filters.block ?? first;
  const selected = chosen === undefined || chosen === NOTHING ? null : chosen;
  const block = selected === null ? undefined : drawn.outline.byPath.get(selected);
  const failedPass = selected === first && failure?.path ? passOf(failure.path) : undefined;
  const select = (path: string | undefined) =>
    change({ ...NOTHING_ASKED_OF_BLOCK, block: path ?? NOTHING });
  return (
    <div className={block ? `${styles.flow} ${styles.split}` : styles.flow}>
      <div className={styles.graph}>
        {drawn.facts.attempts === undefined && <Awaited query={drawn.tries} />}
        <FlowGraph
          definition={drawn.definition}
          run={drawn.facts}
          label={labelOf(run)}
          selected={selected}
          onSelect={select}
          isLive={run.isOpen}
        />
      </div>
      {block && (
        <BlockPanel
          key={block.path}
          run={run}
          drawn={drawn}
          block={block}
          failedPass={failedPass}
          onClose={() => select(undefined)}
        />
      )}
    </div>
  );
}

function labelOf({ sequence }: Run): string {
  return `Flow of ${sequence?.name}, version ${sequence?.version}`;
}
