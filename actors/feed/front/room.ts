/** The change feed and instance streams on the front thread. */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import type { Shards } from '../../runtime/shards.js';
import type { feedOperations } from '../room.js';
import { Changes } from './changes.js';
import { openInstanceStreams } from './instance-stream.js';

export function openFeedFront(kernel: FrontKernel<Shards<typeof feedOperations>>) {
  const instances = openInstanceStreams(kernel);
  const changes = new Changes({ ...kernel, shards: kernel.settings.shards });
  const { watermark } = changes;
  const open = [instances.streams, changes.streams];
  const room = {
    operations: { ...instances.operations, ...changes.operations },
    gauges: { engine_streams_open: () => open.reduce((sum, { count }) => sum + count, 0) },
    tenantComes: (_tenant, stampsFrom) => watermark.raise(stampsFrom),
    drain: () => {
      for (const streams of open) streams.close();
    },
  } satisfies FrontRoom;
  return { ...room, watermark };
}
