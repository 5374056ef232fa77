/** The operations on instances and on their tasks. */

import { type BodyOf, type QueryOf, ROUTES, type ShardRouteId } from '../../schema/routes.js';
import type { TaskResult } from '../../schema/worker.js';
import type { EngineError } from '../../src/base/errors.js';
import { routeOf } from '../../src/base/ids.js';
import type { Call, EngineOperations, Operation, RouteOperations } from '../runtime/operation.js';
import type { TaskClaim } from '../runtime/protocol.js';
import type { Effect } from '../runtime/turn.js';
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

export interface InstanceParts {
  readonly instances: Instances;
  readonly creations: Creations;
  readonly tasks: TaskIndex;
  readonly changes: ChangeGroups;
  readonly purge: (request: number, purge: PurgeRequest) => void;
  readonly release: (effects: readonly Effect[]) => void;
}

type Serving = Pick<Operation<unknown, InstanceParts>, 'serve'>;

type Rows<Ids extends ShardRouteId> = {
  readonly [Id in Ids]: Operation<BodyOf<Id>, InstanceParts> & { readonly leadsTo?: never };
};

/** A row for each route whose path leads to an instance and whose name begins so. */
function rowsOf<Ids extends ShardRouteId>(
  start: string,
  serveAs: (kind: string) => Serving,
): Rows<Ids> {
  const routes = Object.values(ROUTES).filter(
    ({ owner, id }) => owner === 'by-id' && id.startsWith(start),
  );
  const rows = routes.map(({ id, method }) => {
    const serving = serveAs(id.slice(start.length));
    return [id, method === 'GET' ? { ...serving, isRead: true } : serving];
  });
  return Object.fromEntries(rows) as Rows<Ids>;
}

/** Told to the instance that the path names. */
const told = (kind: string): Serving => ({
  serve: ({ instances }, call) =>
    instances.tell(call.target.slice(0, UUID_LENGTH), { kind, ...call } as InstanceRequest),
});

/** Told to the instance of the task that the path names. */
const toldOfTask = (name: string): Serving => {
  const kind = `task.${name}`;
  return {
    // One by one, on the hot path: spread, they take several times as long.
    serve: (parts, { request, tenant, target, body, traceparent, by }) =>
      tellOfTask(parts, {
        kind,
        task: target,
        request,
        tenant,
        target,
        body,
        traceparent,
        by,
      } as WorkerRequest),
  };
};

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

export const INSTANCE_OPERATIONS = {
  'instances.create': {
    // With an idempotency key it belongs to the actor of that key.
    leadsTo: 'itself',
    serve: ({ creations }, call) => creations.create(call),
  },
  'instances.createBatch': { serve: ({ creations }, call) => creations.createBatch(call) },
  ...rowsOf<InstanceRouteId>('instances.', told),
  'instances.tree': {
    isRead: true,
    serve: ({ instances }, call, part) =>
      instances.tell(call.target, {
        kind: 'tree',
        ...call,
        part: part as QueryOf<'instances.tree'>,
      }),
  },
  'sequences.migrateInstance': {
    leadsTo: ({ instance_id }) => routeOf(instance_id),
    serve: ({ instances }, call) =>
      instances.tell(call.body.instance_id, { kind: 'migrate', ...call }),
  },
  ...rowsOf<TaskRouteId>('workers.', toldOfTask),
} satisfies Partial<RouteOperations<InstanceParts>>;

/** What it is to be said about, beside the instance. */
interface StandingAsked {
  readonly child: string;
}

export const INSTANCE_ENGINE_OPERATIONS = {
  'instances.standing': {
    isRead: true,
    serve: ({ instances }, { request, tenant, target, body }: Call<StandingAsked | undefined>) =>
      instances.tell(target, { kind: 'standing', request, tenant, ...body }),
  },
  'instances.answer': {
    serve: (
      { instances },
      { request, tenant, target, body }: Call<{ approval: string; given: GivenAnswer }>,
    ) => instances.tell(target, { kind: 'answer', request, tenant, ...body }),
  },
  'instances.changeMany': {
    serve: ({ changes, instances }, { request, body: { ids, ...asked } }: Call<ChangeMany>) => {
      const group = changes.open(request, ids.length);
      for (const id of ids) instances.tell(id, { kind: 'change', group, ...asked });
    },
  },
  'instances.purge': {
    serve: ({ purge }, { request, body }: Call<PurgeRequest>) => purge(request, body),
  },
  'workers.unclaim': {
    serve: (parts, { body }: Call<readonly TaskClaim[]>) => {
      for (const claim of body) unclaim(parts, claim);
    },
  },
} satisfies EngineOperations<InstanceParts>;

type Finders = Pick<InstanceParts, 'instances' | 'tasks'>;

/** The poller is gone: the claim at this epoch is taken back. */
export function unclaim({ tasks, instances }: Finders, { task, epoch }: TaskClaim): void {
  tasks.find(task, (instance) => instances.tell(instance, { kind: 'unclaim', task, epoch }));
}
