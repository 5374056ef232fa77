/** Deletes a version, after saying how many instances go with it. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { Page, SequenceListed } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Checkbox } from '../../components/field.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { countOf } from '../../lib/format.ts';

/** A page that is left is gone by then. */
const RENDERING_MS = 50;

/** @param props.isShown the page shows this version, and has nothing to show without it */
export function DeleteDialog(props: {
  readonly version: SequenceListed;
  readonly isShown: boolean;
  readonly onClose: () => void;
}) {
  const { version, isShown, onClose } = props;
  const { client } = useEngine();
  const [, go] = useLocation();
  const [cascade, setCascade] = useState(false);
  const preview = useQuery({
    queryKey: ['sequences.delete', version.id, cascade],
    queryFn: ({ signal }) =>
      client.sequences.delete(version.id, { cascade, dry_run: true }, { signal }),
    retry: false,
    gcTime: 0,
  });
  const queries = useQueryClient();
  /** What is gone is no longer shown when all that is shown is read again. */
  async function remove() {
    await client.sequences.delete(version.id, { cascade });
    queries.setQueriesData<Page<SequenceListed>>(
      { queryKey: ['sequences.list', 'versions of'] },
      (page) => page && { ...page, items: page.items.filter(({ id }) => id !== version.id) },
    );
    if (isShown) go('/sequences');
    await new Promise((rendered) => setTimeout(rendered, RENDERING_MS));
  }
  const removal = useAction(remove, {
    done: () => `Version ${version.version} of ${version.name} is deleted.`,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      title={`Delete version ${version.version} of ${version.name}`}
      action="Delete it"
      kind="danger"
      isBusy={removal.isBusy}
      isDisabled={!preview.isSuccess}
      error={removal.error}
      onClose={onClose}
      onConfirm={() => removal.run(undefined)}
    >
      <Loaded query={preview} height={48}>
        {(counted) => (
          <p>
            {counted === undefined || counted.count === 0
              ? 'No instance goes with it.'
              : `${countOf(counted.count, 'instance')} will be deleted with it: ${countOf(counted.ended, 'ended one')}, ${countOf(counted.failed, 'failed one')}, with all that is kept of them.`}
          </p>
        )}
      </Loaded>
      <Checkbox
        label="Delete its failed instances, too"
        isChecked={cascade}
        onChange={setCascade}
      />
    </ConfirmDialog>
  );
}
