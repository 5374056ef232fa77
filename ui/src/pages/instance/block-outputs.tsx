/** The outputs of a block: answers to approvals, and results of blocks that are not steps. */

import { useRead } from '../../api/read.ts';
import { Pager } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { OutlineBlock } from '../../flow/outline.ts';
import { useFilters } from '../../lib/address.ts';
import { Awaited } from './awaited.tsx';
import { Payload } from './block-attempts.tsx';
import styles from './block-panel.module.css';
import { iterationText } from './places.ts';
import type { Run } from './run.ts';

const OUTPUTS_A_PAGE = 5;
const BYTES = 256 * 1024;

export function BlockOutputs({ run, block }: { readonly run: Run; readonly block: OutlineBlock }) {
  const [filters, change] = useFilters();
  const { id } = run.instance;
  const cursor = filters.outputs;
  const asked = { block_id: block.id, limit: OUTPUTS_A_PAGE, max_bytes: BYTES, cursor };
  const query = useRead('instances.outputs', [id, asked], { keepsBefore: true, live: id });
  const { data } = query;
  if (data === undefined) return <Awaited query={query} />;
  if (data.items.length === 0 && cursor === undefined) return null;
  return (
    <section className={styles.section}>
      <h3>{block.look === 'approval' ? 'Answer and output' : 'Output'}</h3>
      {data.items.map(({ id: row, output, output_ref, iteration, created_at }) => (
        <div key={row}>
          <p className="dim small">
            {[output_ref === 'human_input' && 'answered', iterationText(iteration)]
              .filter(Boolean)
              .join(' · ')}{' '}
            <Time at={created_at} />
          </p>
          <Payload title="" value={output} label={`Output of ${block.id}`} />
        </div>
      ))}
      <Pager cursor={cursor} next={data.nextCursor} onPage={(outputs) => change({ outputs })} />
    </section>
  );
}
