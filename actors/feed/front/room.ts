/** The change feed and instance streams on the front thread. */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import type { Shards } from '../../runtime/shards.js';
import type { feedOperations } from '../operations.js';
import { Changes } from './changes.js';
import { InstanceStreams } from './instance-stream.js';

export function openFeedFront(kernel: FrontKernel<Shards<typeof feedOperations>>) {
  const streams = new InstanceStreams(kernel);
  const changes = new Changes({ ...kernel, shards: kernel.settings.shards });
  const { watermark } = changes;
  const room = {
    parts: [streams, changes],
    gauges: { engine_streams_open: () => streams.openCount + changes.openCount },
    tenantComes: (_tenant, stampsFrom) => watermark.raise(stampsFrom),
    drain: () => {
      streams.close();
      changes.close();
    },
  } satisfies FrontRoom;
  return { ...room, watermark };
}
