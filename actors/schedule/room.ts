/** Schedules, and the instances that they start. */

import type { Names } from '../catalog/names.js';
import type { Plans } from '../catalog/plans.js';
import { firstActor } from '../instance/restore.js';
import type { InstanceRoom } from '../instance/room.js';
import type { Routing } from '../release/routing.js';
import type { Kernel } from '../runtime/kernel.js';
import { Schedules } from './schedules.js';

export interface ScheduleNeeds extends Pick<InstanceRoom, 'instances' | 'env'> {
  readonly plans: Plans;
  readonly names: Names;
  readonly routing: Routing;
}

export function openSchedules(kernel: Kernel, { instances, env, ...needs }: ScheduleNeeds) {
  const { maxContextBytes, cronTickMs } = kernel.settings;
  return new Schedules({
    ...kernel,
    ...needs,
    maxContextBytes,
    cronTickMs,
    tellRun: (run, message) => instances.tell(run, message),
    adoptRun: ({ record, plan, characters }) =>
      instances.adopt(firstActor(env, record, plan), characters),
  });
}
