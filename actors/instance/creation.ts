/** Requests to create an instance: validation, the sequence and route, and the first timer. */

import { SEQUENCE_KEY_PREFIX } from '../../schema/flow-limits.js';
import type { InstanceCreated } from '../../schema/instance.js';
import { rankOf } from '../../schema/states.js';
import {
  conflict,
  EngineError,
  invalid,
  notFound,
  unavailable,
  unprocessable,
} from '../../src/base/errors.js';
import { keyedInstanceId, routeForShard, routeOf, shardOf } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { type CreatedFrom, cancelEvents } from '../../src/core/cancel-on.js';
import { type CreationBody, idempotencyKeyOf } from '../../src/core/creation-key.js';
import type { Plan } from '../../src/core/plan.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { Names } from '../catalog/names.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { targetOf } from '../release/attribution.js';
import type { Routing } from '../release/routing.js';
import type { Kernel } from '../runtime/kernel.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { NamedId } from '../runtime/sequence-name.js';
import type { Effect, Turn } from '../runtime/turn.js';
import { putCancelWaits } from './cancel-waits.js';
import type { InstanceEnv } from './live-instance.js';
import type { KeyedInstance } from './loads.js';
import { BYTES_PER_CHARACTER_MAX, checkSize } from './memory.js';
import type { RawSections } from './raw-sections.js';
import { givenContext, type InstanceRecord, keysOf, type NewInstance, nameIn } from './record.js';
import { putSearchTerms } from './search-terms.js';
import { TIMER } from './tables.js';

export interface CreationDeps extends Pick<Kernel, 'shard' | 'random32'> {
  readonly env: Pick<InstanceEnv, 'ids' | 'maxContextBytes' | 'shards'>;
  readonly plans: Pick<Plans, 'isBlocked'>;
}

/**
 * @param item prefix of the message @param started what the creation starts (`asStarted`)
 * @throws EngineError 404, 413, 422 or 503
 */
export function checkCreation(
  { plans, env: { maxContextBytes } }: Pick<CreationDeps, 'plans' | 'env'>,
  { instance, sequence }: Placed,
  item: string,
  started: NewInstance,
): StoredSequence {
  const { id, body, texts, named } = instance;
  if (sequence === undefined || sequence.tenantId !== body.tenant_id) {
    throw notFound(`${item}${sequenceNotFound(body.sequence_id, nameIn(body), named)}`);
  }
  if (plans.isBlocked(sequence.id)) {
    throw unavailable('ENG_OVERLOADED', `${item}sequence ${sequence.id} is being deleted`);
  }
  if (body.dry_run_auto_approve === true && body.dry_run !== true) {
    throw invalid(`${item}dry_run_auto_approve must not be true without dry_run`);
  }
  checkKeys(started, sequence, item);
  const { data, config } = givenContext(body);
  const problem = sequence.checkInput?.(instance.item ?? data);
  if (problem !== undefined) {
    throw unprocessable(`${item}context.data ${problem}`);
  }
  const unrendered = cancelProblem(sequence, { id, ...givenContext(started.body) });
  if (unrendered !== undefined) {
    throw unprocessable(`${item}${unrendered}`);
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

/** @throws EngineError 400 or 422 */
function checkKeys(instance: NewInstance, { plan }: StoredSequence, item: string): void {
  const { concurrency_key: own, max_concurrency: max } = instance.body;
  if (own?.startsWith(SEQUENCE_KEY_PREFIX) === true) {
    throw invalid(`${item}concurrency_key must not begin with ${SEQUENCE_KEY_PREFIX}`);
  }
  if (plan.flow === undefined) return;
  if (plan.flow.concurrency !== undefined && (own ?? max) != null) {
    const member = own == null ? 'max_concurrency' : 'concurrency_key';
    const why = 'must not be given: the sequence has concurrency, and an instance has one slot';
    throw unprocessable(`${item}${member} ${why}`);
  }
  const keys = keysOf(instance, plan);
  if (!keys.ok) throw unprocessable(`${item}${keys.message}`);
}

/** Why the keys of `cancel_on` cannot be rendered; undefined if they can. */
export function cancelProblem(
  { plan }: Pick<StoredSequence, 'plan'>,
  from: CreatedFrom,
): string | undefined {
  if (plan.cancelOn === undefined) return undefined;
  const events = cancelEvents(plan.cancelOn, from);
  return events.ok ? undefined : events.message;
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
  deps: CreationDeps,
  body: CreationBody,
  texts: RawSections | undefined,
  traceparent: string | undefined,
): NewInstance {
  const key = idempotencyKeyOf(body);
  const id = key === null ? newId(deps) : keyedInstanceId(body.tenant_id, key);
  const isKept = fits(texts, deps.env.maxContextBytes);
  return { id, body, texts: isKept ? texts : undefined, traceparent };
}

/** An id that is routed to this shard. */
export function newId({ shard, random32, env: { ids, shards } }: CreationDeps): string {
  return ids.next(routeForShard(shard, shards, random32));
}

/** A repeated creation succeeds even if its input or name is no longer valid. */
export function mayBeRepeat({ body }: NewInstance, error: unknown): error is EngineError {
  if (!(error instanceof EngineError) || idempotencyKeyOf(body) === null) return false;
  const isNameless = error.code === 'ENG_NOT_FOUND' && nameIn(body) !== undefined;
  return isNameless || error.code === 'ENG_INPUT_SCHEMA';
}

/** The answer to a repeated creation. @param found the instance of its key */
export function repeatedReply(
  request: number,
  { body, waitMs }: Pick<NewInstance, 'body' | 'waitMs'>,
  { id, tenant_id, idempotency_key, is_dry_run, starts_at }: KeyedInstance,
  env: Pick<InstanceEnv, 'now' | 'shards'>,
): Effect {
  const isSameKey = tenant_id === body.tenant_id && idempotency_key === idempotencyKeyOf(body);
  if (!isSameKey || is_dry_run !== (body.dry_run === true)) {
    return { kind: 'error', request, error: conflict('idempotency_key collides with another key') };
  }
  if (starts_at === null && waitMs !== undefined) {
    return askForResult(id, tenant_id, request, waitMs, true, env);
  }
  return starts_at === null
    ? { kind: 'reply', request, status: 201, body: `{"id":"${id}","deduplicated":true}` }
    : { kind: 'reply', request, status: 202, body: collectedText(id, true, starts_at) };
}

export function collectedText(id: string, deduplicated: boolean, starts_at: string): string {
  const answer: InstanceCreated = { id, deduplicated, collected: true, starts_at };
  return JSON.stringify(answer);
}

/** Answers a creation that waits, when its instance exists: with its result, now or later. */
export function askForResult(
  instance: string,
  tenant: string,
  request: number,
  waitMs: number,
  deduplicated: boolean,
  { now, shards }: Pick<InstanceEnv, 'now' | 'shards'>,
): Effect {
  const until = now() + waitMs;
  const message = { kind: 'result.ask', request, instance, tenant, until, deduplicated } as const;
  return { kind: 'peer', shard: shardOf(routeOf(instance), shards), message };
}

/** The error while the instance of an idempotency key is being deleted. */
export function beingRemoved(instance: string): EngineError {
  const what = `instance ${instance}, whose sequence was deleted, is being removed`;
  return unavailable('ENG_OVERLOADED', what);
}

/** Puts the rows that find an inserted instance, and returns the hint for its shard. */
export function putFirstTimer(
  turn: Turn,
  record: InstanceRecord,
  plan: Plan | undefined,
): WakeMessage {
  const { id, tenant_id: tenant, priority, created_at, snapshot } = record;
  const rank = rankOf(priority);
  const at = snapshot.nextFireAt ?? Date.parse(created_at);
  const due = `"fire_at":"${isoTime(at)}","recover":false,"rank":${rank}`;
  turn.put(TIMER.set, id, `{"instance_id":"${id}",${due}}`);
  putCancelWaits(record, turn);
  putSearchTerms(turn, record, plan?.searchable);
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
