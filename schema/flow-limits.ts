/** Members of a sequence that limit its instances by a key (docs/concurrency.md). */

import * as t from './common.js';

export const WHEN_FULL = ['queue', 'skip', 'cancel_oldest', 'cancel_newest'] as const;
export type WhenFull = (typeof WHEN_FULL)[number];

/** Each start in a window is kept, so that no sliding window exceeds the limit. */
const STARTS_MAX = 100_000;
const WINDOW_MS_MAX = 31 * 86_400_000;

/** Begins every concurrency key that a sequence gives; callers may not use it. */
export const SEQUENCE_KEY_PREFIX = 'sequence:';

const FlowKey = t.text({ minLength: 1, maxLength: 1_024 });
const KEY_NOTE = 'Template over data and config of the creation; default: one key for all.';

const Concurrency = t.object(
  {
    key: t.nullish(FlowKey, KEY_NOTE),
    limit: t.noted(
      t.integer({ minimum: 1, maximum: t.INT32_MAX }),
      'Maximum number of instances of a key that run at once.',
    ),
    when_full: t.nullish(
      t.withDefault(t.oneOf(WHEN_FULL, 'Action of a creation while no slot is free.'), 'queue'),
    ),
  },
  'Limits how many instances of the sequence, in all versions, run at once.',
);
export type Concurrency = t.Static<typeof Concurrency>;

const Throttle = t.object(
  {
    key: t.nullish(FlowKey, KEY_NOTE),
    limit: t.noted(
      t.integer({ minimum: 1, maximum: STARTS_MAX }),
      'Maximum number of starts in any window of per_ms.',
    ),
    per_ms: t.integer({ minimum: 1, maximum: WINDOW_MS_MAX }),
    burst: t.nullish(
      t.integer({ minimum: 1, maximum: STARTS_MAX }),
      'Maximum number of starts at once, at most limit; further ones are per_ms / limit apart. ' +
        'Default: limit.',
    ),
  },
  'Puts off starts of instances of the sequence, in all versions.',
);
export type Throttle = t.Static<typeof Throttle>;

/** In a definition that is stored. */
export const FLOW_LIMITS = {
  concurrency: t.nullish(Concurrency),
  throttle: t.nullish(Throttle),
};

/** In a stored definition. */
export const STORED_FLOW_LIMITS = {
  concurrency: t.optional(Concurrency),
  throttle: t.optional(Throttle),
};

export interface FlowLimits {
  readonly concurrency?: Concurrency | null | undefined;
  readonly throttle?: Throttle | null | undefined;
}

/** The members with a template over a creation. */
export const FLOW_KEYS = ['concurrency', 'throttle'] as const;
