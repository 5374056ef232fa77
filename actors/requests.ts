/**
 * Requests from the front, on the shard that they came to: the body is parsed and validated here,
 * once, and becomes a message to its owner. What belongs to another shard is handed on.
 */

import { toUnixMs } from '../schema/common.js';
import type { PutRateLimit } from '../schema/rate.js';
import { type BodyOf, type BodyRouteId, ROUTES } from '../schema/routes.js';
import type { ResumeFrom } from '../schema/surgery.js';
import { createValidators, type Validators } from '../schema/validators.js';
import type { LogLines } from '../schema/worker.js';
import { parseBody } from '../src/body.js';
import { rateLimitId, routeOf, shardOf } from '../src/core/ids.js';
import type { JsonObject, JsonValue } from '../src/core/json.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import { DATABASE_AWAY, EngineError, invalid, notFound } from '../src/errors.js';
import type { Logger } from '../src/log.js';
import { ApiKeys } from './api-keys.js';
import type { Catalog } from './catalog.js';
import type { ChangeGroups, ChangeMany } from './change-many.js';
import type { ChangeFeed } from './changes.js';
import type { CommitLog } from './commit-log.js';
import type { Continuity, ContinuityCall } from './continuity/operations.js';
import { checkTenant } from './creation.js';
import type { Creations } from './creations.js';
import type { Amendments, InstanceRequest, WorkerRequest } from './instance-messages.js';
import type { WorkerLine } from './instance-notes.js';
import type { Instances } from './instances.js';
import type { Rows } from './loader.js';
import type { PeerMessage, Request } from './protocol.js';
import { Purge, type PurgeRequest } from './purge.js';
import { type Queues, queueShard } from './queues.js';
import type { Rates } from './rates.js';
import { askReleases } from './release-requests.js';
import type { Releases } from './releases.js';
import type { Schedules } from './schedules.js';
import type { TaskIndex } from './task-index.js';
import type { Effect } from './turn.js';
import type { Watchers } from './watchers.js';
import type { Webhooks } from './webhooks.js';

export interface RequestsDeps {
  readonly shard: number;
  readonly shards: number;
  readonly now: () => UnixMs;
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly log: Logger;
  readonly continuity: Continuity;
  readonly instances: Instances;
  readonly creations: Creations;
  readonly queues: Queues;
  readonly rates: Rates;
  readonly schedules: Schedules;
  readonly webhooks: Webhooks;
  /** On the first shard only. */
  readonly catalog: Catalog | undefined;
  readonly releases: Releases | undefined;
  readonly tasks: TaskIndex;
  readonly changes: ChangeGroups;
  readonly watchers: Watchers;
  readonly feed: ChangeFeed;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
}

/** Of the thread, since compiling takes a while: a simulation has many shards in one. */
const VALIDATORS = createValidators();

export class Requests {
  readonly #deps: RequestsDeps;
  readonly #validators: Validators = VALIDATORS;
  readonly #apiKeys: ApiKeys;

  constructor(deps: RequestsDeps) {
    this.#deps = deps;
    this.#apiKeys = new ApiKeys(deps);
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

  #dispatch([request, operation, tenant, target, body, traceparent]: Request): void {
    const { instances, creations, catalog, releases } = this.#deps;
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
        instances.tell(target, this.#change(operation, request, tenant, body, traceparent));
        return;
      case 'instances.create':
        creations.create(request, tenant, this.#parse(operation, body), traceparent);
        return;
      case 'instances.createBatch':
        creations.createBatch(request, tenant, this.#parse(operation, body).instances, traceparent);
        return;
      case 'instances.saveCheckpoint': {
        const data = this.#parse(operation, body).checkpoint_data as JsonValue;
        instances.tell(target, { kind: 'checkpoint.save', request, tenant, data });
        return;
      }
      case 'instances.pruneCheckpoints': {
        const { keep } = this.#parse(operation, body);
        instances.tell(target, { kind: 'checkpoint.prune', request, tenant, keep });
        return;
      }
      case 'instances.changeMany':
        this.#changeMany(request, JSON.parse(body) as ChangeMany);
        return;
      case 'instances.purge':
        this.#purge(request, JSON.parse(body) as PurgeRequest);
        return;
      case 'instances.watch':
        this.#deps.watchers.watch(target, { request, tenant }, body);
        return;
      case 'instances.unwatch':
        this.#deps.watchers.abort(Number(body));
        return;
      case 'changes.watermark':
        this.#deps.feed.watermark(request, Number(body));
        return;
      case 'changes.watch':
        this.#deps.feed.watch(request, tenant, body);
        return;
      case 'changes.unwatch':
        this.#deps.feed.unwatch(Number(body));
        return;
      case 'instances.injectBlocks':
      case 'instances.resumeFrom':
      case 'instances.fork':
        this.#operate(operation, request, tenant, target, body, traceparent);
        return;
      case 'sequences.migrateInstance':
        this.#migrate(request, tenant, body);
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
      case 'rateLimits.put':
        this.#putRateLimit(request, tenant, target, this.#parse(operation, body));
        return;
      case 'rateLimits.delete':
        this.#deps.rates.delete(rateLimitId(limitTenant(tenant), target), request);
        return;
      case 'apiKeys.mint':
      case 'apiKeys.revoke':
      case 'apiKeys.used':
        this.#apiKeys.handle(request, operation, body);
        return;
      case 'webhooks.redeliver':
      case 'webhooks.discard':
        this.#deps.webhooks.handle(operation, target, request);
        return;
      case 'cron.create': {
        const schedule = this.#parse(operation, body);
        checkTenant(tenant, schedule.tenant_id, '');
        this.#deps.schedules.create(request, schedule);
        return;
      }
      case 'cron.update':
        this.#deps.schedules.update(request, tenant, target, this.#parse(operation, body));
        return;
      case 'cron.delete':
        this.#deps.schedules.delete(request, tenant, target);
        return;
      case 'continuity.create':
      case 'continuity.claim':
      case 'continuity.appendProvenance':
      case 'continuity.place':
      case 'continuity.preview':
      case 'continuity.resolveEffect':
      case 'migrations.plan':
      case 'migrations.apply':
      case 'migrations.rollback':
      case 'runtimes.register':
      case 'handoffs.create':
      case 'handoffs.export':
      case 'handoffs.attach':
      case 'handoffs.accept':
      case 'handoffs.resume':
      case 'handoffs.reject':
      case 'handoffs.revoke':
      case 'capsules.import': {
        const parse: ContinuityCall['parse'] = (id, text) => this.#parse(id, text);
        this.#deps.continuity.handle({ request, operation, tenant, target, text: body, parse });
        return;
      }
      case 'sequences.create':
        catalog?.create(request, tenant, this.#parse(operation, body));
        return;
      case 'sequences.deprecate':
        catalog?.deprecate(request, tenant, target);
        return;
      case 'sequences.delete':
        catalog?.delete(request, tenant, target);
        return;
      case 'releases.create':
      case 'releases.beginValidation':
      case 'releases.endValidation':
      case 'releases.canary':
      case 'releases.evaluate':
      case 'releases.promote':
      case 'releases.pause':
      case 'releases.rollback':
        if (releases === undefined) return;
        askReleases(releases, this.#validators, { request, operation, tenant, target, body });
        return;
    }
  }

  #purge(request: number, purge: PurgeRequest): void {
    const { instances } = this.#deps;
    const hold = (id: string) => instances.hold(id);
    const letGo = (id: string, isGone: boolean) => instances.letGo(id, isGone);
    new Purge({ ...this.#deps, hold, letGo }, request).start(purge);
  }

  #parse<Id extends BodyRouteId>(operation: Id, body: string): BodyOf<Id> {
    const text = body === '' && ROUTES[operation].isBodyOptional === true ? '{}' : body;
    return parseBody(this.#validators, operation, text);
  }

  #change(
    operation: 'instances.patchState' | 'instances.patchContext' | 'instances.signal',
    request: number,
    tenant: string,
    text: string,
    traceparent: string | undefined,
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
        const signal = { signalType: body.signal_type, payload, traceparent };
        return { kind: 'signal', request, tenant, ...signal };
      }
    }
  }

  /** @param target the instance's id; for resume-from with the block's behind a slash */
  #operate(
    operation: 'instances.injectBlocks' | 'instances.resumeFrom' | 'instances.fork',
    request: number,
    tenant: string,
    target: string,
    text: string,
    traceparent: string | undefined,
  ): void {
    const id = target.slice(0, UUID_LENGTH);
    const { instances } = this.#deps;
    switch (operation) {
      case 'instances.injectBlocks': {
        const { blocks, position } = this.#parse(operation, text);
        const at = position ?? undefined;
        instances.tell(id, { kind: 'injectBlocks', request, tenant, blocks, position: at });
        return;
      }
      case 'instances.resumeFrom': {
        const blockId = target.slice(UUID_LENGTH + 1);
        const amendments = amendmentsOf(this.#parse(operation, text), traceparent);
        instances.tell(id, { kind: 'resumeFrom', request, tenant, blockId, ...amendments });
        return;
      }
      case 'instances.fork': {
        const body = this.#parse(operation, text);
        const { from_block_id: blockId, dry_run } = body;
        const fork = { blockId, dryRun: dry_run ?? true, ...amendmentsOf(body, traceparent) };
        instances.tell(id, { kind: 'fork', request, tenant, ...fork });
      }
    }
  }

  /** The body names the instance, so that the request may have come to any shard. */
  #migrate(request: number, tenant: string, text: string): void {
    const { instance_id: id, target_sequence_id: sequenceId } = this.#parse(
      'sequences.migrateInstance',
      text,
    );
    const owner = shardOf(routeOf(id), this.#deps.shards);
    if (owner === this.#deps.shard) {
      this.#deps.instances.tell(id, { kind: 'migrate', request, tenant, sequenceId });
    } else this.#peer(owner, ['poll', request, tenant, text, 'sequences.migrateInstance']);
  }

  #putRateLimit(request: number, tenant: string, key: string, body: PutRateLimit): void {
    const owner = limitTenant(tenant);
    this.#deps.rates.put(rateLimitId(owner, key), request, {
      tenant_id: owner,
      limit_key: key,
      ...body,
    });
  }

  // ---------------------------------------------------------------- bulk

  #changeMany(request: number, { ids, change }: ChangeMany): void {
    const group = this.#deps.changes.open(request, ids.length);
    for (const id of ids) this.#deps.instances.tell(id, { kind: 'change', group, change });
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
        const { output, logs } = body as BodyOf<'workers.complete'>;
        return { kind: 'task.complete', ...from, output, lines: this.#lines(logs) };
      }
      case 'workers.fail': {
        const { message, retryable, logs } = body as BodyOf<'workers.fail'>;
        const lines = this.#lines(logs);
        return { kind: 'task.fail', ...from, message, retryable: retryable ?? false, lines };
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

  #lines(logs: LogLines | null | undefined): readonly WorkerLine[] {
    if (logs == null) return NO_LINES;
    const now = this.#deps.now();
    return logs.map(({ ts, level, message }) => ({
      ts: isoTime((ts == null ? undefined : toUnixMs(ts)) ?? now),
      level: level || 'info',
      message,
    }));
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

const NO_LINES: readonly WorkerLine[] = [];

const UUID_LENGTH = 36;

function amendmentsOf(
  { context, signals }: ResumeFrom,
  traceparent: string | undefined,
): Amendments {
  return {
    traceparent,
    context: (context as JsonObject | null) ?? undefined,
    signals: (signals ?? []).map(({ signal_type, payload }) => ({
      type: signal_type,
      payload: (payload ?? null) as JsonValue,
    })),
  };
}

/** @throws EngineError 400 without a tenant, which only an optional header allows */
function limitTenant(tenant: string): string {
  if (tenant === '') throw invalid('x-tenant-id is required');
  return tenant;
}
