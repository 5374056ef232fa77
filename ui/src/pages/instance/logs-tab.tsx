/** The lines that steps have logged, oldest first. */

import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { StepLogLine } from 'durable-workflow-engine-client';
import { ScrollText } from 'lucide-react';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { useFilters } from '../../lib/address.ts';
import { formatClock, formatInstant } from '../../lib/format.ts';
import styles from './logs-tab.module.css';
import { pathIn, type Run } from './run.ts';

const LINES_A_PAGE = 200;

const TONES: Readonly<Record<string, Tone>> = {
  debug: 'idle',
  info: 'info',
  warn: 'warn',
  error: 'danger',
};

export function Logs({ run }: { readonly run: Run }) {
  const { client } = useEngine();
  const [filters, change] = useFilters();
  const { id } = run.instance;
  const offset = Number(filters.line ?? 0) || 0;
  const { of: blockId } = filters;
  const asked = { limit: LINES_A_PAGE, offset, ...(blockId && { block_id: blockId }) };
  const query = useQuery({
    queryKey: ['instances.logs', id, asked],
    queryFn: async ({ signal }) => client.instances.logs(id, asked, { signal }),
    placeholderData: keepPreviousData,
    meta: { live: id },
    refetchInterval: run.isOpen ? 5_000 : false,
  });
  const lead = (line: number) => change({ line: line > 0 ? `${line}` : undefined });
  return (
    <Panel
      title={blockId ? `Log of ${blockId}, oldest first` : 'Log, oldest first'}
      isFlush
      actions={blockId && <Link href={`/instances/${id}/logs`}>All blocks</Link>}
    >
      <Loaded query={query} height={240}>
        {({ items }) => (
          <>
            {items.length === 0 ? (
              <Empty title="No log lines" icon={<ScrollText size={26} aria-hidden />}>
                <p>
                  Log lines of workers and of the <code>log</code> handler are listed here.
                </p>
              </Empty>
            ) : (
              <LogLines lines={items} run={run} />
            )}
            {(offset > 0 || items.length === LINES_A_PAGE) && (
              <nav className={styles.pager} aria-label="Pages of the log">
                <Button disabled={offset === 0} onClick={() => lead(offset - LINES_A_PAGE)}>
                  Earlier
                </Button>
                <Button
                  disabled={items.length < LINES_A_PAGE}
                  onClick={() => lead(offset + LINES_A_PAGE)}
                >
                  Later
                </Button>
              </nav>
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

/** @param props.run adds links to the blocks; undefined if all lines are of one block */
export function LogLines(props: { readonly lines: readonly StepLogLine[]; readonly run?: Run }) {
  const { lines, run } = props;
  return (
    <ol className={styles.lines}>
      {lines.map(({ ts, level, block_id, message }, at) => {
        const when = new Date(ts);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no ids, and come in their order
          <li key={at}>
            <time dateTime={ts} title={formatInstant(when)} className="dim">
              {formatClock(when, Date.now(), 'ms')}
            </time>
            <Badge tone={TONES[level] ?? 'idle'}>{level}</Badge>
            {run && <Link href={run.hrefOfBlock(pathIn(run, block_id))}>{block_id}</Link>}
            <span className={styles.message}>{message}</span>
          </li>
        );
      })}
    </ol>
  );
}
