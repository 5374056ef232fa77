/** What the answer decides about: the data of the instance, and its flow with the step that waits. */

import { useQuery } from '@tanstack/react-query';
import type { Approval } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { useRead } from '../../api/read.ts';
import { JsonView } from '../../components/json-view.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { FlowGraph } from '../../flow/later.tsx';
import styles from './approvals.module.css';

const HEIGHT = 320;

export function Behind({ approval }: { readonly approval: Approval }) {
  const { client } = useEngine();
  const { instance_id: id, sequence_id, block_id } = approval;
  const instance = useRead('instances.get', [id], { live: id });
  const flow = useQuery({
    queryKey: ['approvals.flow', id, sequence_id],
    queryFn: async ({ signal }) => {
      const [definition, tree] = await Promise.all([
        client.sequences.get(sequence_id, { signal }),
        client.instances.tree(id, {}, { signal }),
      ]);
      return { definition, run: { tree } };
    },
    meta: { live: id },
  });
  return (
    <div className={styles.behind}>
      <Loaded query={instance} height={HEIGHT}>
        {({ context }) => <JsonView value={context.data} label="Data of the instance" />}
      </Loaded>
      <Loaded query={flow} height={HEIGHT}>
        {({ definition, run }) => (
          <FlowGraph
            definition={definition}
            run={run}
            label={`Flow of ${definition.name}`}
            selected={placeOf(approval.path, block_id)}
            onSelect={() => undefined}
          />
        )}
      </Loaded>
    </div>
  );
}

/** The path without iterations, as the diagram selects blocks. */
function placeOf(path: string, blockId: string): string {
  return path.replace(/\[\d+\]/g, '') || blockId;
}
