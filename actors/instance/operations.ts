/** The operations on instances and their tasks, and the peer messages to them. */

import type { CreateInstance } from '../../schema/instance.js';
import { type BodyOf, type QueryOf, ROUTES, type ShardRouteId } from '../../schema/routes.js';
import type { TaskResult } from '../../schema/worker.js';
import type { EngineError } from '../../src/base/errors.js';
import { routeOf } from '../../src/base/ids.js';
import { checkCallersId } from '../../src/core/creation-key.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operation, Operations, RouteOperations } from '../runtime/operation.js';
import type { TaskClaim } from '../runtime/protocol.js';
import type { Messages } from '../runtime/room.js';
import type { ChangeGroups, ChangeMany } from './change-many.js';
import type { Creations } from './creations.js';
import type { Instances } from './instances.js';
import type {
  GivenAnswer,
  InstanceMessage,
  InstanceRequest,
  InstanceRouteId,
  TaskRouteId,
  WorkerRequest,
} from './messages.js';
import type { Order, OrderAnswer, OrderView } from './orders.js';
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

/** An operation for each route with the id of an instance or a task, by its prefix. */
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

/** Sends the request to the instance of the task in the path. */
function toTask(parts: Finders, name: string): Serve {
  const kind = `task.${name}`;
  // Field by field on the hot path: a spread takes several times as long.
  return ({ request, tenant, target, body, traceparent, isBrief, by }) =>
    sendToTask(parts, {
      kind,
      task: target,
      request,
      tenant,
      target,
      body,
      traceparent,
      isBrief,
      by,
    } as WorkerRequest);
}

function sendToTask({ tasks, instances, release }: Finders, message: WorkerRequest): void {
  const { request, tenant, task } = message;
  const refuse = (error: EngineError) => release([{ kind: 'error', request, error }]);
  tasks.find(
    task,
    (instance) => {
      if (instances.isForeign(instance, tenant)) tasks.deny(task, refuse);
      else instances.send(instance, message);
    },
    refuse,
  );
}

/** Handles one result of an exchange like a separate request. */
export function sendResult(
  parts: Finders,
  request: number,
  tenant: string,
  worker: string,
  { kind, task_id: task, ...result }: TaskResult,
): void {
  const body = { worker_id: worker, ...result };
  const call = { request, tenant, target: task, body, traceparent: undefined };
  sendToTask(parts, { kind: `task.${kind}`, task, isBrief: true, ...call } as WorkerRequest);
}

type Finders = Pick<InstanceParts, 'tasks' | 'instances' | 'release'>;

const UUID_LENGTH = 36;

export function instanceOperations(parts: InstanceParts) {
  return { ...routesOf(parts), ...ownOf(parts) };
}

function routesOf(parts: InstanceParts) {
  const { instances, creations } = parts;
  return {
    'instances.create': {
      // The shard of an idempotency key handles the creation.
      leadsTo: 'itself',
      serve: (call, query) => {
        checkCallersId(call.body.idempotency_key, 'idempotency_key');
        creations.create(call, query.wait_ms);
      },
    },
    'instances.createBatch': { serve: (call) => creations.createBatch(call) },
    ...rowsOf<InstanceRouteId>(
      'instances.',
      (kind) => (call) =>
        instances.send(call.target.slice(0, UUID_LENGTH), { kind, ...call } as InstanceRequest),
    ),
    'instances.signal': {
      serve: (call, { wait_ms: waitMs }) =>
        instances.send(call.target, { kind: 'signal', ...call, waitMs }),
    },
    'instances.tree': {
      isRead: true,
      serve: (call, part) =>
        instances.send(call.target, {
          kind: 'tree',
          ...call,
          part: part as QueryOf<'instances.tree'>,
        }),
    },
    'sequences.migrateInstance': {
      leadsTo: ({ instance_id }) => routeOf(instance_id),
      serve: (call) => instances.send(call.body.instance_id, { kind: 'migrate', ...call }),
    },
    ...rowsOf<TaskRouteId>('workers.', (name) => toTask(parts, name)),
  } satisfies RouteOperations;
}

/** Internal requests of the front thread. */
function ownOf({ instances, tasks, changes, creations, purge }: InstanceParts) {
  return {
    /** A creation by a trigger, whose idempotency key no caller can give. */
    'instances.fire': { serve: (call: Call<CreateInstance>) => creations.create(call) },
    'instances.standing': {
      isRead: true,
      serve: ({ request, tenant, target, body }: Call<{ child: string } | undefined>) =>
        instances.send(target, { kind: 'standing', request, tenant, ...body }),
    },
    'instances.answer': {
      serve: ({ request, tenant, target, body }: Call<{ approval: string; given: GivenAnswer }>) =>
        instances.send(target, { kind: 'answer', request, tenant, ...body }),
    },
    'instances.changeMany': {
      serve: ({ request, body: { ids, ...change } }: Call<ChangeMany>) => {
        const group = changes.open(request, ids.length);
        for (const id of ids) instances.send(id, { kind: 'change', group, ...change });
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

/** Releases the claim of a poller that disconnected. */
export function unclaim(
  { tasks, instances }: Pick<InstanceParts, 'instances' | 'tasks'>,
  { task, epoch }: TaskClaim,
): void {
  tasks.find(task, (instance) => instances.send(instance, { kind: 'unclaim', task, epoch }));
}

type PeerDeps = Finders & Pick<Kernel, 'internalRequests'>;

export function peerMessages({ instances, tasks, internalRequests, release }: PeerDeps) {
  const tell = (message: InstanceMessage & { readonly instance: string }) =>
    instances.send(message.instance, message);
  const messages = {
    claim: (message) => {
      tasks.remember(message.task, message.instance);
      tell(message);
    },
    unclaim: (claim) => unclaim({ tasks, instances }, claim),
    'secret.missing': (message) =>
      tasks.find(message.task, (instance) => instances.send(instance, message)),
    'result.ask': ({ kind: _, request, ...parking }) =>
      instances.send(parking.instance, {
        kind: 'result',
        request,
        tenant: parking.tenant,
        parking,
      }),
    'permit.granted': tell,
    'permit.denied': tell,
    'start.granted': tell,
    'rate.granted': tell,
    'rate.deferred': tell,
    'rate.changed': tell,
    'event.arrived': tell,
    'event.cancel': tell,
    // Handled as an internal request, whose reply is sent back.
    'continuity.order': ({ instance, order: text }) => {
      const order = JSON.parse(text) as Order;
      const { ticket, replyTo: shard, tenant } = order;
      const request = internalRequests.open((reply) => {
        const answer: OrderAnswer =
          'error' in reply
            ? { ok: false, error: reply.error.toData() }
            : { ok: true, view: JSON.parse(reply.body) as OrderView };
        const message = {
          kind: 'continuity.answer',
          ticket,
          answer: JSON.stringify(answer),
        } as const;
        release([{ kind: 'peer', shard, message }]);
      });
      instances.send(instance, { kind: 'order', request, tenant, order });
    },
  } satisfies Messages;
  return { messages };
}
