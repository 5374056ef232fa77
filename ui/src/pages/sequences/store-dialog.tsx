/** Publishes a definition, after showing the changes from the newest published version. */

import { useQuery } from '@tanstack/react-query';
import type { CreateSequence } from 'durable-workflow-engine-client';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { Checkbox } from '../../components/field.tsx';
import { TextDiff } from '../../components/later.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { DefinitionDiff } from '../../flow/later.tsx';
import { definitionText } from './drafts.ts';
import styles from './sequences.module.css';

export function StoreDialog(props: {
  readonly definition: CreateSequence;
  readonly onStored: () => void;
}) {
  const { definition, onStored } = props;
  const { client } = useEngine();
  const [, go] = useLocation();
  const { name, version, namespace } = definition;
  const [hold, setHold] = useState(definition.hold ?? false);
  const newest = useQuery({
    queryKey: ['sequences.list', 'newest definition of', namespace, name],
    queryFn: async ({ signal }) => {
      const { items } = await client.sequences.list(
        { namespace, name, include_definition: false, limit: 1 },
        { signal },
      );
      return items[0] === undefined ? null : client.sequences.get(items[0].id, { signal });
    },
    gcTime: 0,
  });
  return (
    <ConfirmDialog
      title={`Publish version ${version} of ${name}`}
      isWide
      action={`Publish version ${version}`}
      act={() => client.sequences.create({ ...definition, hold })}
      done={() => `Version ${version} of ${name} was published${hold ? ', on hold' : ''}.`}
      onDone={({ id }) => {
        onStored();
        go(`/sequences/${id}`);
      }}
    >
      <Loaded query={newest} height={320}>
        {(before) =>
          before === null ? (
            <p>
              This is the first version of {name} in the namespace {namespace}.
            </p>
          ) : (
            <div className={styles.stack}>
              <p>Changes from version {before.version}, the newest published version:</p>
              <DefinitionDiff before={before} after={definition} label="What changes" />
              <TextDiff
                label={`Text of version ${before.version} and of the new version`}
                before={definitionText(before, before.version)}
                after={JSON.stringify(definition, null, 2)}
              />
            </div>
          )
        }
      </Loaded>
      <Checkbox
        label={`On hold: the name ${name} does not refer to this version until you lift the hold or a release promotes it`}
        value={hold}
        onChange={setHold}
      />
    </ConfirmDialog>
  );
}
