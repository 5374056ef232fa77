/** The change feed, and streams of single instances. */

import type { UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operations } from '../runtime/operation.js';
import type { Room } from '../runtime/room.js';
import { ChangeFeed } from './changes.js';
import { Watchers, type WatchersDeps } from './watchers.js';

export function openFeed(kernel: Kernel, { look }: Pick<WatchersDeps, 'look'>) {
  const feed = new ChangeFeed(kernel);
  const watchers = new Watchers({ ...kernel, look });
  return {
    stamp: () => feed.stamp(),
    parts: [feed, watchers],
    operations: feedOperations(feed, watchers),
    instanceChanged: (instance: string) => watchers.changed(instance),
  } satisfies Room & { readonly stamp: () => number };
}

/** The last version that the caller received. */
type Version = number | undefined;

export function feedOperations(feed: ChangeFeed, watchers: Watchers) {
  return {
    'instances.watch': {
      isRead: true,
      serve: ({ request, tenant, target, body }: Call<Version>) =>
        watchers.watch(target, { request, tenant }, body),
    },
    'changes.watch': {
      isRead: true,
      serve: ({ request, tenant, body }: Call<Version>) =>
        feed.watchers.watch(tenant, { request, tenant }, body),
    },
    'changes.watermark': {
      isRead: true,
      serve: ({ request, body }: Call<UnixMs>) => feed.watermark(request, body),
    },
    /** The client of this request has disconnected. */
    unwatch: {
      isRead: true,
      serve: ({ body }: Call<number>) => {
        watchers.abort(body);
        feed.watchers.abort(body);
      },
    },
  } satisfies Operations;
}
