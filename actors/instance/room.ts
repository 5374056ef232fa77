/** The instances of a shard: actors, creations, messages, and operations on many instances. */

import { LineLimit } from '../../src/base/log.js';
import type { NamedCounterName } from '../../src/metrics/catalog.js';
import { OTHER } from '../../src/metrics/meter.js';
import type { Plans } from '../catalog/plans.js';
import type { CatalogRoom } from '../catalog/room.js';
import type { ReleaseRoom } from '../release/room.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { Effects } from '../runtime/room.js';
import { Service } from '../runtime/service.js';
import { Answers, type AnswersDeps } from './answers.js';
import { ChangeGroups } from './change-many.js';
import { asStarted } from './collected.js';
import { checkCreation, placed } from './creation.js';
import { Creations } from './creations.js';
import { FamilyMessages } from './family-messages.js';
import { Instances, type InstancesDeps } from './instances.js';
import type { InstanceEnv } from './live-instance.js';
import type { InstanceLoads } from './loads.js';
import { instanceOperations, peerMessages } from './operations.js';
import { type PurgeRequest, purge } from './purge.js';
import { SlotCreations, type SlotCreationsDeps } from './slot-creations.js';
import { claimWatch, TaskIndex } from './task-index.js';
import { taskMoves } from './task-moves.js';

export interface InstanceNeeds
  extends Pick<InstanceEnv, 'stamp' | 'webhookTargets' | 'versions'>,
    Pick<InstancesDeps, 'changed' | 'taskDecided'>,
    Pick<CatalogRoom, 'plans' | 'names'>,
    Pick<ReleaseRoom, 'routing'>,
    Pick<SlotCreationsDeps, 'slots'>,
    Pick<AnswersDeps, 'reply'> {}

export function openInstances(kernel: Kernel<InstanceLoads>, needs: InstanceNeeds) {
  const { release, internalRequests, reachability, clock } = kernel;
  const { plans } = needs;
  const tasks = new TaskIndex(kernel);
  const changes = new ChangeGroups(release);
  const env: InstanceEnv = {
    ...kernel.settings,
    now: kernel.now,
    random: kernel.random,
    ids: kernel.ids,
    stamp: needs.stamp,
    webhookTargets: needs.webhookTargets,
    readySince: (tenant) => reachability.since(tenant),
    outageEnd: () => reachability.outageEnd,
    placeChild: (requested, found) => {
      const place = placed(needs, requested, found);
      if (place === undefined) return undefined;
      const instance = asStarted(place);
      const { plan } = checkCreation({ plans, env }, place, '', instance);
      return { instance, plan };
    },
    monotonic: () => clock.monotonic(),
    measures: kernel.measures,
    versions: needs.versions,
  };
  const instances: Instances = new Instances({
    ...kernel,
    ...needs,
    env,
    createAgain: ({ request, instance }) => creations.again(request, instance),
  });
  const underKeys = new SlotCreations({
    ...kernel,
    ...needs,
    instances,
    createAgain: (request, instance) => creations.again(request, instance),
  });
  const creations: Creations = new Creations({ ...kernel, ...needs, env, instances, underKeys });
  const answers = new Answers({ ...kernel, reply: needs.reply, instances });
  const family = new FamilyMessages({ ...kernel, ...needs, instances });
  const service = new Service('purge', kernel);
  const receivers = {
    ...{ instances, creations, tasks, changes, release, internalRequests },
    purge: (request: number, body: PurgeRequest) =>
      purge({ ...kernel, service, instances }, request, body),
  };
  const messages = peerMessages(receivers);
  const others = [
    claimWatch({ ...kernel, instances, tasks }),
    { effects: counting(kernel, plans) },
  ];
  const moves = onFirstShard(kernel, () => taskMoves(kernel));
  const services = [creations, underKeys, answers, family, moves];
  const parts = [instances, messages, changes, ...services, ...others];
  const operations = instanceOperations(receivers);
  return { env, instances, creations, tasks, answers, parts, operations };
}

export type InstanceRoom = ReturnType<typeof openInstances>;

/** Limits log lines: a sequence that always fails must not fill the disk. */
const FAILURES_PER_SECOND = 10;

/** Logs neither step messages nor failure reasons: both may be a tenant's data. */
function counting({ meter, log, clock }: Kernel, plans: Plans) {
  const failures = new LineLimit(FAILURES_PER_SECOND);
  // The name is OTHER when the plan is no longer cached: a counter must not cause a read.
  const countEnd = (counter: NamedCounterName, sequence: string) =>
    meter.countNamed(counter, plans.get(sequence)?.name ?? OTHER);
  return {
    completed: ({ sequence }) => countEnd('engine_sequence_instances_completed_total', sequence),
    failed: ({ instance: instanceId, blockId, tenant: tenantId, sequence: sequenceId, cause }) => {
      countEnd('engine_sequence_instances_failed_total', sequenceId);
      const more = failures.admit(clock.monotonic());
      if (more === undefined) return;
      log.warn({ instanceId, tenantId, sequenceId, blockId, cause, ...more }, 'instance failed');
    },
    log: ({ instance: instanceId, blockId, level: stepLevel }) =>
      log.debug({ instanceId, blockId, stepLevel }, 'step log'),
    count: ({ counter, by }) => meter.count(counter, by),
  } satisfies Effects;
}
