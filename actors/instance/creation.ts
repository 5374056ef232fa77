/** What a creation asks for: checked against its sequence, and as the instance that is to be created. */

import { toUnixMs } from '../../schema/common.js';
import type { BodyOf } from '../../schema/routes.js';
import { type IdGenerator, keyedInstanceId, routeForShard } from '../../src/core/ids.js';
import type { JsonObject } from '../../src/core/json.js';
import { type Priority, priorityRank } from '../../src/core/states.js';
import { EngineError, notFound, tooLarge, unavailable } from '../../src/errors.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { DRY_RUN_KEY } from '../release/attribution.js';
import type { NewInstance } from './record.js';

export type CreationBody = BodyOf<'instances.create'>;

export interface CheckDeps {
  readonly plans: Pick<Plans, 'isBlocked'>;
  /** 0: no limit. */
  readonly maxContextBytes: number;
}

/**
 * @param sequence where the instance goes: a release may have routed it to another than it names
 * @param place names the item of a batch
 * @throws EngineError 404, which names what the caller named, 413, 422 or 503
 */
export function checkCreation(
  { plans, maxContextBytes }: CheckDeps,
  instance: NewInstance,
  sequence: StoredSequence | undefined,
  place: string,
): StoredSequence {
  if (sequence === undefined || sequence.tenantId !== instance.tenantId) {
    throw notFound(`${place}sequence ${instance.sequenceId}`);
  }
  if (plans.isBlocked(sequence.id)) {
    throw unavailable('ENG_OVERLOADED', `${place}sequence ${sequence.id} is being deleted`);
  }
  const problem = sequence.checkInput?.(instance.data);
  if (problem !== undefined) {
    throw new EngineError(
      'ENG_INPUT_SCHEMA',
      `unprocessable entity: ${place}context.data ${problem}`,
    );
  }
  checkContextSize(instance, maxContextBytes, place);
  return sequence;
}

function checkContextSize({ data, config }: NewInstance, max: number, place: string): void {
  if (max === 0 || (isEmpty(data) && isEmpty(config))) return;
  const bytes = Buffer.byteLength(JSON.stringify({ data, config }));
  if (bytes > max) throw tooLarge(`${place}context is ${bytes} bytes, the limit is ${max}`);
}

function isEmpty(section: JsonObject): boolean {
  for (const _ in section) return false;
  return true;
}

/** @throws EngineError 403 when the body names another tenant than the header */
export function checkTenant(header: string, body: string, place: string): void {
  if (header !== '' && body !== header) {
    throw new EngineError(
      'ENG_FORBIDDEN',
      `forbidden: ${place}tenant_id is not the tenant of x-tenant-id`,
    );
  }
}

export interface NewInstanceDeps {
  readonly shard: number;
  readonly shards: number;
  readonly ids: IdGenerator;
  readonly random32: () => number;
}

/** Without a key the id is made to fall on this shard: no one else needs to be asked. */
export function newInstance(
  { shard, shards, ids, random32 }: NewInstanceDeps,
  body: CreationBody,
  traceparent: string | undefined,
): NewInstance {
  const dryRun = body.dry_run ?? false;
  const key = body.idempotency_key || null;
  const idempotencyKey = dryRun && key !== null ? DRY_RUN_KEY + key : key;
  return {
    id:
      idempotencyKey === null
        ? ids.next(routeForShard(shard, shards, random32))
        : keyedInstanceId(body.tenant_id, idempotencyKey),
    sequenceId: body.sequence_id,
    route: undefined,
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
    dryRun,
    traceparent,
  };
}
