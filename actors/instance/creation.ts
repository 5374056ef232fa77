/** What a creation asks for: the instance that is to be created, and whether its sequence takes it. */

import { EngineError, invalid, notFound, unavailable } from '../../src/base/errors.js';
import { type IdGenerator, keyedInstanceId, routeForShard } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { type CreationBody, idempotencyKeyOf } from '../../src/core/creation-key.js';
import { sequenceNotFound } from '../../src/core/sequence-not-found.js';
import type { Plans, StoredSequence } from '../catalog/plans.js';
import { BYTES_PER_CHARACTER_MAX, checkSize } from './memory.js';
import type { RawSections } from './raw-sections.js';
import { givenContext, type NewInstance, nameIn } from './record.js';

export interface CreationDeps {
  readonly shard: number;
  readonly shards: number;
  readonly ids: IdGenerator;
  readonly random32: () => number;
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
  { plans, maxContextBytes }: CreationDeps,
  { body, texts, named }: NewInstance,
  sequence: StoredSequence | undefined,
  place: string,
): StoredSequence {
  if (sequence === undefined || sequence.tenantId !== body.tenant_id) {
    throw notFound(`${place}${sequenceNotFound(body.sequence_id, nameIn(body), named)}`);
  }
  if (plans.isBlocked(sequence.id)) {
    throw unavailable('ENG_OVERLOADED', `${place}sequence ${sequence.id} is being deleted`);
  }
  if (body.dry_run_auto_approve === true && body.dry_run !== true) {
    throw invalid(`${place}dry_run_auto_approve must not be true without dry_run`);
  }
  const { data, config } = givenContext(body);
  const problem = sequence.checkInput?.(data);
  if (problem !== undefined) {
    throw new EngineError(
      'ENG_INPUT_SCHEMA',
      `unprocessable entity: ${place}context.data ${problem}`,
    );
  }
  if (
    maxContextBytes > 0 &&
    !isSmall(texts, maxContextBytes) &&
    !(isEmpty(data) && isEmpty(config))
  ) {
    checkSize(`${place}context is`, { data, config }, maxContextBytes);
  }
  return sequence;
}

/** By the texts as they came: what is far smaller, as almost all is, need not be looked through. */
function isSmall(texts: RawSections | undefined, max: number): boolean {
  if (texts === undefined) return false;
  return charactersIn(texts) * BYTES_PER_CHARACTER_MAX + PUNCTUATION <= max;
}

/** Of the two sections together, when one of them was not there. */
const PUNCTUATION = 64;

/** A member that is repeated in a text, or a number written at length, is no part of the value. */
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

/** Without a key the id is made to fall on this shard: no one else needs to be asked. */
export function newInstance(
  { shard, shards, ids, random32, maxContextBytes }: CreationDeps,
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

/**
 * Its creator hears of its input, or of a name that leads nowhere, unless it is there already under its
 * key: the name may have led somewhere then.
 */
export function mayBeRepeat({ body }: NewInstance, error: unknown): error is EngineError {
  if (!(error instanceof EngineError) || idempotencyKeyOf(body) === null) return false;
  const isNameless = error.code === 'ENG_NOT_FOUND' && nameIn(body) !== undefined;
  return isNameless || error.code === 'ENG_INPUT_SCHEMA';
}

/** Under its idempotency key another one will be created, but not yet. */
export function beingRemoved(instance: string): EngineError {
  const what = `instance ${instance}, whose sequence was deleted, is being removed`;
  return unavailable('ENG_OVERLOADED', what);
}
