/** The operations on instances and on their tasks. */

import { type BodyOf, type QueryOf, ROUTES, type ShardRouteId } from '../../schema/routes.js';
import type { TaskResult } from '../../schema/worker.js';
import type { EngineError } from '../../src/base/errors.js';
import { routeOf } from '../../src/base/ids.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operation, Operations, RouteOperations } from '../runtime/operation.js';
import type { TaskClaim } from '../runtime/protocol.js';
import type { ChangeGroups, ChangeMany } from './change-many.js';
import type { Creations } from './creations.js';
import type { Instances } from './instances.js';
import type {
  GivenAnswer,
  InstanceRequest,
  InstanceRouteId,
  TaskRouteId,
  WorkerRequest,
} from './messages.js';
import type { PurgeRequest } from './purge.js';
import type { TaskIndex } from './task-index.js';

export interface InstanceParts extends Pick<Kernel, 'release'> {
  readonly instances: Instances;
  readonly creations: Creations;
  readonly tasks: TaskIndex;
  readonly changes: ChangeGroups;
  readonly purge: (request: number, purge: PurgeRequest) => void;
}

type Serve = (call: Call) => void;

type Rows<Ids extends ShardRouteId> = {
  readonly [Id in Ids]: Operation<BodyOf<Id>, QueryOf<Id>> & { readonly leadsTo?: never };
};

/** A row for each route whose path leads to an instance and whose name begins so. */
function rowsOf<Ids extends ShardRouteId>(
  start: string,
  serveAs: (kind: string) => Serve,
): Rows<Ids> {
  const routes = Object.values(ROUTES).filter(
    ({ owner, id }) => owner === 'by-id' && id.startsWith(start),
  );
  const rows = routes.map(({ id, method }) => {
    const serve = serveAs(id.slice(start.length));
    return [id, method === 'GET' ? { serve, isRead: true } : { serve }];
  });
  return Object.fromEntries(rows) as Rows<Ids>;
}

/** Told to the instance that the path names. */
function told(instances: Instances, kind: string): Serve {
  return (call) =>
    instances.tell(call.target.slice(0, UUID_LENGTH), { kind, ...call } as InstanceRequest);
}

/** Told to the instance of the task that the path names. */
function toldOfTask(tellers: Tellers, name: string): Serve {
  const kind = `task.${name}`;
  // One by one, on the hot path: spread, they take several times as long.
  return ({ request, tenant, target, body, traceparent, by }) =>
    tellOfTask(tellers, {
      kind,
      task: target,
      request,
      tenant,
      target,
      body,
      traceparent,
      by,
    } as WorkerRequest);
}

function tellOfTask({ tasks, instances, release }: Tellers, message: WorkerRequest): void {
  const { request, tenant, task } = message;
  const refuse = (error: EngineError) => release([{ kind: 'error', request, error }]);
  tasks.find(
    task,
    (instance) => {
      if (instances.isForeign(instance, tenant)) tasks.deny(task, refuse);
      else instances.tell(instance, message);
    },
    refuse,
  );
}

/** One of the results of an exchange, as if it had come by a request of its own. */
export function tellResult(
  parts: Tellers,
  request: number,
  tenant: string,
  worker: string,
  { kind, task_id: task, ...result }: TaskResult,
): void {
  const body = { worker_id: worker, ...result };
  const call = { request, tenant, target: task, body, traceparent: undefined };
  tellOfTask(parts, { kind: `task.${kind}`, task, isBrief: true, ...call } as WorkerRequest);
}

type Tellers = Pick<InstanceParts, 'tasks' | 'instances' | 'release'>;

const UUID_LENGTH = 36;

/** What it is to be said about, beside the instance. */
interface StandingAsked {
  readonly child: string;
}

export function instanceOperations(parts: InstanceParts) {
  return { ...routesOf(parts), ...ownOf(parts) };
}

function routesOf(parts: InstanceParts) {
  const { instances, creations } = parts;
  return {
    'instances.create': {
      // With an idempotency key it belongs to the actor of that key.
      leadsTo: 'itself',
      serve: (call) => creations.create(call),
    },
    'instances.createBatch': { serve: (call) => creations.createBatch(call) },
    ...rowsOf<InstanceRouteId>('instances.', (kind) => told(instances, kind)),
    'instances.tree': {
      isRead: true,
      serve: (call, part) =>
        instances.tell(call.target, {
          kind: 'tree',
          ...call,
          part: part as QueryOf<'instances.tree'>,
        }),
    },
    'sequences.migrateInstance': {
      leadsTo: ({ instance_id }) => routeOf(instance_id),
      serve: (call) => instances.tell(call.body.instance_id, { kind: 'migrate', ...call }),
    },
    ...rowsOf<TaskRouteId>('workers.', (name) => toldOfTask(parts, name)),
  } satisfies RouteOperations;
}

/** What the front thread asks for itself. */
function ownOf({ instances, tasks, changes, purge }: InstanceParts) {
  return {
    'instances.standing': {
      isRead: true,
      serve: ({ request, tenant, target, body }: Call<StandingAsked | undefined>) =>
        instances.tell(target, { kind: 'standing', request, tenant, ...body }),
    },
    'instances.answer': {
      serve: ({ request, tenant, target, body }: Call<{ approval: string; given: GivenAnswer }>) =>
        instances.tell(target, { kind: 'answer', request, tenant, ...body }),
    },
    'instances.changeMany': {
      serve: ({ request, body: { ids, ...asked } }: Call<ChangeMany>) => {
        const group = changes.open(request, ids.length);
        for (const id of ids) instances.tell(id, { kind: 'change', group, ...asked });
      },
    },
    'instances.purge': {
      serve: ({ request, body }: Call<PurgeRequest>) => purge(request, body),
    },
    'workers.unclaim': {
      serve: ({ body }: Call<readonly TaskClaim[]>) => {
        for (const claim of body) unclaim({ tasks, instances }, claim);
      },
    },
  } satisfies Operations;
}

type Finders = Pick<InstanceParts, 'instances' | 'tasks'>;

/** The poller is gone: the claim at this epoch is taken back. */
export function unclaim({ tasks, instances }: Finders, { task, epoch }: TaskClaim): void {
  tasks.find(task, (instance) => instances.tell(instance, { kind: 'unclaim', task, epoch }));
}
