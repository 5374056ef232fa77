/** Instances: their actors, how they are made and told, and what is done with many of them. */

import type { Names } from '../catalog/names.js';
import type { Plans } from '../catalog/plans.js';
import type { Routing } from '../release/routing.js';
import type { Kernel } from '../runtime/kernel.js';
import { ChangeGroups } from './change-many.js';
import { ChildPlaces } from './child-places.js';
import { Creations } from './creations.js';
import { Instances, type InstancesDeps } from './instances.js';
import { KinNotes } from './kin-notes.js';
import type { InstanceEnv } from './live-instance.js';
import { peerMessages } from './peer-messages.js';
import { type PurgeRequest, purge } from './purge.js';
import { TaskIndex } from './task-index.js';

export interface InstanceNeeds
  extends Pick<InstanceEnv, 'stamp' | 'webhookTargets' | 'versions'>,
    Pick<InstancesDeps, 'changed' | 'taskDecided'> {
  readonly plans: Plans;
  readonly names: Names;
  readonly routing: Routing;
}

export function openInstances(kernel: Kernel, needs: InstanceNeeds) {
  const { loader, schedule, release, ownRequests, settings, hearing, clock } = kernel;
  const { plans, names, routing, stamp, webhookTargets, versions, changed, taskDecided } = needs;
  const { maxContextBytes, maxOutputBytes } = settings;
  const turnedAway = () => hearing.turnedAway();
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
    readySince: (tenant) => hearing.since(tenant),
    outageEnd: () => hearing.outageEnd,
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
  const kin = new KinNotes({
    ...kernel,
    maxOutputBytes,
    read: (child, name) => places.read(child, name),
    tell: (instance, message) => instances.tell(instance, message),
  });
  const hold = (id: string) => instances.hold(id);
  const letGo = (id: string, isGone: boolean) => instances.letGo(id, isGone);
  return {
    env,
    instances,
    creations,
    kin,
    tasks,
    changes,
    purge: (request: number, asked: PurgeRequest) =>
      purge({ ...kernel, hold, letGo }, request, asked),
    toldByPeers: peerMessages({ instances, tasks, ownRequests, release }),
  };
}

export type InstanceRoom = ReturnType<typeof openInstances>;
