/** The operations for streams and the change feed, used by the front thread. */

import type { UnixMs } from '../../src/base/time.js';
import type { Call, Operations } from '../runtime/operation.js';
import type { ChangeFeed } from './changes.js';
import type { Watchers } from './watchers.js';

/** The version that the caller has seen; undefined for none. */
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
    /** The caller of the watch with this number has disconnected. */
    unwatch: {
      isRead: true,
      serve: ({ body }: Call<number>) => {
        watchers.abort(body);
        feed.watchers.abort(body);
      },
    },
  } satisfies Operations;
}
