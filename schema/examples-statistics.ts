/** Examples of what is summed up: the orders of one tenant. */

import type { JsonValue } from '../src/base/json.js';
import { AT, EXAMPLE_IDS } from './example-ids.js';

const failureGroup = {
  namespace: 'default',
  sequence_id: EXAMPLE_IDS.sequence,
  sequence_name: 'order',
  version: 1,
  block_id: 'charge',
  handler: 'charge-card',
  code: 'worker_failed',
  reason: 'order # refused',
  count: 17,
  first_at: AT,
  last_at: AT,
  example_instance_id: EXAMPLE_IDS.instance,
  example_message: 'order 123 refused',
};
const queueInfo = {
  handler: 'charge-card',
  queue: null,
  waiting: 3,
  claimed: 1,
  oldest_waiting_since: AT,
  open_polls: 2,
  workers: 1,
};
const activityInterval = {
  at: AT,
  created: 120,
  completed: 117,
  failed: 2,
  cancelled: 1,
  duration_p50_ms: 420,
  duration_p95_ms: 1_900,
};
const releasePoint = {
  at: AT,
  variant: 'candidate',
  ended: 20,
  failed: 1,
  cancelled: 2,
  error_rate: 0.05,
  cancel_rate: 0.1,
  duration_p50_ms: 420,
  duration_p95_ms: 1_900,
  share: 0.1,
};

export const STATISTIC_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  FailureGroups: { groups: [failureGroup], looked_at: 17, complete: true },
  FailureGroup: failureGroup,
  Queues: { queues: [queueInfo], complete: true },
  QueueInfo: queueInfo,
  Activity: { since: AT, step_secs: 60, intervals: [activityInterval], complete: true },
  ActivityInterval: activityInterval,
  ReleaseSeries: { since: AT, step_secs: 60, points: [releasePoint], complete: true },
  ReleasePoint: releasePoint,
};
