/** Examples of what an instance left behind, of the story that `examples.ts` tells. */

import type { JsonObject } from '../src/base/json.js';
import { AT, EXAMPLE_IDS, LATER } from './example-ids.js';

export const HISTORY_EXAMPLES: Readonly<Record<string, JsonObject>> = {
  RetryInstance: { context: { amount: 4_100 }, context_mode: 'merge' },
  StepAttempt: {
    id: EXAMPLE_IDS.task,
    source: 'task',
    block_id: 'charge',
    iteration: '',
    attempt: 0,
    state: 'failed',
    handler_name: 'charge-card',
    queue_name: null,
    task_id: EXAMPLE_IDS.task,
    worker_id: 'worker-1',
    queued_at: AT,
    started_at: AT,
    ended_at: LATER,
    timeout_ms: 30_000,
    params: { amount: 4_200 },
    output: null,
    error: { message: 'card declined', retryable: true },
  },
};
