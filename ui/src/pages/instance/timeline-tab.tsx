/** One bar per attempt over time. Very long runs start with their latest attempts. */

import { ErrorBox } from '../../components/error-box.tsx';
import { Timeline } from '../../flow/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { Awaited } from './awaited.tsx';
import { BlockPanel } from './block-panel.tsx';
import styles from './instance.module.css';
import { NOTHING_ASKED_OF_BLOCK, type Run, useDrawn } from './run.ts';

export function TimelineTab({ run }: { readonly run: Run }) {
  const { drawn, awaited } = useDrawn(run);
  const [filters, change] = useFilters();
  if (drawn?.facts.attempts === undefined) {
    return <Awaited query={drawn?.attemptsQuery ?? awaited} height={320} />;
  }
  const { definition, facts, outline, attemptsQuery } = drawn;
  const block = filters.block === undefined ? undefined : outline.byPath.get(filters.block);
  const { sequence } = run;
  return (
    <div className={styles.stack}>
      <Timeline
        definition={definition}
        run={facts}
        label={`Timeline of ${sequence?.name}, version ${sequence?.version}`}
        isLive={run.isOpen}
        selected={block?.path ?? null}
        onSelect={(path) => change({ ...NOTHING_ASKED_OF_BLOCK, block: path })}
        hasMore={attemptsQuery.hasNextPage}
        onMore={() => void attemptsQuery.fetchNextPage()}
      />
      {attemptsQuery.isFetchNextPageError && (
        <ErrorBox error={attemptsQuery.error} onRetry={() => void attemptsQuery.fetchNextPage()} />
      )}
      {block && (
        <BlockPanel
          key={block.path}
          run={run}
          drawn={drawn}
          block={block}
          failedIteration={undefined}
          onClose={() => change({ ...NOTHING_ASKED_OF_BLOCK, block: undefined })}
        />
      )}
    </div>
  );
}
