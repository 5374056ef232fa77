/** The list of the rooms (modules) of the front thread, with the dependencies of each. */

import { openActionFront } from '../../actors/action/front/operations.js';
import { openActivityFront } from '../../actors/activity/front/operations.js';
import { openBulkFront } from '../../actors/bulk/front/room.js';
import { openCatalogFront } from '../../actors/catalog/front/room.js';
import { openContinuityFront } from '../../actors/continuity/front/operations.js';
import { openCredentialFront } from '../../actors/credential/front/operations.js';
import { openEventFront } from '../../actors/event/front/operations.js';
import { openFeedFront } from '../../actors/feed/front/room.js';
import { openInstanceFront } from '../../actors/instance/front/room.js';
import { openLimitsFront } from '../../actors/limits/front/room.js';
import { openPendingStartFront } from '../../actors/pending-start/front/operations.js';
import { openPushFront } from '../../actors/push/front/operations.js';
import { openQueueFront } from '../../actors/queue/front/workers.js';
import { openReleaseFront } from '../../actors/release/front/operations.js';
import { openScheduleFront } from '../../actors/schedule/front/operations.js';
import type { ShardClient } from '../../actors/shard/client.js';
import { openTriggerFront } from '../../actors/trigger/front/room.js';
import { openWebhookFront } from '../../actors/webhook/front/operations.js';
import type { FrontRouteId } from '../../schema/routes.js';
import type { NoneIsMissing, RowsOf } from '../base/rooms.js';
import type { FrontKernel } from '../http/front-room.js';
import type { FrontMetricName } from '../metrics/catalog.js';
import type { FrontOptions } from './front.js';
import { openMetrics } from './operations/metrics.js';
import { openServer } from './operations/room.js';

export function openFrontRooms(kernel: FrontKernel<ShardClient>, options: FrontOptions) {
  const instance = openInstanceFront(kernel);
  const feed = openFeedFront(kernel);
  const limits = openLimitsFront(kernel);
  const measured = [
    openCatalogFront(kernel, () => instance.removal.wake()),
    limits.room,
    instance,
    openBulkFront(kernel),
    feed,
    openCredentialFront(),
    openEventFront(kernel),
    openTriggerFront(kernel, limits.admission),
    openWebhookFront(kernel),
    openScheduleFront(),
    openPendingStartFront(),
    openReleaseFront(kernel),
    openContinuityFront(kernel),
    openQueueFront(),
    openPushFront(kernel),
    openActivityFront(kernel),
    openActionFront(),
    options.placement.front,
    openServer(options),
  ];
  const rooms = [...measured, openMetrics(options, measured)];
  return { rooms, watermark: feed.watermark, admission: limits.admission };
}

type Opened = ReturnType<typeof openFrontRooms>['rooms'][number];

export type EveryRouteHasARoom =
  | NoneIsMissing<Exclude<FrontRouteId, RowsOf<'operations', Opened>>>
  | NoneIsMissing<Exclude<FrontMetricName, RowsOf<'gauges', Opened>>>;
