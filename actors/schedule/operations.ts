/** The operations on cron schedules. */

import { checkTenant } from '../../src/base/tenancy.js';
import type { RouteOperations } from '../runtime/operation.js';
import type { Schedules } from './schedules.js';

export interface ScheduleParts {
  readonly schedules: Schedules;
}

export const SCHEDULE_OPERATIONS = {
  'cron.create': {
    serve: ({ schedules }, { request, tenant, body }) => {
      checkTenant(tenant, body.tenant_id);
      schedules.create(request, body);
    },
  },
  'cron.update': {
    serve: ({ schedules }, { request, tenant, target, body }) =>
      schedules.update(request, tenant, target, body),
  },
  'cron.run': {
    serve: ({ schedules }, { request, tenant, target, body }) =>
      schedules.run(request, tenant, target, body),
  },
  'cron.delete': {
    serve: ({ schedules }, { request, tenant, target }) =>
      schedules.delete(request, tenant, target),
  },
} satisfies Partial<RouteOperations<ScheduleParts>>;
