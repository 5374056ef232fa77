/** The table of workers. */

import { mutations, set } from '../../src/db/mutation.js';
import { table } from '../../src/db/table.js';

export const WORKERS = table('workers', ['tenant_id', 'worker_id', 'handler_name', 'queue_name'], {
  tenant_id: 'text',
  worker_id: 'text',
  handler_name: 'text',
  queue_name: 'text',
  version: 'text?',
  last_seen_at: 'timestamptz',
});

export const WORKER = mutations('worker', {
  seen: set(WORKERS, ['version', 'last_seen_at'], { defaults: { queue_name: "''" } }),
});

export const QUEUE_STORE = [WORKER];
