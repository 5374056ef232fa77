/** Who waits for tasks: the rows of `workers`, and the worker endpoints, which wait at all times. */

import { ENDPOINT_WORKER_PREFIX } from '../../../schema/worker.js';

/** Stands in a FROM, with an alias. A worker that polls without a tenant has the tenant ''. */
export const POLLERS =
  '(select tenant_id, worker_id, handler_name, queue_name, version, last_seen_at from workers union all ' +
  `select e.tenant_id, '${ENDPOINT_WORKER_PREFIX}' || e.name, h.handler, '', null, now() from worker_endpoints e ` +
  'cross join lateral json_array_elements_text(e.handlers) h(handler) where e.enabled)';
