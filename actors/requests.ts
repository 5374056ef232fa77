/**
 * Requests from the front, on the shard that they came to: the body is parsed and validated here,
 * once, and becomes a message to its owner. What belongs to another shard is handed on.
 */

import { toUnixMs } from '../schema/common.js';
import type { BodyOf, BodyRouteId } from '../schema/routes.js';
import { createValidators, type Validators } from '../schema/validators.js';
import { parseBody } from '../src/body.js';
import {
  type IdGenerator,
  keyedInstanceId,
  routeForShard,
  routeOf,
  shardOf,
} from '../src/core/ids.js';
import type { JsonObject, JsonValue } from '../src/core/json.js';
import { type InstanceState, type Priority, priorityRank } from '../src/core/states.js';
import type { UnixMs } from '../src/core/time.js';
import { DATABASE_AWAY, EngineError, notFound, tooLarge, unavailable } from '../src/errors.js';
import { BatchOfBirths } from './births.js';
import type { Catalog } from './catalog.js';
import type { CommitLog } from './commit-log.js';
import type { InstanceRequest, WorkerRequest } from './instance-messages.js';
import type { NewInstance } from './instance-record.js';
import type { Instances } from './instances.js';
import type { Plans, StoredSequence } from './plans.js';
import type { PeerMessage, Request } from './protocol.js';
import { type Queues, queueShard } from './queues.js';
import type { TaskIndex } from './task-index.js';
import type { Effect } from './turn.js';

export interface RequestsDeps {
  readonly shard: number;
  readonly shards: number;
  readonly maxContextBytes: number;
  readonly now: () => UnixMs;
  readonly random32: () => number;
  readonly ids: IdGenerator;
  readonly commits: CommitLog;
  readonly plans: Plans;
  readonly instances: Instances;
  readonly queues: Queues;
  /** On the first shard only. */
  readonly catalog: Catalog | undefined;
  readonly tasks: TaskIndex;
  readonly moves: MoveGroups;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

/** Counts the answers of a bulk change; see `shard.ts`. */
export interface MoveGroups {
  open(request: number, size: number): number;
}

export class Requests {
  readonly #deps: RequestsDeps;
  readonly #validators: Validators = createValidators();

  constructor(deps: RequestsDeps) {
    this.#deps = deps;
  }

  /** Every error of the caller becomes the answer; anything else that is thrown is a defect. */
  handle(request: Request): void {
    try {
      this.#dispatch(request);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#fail(request[0], error);
    }
  }

  #dispatch([request, operation, tenant, target, body]: Request): void {
    const { instances, catalog } = this.#deps;
    switch (operation) {
      case 'instances.get':
        instances.tell(target, { kind: 'get', request, tenant });
        return;
      case 'instances.tree':
        instances.tell(target, { kind: 'tree', request, tenant });
        return;
      case 'instances.retry':
        instances.tell(target, { kind: 'retry', request, tenant });
        return;
      case 'instances.patchState':
      case 'instances.patchContext':
      case 'instances.signal':
        instances.tell(target, this.#change(operation, request, tenant, body));
        return;
      case 'instances.create':
        this.#create(request, tenant, this.#parse(operation, body));
        return;
      case 'instances.createBatch':
        this.#createBatch(request, tenant, this.#parse(operation, body).instances);
        return;
      case 'instances.moveMany':
        this.#moveMany(request, body);
        return;
      case 'workers.poll':
      case 'workers.pollQueue':
        this.#poll(request, tenant, body, operation);
        return;
      case 'workers.complete':
      case 'workers.fail':
      case 'workers.heartbeat':
        this.#workerCall(target, this.#work(operation, request, tenant, target, body));
        return;
      case 'workers.unclaim':
        this.#unclaim(body);
        return;
      case 'sequences.create':
        catalog?.create(request, tenant, this.#parse(operation, body));
        return;
      case 'sequences.deprecate':
        catalog?.deprecate(request, tenant, target);
        return;
      case 'sequences.delete':
        catalog?.delete(request, tenant, target);
        return;
    }
  }

  #parse<Id extends BodyRouteId>(operation: Id, body: string): BodyOf<Id> {
    return parseBody(this.#validators, operation, body);
  }

  #change(
    operation: 'instances.patchState' | 'instances.patchContext' | 'instances.signal',
    request: number,
    tenant: string,
    text: string,
  ): InstanceRequest {
    switch (operation) {
      case 'instances.patchState': {
        const body = this.#parse(operation, text);
        const nextFireAt = body.next_fire_at == null ? null : (toUnixMs(body.next_fire_at) ?? null);
        return { kind: 'patchState', request, tenant, state: body.state, nextFireAt };
      }
      case 'instances.patchContext': {
        const { context } = this.#parse(operation, text);
        return {
          kind: 'patchContext',
          request,
          tenant,
          data: context.data ?? undefined,
          config: context.config ?? undefined,
          audit: (context.audit as JsonValue[] | null) ?? undefined,
        };
      }
      case 'instances.signal': {
        const body = this.#parse(operation, text);
        const payload = (body.payload ?? null) as JsonValue;
        return { kind: 'signal', request, tenant, signalType: body.signal_type, payload };
      }
    }
  }

  // ---------------------------------------------------------------- creation

  #create(request: number, tenant: string, body: BodyOf<'instances.create'>): void {
    checkTenant(tenant, body.tenant_id, '');
    const sequence = this.#deps.plans.get(body.sequence_id);
    if (sequence !== undefined) {
      this.#createOf(request, body, sequence);
      return;
    }
    this.#withPlans(request, [body.sequence_id], (plans) =>
      this.#createOf(request, body, plans.get(body.sequence_id)),
    );
  }

  #createOf(
    request: number,
    body: BodyOf<'instances.create'>,
    sequence: StoredSequence | undefined,
  ): void {
    const { shard, shards, instances } = this.#deps;
    const usable = this.#checkCreation(body, sequence, '');
    const instance = this.#newInstance(body);
    if (instance.idempotencyKey === null) {
      instances.create(request, instance, usable);
      return;
    }
    const owner = shardOf(routeOf(instance.id), shards);
    if (owner === shard) {
      instances.createKeyed({ kind: 'create', request, instance, sequence: usable });
      return;
    }
    this.#peer(owner, ['create', request, JSON.stringify(instance)]);
  }

  /** A keyed creation that another shard parsed and checked. */
  createHandedOn(request: number, instance: NewInstance): void {
    this.#withPlans(request, [instance.sequenceId], (plans) => {
      const sequence = plans.get(instance.sequenceId);
      if (sequence === undefined) throw notFound(`sequence ${instance.sequenceId}`);
      this.#deps.instances.createKeyed({ kind: 'create', request, instance, sequence });
    });
  }

  #createBatch(request: number, tenant: string, items: BodyOf<'instances.create'>[]): void {
    if (items.length === 0) {
      this.#deps.release([
        { kind: 'reply', request, status: 201, body: '{"count":0,"created":0}' },
      ]);
      return;
    }
    items.forEach((item, index) => {
      checkTenant(tenant, item.tenant_id, `instances[${index}].`);
    });
    const sequences = [...new Set(items.map((item) => item.sequence_id))];
    this.#withPlans(request, sequences, (plans) => {
      const instances = items.map((item, index) => {
        this.#checkCreation(item, plans.get(item.sequence_id), `instances[${index}]: `);
        return this.#newInstance(item);
      });
      new BatchOfBirths(this.#deps, request, instances).commit();
    });
  }

  /** @throws EngineError 404, 413, 422 or 503; `place` names the item of a batch */
  #checkCreation(
    body: BodyOf<'instances.create'>,
    sequence: StoredSequence | undefined,
    place: string,
  ): StoredSequence {
    if (sequence === undefined || sequence.tenantId !== body.tenant_id) {
      throw notFound(`${place}sequence ${body.sequence_id}`);
    }
    if (this.#deps.plans.isBlocked(sequence.id)) {
      throw unavailable('ENG_OVERLOADED', `${place}sequence ${sequence.id} is being deleted`);
    }
    const data = body.context?.data ?? {};
    const problem = sequence.checkInput?.(data);
    if (problem !== undefined) {
      throw new EngineError(
        'ENG_INPUT_SCHEMA',
        `unprocessable entity: ${place}context.data ${problem}`,
      );
    }
    this.#checkContextSize(body, place);
    return sequence;
  }

  #checkContextSize(body: BodyOf<'instances.create'>, place: string): void {
    const max = this.#deps.maxContextBytes;
    if (max === 0 || body.context == null) return;
    const { data, config } = body.context;
    const bytes = Buffer.byteLength(JSON.stringify({ data: data ?? {}, config: config ?? {} }));
    if (bytes > max) throw tooLarge(`${place}context is ${bytes} bytes, the limit is ${max}`);
  }

  /** Without a key the id is made to fall on this shard: no one else needs to be asked. */
  #newInstance(body: BodyOf<'instances.create'>): NewInstance {
    const { shard, shards, ids, random32 } = this.#deps;
    const idempotencyKey = body.idempotency_key || null;
    return {
      id:
        idempotencyKey === null
          ? ids.next(routeForShard(shard, shards, random32))
          : keyedInstanceId(body.tenant_id, idempotencyKey),
      sequenceId: body.sequence_id,
      tenantId: body.tenant_id,
      namespace: body.namespace,
      priority: priorityRank((body.priority ?? 'normal') as Priority),
      timezone: body.timezone ?? 'UTC',
      metadata: (body.metadata ?? {}) as JsonObject,
      data: (body.context?.data ?? {}) as JsonObject,
      config: (body.context?.config ?? {}) as JsonObject,
      nextFireAt: body.next_fire_at == null ? null : (toUnixMs(body.next_fire_at) ?? null),
      concurrencyKey: body.concurrency_key ?? null,
      maxConcurrency: body.max_concurrency ?? null,
      idempotencyKey,
    };
  }

  #withPlans(
    request: number,
    sequences: readonly string[],
    then: (plans: ReadonlyMap<string, StoredSequence | undefined>) => void,
  ): void {
    const { plans, schedule } = this.#deps;
    Promise.all(sequences.map((id) => plans.load(id))).then(
      (loaded) =>
        schedule(() => {
          try {
            then(new Map(sequences.map((id, index) => [id, loaded[index]])));
          } catch (error) {
            if (!(error instanceof EngineError)) throw error;
            this.#fail(request, error);
          }
        }),
      () => schedule(() => this.#fail(request, DATABASE_AWAY)),
    );
  }

  // ---------------------------------------------------------------- bulk

  #moveMany(request: number, body: string): void {
    const { ids, state } = JSON.parse(body) as MoveMany;
    const group = this.#deps.moves.open(request, ids.length);
    for (const id of ids) this.#deps.instances.tell(id, { kind: 'move', group, state });
  }

  // ---------------------------------------------------------------- workers

  #poll(
    request: number,
    tenant: string,
    text: string,
    operation: 'workers.poll' | 'workers.pollQueue',
  ): void {
    const body = this.#parse(operation, text);
    const owner = queueShard(body.handler_name, this.#deps.shards);
    if (owner !== this.#deps.shard) {
      this.#peer(owner, ['poll', request, tenant, text, operation]);
      return;
    }
    const queue =
      'queue_name' in body ? (body as BodyOf<'workers.pollQueue'>).queue_name : undefined;
    const { queues, now } = this.#deps;
    queues.seen({
      tenant,
      worker: body.worker_id,
      handler: body.handler_name,
      queue: queue ?? '',
      version: body.version ?? null,
    });
    queues.poll(body.handler_name, {
      request,
      tenant,
      worker: body.worker_id,
      queue,
      limit: body.limit ?? 1,
      until: now() + (body.wait_ms ?? 0),
    });
  }

  #work(
    operation: 'workers.complete' | 'workers.fail' | 'workers.heartbeat',
    request: number,
    tenant: string,
    task: string,
    text: string,
  ): WorkerRequest {
    const body = this.#parse(operation, text);
    const from = {
      request,
      tenant,
      task,
      worker: body.worker_id,
      epoch: body.claim_epoch ?? undefined,
    };
    switch (operation) {
      case 'workers.complete': {
        const { output } = body as BodyOf<'workers.complete'>;
        return { kind: 'task.complete', ...from, output };
      }
      case 'workers.fail': {
        const { message, retryable } = body as BodyOf<'workers.fail'>;
        return { kind: 'task.fail', ...from, message, retryable: retryable ?? false };
      }
      case 'workers.heartbeat': {
        const beat = body as BodyOf<'workers.heartbeat'>;
        return {
          kind: 'task.heartbeat',
          ...from,
          checkpointSeq: beat.checkpoint_seq ?? undefined,
          checkpoint: beat.checkpoint ?? null,
        };
      }
    }
  }

  #workerCall(task: string, message: WorkerRequest): void {
    this.#deps.tasks.find(task, (instance) => {
      if (instance === 'unknown') this.#fail(message.request, notFound(`worker task ${task}`));
      else if (instance === 'unavailable') this.#fail(message.request, DATABASE_AWAY);
      else this.#deps.instances.tell(instance.id, message);
    });
  }

  #unclaim(body: string): void {
    for (const [task, epoch] of JSON.parse(body) as [string, number][]) {
      this.unclaim(task, epoch);
    }
  }

  unclaim(task: string, epoch: number): void {
    this.#deps.tasks.find(task, (instance) => {
      if (typeof instance !== 'string') {
        this.#deps.instances.tell(instance.id, { kind: 'unclaim', task, epoch });
      }
    });
  }

  #peer(shard: number, message: PeerMessage): void {
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}

/** The body of `instances.moveMany`, which only the front thread sends. */
export interface MoveMany {
  readonly ids: readonly string[];
  readonly state: InstanceState;
}

/** @throws EngineError 403 when the body names another tenant than the header (spec/01 §2) */
function checkTenant(header: string, body: string, place: string): void {
  if (header !== '' && body !== header) {
    throw new EngineError(
      'ENG_FORBIDDEN',
      `forbidden: ${place}tenant_id is not the tenant of x-tenant-id`,
    );
  }
}
