/** The change feed, and streams of single instances. */

import type { Kernel } from '../runtime/kernel.js';
import type { Room } from '../runtime/room.js';
import { ChangeFeed } from './changes.js';
import { feedOperations } from './operations.js';
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
