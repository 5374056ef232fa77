/** Deletes a version, after showing how many instances would be deleted with it. */

import { useQueryClient } from '@tanstack/react-query';
import type { Page, SequenceListed } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Checkbox } from '../../components/field.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { countOf, formatCount } from '../../lib/format.ts';
import { versionsOf } from './use-serving.ts';

/** After this delay, a page that was left is unmounted. */
const RENDERING_MS = 50;

/** @param props.isShown the page shows this version and must be left when it is deleted */
export function DeleteDialog(props: {
  readonly version: SequenceListed;
  readonly isShown: boolean;
}) {
  const { version, isShown } = props;
  const { client } = useEngine();
  const [, go] = useLocation();
  const [cascade, setCascade] = useState(false);
  const preview = useRead('sequences.delete', [version.id, { cascade, dry_run: true }], {
    retry: false,
    gcTime: 0,
  });
  const queries = useQueryClient();
  /** Leaves the page of the deleted version before all queries on the screen are read again. */
  async function remove() {
    await client.sequences.delete(version.id, { cascade });
    queries.setQueriesData<Page<SequenceListed>>(
      { queryKey: ['sequences.list', versionsOf(version)] },
      (page) => page && { ...page, items: page.items.filter(({ id }) => id !== version.id) },
    );
    if (isShown) go('/sequences');
    await new Promise((rendered) => setTimeout(rendered, RENDERING_MS));
  }
  return (
    <ConfirmDialog
      title={`Delete version ${version.version} of ${version.name}`}
      action="Delete version"
      kind="danger"
      isDisabled={!preview.isSuccess}
      act={remove}
      done={() => `Version ${version.version} of ${version.name} was deleted.`}
    >
      <Loaded query={preview} height={48}>
        {(counted) => (
          <p>
            {counted === undefined || counted.count === 0
              ? 'No instances will be deleted.'
              : `${countOf(counted.count, 'instance')} will be deleted with all of their data: ${formatCount(counted.ended)} finished, ${formatCount(counted.failed)} failed.`}
          </p>
        )}
      </Loaded>
      <Checkbox label="Also delete its failed instances" value={cascade} onChange={setCascade} />
    </ConfirmDialog>
  );
}
