/** The events that cancel an instance: compiled with its sequence, rendered once at its creation (docs/concurrency.md). */

import type { CancelOn } from '../../schema/cancel-on.js';
import type { CancelEvent } from '../../schema/execution.js';
import type { JsonObject } from '../base/json.js';
import { EMPTY_SCOPE } from './expression/scope.js';
import { compileKey, type KeyTemplate, renderKey } from './key-params.js';
import { type Parsed, refused } from './parsed.js';

export interface CancelRule {
  readonly event: string;
  /** Null: every event with the name. */
  readonly key: KeyTemplate | null;
}

export function compileCancelOn(entries: readonly CancelOn[]): CancelRule[] {
  return entries.map(({ event, key }, index) => ({
    event,
    key: key == null ? null : compileKey(`cancel_on[${index}].key`, key),
  }));
}

export interface CreatedFrom {
  readonly id: string;
  readonly data: JsonObject;
  readonly config: JsonObject;
}

/** `ok: false`: a key cannot be rendered, and the message names it. */
export function cancelEvents(
  rules: readonly CancelRule[],
  { id, data, config }: CreatedFrom,
): Parsed<readonly CancelEvent[]> {
  const scope = { ...EMPTY_SCOPE, data, config, instanceId: id };
  const events: CancelEvent[] = [];
  for (const { event, key } of rules) {
    if (key === null) {
      events.push({ n: event });
      continue;
    }
    const rendered = renderKey(key, scope);
    if (!rendered.ok) return refused(rendered.message);
    events.push({ n: event, k: rendered.value });
  }
  return { ok: true, value: events };
}
