/** Schedules, and the instances that they start. */

import type { CatalogRoom } from '../catalog/room.js';
import { firstActor } from '../instance/restore.js';
import type { InstanceRoom } from '../instance/room.js';
import type { ReleaseRoom } from '../release/room.js';
import type { Kernel } from '../runtime/kernel.js';
import type { ScheduleNeededLoads } from './runs.js';
import { Schedules } from './schedules.js';

export interface ScheduleNeeds
  extends Pick<CatalogRoom, 'plans' | 'names'>,
    Pick<ReleaseRoom, 'routing'>,
    Pick<InstanceRoom, 'instances' | 'creations' | 'env'> {}

export function openSchedules(kernel: Kernel<ScheduleNeededLoads>, needs: ScheduleNeeds) {
  const { plans, names, routing, instances, creations, env } = needs;
  const schedules = new Schedules({
    ...kernel,
    plans,
    names,
    routing,
    create: (request, run) => creations.again(request, run),
    sendToRun: (run, message) => instances.send(run, message),
    adoptRun: ({ record, plan, characters }) =>
      instances.adopt(firstActor(env, record, plan), characters),
  });
  return { parts: [schedules] };
}
