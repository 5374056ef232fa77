/** Keywords of the contract's schemas beyond JSON Schema: changes of a value, and named checks. */

import type { KeywordDefinition, SchemaValidateFunction } from 'ajv/dist/ajv.js';
import { isJsonObject, type JsonObject } from '../src/base/json.js';
import { EXCHANGE_PAIRS_MAX, FACT_BYTES_MAX, KEY_LENGTH_MAX, REDACTED } from './common.js';
import { shownName } from './finding.js';
import { isBuiltin } from './handlers.js';
import { RETRY_DEFAULTS } from './step-options.js';
import { SECRETS_MAX } from './trigger-parts.js';
import { checkUserSchema } from './user-schema.js';
import { ENDPOINT_WORKER_PREFIX } from './worker.js';

type Place = Parameters<SchemaValidateFunction>[3];
/** The end of a sentence that begins with the field, or undefined. */
type Problem = string | undefined;

export const KEYWORDS: readonly KeywordDefinition[] = [
  {
    keyword: 'x-lower-case',
    schemaType: 'boolean',
    before: 'enum',
    modifying: true,
    errors: false,
    validate: (_: boolean, value: unknown, _schema: unknown, place: Place) => {
      if (typeof value === 'string') replace(place, value.toLowerCase());
      return true;
    },
  },
  {
    keyword: 'x-cap',
    type: 'number',
    schemaType: 'number',
    modifying: true,
    errors: false,
    validate: (max: number, value: number, _schema: unknown, place: Place) => {
      if (value > max) replace(place, max);
      return true;
    },
  },
  { keyword: 'x-check', schemaType: 'string', modifying: true, validate: runNamedCheck },
  // An annotation of strict shapes, which refuse the member anyway; `messages.ts` uses it.
  { keyword: 'x-fixed', schemaType: 'array' },
];

function replace(place: Place, value: unknown): void {
  if (place !== undefined) place.parentData[place.parentDataProperty] = value;
}

function runNamedCheck(
  name: string,
  value: unknown,
  parentSchema?: object,
  place?: Place,
): boolean {
  const check = VALUE_CHECKS[name];
  const checkObject = OBJECT_CHECKS[name];
  if (check === undefined && checkObject === undefined) throw new Error(`unknown check ${name}`);
  const message = check?.(value, place) ?? (isJsonObject(value) ? checkObject?.(value) : undefined);
  if (message === undefined) return true;
  const around = parentSchema === undefined ? {} : { parentSchema };
  (runNamedCheck as SchemaValidateFunction).errors = [
    { keyword: 'x-check', params: {}, message, ...around },
  ];
  return false;
}

const VALUE_CHECKS: Readonly<Record<string, (value: unknown, place: Place) => Problem>> = {
  'empty-is-absent': (value, place) => {
    if (value === '') replace(place, null);
    return undefined;
  },
  'not-redacted': checkUnredacted,
  'plain-name': checkPlainName,
  secrets: checkSecrets,
  'block-id': (value) => checkPlainName(value) ?? checkAddressed(value),
  addressed: checkAddressed,
  tenant: tenantProblem,
  fact: (value) =>
    typeof value === 'string' && Buffer.byteLength(value) > FACT_BYTES_MAX
      ? `must be at most ${FACT_BYTES_MAX} bytes`
      : undefined,
  'gate-choices': (choices) => {
    if (!Array.isArray(choices)) return undefined;
    const values = choices.map((choice) => (isJsonObject(choice) ? choice.value : undefined));
    const twice = values.find((one, at) => typeof one === 'string' && values.indexOf(one) < at);
    return typeof twice === 'string' ? `must not have the value ${twice} twice` : undefined;
  },
  'signal-type': checkSignalType,
  'worker-handler': (value) =>
    typeof value === 'string' && isBuiltin(value)
      ? `must not be ${value}, a built-in handler: the engine runs its steps itself`
      : undefined,
  'worker-id': (value) =>
    typeof value === 'string' && value.startsWith(ENDPOINT_WORKER_PREFIX)
      ? `must not begin with ${ENDPOINT_WORKER_PREFIX}, which is for worker endpoints`
      : undefined,
};

/** Types of members may not have been checked yet. */
const OBJECT_CHECKS: Readonly<Record<string, (value: JsonObject) => Problem>> = {
  'json-schema': checkUserSchema,
  /** A longer initial wait would be cut silently; a low maximum alone is intended. */
  retry: ({ initial_backoff: initial, max_backoff }) => {
    const max = max_backoff ?? RETRY_DEFAULTS.max_backoff;
    if (typeof initial !== 'number' || typeof max !== 'number' || initial <= max) return undefined;
    const origin = max_backoff === max ? '' : ', its default';
    return `must have an initial_backoff that is not above max_backoff (${max}${origin})`;
  },
  router: ({ routes, default: otherwise }) => {
    const hasNone = routes == null || (Array.isArray(routes) && routes.length === 0);
    return hasNone && otherwise == null ? 'must have at least one route or a default' : undefined;
  },
  variants: ({ variants: raw }) => {
    if (!Array.isArray(raw)) return undefined;
    const variants = raw.filter(isJsonObject);
    const names = variants.map(({ name }) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (typeof twice === 'string') {
      return `must have variants of different names, and has ${shownName(twice)} twice`;
    }
    return variants.length > 0 && variants.every(({ weight }) => weight === 0)
      ? 'must have a variant whose weight is above 0'
      : undefined;
  },
  heartbeat: ({ checkpoint, checkpoint_seq }) =>
    checkpoint != null && checkpoint_seq == null
      ? 'must have checkpoint_seq when it has a checkpoint'
      : undefined,
  'exchange-poll': ({ handlers, queues }) => {
    if (!Array.isArray(handlers)) return undefined;
    return handlers.length * (Array.isArray(queues) ? queues.length : 1) > EXCHANGE_PAIRS_MAX
      ? `must name at most ${EXCHANGE_PAIRS_MAX} pairs of a handler and a queue`
      : undefined;
  },
  /** Checks `SEQUENCE_REFERENCE`. */
  'sequence-or-id': ({ sequence, sequence_id, version }) => {
    if ((sequence_id == null) === (sequence == null)) {
      return 'must have exactly one of sequence_id and sequence';
    }
    return version != null && sequence == null
      ? 'must have sequence, not sequence_id, when it has version'
      : undefined;
  },
  'batch-action': ({ action, signal_type }) =>
    action === 'signal' && signal_type == null
      ? 'must have signal_type when the action is signal'
      : undefined,
  /** A version by number, by id, or both; the id has three spellings. */
  'migration-target': ({ version, sequence_id, to_sequence_id, target_sequence_id }) => {
    const ids = [sequence_id, to_sequence_id, target_sequence_id].filter((id) => id != null);
    if (ids.length === 0 && version == null) return 'must have version or sequence_id';
    const different = new Set(ids.map((id) => (typeof id === 'string' ? id.toLowerCase() : id)));
    return different.size <= 1 ? undefined : 'must not name two different sequences';
  },
};

function checkUnredacted(value: unknown): Problem {
  return value === REDACTED
    ? `must not be ${REDACTED}, which stands for a secret in answers`
    : undefined;
}

/** A secret, or a list of them. */
function checkSecrets(value: unknown): Problem {
  const secrets: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isText = (one: unknown) =>
    typeof one === 'string' && one !== '' && one.length <= KEY_LENGTH_MAX;
  if (secrets.length === 0 || secrets.length > SECRETS_MAX || !secrets.every(isText)) {
    return `must be a text of 1 to ${KEY_LENGTH_MAX} characters, or a list of at most ${SECRETS_MAX}`;
  }
  return secrets
    .map((one) => (String(one).trim() === '' ? 'must not be blank' : checkUnredacted(one)))
    .find((problem) => problem !== undefined);
}

function checkPlainName(value: unknown): Problem {
  const isTaken = value === '__proto__' || value === 'constructor' || value === 'prototype';
  return isTaken ? `must not be ${value}` : undefined;
}

function checkAddressed(value: unknown): Problem {
  return value === '.' || value === '..' ? 'must not be . or .., which no address has' : undefined;
}

/** The end of a sentence about the tenant in a header or member. A blank member may mean none. */
export function tenantProblem(value: unknown): Problem {
  if (typeof value !== 'string' || !/\S/.test(value)) return undefined;
  return /^[ \t]|[ \t]$/.test(value)
    ? 'must not begin or end with a space or a tab, which no header does'
    : checkAddressed(value);
}

const PLAIN_SIGNALS = ['pause', 'resume', 'cancel', 'update_context'];
const CUSTOM_SIGNAL = 'custom:';
const CUSTOM_NAME_LENGTH_MAX = 255;

function checkSignalType(value: unknown, place: Place): Problem {
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
