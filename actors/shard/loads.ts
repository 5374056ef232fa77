/** The statements with which the rooms load their actors, one line per room. */

import type pg from 'pg';
import { ACTION_SQL, actionLoads } from '../action/loads.js';
import { ACTIVITY_SQL, activityLoads } from '../activity/loads.js';
import { BULK_SQL, bulkLoads } from '../bulk/loads.js';
import { CATALOG_SQL, catalogLoads } from '../catalog/loads.js';
import { CREDENTIAL_SQL, credentialLoads } from '../credential/loads.js';
import { EVENT_SQL, eventLoads } from '../event/loads.js';
import { INSTANCE_SQL, instanceLoads, TIMER_SQL } from '../instance/loads.js';
import { OUTPUT_SQL } from '../instance/output-loads.js';
import { LIMIT_SQL, limitLoads } from '../limits/loads.js';
import { PENDING_START_SQL, pendingStartLoads } from '../pending-start/loads.js';
import { PUSH_SQL, pushLoads } from '../push/loads.js';
import { QUEUE_SQL, queueLoads } from '../queue/loads.js';
import { RELEASE_SQL, releaseLoads } from '../release/loads.js';
import { queriesOf, type ShardPlace } from '../runtime/queries.js';
import { SCHEDULE_SQL, scheduleLoads } from '../schedule/loads.js';
import { TRIGGER_SQL, triggerLoads } from '../trigger/loads.js';
import { WEBHOOK_SQL, webhookLoads } from '../webhook/loads.js';

export const LOAD_SQL = {
  ...ACTION_SQL,
  ...ACTIVITY_SQL,
  ...BULK_SQL,
  ...CATALOG_SQL,
  ...CREDENTIAL_SQL,
  ...EVENT_SQL,
  ...INSTANCE_SQL,
  ...LIMIT_SQL,
  ...OUTPUT_SQL,
  ...PUSH_SQL,
  ...PENDING_START_SQL,
  ...QUEUE_SQL,
  ...RELEASE_SQL,
  ...SCHEDULE_SQL,
  ...TIMER_SQL,
  ...TRIGGER_SQL,
  ...WEBHOOK_SQL,
} as const;

export function openLoads(pool: pg.Pool, place: ShardPlace) {
  const queries = queriesOf(pool, place);
  return {
    ...actionLoads(queries),
    ...activityLoads(queries),
    ...bulkLoads(queries),
    ...catalogLoads(queries),
    ...credentialLoads(queries),
    ...eventLoads(queries),
    ...instanceLoads(queries),
    ...limitLoads(queries),
    ...pushLoads(queries),
    ...pendingStartLoads(queries),
    ...queueLoads(queries),
    ...releaseLoads(queries),
    ...scheduleLoads(queries),
    ...triggerLoads(queries),
    ...webhookLoads(queries),
  };
}

export type Loads = ReturnType<typeof openLoads>;
