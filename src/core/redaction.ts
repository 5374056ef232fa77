/**
 * The difference between two checkpoints without secrets. Values whose key or shape looks like a secret are replaced on
 * both sides before the comparison; in doubt a value is hidden.
 */

import { REDACTED } from '../../schema/common.js';
import type { BoundaryDetail } from '../../schema/continuity.js';
import { compareText, isDeepEqual } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';

export const DIFF_CHANGES_MAX = 1_000;
/** Values deeper than this are compared as a whole. */
export const DIFF_DEPTH_MAX = 32;
/** Twice the limit of requests; deeper values are hidden. */
const REDACTION_DEPTH_MAX = 512;
/** A value that is absent on one side is null there. The path is dotted, and empty for the whole value. */
type StateChange = BoundaryDetail['redacted_state_diff'][number];

/** At most {@link DIFF_CHANGES_MAX} changes, sorted by path. Arrays change as a whole. */
export function redactedStateDiff(before: JsonValue, after: JsonValue): StateChange[] {
  const changes: StateChange[] = [];
  compare(before, after, '', 0, changes);
  return changes.sort((a, b) => compareText(a.path, b.path));
}

export const redacted = (value: JsonValue): JsonValue => redact(value, REDACTION_DEPTH_MAX);

function compare(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: string,
  depth: number,
  changes: StateChange[],
): void {
  if (before === after || changes.length >= DIFF_CHANGES_MAX) return;
  if (depth < DIFF_DEPTH_MAX && isJsonObject(before) && isJsonObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const inner = path === '' ? key : `${path}.${key}`;
      const [old, now] = [memberOf(before, key), memberOf(after, key)];
      compare(old, now, inner, depth + 1, changes);
    }
    return;
  }
  const [old, now] = [before, after].map((side) => side && redacted(side));
  const isSame = old === undefined || now === undefined ? old === now : isDeepEqual(old, now);
  if (!isSame) changes.push({ path, before: old ?? null, after: now ?? null });
}

function memberOf(object: JsonObject, key: string): JsonValue | undefined {
  const value = ownValue(object, key);
  return value === undefined ? undefined : hiddenByName(key, value);
}

/** Words that a key name may hold in any case, with or without a separator between their parts. */
const SENSITIVE_NAME = new RegExp(
  'passw(?:or)?d|pass[^a-z0-9]?phrase|secret|token|authorization|bearer|cookie|credential|' +
    '(?:api|private|access|signing|encryption)[^a-z0-9]?key',
  'i',
);

/** Each begins at a boundary that cannot occur inside its match, so that searching a long text stays linear. */
const SECRET_SHAPES: readonly RegExp[] = [
  // Private keys in PEM form.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/,
  // Values of an Authorization header.
  /^\s*(?:bearer|basic)\s+[\w.~+/=-]{6,}\s*$/i,
  // JSON Web Tokens.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]/,
  // Keys of well-known issuers, this server among them.
  /(?<![\w-])(?:[sr]k[-_]\w{16}|sk-[\w-]{16}|gh[opsur]_\w{16}|github_pat_\w{16}|glpat-[\w-]{16})/,
  /(?<![\w-])(?:xox[abeoprs]-[\w-]{8}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30}|npm_\w{30})/,
  // A password inside an address.
  /:\/\/[^\s/:@]*:[^\s/@]+@/,
];

function redact(value: JsonValue, depthLeft: number): JsonValue {
  if (typeof value === 'string') {
    return SECRET_SHAPES.some((shape) => shape.test(value)) ? REDACTED : value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depthLeft <= 0) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => redact(item, depthLeft - 1));
  // fromEntries makes own members of all keys, `__proto__` too.
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, redact(hiddenByName(key, one), depthLeft - 1)]),
  );
}

/** Null is shown, so that the difference tells when a secret appears or disappears. */
function hiddenByName(key: string, value: JsonValue): JsonValue {
  return value !== null && SENSITIVE_NAME.test(key) ? REDACTED : value;
}
