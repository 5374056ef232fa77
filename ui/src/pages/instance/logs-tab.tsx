/** The lines that steps have logged: oldest first, or the newest as they come. */

import { ScrollText } from 'lucide-react';
import { Link } from 'wouter';
import { useRead } from '../../api/read.ts';
import { AsOf } from '../../components/as-of.tsx';
import { Button, ButtonRow, Toggle } from '../../components/button.tsx';
import { Empty } from '../../components/error-box.tsx';
import { FieldRow } from '../../components/field.tsx';
import { Loaded } from '../../components/loaded.tsx';
import styles from '../../components/log-lines.module.css';
import { LineFields, LogLines, lineFilters, TAIL_MS } from '../../components/log-lines.tsx';
import { Panel } from '../../components/page.tsx';
import { useFilters } from '../../lib/address.ts';
import { pathIn, type Run } from './run.ts';

const LINES_A_PAGE = 200;

export function Logs({ run }: { readonly run: Run }) {
  const [filters, change] = useFilters();
  const { id } = run.instance;
  const isTail = filters.tail === 'yes';
  const offset = isTail ? 0 : Number(filters.line ?? 0) || 0;
  const { of: blockId } = filters;
  const asked = {
    ...lineFilters(filters),
    limit: LINES_A_PAGE,
    offset,
    ...(blockId && { block_id: blockId }),
    ...(isTail && { order: 'newest' as const }),
  };
  const query = useRead('instances.logs', [id, asked], {
    keepsBefore: true,
    live: id,
    // Lines of a heartbeat are no change of the instance.
    refetchInterval: isTail && run.isOpen ? TAIL_MS : run.pollMs,
  });
  const lead = (line: number) => change({ line: line > 0 ? `${line}` : undefined });
  const isFiltered = Object.keys(lineFilters(filters)).length > 0 || blockId !== undefined;
  const order = isTail ? 'newest first' : 'oldest first';
  return (
    <>
      <FieldRow>
        <LineFields />
      </FieldRow>
      <Panel
        title={blockId ? `Log of ${blockId}, ${order}` : `Log, ${order}`}
        isFlush
        actions={
          <ButtonRow>
            <AsOf query={query} />
            {blockId && <Link href={`/instances/${id}/logs`}>All blocks</Link>}
            <Toggle
              icon={ScrollText}
              isOn={isTail}
              onClick={() => change({ tail: isTail ? undefined : 'yes', line: undefined })}
            >
              Tail
            </Toggle>
          </ButtonRow>
        }
      >
        <Loaded query={query} height={240}>
          {({ items }) => (
            <>
              {items.length === 0 ? (
                <Empty title={isFiltered ? 'No matching lines' : 'No log lines'} icon={ScrollText}>
                  <p>
                    Log lines of workers and of the <code>log</code> handler are listed here.
                  </p>
                </Empty>
              ) : (
                <LogLines
                  lines={items}
                  placeOf={({ block_id }) => (
                    <Link href={run.hrefOfBlock(pathIn(run, block_id))}>{block_id}</Link>
                  )}
                />
              )}
              {!isTail && (offset > 0 || items.length === LINES_A_PAGE) && (
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
    </>
  );
}
