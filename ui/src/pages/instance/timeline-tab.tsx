/** One bar for each try over time. Very long runs begin with their latest tries. */

import { Place } from '../../components/later.tsx';
import { Timeline } from '../../flow/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { BlockPanel } from './block-panel.tsx';
import styles from './instance.module.css';
import { type Run, useDrawn } from './run.ts';

export function TimelineTab({ run }: { readonly run: Run }) {
  const drawn = useDrawn(run);
  const [filters, change] = useFilters();
  if (drawn?.facts.attempts === undefined) return <Place height={320} />;
  const { definition, facts, outline, tries } = drawn;
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
        onSelect={(path) => change({ block: path, pass: undefined, tries: undefined })}
        hasMore={tries.hasNextPage}
        onMore={() => void tries.fetchNextPage()}
      />
      {block && (
        <BlockPanel
          key={block.path}
          run={run}
          drawn={drawn}
          block={block}
          failedPass={undefined}
          onClose={() => change({ block: undefined })}
        />
      )}
    </div>
  );
}
