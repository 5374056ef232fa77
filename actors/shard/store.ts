/** The store of all rooms: tables, mutations and statements (`src/db/store.ts`). */

import { storeOf } from '../../src/db/store.js';
import { ACTION_STORE } from '../action/tables.js';
import { ACTIVITY_STORE } from '../activity/tables.js';
import { BULK_STORE } from '../bulk/tables.js';
import { CATALOG_STORE } from '../catalog/tables.js';
import { CONTINUITY_STORE } from '../continuity/tables.js';
import { CREDENTIAL_STORE } from '../credential/tables.js';
import { EVENT_STORE } from '../event/tables.js';
import { FEED_STORE } from '../feed/tables.js';
import { INSTANCE_STORE } from '../instance/tables.js';
import { LIMIT_STORE } from '../limits/tables.js';
import { PENDING_START_STORE } from '../pending-start/tables.js';
import { PUSH_STORE } from '../push/tables.js';
import { QUEUE_STORE } from '../queue/tables.js';
import { RELEASE_STORE } from '../release/tables.js';
import { SCHEDULE_STORE } from '../schedule/tables.js';
import { TRIGGER_STORE } from '../trigger/tables.js';
import { WEBHOOK_STORE } from '../webhook/tables.js';

export const STORE = storeOf([
  CATALOG_STORE,
  INSTANCE_STORE,
  LIMIT_STORE,
  EVENT_STORE,
  SCHEDULE_STORE,
  PENDING_START_STORE,
  TRIGGER_STORE,
  CREDENTIAL_STORE,
  WEBHOOK_STORE,
  RELEASE_STORE,
  QUEUE_STORE,
  PUSH_STORE,
  BULK_STORE,
  FEED_STORE,
  ACTIVITY_STORE,
  ACTION_STORE,
  CONTINUITY_STORE,
]);
