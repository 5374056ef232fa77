/** One bar per attempt over time. Very long runs start with their latest attempts. */

import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { ITERATION_ORDERS } from '../../flow/iteration.ts';
import { Timeline } from '../../flow/later.tsx';
import { useFilters } from '../../lib/address.ts';
import { Awaited } from './awaited.tsx';
import { BlockPanel } from './block-panel.tsx';
import styles from './instance.module.css';
import { type Drawn, NOTHING_ASKED_OF_BLOCK, type Run, useDrawn } from './run.ts';

export function TimelineTab({ run }: { readonly run: Run }) {
  const { drawn, awaited } = useDrawn(run);
  const [filters, change] = useFilters();
  const typical = useTypical(run);
  const order = ITERATION_ORDERS.find((one) => one === filters.order) ?? 'number';
  useAllPages(order === 'number' || run.isOpen ? undefined : drawn?.attemptsQuery);
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
        typical={typical}
        order={order}
        onOrder={(chosen) => change({ order: chosen === 'number' ? undefined : chosen })}
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

/** Longer runs are compared by what was read. */
const PAGES_COMPARED_MAX = 20;

/** Reads all attempts of a finished run: the slowest iteration may be the first one. */
function useAllPages(query: Drawn['attemptsQuery'] | undefined): void {
  const pages = query?.data?.pages.length ?? PAGES_COMPARED_MAX;
  const isNext = query?.hasNextPage === true && !query.isFetching && !query.isError;
  useEffect(() => {
    if (isNext && pages < PAGES_COMPARED_MAX) void query?.fetchNextPage();
  }, [isNext, pages, query]);
}

const DAY_MS = 24 * 60 * 60_000;

/** The p50 of each block over the last day. */
function useTypical({ instance }: Run): ReadonlyMap<string, number> | undefined {
  const { client, allowed } = useEngine();
  const id = instance.sequence_id;
  const { data } = useQuery({
    queryKey: ['sequences.steps', id, 'day'],
    queryFn: ({ signal }) => {
      const since = new Date(Date.now() - DAY_MS).toISOString();
      return client.sequences.steps(id, { since }, { signal });
    },
    enabled: allowed.readSequences,
    staleTime: READ_EVERY_MS,
  });
  return useMemo(() => {
    const known = data?.steps.flatMap(({ block_id, duration_p50_ms: p50 }) =>
      p50 === null ? [] : [[block_id, p50] as const],
    );
    return known === undefined || known.length === 0 ? undefined : new Map(known);
  }, [data]);
}

const READ_EVERY_MS = 60_000;
