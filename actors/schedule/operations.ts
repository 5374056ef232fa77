/** The operations on cron schedules. */

import { checkTenant } from '../../src/base/tenancy.js';
import type { RouteOperations } from '../runtime/operation.js';
import type { Schedules } from './schedules.js';

export function scheduleOperations(schedules: Schedules) {
  return {
    'cron.create': {
      serve: ({ request, tenant, body }) => {
        checkTenant(tenant, body.tenant_id);
        schedules.create(request, body);
      },
    },
    'cron.update': {
      serve: ({ request, tenant, target, body }) => schedules.update(request, tenant, target, body),
    },
    'cron.run': {
      serve: ({ request, tenant, target, body }) => schedules.run(request, tenant, target, body),
    },
    'cron.delete': {
      serve: ({ request, tenant, target }) => schedules.delete(request, tenant, target),
    },
  } satisfies RouteOperations;
}
