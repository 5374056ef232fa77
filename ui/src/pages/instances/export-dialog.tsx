/** Reads all pages of a list and hands them over as a file, with progress, until it is stopped or full. */

import type { InstancesListQuery, TaskInstance } from 'durable-workflow-engine-client';
import { useEffect, useState } from 'react';
import { useEngine } from '../../api/engine.tsx';
import { Button } from '../../components/button.tsx';
import { Dialog, DialogActions, useClose } from '../../components/dialog.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { countOf } from '../../lib/format.ts';
import type { InstanceColumn } from './columns.tsx';
import type { ExportKind } from './view-tools.tsx';
import { csvLine } from './views.ts';

/** A file of this many rows is tens of megabytes; programs read the API. */
const ROWS_MAX = 50_000;
const PAGE = 200;

interface Progress {
  readonly lines: readonly string[];
  readonly end?: 'complete' | 'full' | 'stopped';
  readonly error?: unknown;
}

export function ExportDialog(props: {
  readonly kind: ExportKind;
  readonly query: InstancesListQuery;
  readonly columns: readonly InstanceColumn[];
}) {
  const { kind, query, columns } = props;
  const { client } = useEngine();
  const close = useClose();
  const [progress, setProgress] = useState<Progress>({ lines: [] });
  const [stop] = useState(() => new AbortController());
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is exported is fixed when the dialog opens
  useEffect(() => {
    const { signal } = stop;
    const lines: string[] = [];
    const lineOf = (row: TaskInstance) =>
      kind === 'ids' ? `${row.id}\n` : csvLine(columns.map(({ text }) => text(row)));
    async function read() {
      let cursor: string | undefined;
      do {
        const page = await client.instances.list({ ...query, limit: PAGE, cursor }, { signal });
        lines.push(...page.items.slice(0, ROWS_MAX - lines.length).map(lineOf));
        cursor = page.nextCursor;
        setProgress({ lines: [...lines] });
      } while (cursor !== undefined && lines.length < ROWS_MAX);
      setProgress({ lines, end: cursor === undefined ? 'complete' : 'full' });
    }
    read().catch((error: unknown) =>
      setProgress({ lines, ...(signal.aborted ? { end: 'stopped' } : { error }) }),
    );
  }, []);
  useEffect(() => () => stop.abort(), [stop]);
  const { lines, end, error } = progress;
  const isOver = end !== undefined || error !== undefined;
  return (
    <Dialog title="Export instances">
      <p role="status">
        {countOf(lines.length, 'row')} read
        {end === 'complete' && ': all matches.'}
        {end === 'full' && ': an export has at most as many. Narrow the filters for the others.'}
        {end === 'stopped' && ' before you stopped.'}
      </p>
      {error !== undefined && <ErrorBox error={error} />}
      {isOver ? (
        <DialogActions
          label="Download"
          isDisabled={lines.length === 0}
          onConfirm={() => {
            const head = kind === 'csv' ? csvLine(columns.map(({ name }) => name)) : '';
            download(`instances.${kind === 'csv' ? 'csv' : 'txt'}`, [head, ...lines]);
            close();
          }}
        />
      ) : (
        <Button onClick={() => stop.abort()}>Stop</Button>
      )}
    </Dialog>
  );
}

function download(name: string, parts: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([...parts], { type: 'text/plain;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // After the browser has opened it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
