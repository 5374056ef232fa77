/** The table of worker endpoints. Pure. */

import { clear, mutations, set } from '../../src/db/mutation.js';
import { columnsBut, table } from '../../src/db/table.js';

export const WORKER_ENDPOINTS = table('worker_endpoints', ['tenant_id', 'name'], {
  tenant_id: 'text',
  name: 'text',
  handlers: 'json',
  url: 'text',
  secret: 'json',
  concurrency: 'integer',
  timeout_ms: 'integer',
  enabled: 'boolean',
  receives_secrets: 'boolean',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
});

export const WORKER_ENDPOINT = mutations('workerEndpoint', {
  clear: clear(WORKER_ENDPOINTS),
  set: set(WORKER_ENDPOINTS, columnsBut(WORKER_ENDPOINTS, 'tenant_id', 'name', 'created_at')),
});

export const PUSH_STORE = [WORKER_ENDPOINT];
