/** Requests to create an instance: validation, the sequence and route, and the first timer. */

import { rankOf } from '../../schema/states.js';
import { EngineError, invalid, notFound, unavailable } from '../../src/base/errors.js';
import { keyedInstanceId, routeForShard } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { type CreationBody, idempotencyKeyOf } from '../../src/core/creation-key.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { Names } from '../catalog/names.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { targetOf } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { Kernel } from '../runtime/kernel.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { NamedId } from '../runtime/sequence-name.js';
import type { Turn } from '../runtime/turn.js';
import type { InstanceEnv } from './live-instance.js';
import { BYTES_PER_CHARACTER_MAX, checkSize } from './memory.js';
import type { RawSections } from './raw-sections.js';
import { givenContext, type InstanceRecord, type NewInstance, nameIn } from './record.js';
import { TIMER } from './tables.js';

export interface CreationDeps extends Pick<Kernel, 'shard' | 'random32'> {
  readonly env: Pick<InstanceEnv, 'ids' | 'maxContextBytes' | 'shards'>;
  readonly plans: Pick<Plans, 'isBlocked'>;
}

/** @throws EngineError 404, 413, 422 or 503; `item` is the prefix of its message */
export function checkCreation(
  { plans, env: { maxContextBytes } }: Pick<CreationDeps, 'plans' | 'env'>,
  { instance: { body, texts, named }, sequence }: Placed,
  item: string,
): StoredSequence {
  if (sequence === undefined || sequence.tenantId !== body.tenant_id) {
    throw notFound(`${item}${sequenceNotFound(body.sequence_id, nameIn(body), named)}`);
  }
  if (plans.isBlocked(sequence.id)) {
    throw unavailable('ENG_OVERLOADED', `${item}sequence ${sequence.id} is being deleted`);
  }
  if (body.dry_run_auto_approve === true && body.dry_run !== true) {
    throw invalid(`${item}dry_run_auto_approve must not be true without dry_run`);
  }
  const { data, config } = givenContext(body);
  const problem = sequence.checkInput?.(data);
  if (problem !== undefined) {
    throw new EngineError(
      'ENG_INPUT_SCHEMA',
      `unprocessable entity: ${item}context.data ${problem}`,
    );
  }
  // By the length of the text, so that almost no context has to be measured.
  const isSmall =
    texts !== undefined &&
    charactersIn(texts) * BYTES_PER_CHARACTER_MAX + PUNCTUATION <= maxContextBytes;
  if (maxContextBytes > 0 && !isSmall && !(isEmpty(data) && isEmpty(config))) {
    checkSize(`${item}context is`, { data, config }, maxContextBytes);
  }
  return sequence;
}

const PUNCTUATION = 64;

/** Repeated members and long forms of numbers make a text larger than its value. */
function fits(texts: RawSections | undefined, max: number): boolean {
  return max === 0 || charactersIn(texts) <= max;
}

function charactersIn(texts: RawSections | undefined): number {
  return (texts?.data?.length ?? 0) + (texts?.config?.length ?? 0);
}

function isEmpty(section: JsonObject): boolean {
  for (const _ in section) return false;
  return true;
}

/** Without an idempotency key, the id is routed to this shard. */
export function newInstance(
  { shard, random32, env: { ids, shards, maxContextBytes } }: CreationDeps,
  body: CreationBody,
  texts: RawSections | undefined,
  traceparent: string | undefined,
): NewInstance {
  const key = idempotencyKeyOf(body);
  const id =
    key === null
      ? ids.next(routeForShard(shard, shards, random32))
      : keyedInstanceId(body.tenant_id, key);
  return { id, body, texts: fits(texts, maxContextBytes) ? texts : undefined, traceparent };
}

/** A repeated creation succeeds even if its input or name is no longer valid. */
export function mayBeRepeat({ body }: NewInstance, error: unknown): error is EngineError {
  if (!(error instanceof EngineError) || idempotencyKeyOf(body) === null) return false;
  const isNameless = error.code === 'ENG_NOT_FOUND' && nameIn(body) !== undefined;
  return isNameless || error.code === 'ENG_INPUT_SCHEMA';
}

/** The error while the instance of an idempotency key is being deleted. */
export function beingRemoved(instance: string): EngineError {
  const what = `instance ${instance}, whose sequence was deleted, is being removed`;
  return unavailable('ENG_OVERLOADED', what);
}

/** Puts the first timer of an inserted instance, and returns the hint for its shard. */
export function putFirstTimer(
  turn: Turn,
  { id, tenant_id: tenant, priority, created_at, snapshot }: InstanceRecord,
): WakeMessage {
  const rank = rankOf(priority);
  const at = snapshot.nextFireAt ?? Date.parse(created_at);
  const due = `"fire_at":"${isoTime(at)}","recover":false,"rank":${rank}`;
  turn.put(TIMER.set, id, `{"instance_id":"${id}",${due}}`);
  return { kind: 'wake', instance: id, at, rank, tenant };
}

export type WakeMessage = Extract<PeerMessage, { kind: 'wake' }>;

export interface PlaceDeps {
  readonly plans: Pick<Plans, 'deletions' | 'get' | 'seek'>;
  readonly names: Pick<Names, 'get' | 'load'>;
  readonly routing: Pick<Routing, 'routed'>;
}

export interface Placed {
  /** The request with the resolved name and the route. */
  readonly instance: NewInstance;
  readonly sequence: StoredSequence | undefined;
}

/** The sequence and route of a new instance, as read from the database. */
export interface Found {
  /** `Plans.deletions` before the read: a deletion since then makes the result stale. */
  readonly deletions: number;
  readonly named: NamedId;
  /** The id of the sequence; undefined when the name is unknown. */
  readonly target: string | undefined;
  readonly sequence: StoredSequence | undefined;
}

/** Undefined when rows have to be read first. @throws EngineError 503 while routes are unknown */
export function placed(
  { plans, names, routing }: PlaceDeps,
  requested: NewInstance,
  found?: Found,
): Placed | undefined {
  const read = found?.deletions === plans.deletions ? found : undefined;
  const name = nameIn(requested.body);
  const named = name && (names.get(name) ?? read?.named);
  if (name !== undefined && named == null) {
    return read && { instance: { ...requested, named }, sequence: undefined };
  }
  const instance = routing.routed(name === undefined ? requested : { ...requested, named });
  const target = targetOf(instance);
  const cached = plans.get(target);
  if (cached?.tenantId === requested.body.tenant_id) return { instance, sequence: cached };
  return read?.target === target ? { instance, sequence: read.sequence } : undefined;
}

/** Rejects when the rows cannot be read, or with EngineError 503 while routes are unknown. */
export async function findPlace(
  { plans, names, routing }: PlaceDeps,
  requested: NewInstance,
): Promise<Found> {
  const { deletions } = plans;
  const name = nameIn(requested.body);
  const named = name && (await names.load(name));
  if (name !== undefined && named == null) {
    return { deletions, named, target: undefined, sequence: undefined };
  }
  const target = targetOf(routing.routed({ ...requested, named }));
  const sequence = await plans.seek(target, requested.body.tenant_id);
  return { deletions, named, target, sequence };
}
