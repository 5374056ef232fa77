/** Validation errors as messages for callers: the field and its rule. */

import type { TSchema } from '@sinclair/typebox';
import type { ErrorObject } from 'ajv/dist/2020.js';
import { isJsonObject } from '../src/base/json.js';
import { BLOCK_TYPES } from './blocks.js';
import { fixedMembers } from './change-shapes.js';
import { isStrict, isUnsupported } from './common.js';
import { SHA256_INPUT_PATTERN, SHA256_PATTERN } from './continuity.js';
import { CREDENTIAL_ID_PATTERN } from './credential.js';
import { type Finding, findingOf, findingOfStray, joinPath, shownName } from './finding.js';
import { HTTP_URL_PATTERN } from './handlers.js';
import { suggest } from './suggest.js';
import { SLUG_PATTERN } from './trigger.js';
import { HEADER_PATTERN } from './trigger-parts.js';

const FORMAT_TEXTS: Readonly<Record<string, string>> = {
  uuid: 'must be a UUID',
  'date-time': 'must be an RFC 3339 timestamp with an offset, in the years 1970 to 9999',
  'calendar-day': 'must be a calendar day as YYYY-MM-DD',
  'time-zone': 'must be a known IANA time zone',
};

const PATTERN_TEXTS: Readonly<Record<string, string>> = {
  '\\S': 'must not be blank',
  [CREDENTIAL_ID_PATTERN]: 'must have letters, digits, dots, _ and - only',
  [SLUG_PATTERN]: 'must have letters, digits, dots, _, ~ and - only',
  [HEADER_PATTERN]: 'must be the name of a header',
  [SHA256_PATTERN]: 'must be 64 hexadecimal digits in lower case',
  [SHA256_INPUT_PATTERN]: 'must be 64 hexadecimal digits',
  [HTTP_URL_PATTERN]: 'must begin with http:// or https://',
};

const TYPE_TEXTS: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'a boolean',
  object: 'an object',
  array: 'an array',
};

/**
 * A message with its path and a suggestion for a misspelt word.
 *
 * @param more end of the sentence
 */
export function findingOfError(error: ErrorObject, what: string, more = ''): Finding {
  const { keyword, params, data } = error;
  const path = fieldPath(error.instancePath);
  const field = path === '' ? what : path;
  const found = strayMember((error.parentSchema ?? {}) as TSchema, data, path);
  if (found !== undefined) return found;
  switch (keyword) {
    case 'required': {
      const place = joinPath(path, String(params.missingProperty));
      return findingOf(place, describeMissing(place, error) + more);
    }
    case 'discriminator': {
      const place = joinPath(path, String(params.tag));
      const { tag, tagValue } = params;
      if (tag !== 'type') {
        const words = (error.parentSchema?.oneOf ?? []).map(
          (kind: TSchema) => kind.properties[tag].const as string,
        );
        return findingOf(place, describeWords(place, words) + more, guess(tagValue, words));
      }
      const isText = typeof tagValue === 'string';
      const rule = isText ? `is an unknown block type: ${shownName(tagValue)}` : 'must be a string';
      return findingOf(place, `${place} ${rule}${more}`, guess(tagValue, BLOCK_TYPES));
    }
    case 'enum': {
      const message = describeWords(field, params.allowedValues) + more;
      return findingOf(path, message, guess(data, params.allowedValues));
    }
    case 'x-check':
      return findingOf(path, `${field} ${error.message}${more}`);
    default:
      return findingOf(path, `${field} ${RULE_TEXTS[keyword]?.(params) ?? 'is not valid'}${more}`);
  }
}

/**
 * An unknown member of a strict shape, in the object or inside it. Reported before other errors: a missing member is
 * mostly the misspelt one.
 */
function strayMember(schema: TSchema, value: unknown, path: string): Finding | undefined {
  if (!isStrict(schema) || !isJsonObject(value)) return undefined;
  const members = Object.entries<TSchema>(schema.properties);
  const known = members.map(([name]) => name);
  const stray = Object.keys(value).find((name) => !known.includes(name));
  if (stray !== undefined && fixedMembers(schema).includes(stray)) {
    const place = joinPath(path, stray);
    return findingOf(place, `${place} cannot be changed`);
  }
  if (stray !== undefined) return findingOfStray(joinPath(path, stray), stray, known);
  for (const [name, member] of members) {
    const found = strayMember(member, value[name], joinPath(path, name));
    if (found !== undefined) return found;
  }
  return undefined;
}

function describeMissing(field: string, { params, parentSchema }: ErrorObject): string {
  const name = String(params.missingProperty);
  const words: unknown = parentSchema?.properties?.[name]?.items?.enum;
  const choice = Array.isArray(words) ? `: one or more of ${words.join(', ')}` : '';
  return `${field} is required${choice}`;
}

/** @param words may include values that are not strings */
function guess(given: unknown, words: readonly unknown[]): string | undefined {
  if (typeof given !== 'string') return undefined;
  return suggest(
    given,
    words.filter((word) => typeof word === 'string'),
  );
}

/** The end of a sentence by keyword; unknown keywords are `not valid`. */
const RULE_TEXTS: Readonly<Record<string, (params: ErrorObject['params']) => string | undefined>> =
  {
    type: ({ type }) => `must be ${typeText(type)}`,
    format: ({ format }) => FORMAT_TEXTS[format],
    pattern: ({ pattern }) => PATTERN_TEXTS[pattern],
    const: ({ allowedValue }) => `must be ${String(allowedValue)}`,
    minLength: () => 'must not be empty',
    maxLength: ({ limit }) => `must have at most ${limit} characters`,
    minItems: ({ limit }) =>
      limit === 1 ? 'must not be empty' : `must have at least ${limit} items`,
    maxItems: ({ limit }) => `must have at most ${limit} items`,
    uniqueItems: ({ i, j }) =>
      `must not have an item twice: [${Math.max(i, j)}] is the same as [${Math.min(i, j)}]`,
    minimum: ({ limit }) => `must be >= ${limit}`,
    exclusiveMinimum: ({ limit }) => `must be > ${limit}`,
    maximum: ({ limit }) => `must be <= ${limit}`,
    multipleOf: ({ multipleOf }) => `must be a multiple of ${multipleOf}`,
  };

/** `params.type` is a word or a list; null is omitted, since it only means absent. */
function typeText(type: unknown): string {
  const names = Array.isArray(type) ? type : String(type).split(',');
  return names
    .filter((name) => name !== 'null')
    .map((name) => TYPE_TEXTS[name] ?? name)
    .join(' or ');
}

function describeWords(field: string, allowed: readonly unknown[]): string {
  if (isUnsupported(allowed)) return `${field} is not supported`;
  const words = allowed.filter((word) => word !== null).map(String);
  return `${field} must be ${words.length === 1 ? '' : 'one of '}${words.join(', ')}`;
}

/** `/blocks/2/branches/0` as `blocks[2].branches[0]`. */
export function fieldPath(pointer: string): string {
  let path = '';
  for (const part of pointer.split('/').slice(1)) {
    path = joinPath(path, part.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return path;
}
