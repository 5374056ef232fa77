/** How a sequence collects creations (docs/concurrency.md): its settings, the key of a creation, and errors in both. */

import type { Finding } from '../../schema/finding.js';
import { COLLECTING_KINDS, type CollectingKind } from '../../schema/pending-start.js';
import type { CreateSequence } from '../../schema/sequence.js';
import { isJsonObject, type JsonObject, ownValue } from '../base/json.js';
import type { UnixMs } from '../base/time.js';
import { EMPTY_SCOPE } from './expression/scope.js';
import { compileKey, type KeyTemplate, renderKey } from './key-params.js';
import type { Parsed } from './parsed.js';

/** The members of a stored definition. */
export type CollectingMembers = Pick<CreateSequence, CollectingKind>;

/** When collected creations start their instance. */
export interface Collecting {
  readonly kind: CollectingKind;
  readonly waitMs: number;
  /** The time from the first creation to the start that is never exceeded. */
  readonly maxWaitMs: number;
  /** The number of creations that start at once. */
  readonly size: number;
}

export interface CollectingPlan extends Collecting {
  /** Undefined: all creations have the same key. */
  readonly key: KeyTemplate | undefined;
}

/** Infinity would be null in JSON. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** Undefined when each creation starts its own instance. */
export function compileCollecting({
  debounce,
  batch,
}: CollectingMembers): CollectingPlan | undefined {
  if (debounce != null) {
    const { key, wait_ms: waitMs, max_wait_ms: maxWaitMs } = debounce;
    const own = { kind: 'debounce', size: UNLIMITED, maxWaitMs: maxWaitMs ?? UNLIMITED } as const;
    return { ...own, waitMs, key: templateOf('debounce', key) };
  }
  if (batch == null) return undefined;
  const { key, size, wait_ms: waitMs } = batch;
  return { kind: 'batch', size, waitMs, maxWaitMs: waitMs, key: templateOf('batch', key) };
}

const templateOf = (kind: CollectingKind, key: string | null | undefined) =>
  key == null ? undefined : compileKey(`${kind}.key`, key);

/** When the instance starts if no other creation follows. */
export function startOf({ kind, waitMs, maxWaitMs }: Collecting, first: UnixMs, now: UnixMs) {
  return kind === 'batch' ? first + waitMs : Math.min(now + waitMs, first + maxWaitMs);
}

/** Null without a key. A refusal names the member. */
export function collectingKeyOf(
  key: KeyTemplate | undefined,
  { data, config }: { readonly data: JsonObject; readonly config: JsonObject },
): Parsed<string | null> {
  if (key === undefined) return { ok: true, value: null };
  return renderKey(key, { ...EMPTY_SCOPE, data, config });
}

/** Errors beyond the schema. */
export function collectingErrors(definition: JsonObject): Finding[] {
  const found: Finding[] = [];
  const [debounce, batch] = COLLECTING_KINDS.map((kind) => ownValue(definition, kind));
  if (isJsonObject(debounce) && isJsonObject(batch)) {
    found.push({
      path: 'batch',
      message: 'batch must be absent beside debounce: a sequence has one of them',
    });
  }
  if (!isJsonObject(debounce)) return found;
  const { wait_ms: wait, max_wait_ms: most } = debounce;
  if (typeof wait === 'number' && typeof most === 'number' && most < wait) {
    const path = 'debounce.max_wait_ms';
    found.push({ path, message: `${path} must be at least wait_ms, which is ${wait}` });
  }
  return found;
}
