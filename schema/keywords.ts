/** Keywords of the contract's schemas beyond JSON Schema: changes of a value, and named checks. */

import type { SchemaValidateFunction } from 'ajv/dist/ajv.js';
import { isJsonObject } from '../src/base/json.js';
import { EXCHANGE_PAIRS_MAX, FACT_BYTES_MAX, REDACTED } from './common.js';
import { shownName } from './finding.js';
import { RETRY_DEFAULTS } from './step-options.js';
import { checkUserSchema } from './user-schema.js';

type Place = Parameters<SchemaValidateFunction>[3];

function replace(place: Place, value: unknown): void {
  if (place !== undefined) place.parentData[place.parentDataProperty] = value;
}

export function lowerCase(_: boolean, value: unknown, _schema: unknown, place: Place): boolean {
  if (typeof value === 'string') replace(place, value.toLowerCase());
  return true;
}

export function capNumber(max: number, value: number, _schema: unknown, place: Place): boolean {
  if (value > max) replace(place, max);
  return true;
}

export const runNamedCheck: SchemaValidateFunction = (name: string, value, parentSchema, place) => {
  const check = CHECKS[name];
  if (check === undefined) throw new Error(`unknown check ${name}`);
  const message = check(value, place);
  if (message === undefined) return true;
  const around = parentSchema === undefined ? {} : { parentSchema };
  runNamedCheck.errors = [{ keyword: 'x-check', params: {}, message, ...around }];
  return false;
};

/**
 * Each rule returns the end of a sentence that begins with the field, or undefined. Types of inner fields may not have
 * been checked yet.
 */
const CHECKS: Readonly<Record<string, (value: unknown, place: Place) => string | undefined>> = {
  'empty-is-absent': (value, place) => {
    if (value === '') replace(place, null);
    return undefined;
  },
  'not-redacted': (value) =>
    value === REDACTED
      ? `must not be ${REDACTED}, which stands for a secret in answers`
      : undefined,
  'plain-name': checkPlainName,
  'block-id': (value) => checkPlainName(value) ?? checkAddressed(value),
  addressed: checkAddressed,
  tenant: tenantProblem,
  fact: (value) =>
    typeof value === 'string' && Buffer.byteLength(value) > FACT_BYTES_MAX
      ? `must be at most ${FACT_BYTES_MAX} bytes`
      : undefined,
  'json-schema': (value) => (isJsonObject(value) ? checkUserSchema(value) : undefined),
  retry: checkRetry,
  router: (value) => {
    if (!isJsonObject(value)) return undefined;
    const routes = value.routes ?? [];
    const hasNone =
      Array.isArray(routes) && routes.length === 0 && (value.default ?? null) === null;
    return hasNone ? 'must have at least one route or a default' : undefined;
  },
  'gate-choices': (value) => {
    if (!Array.isArray(value)) return undefined;
    const values = value.map((choice) => (isJsonObject(choice) ? choice.value : undefined));
    const twice = values.find((one, at) => typeof one === 'string' && values.indexOf(one) < at);
    return typeof twice === 'string' ? `must not have the value ${twice} twice` : undefined;
  },
  variants: checkVariants,
  heartbeat: (value) => {
    if (!isJsonObject(value) || (value.checkpoint ?? null) === null) return undefined;
    return (value.checkpoint_seq ?? null) === null
      ? 'must have checkpoint_seq when it has a checkpoint'
      : undefined;
  },
  'exchange-poll': (value) => {
    if (!isJsonObject(value) || !Array.isArray(value.handlers)) return undefined;
    const queues = Array.isArray(value.queues) ? value.queues.length : 1;
    return value.handlers.length * queues > EXCHANGE_PAIRS_MAX
      ? `must name at most ${EXCHANGE_PAIRS_MAX} pairs of a handler and a queue`
      : undefined;
  },
  'signal-type': checkSignalType,
  'sequence-or-id': checkReference,
  'batch-action': (value) =>
    isJsonObject(value) && value.action === 'signal' && (value.signal_type ?? null) === null
      ? 'must have signal_type when the action is signal'
      : undefined,
  'migration-target': checkMigrationTarget,
};

function checkPlainName(value: unknown): string | undefined {
  const isTaken = value === '__proto__' || value === 'constructor' || value === 'prototype';
  return isTaken ? `must not be ${value}` : undefined;
}

function checkAddressed(value: unknown): string | undefined {
  return value === '.' || value === '..' ? 'must not be . or .., which no address has' : undefined;
}

/** The end of a sentence about the tenant in a header or member. A blank member may mean none. */
export function tenantProblem(value: unknown): string | undefined {
  if (typeof value !== 'string' || !/\S/.test(value)) return undefined;
  return /^[ \t]|[ \t]$/.test(value)
    ? 'must not begin or end with a space or a tab, which no header does'
    : checkAddressed(value);
}

/** A version by number, by id, or both; the id has three spellings. */
function checkMigrationTarget(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const { version, sequence_id, to_sequence_id, target_sequence_id } = value;
  const ids = [sequence_id, to_sequence_id, target_sequence_id].filter((id) => id != null);
  if (ids.length === 0 && version == null) return 'must have version or sequence_id';
  const isOne =
    new Set(ids.map((id) => (typeof id === 'string' ? id.toLowerCase() : id))).size <= 1;
  return isOne ? undefined : 'must not name two different sequences';
}

/** A longer initial wait would be cut silently; a low maximum alone is intended. */
function checkRetry(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const initial = value.initial_backoff;
  const max = value.max_backoff ?? RETRY_DEFAULTS.max_backoff;
  if (typeof initial !== 'number' || typeof max !== 'number' || initial <= max) return undefined;
  const origin = value.max_backoff === max ? '' : ', its default';
  return `must have an initial_backoff that is not above max_backoff (${max}${origin})`;
}

function checkVariants(value: unknown): string | undefined {
  if (!isJsonObject(value) || !Array.isArray(value.variants)) return undefined;
  const variants = value.variants.filter(isJsonObject);
  const names = variants.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (typeof twice === 'string') {
    return `must have variants of different names, and has ${shownName(twice)} twice`;
  }
  const weights = variants.map(({ weight }) => weight);
  return weights.length > 0 && weights.every((weight) => weight === 0)
    ? 'must have a variant whose weight is above 0'
    : undefined;
}

/** Checks `SEQUENCE_REFERENCE`. */
function checkReference(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const hasName = (value.sequence ?? null) !== null;
  if (((value.sequence_id ?? null) !== null) === hasName) {
    return 'must have exactly one of sequence_id and sequence';
  }
  return (value.version ?? null) !== null && !hasName
    ? 'must have sequence, not sequence_id, when it has version'
    : undefined;
}

const PLAIN_SIGNALS = ['pause', 'resume', 'cancel', 'update_context'];
const CUSTOM_SIGNAL = 'custom:';
const CUSTOM_NAME_LENGTH_MAX = 255;

function checkSignalType(value: unknown, place: Place): string | undefined {
  let text = value;
  if (isJsonObject(value) && typeof value.custom === 'string') {
    text = CUSTOM_SIGNAL + value.custom;
    replace(place, text);
  }
  if (typeof text === 'string') {
    if (PLAIN_SIGNALS.includes(text)) return undefined;
    const name = text.slice(CUSTOM_SIGNAL.length);
    const isCustom = text.startsWith(CUSTOM_SIGNAL) && name.trim() !== '';
    if (isCustom && name.length <= CUSTOM_NAME_LENGTH_MAX) return undefined;
  }
  return `must be ${PLAIN_SIGNALS.join(', ')} or custom:<name> with a name of at most ${CUSTOM_NAME_LENGTH_MAX} characters`;
}
