/** One example of each parameter: in the path of a request, or behind it. */

import type { JsonValue } from '../src/base/json.js';
import { EXAMPLE_IDS, EXAMPLE_TENANT, KEY_ID } from './example-ids.js';

/** Of parameters, by name; those named `id` by the path. */
export const PARAMETER_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  name: 'order',
  block_id: 'charge',
  key: 'payments',
  slug: 'orders-in',
  delivery_id: EXAMPLE_IDS.delivery,
  checkpoint_id: EXAMPLE_IDS.checkpoint,
  file: 'swagger-ui.css',
  token: 'WyIwMTkyIl0.c2lnbmVk',
};

const ID_EXAMPLES: Readonly<Record<string, string>> = {
  sequences: EXAMPLE_IDS.sequence,
  instances: EXAMPLE_IDS.instance,
  workers: EXAMPLE_IDS.task,
  approvals: EXAMPLE_IDS.approval,
  cron: EXAMPLE_IDS.schedule,
  releases: EXAMPLE_IDS.release,
  webhooks: EXAMPLE_IDS.subscription,
  events: EXAMPLE_IDS.event,
  'webhooks/outbox': EXAMPLE_IDS.outbox,
  'api-keys': KEY_ID,
  credentials: 'stripe',
  tenants: 'acme',
  // Below /continuity.
  executions: EXAMPLE_IDS.instance,
  effects: EXAMPLE_IDS.task,
  migrations: EXAMPLE_IDS.migration,
  handoffs: EXAMPLE_IDS.handoff,
};

/** Of the parameter `id` in a path; '' where there is none. */
export function exampleIdIn(path: string): string {
  const [first = '', second = ''] = path.split('/').slice(1);
  if (first === 'continuity') return ID_EXAMPLES[second] ?? '';
  return ID_EXAMPLES[`${first}/${second}`] ?? ID_EXAMPLES[first] ?? '';
}
