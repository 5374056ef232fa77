/** Instances: their actors, how they are made and told, and what is done with many of them. */

import type { CatalogRoom } from '../catalog/room.js';
import type { ReleaseRoom } from '../release/room.js';
import type { Kernel } from '../runtime/kernel.js';
import { Service } from '../runtime/service.js';
import { ChangeGroups } from './change-many.js';
import { ChildPlaces } from './child-places.js';
import { ClaimWatch } from './claim-watch.js';
import { counting } from './counting.js';
import { Creations } from './creations.js';
import { FamilyMessages } from './family-messages.js';
import { Instances, type InstancesDeps } from './instances.js';
import type { InstanceEnv } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import { instanceOperations } from './operations.js';
import { peerMessages } from './peer-messages.js';
import { type PurgeRequest, purge } from './purge.js';
import { TaskIndex } from './task-index.js';

export interface InstanceNeeds
  extends Pick<InstanceEnv, 'stamp' | 'webhookTargets' | 'versions'>,
    Pick<InstancesDeps, 'changed' | 'taskDecided'>,
    Pick<CatalogRoom, 'plans' | 'names'>,
    Pick<ReleaseRoom, 'routing'> {}

export function openInstances(kernel: Kernel<InstanceLoads>, needs: InstanceNeeds) {
  const { loader, schedule, release, internalRequests, settings, reachability, clock } = kernel;
  const { plans, names, routing, stamp, webhookTargets, versions, changed, taskDecided } = needs;
  const { maxContextBytes, maxOutputBytes } = settings;
  const turnedAway = () => reachability.turnedAway();
  const tasks = new TaskIndex(loader, schedule, turnedAway);
  const changes = new ChangeGroups(release);
  const places = new ChildPlaces({ ...kernel, maxContextBytes, plans, names, routing });
  const env: InstanceEnv = {
    ...settings,
    now: kernel.now,
    stamp,
    random: kernel.random,
    ids: kernel.ids,
    webhookTargets,
    readySince: (tenant) => reachability.since(tenant),
    outageEnd: () => reachability.outageEnd,
    placeChild: (asked, found) => places.place(asked, found),
    monotonic: () => clock.monotonic(),
    measures: kernel.measures,
    versions,
  };
  const instances: Instances = new Instances({
    ...kernel,
    env,
    plans,
    turnedAway,
    taskDecided,
    createAgain: ({ request, instance }) => creations.again(request, instance),
    changed,
  });
  const creations = new Creations({
    ...kernel,
    env,
    maxContextBytes,
    plans,
    names,
    routing,
    instances,
  });
  const kin = new FamilyMessages({
    ...kernel,
    maxOutputBytes,
    read: (child, name) => places.read(child, name),
    tell: (instance, message) => instances.tell(instance, message),
  });
  const service = new Service('purge', kernel);
  const hold = (id: string) => instances.hold(id);
  const letGo = (id: string, isGone: boolean) => instances.letGo(id, isGone);
  const operations = instanceOperations({
    instances,
    creations,
    tasks,
    changes,
    release,
    purge: (request: number, asked: PurgeRequest) =>
      purge({ ...kernel, service, hold, letGo }, request, asked),
  });
  const told = peerMessages({ instances, tasks, internalRequests, release });
  const claims = new ClaimWatch({ ...kernel, instances });
  const counts = counting({ ...kernel, plans });
  const parts = [instances, told, tasks, changes, creations, kin, claims, counts];
  return { env, instances, tasks, parts, operations };
}

export type InstanceRoom = ReturnType<typeof openInstances>;
