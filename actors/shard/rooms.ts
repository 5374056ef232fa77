/** The rooms of a shard: the only list of its features. Each line names what a room needs from others. */

import type { ShardRouteId } from '../../schema/routes.js';
import { IN_PLACE } from '../../src/base/offload.js';
import type { NoneIsMissing, RowsOf } from '../../src/base/rooms.js';
import { openActions } from '../action/room.js';
import { Activity } from '../activity/activity.js';
import { openBulkJobs } from '../bulk/room.js';
import { type CatalogRoom, openCatalog } from '../catalog/room.js';
import { openContinuity } from '../continuity/room.js';
import { openCredentials } from '../credential/room.js';
import { openEvents } from '../event/room.js';
import { openFeed } from '../feed/room.js';
import { type InstanceRoom, openInstances } from '../instance/room.js';
import { openLimits } from '../limits/room.js';
import { openPendingStarts } from '../pending-start/room.js';
import { openPush } from '../push/room.js';
import { openQueues } from '../queue/room.js';
import { openReleases, type ReleaseRoom } from '../release/room.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Timer } from '../runtime/timer.js';
import type { Effect } from '../runtime/turn.js';
import { openSchedules } from '../schedule/room.js';
import { openTriggers } from '../trigger/room.js';
import { openWebhooks } from '../webhook/room.js';
import { openHandlerPool } from './handler-pool.js';
import type { ShardDeps, ShardKernel } from './kernel.js';
// Imported for its effect: it assigns the mutations their indexes, which turns need.
import './store.js';
import { openTurnRoom } from './dispatch.js';

/**
 * Rooms that others depend on come first: the routes and the subscribers of an instance are known before it
 * is created or ends, and waiting requests are answered after the instance has changed.
 */
export function openRooms(kernel: ShardKernel, deps: ShardDeps) {
  const catalog: CatalogRoom = openCatalog(kernel, {
    routeTables: () => release.routing.tables,
    deprecated: async (sequence) => release.releases?.deprecated(sequence),
  });
  const release: ReleaseRoom = openReleases(kernel, catalog);
  const webhook = openWebhooks(kernel, deps);
  const credential = openCredentials(kernel, deps);
  const { plans, names } = catalog;
  const { routing } = release;
  const limits = openLimits(kernel);
  const instance: InstanceRoom = openInstances(kernel, {
    slots: limits.slots,
    plans,
    names,
    routing,
    versions: deps.versions,
    changed: kernel.changed,
    reply: kernel.reply,
    taskDecided: kernel.taskDecided,
    stamp: () => feed.stamp(),
    webhookTargets: (tenant, event) => webhook.subscribers.targetsOf(tenant, event),
  });
  const { instances, creations, env, tasks, answers } = instance;
  const { secrets } = credential;
  const action = openActions(kernel);
  const { actions } = action;
  const pool = openHandlerPool(kernel, deps, { instances, secrets });
  const feed = openFeed(kernel, {
    look: (id, watch, version) => instances.send(id, { kind: 'look', ...watch, version }),
  });
  const queue = openQueues(kernel, { secrets, instances, tasks });
  const { keyring, offload = IN_PLACE, continuityRows } = deps;
  const rooms = [
    catalog,
    release,
    webhook,
    kernel.timers,
    pool,
    instance,
    credential,
    limits,
    openEvents(kernel),
    openPendingStarts(kernel, { plans, names, routing }),
    openSchedules(kernel, { plans, names, routing, instances, creations, env }),
    new Activity(kernel),
    queue,
    openPush(kernel, deps, queue),
    openContinuity(kernel, { plans, keyring, offload, continuityRows }),
    openTriggers(kernel, deps),
    openBulkJobs(kernel),
    action,
    feed,
    openTurnRoom(kernel, { instances, answers, actions }),
  ];
  return { rooms, instances, pool, actions };
}

type Opened = ReturnType<typeof openRooms>['rooms'][number];

export type EveryKindIsTaken =
  | NoneIsMissing<Exclude<ShardRouteId, RowsOf<'operations', Opened>>>
  | NoneIsMissing<Exclude<PeerMessage['kind'], RowsOf<'messages', Opened>>>
  | NoneIsMissing<Exclude<Effect['kind'], RowsOf<'effects', Opened>>>
  | NoneIsMissing<Exclude<Timer['kind'], RowsOf<'timers', Opened>>>;
