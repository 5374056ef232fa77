/** All queues, and the one in the address in detail. */

import { Loaded } from '../../components/loaded.tsx';
import { Panel } from '../../components/page.tsx';
import { useFilters } from '../../lib/address.ts';
import { QueuePanels } from './queue.tsx';
import { QueueTable, useQueues } from './queues.tsx';

export function Queues() {
  const queues = useQueues();
  const [{ handler, queue }, change] = useFilters();
  // Together, so that the list is not pushed down by what is above it.
  return (
    <Loaded query={queues} height={300}>
      {({ queues: rows, complete }) => {
        const chosen = rows.find(
          (one) => one.handler === handler && (one.queue ?? '') === (queue ?? ''),
        );
        return (
          <>
            {chosen && (
              <QueuePanels
                key={`${handler} ${queue}`}
                info={chosen}
                onClose={() => change({ handler: undefined, queue: undefined })}
              />
            )}
            <Panel title="Queues" isFlush>
              <QueueTable rows={rows} isComplete={complete} />
            </Panel>
          </>
        );
      }}
    </Loaded>
  );
}
