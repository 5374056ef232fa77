/** The sequence with the states of its blocks, beside the panel of the selected block. */

import { LocateFixed } from 'lucide-react';
import { useEffect } from 'react';
import { Toggle } from '../../components/button.tsx';
import { FlowGraph } from '../../flow/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { Awaited } from './awaited.tsx';
import { useAttemptsOf } from './block-attempts.tsx';
import { BlockPanel } from './block-panel.tsx';
import styles from './instance.module.css';
import { iterationIn, iterationOf } from './places.ts';
import { NOTHING_ASKED_OF_BLOCK, pathIn, type Run, useDrawn } from './run.ts';

/** In the address: the panel was closed and stays closed. */
const NOTHING = 'none';

export function FlowTab({ run }: { readonly run: Run }) {
  const { drawn, awaited } = useDrawn(run);
  const [filters, change] = useFilters();
  const { failure } = run.instance;
  // The failed block is the most relevant one: its attempts are requested before it can be drawn.
  const failed = failure?.block_id ?? undefined;
  const isFirst = filters.block === undefined;
  useAttemptsOf(run, isFirst ? failed : undefined, iterationIn(iterationOf(failure?.path ?? '')));
  const isFollowing = run.isOpen && filters.follow === 'yes';
  const followed = isFollowing ? runningIn(run) : undefined;
  useScrolledTo(followed);
  if (drawn === undefined) return <Awaited query={awaited} height={480} />;
  const first = failed === undefined ? undefined : pathIn(run, failed);
  const chosen = followed ?? filters.block ?? first;
  // Links from elsewhere know only the id of a block.
  const selected = chosen === undefined || chosen === NOTHING ? null : pathIn(run, chosen);
  const block = selected === null ? undefined : drawn.outline.byPath.get(selected);
  const failedIteration =
    selected === first && failure?.path ? iterationOf(failure.path) : undefined;
  const select = (path: string | undefined) =>
    change({ ...NOTHING_ASKED_OF_BLOCK, follow: undefined, block: path ?? NOTHING });
  return (
    <div className={block ? `${styles.flow} ${styles.split}` : styles.flow}>
      <div className={styles.graph}>
        {drawn.facts.attempts === undefined && <Awaited query={drawn.attemptsQuery} />}
        <FlowGraph
          definition={drawn.definition}
          run={drawn.facts}
          label={labelOf(run)}
          selected={selected}
          onSelect={select}
          isLive={run.isOpen}
          tools={
            run.isOpen && (
              <Toggle
                icon={LocateFixed}
                isOn={isFollowing}
                title="Selects and scrolls to the step that runs, until you select a block"
                onClick={() =>
                  change({
                    ...NOTHING_ASKED_OF_BLOCK,
                    block: undefined,
                    follow: isFollowing ? undefined : 'yes',
                  })
                }
              >
                Follow
              </Toggle>
            )
          }
        />
      </div>
      {block && (
        <BlockPanel
          key={block.path}
          run={run}
          drawn={drawn}
          block={block}
          failedIteration={failedIteration}
          onClose={() => select(undefined)}
        />
      )}
    </div>
  );
}

/** The block of the first open step. */
function runningIn(run: Run): string | undefined {
  const id = run.explanation?.waiting_for.find(({ block_id }) => block_id !== null)?.block_id;
  return id == null ? undefined : pathIn(run, id);
}

/** On a narrow screen, where the list of blocks is longer than it, the followed one is scrolled to. */
function useScrolledTo(path: string | false | undefined): void {
  useEffect(() => {
    if (!path) return;
    const block = document.querySelector(`li [data-path="${CSS.escape(path)}"]`);
    block?.scrollIntoView({ block: 'nearest' });
  }, [path]);
}

function labelOf({ sequence }: Run): string {
  return `Flow of ${sequence?.name}, version ${sequence?.version}`;
}
