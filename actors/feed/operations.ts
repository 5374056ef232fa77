/** What streams of the front thread ask. */

import type { UnixMs } from '../../src/base/time.js';
import type { Call, EngineOperations } from '../runtime/operation.js';
import type { ChangeFeed } from './changes.js';
import type { Watchers } from './watchers.js';

export interface FeedParts {
  readonly watchers: Watchers;
  readonly feed: ChangeFeed;
}

/** What the caller has seen; undefined when that is nothing. */
type Version = number | undefined;

export const FEED_ENGINE_OPERATIONS = {
  'instances.watch': {
    isRead: true,
    serve: ({ watchers }, { request, tenant, target, body }: Call<Version>) =>
      watchers.watch(target, { request, tenant }, body),
  },
  'changes.watch': {
    isRead: true,
    serve: ({ feed }, { request, tenant, body }: Call<Version>) =>
      feed.watchers.watch(tenant, { request, tenant }, body),
  },
  'changes.watermark': {
    isRead: true,
    serve: ({ feed }, { request, body }: Call<UnixMs>) => feed.watermark(request, body),
  },
  /** The caller of the watch with this number went away. */
  unwatch: {
    isRead: true,
    serve: ({ watchers, feed }, { body }: Call<number>) => {
      watchers.abort(body);
      feed.watchers.abort(body);
    },
  },
} satisfies EngineOperations<FeedParts>;
