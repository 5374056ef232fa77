/**
 * What changed between two checkpoints, as it may be shown (05 §2): whatever looks like a secret, by
 * the name it stands under or by its shape, is replaced on both sides before they are compared.
 * Rather one value too many is hidden than one too few.
 */

import { compareText, isDeepEqual } from '../expression/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.js';

export const REDACTED = '[REDACTED]';
export const DIFF_CHANGES_MAX = 1_000;
/** Values deeper than this are compared as a whole. */
export const DIFF_DEPTH_MAX = 32;
/** Twice what the entry check admits; beyond it nothing is shown. */
const REDACTION_DEPTH_MAX = 512;

/** What is absent on one side is null there. The path is dotted; empty for the whole value. */
export interface StateChange {
  readonly path: string;
  readonly before: JsonValue;
  readonly after: JsonValue;
}

/** At most {@link DIFF_CHANGES_MAX} changes, in the order of their keys; arrays change as a whole. */
export function redactedStateDiff(before: JsonValue, after: JsonValue): StateChange[] {
  const changes: StateChange[] = [];
  compare(redacted(before), redacted(after), '', 0, changes);
  return changes;
}

/** A copy in which no secret is left. */
export function redacted(value: JsonValue): JsonValue {
  return redact(value, REDACTION_DEPTH_MAX);
}

function compare(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: string,
  depth: number,
  changes: StateChange[],
): void {
  if (changes.length >= DIFF_CHANGES_MAX) return;
  if (depth < DIFF_DEPTH_MAX && isJsonObject(before) && isJsonObject(after)) {
    for (const key of keysOf(before, after)) {
      const inner = path === '' ? key : `${path}.${key}`;
      compare(ownValue(before, key), ownValue(after, key), inner, depth + 1, changes);
    }
    return;
  }
  const isSame =
    before === undefined || after === undefined ? before === after : isDeepEqual(before, after);
  if (!isSame) changes.push({ path, before: before ?? null, after: after ?? null });
}

function keysOf(before: JsonObject, after: JsonObject): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(compareText);
}

/** In key names without their case and separators. */
const SENSITIVE_NAMES: readonly string[] = [
  'password',
  'passwd',
  'passphrase',
  'secret',
  'token',
  'apikey',
  'authorization',
  'bearer',
  'cookie',
  'credential',
  'privatekey',
  'accesskey',
  'signingkey',
  'encryptionkey',
];

function isSensitiveName(key: string): boolean {
  const name = key.toLowerCase().replace(/[^a-z0-9]/g, '');
  return SENSITIVE_NAMES.some((word) => name.includes(word));
}

/**
 * Each pattern begins at a boundary that cannot occur inside of what it goes on to match, so that
 * searching a long text stays linear.
 */
const SECRET_SHAPES: readonly RegExp[] = [
  // Private keys in PEM form.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/,
  // What an Authorization header holds.
  /^\s*(?:bearer|basic)\s+\S{6}/i,
  // JSON Web Tokens.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]/,
  // Keys of well-known issuers, this server among them.
  /(?<![\w-])(?:[sr]k[-_]\w{16}|sk-[\w-]{16}|gh[opsur]_\w{16}|github_pat_\w{16}|glpat-[\w-]{16})/,
  /(?<![\w-])(?:xox[abeoprs]-[\w-]{8}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30}|npm_\w{30})/,
  // A password inside an address.
  /:\/\/[^\s/:@]*:[^\s/@]+@/,
];

function isSecretText(text: string): boolean {
  return SECRET_SHAPES.some((shape) => shape.test(text));
}

function redact(value: JsonValue, depthLeft: number): JsonValue {
  if (typeof value === 'string') return isSecretText(value) ? REDACTED : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depthLeft <= 0) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => redact(item, depthLeft - 1));
  // fromEntries makes own members of all keys, `__proto__` too.
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, redactMember(key, inner, depthLeft)]),
  );
}

/** Null tells nothing, so that a secret that appears or goes is seen. */
function redactMember(key: string, value: JsonValue, depthLeft: number): JsonValue {
  return value !== null && isSensitiveName(key) ? REDACTED : redact(value, depthLeft - 1);
}
