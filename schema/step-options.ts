/** Attempt options of steps: how often, when, and after which approval. Shapes only (docs/reference/steps.md). */

import * as t from './common.js';

/** A wait is min(initial_backoff × multiplier^attempt, max_backoff); see docs/reference/steps.md. */
export const RETRY_DEFAULTS = {
  initial_backoff: 1_000,
  max_backoff: 60_000,
  backoff_multiplier: 2,
} as const;

/** Hours of the day in the time zone of the instance. */
export const SEND_WINDOW_DEFAULTS = { start_hour: 9, end_hour: 17 } as const;

export const GATE_CHOICES_DEFAULT = [
  { label: 'Yes', value: 'yes' },
  { label: 'No', value: 'no' },
] as const;
const GATE_CHOICES_MAX = 50;
/** Their names fit into an entry of an index. */
const APPROVERS_MAX = 10;
/** Bounds the prompt, also after its templates are rendered. */
export const GATE_PROMPT_LENGTH_MAX = 4_096;

/** The check: initial_backoff is not above max_backoff. */
export const Retry = t.checked(
  'retry',
  t.object({
    max_attempts: t.noted(
      t.integer({ exclusiveMinimum: 0, maximum: t.INT32_MAX }),
      'Maximum number of attempts, including the first.',
    ),
    initial_backoff: t.nullish(
      t.withDefault(t.DurationMs, RETRY_DEFAULTS.initial_backoff),
      'Wait in ms before the second attempt.',
    ),
    max_backoff: t.nullish(
      t.withDefault(t.DurationMs, RETRY_DEFAULTS.max_backoff),
      'Maximum wait in ms between two attempts.',
    ),
    backoff_multiplier: t.nullish(
      t.number({ exclusiveMinimum: 0, default: RETRY_DEFAULTS.backoff_multiplier }),
      'Factor by which the wait grows with each attempt.',
    ),
    retry_if: t.nullish(t.Expression, 'Condition for a retry; it can read the error as _error.'),
    non_retryable_codes: t.nullish(t.list(t.Name), 'Error codes that are not retried.'),
  }),
);
export type Retry = t.Static<typeof Retry>;

/**
 * A duration, or a wall-clock time in `timezone`, by default the instance's. `holidays`, for `business_days_only`, are
 * calendar days in the zone of that time, or with a duration in the instance's.
 */
export const Delay = t.object({
  duration: t.nullish(t.DurationMs, 'Duration of the delay in ms.'),
  fire_at_local: t.nullish(t.text(), 'Local end YYYY-MM-DDTHH:MM:SS; instead of duration.'),
  timezone: t.nullish(t.TimeZone, "Time zone of fire_at_local; default: the instance's."),
  business_days_only: t.flag(false, 'Moves ends on weekends or holidays to the next business day.'),
  jitter: t.nullish(t.DurationMs, 'Moves the end by a random time up to this many ms, either way.'),
  holidays: t.nullish(
    t.list(t.text({ format: 'calendar-day' }), { maxItems: 1_000 }),
    'Holidays besides those in context.config.holidays.',
  ),
});

const hourOfDay = (byDefault: number, description: string) =>
  t.integer({ minimum: 0, maximum: 23, default: byDefault, description });
const DayOfWeek = t.integer({ minimum: 0, maximum: 6, description: '0 is Monday.' });

/** `end_hour` is excluded; a window whose end is before its start spans midnight (docs/reference/steps.md). */
export const SendWindow = t.object(
  {
    start_hour: t.nullish(hourOfDay(SEND_WINDOW_DEFAULTS.start_hour, 'First hour of the window.')),
    end_hour: t.nullish(hourOfDay(SEND_WINDOW_DEFAULTS.end_hour, 'First hour after the window.')),
    days: t.nullish(t.list(DayOfWeek, { maxItems: 7 }), 'Days of the window. Empty: every day.'),
  },
  'The two hours must differ; a window may span midnight.',
);

/** The check: the values of choices differ. */
export const GateChoice = t.named('GateChoice', {
  label: t.noted(t.Name, 'Text of the choice, for people.'),
  value: t.noted(t.Name, 'Value of the answer, if a person selects this choice.'),
});
export type GateChoice = t.Static<typeof GateChoice>;

export const WaitForInput = t.object(
  {
    prompt: t.nullish(
      t.text({ maxLength: GATE_PROMPT_LENGTH_MAX, default: '' }),
      'The question; may have templates.',
    ),
    choices: t.nullish(
      t.list(GateChoice, {
        minItems: 1,
        maxItems: GATE_CHOICES_MAX,
        'x-check': 'gate-choices',
        description: 'Possible answers. Default: Yes (yes) and No (no).',
      }),
    ),
    store_as: t.nullish(t.PlainName, 'Key of context.data for the value; default: block id.'),
    timeout: t.nullish(t.DurationMs, 'Time limit in ms; default: none.'),
    escalation_handler: t.nullish(
      t.Name,
      'After the time limit, the step completes with this ' +
        "handler's name in its output, instead of failing.",
    ),
    allow_comment: t.flag(false, 'Whether the answer may have a comment.'),
    approvers: t.nullish(
      t.list(t.GroupName, {
        maxItems: APPROVERS_MAX,
        uniqueItems: true,
        description: 'Groups whose members may answer; default: every key that may answer.',
      }),
    ),
  },
  "Requires a person's answer before the first attempt.",
);
