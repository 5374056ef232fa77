/**
 * What a step may say of its tries: how often, when, and whom it asks first. Shapes only
 * (docs/reference/steps.md).
 */

import { type Static, Type } from '@sinclair/typebox';
import {
  DurationMs,
  Expression,
  INT32_MAX,
  Name,
  named,
  noted,
  optional,
  PlainName,
  TimeZone,
  withDefault,
} from './common.js';

/** A wait is min(initial_backoff × multiplier^attempt, max_backoff); see docs/reference/steps.md. */
export const RETRY_DEFAULTS = {
  initial_backoff: 1_000,
  max_backoff: 60_000,
  backoff_multiplier: 2,
} as const;

/** Hours of the day in the zone of the instance. */
export const SEND_WINDOW_DEFAULTS = { start_hour: 9, end_hour: 17 } as const;

/** What a person chooses from when a gate names nothing else. */
export const GATE_CHOICES_DEFAULT = [
  { label: 'Yes', value: 'yes' },
  { label: 'No', value: 'no' },
] as const;
/** Nobody finds the right one of more buttons. */
export const GATE_CHOICES_MAX = 50;
/** A page of text; what its templates make of it is cut there, too. */
export const GATE_PROMPT_LENGTH_MAX = 4_096;

/** The check: initial_backoff is not above max_backoff. */
export const Retry = Type.Object(
  {
    max_attempts: Type.Integer({
      exclusiveMinimum: 0,
      maximum: INT32_MAX,
      description: 'Tries in total.',
    }),
    initial_backoff: optional(
      noted(
        withDefault(DurationMs, RETRY_DEFAULTS.initial_backoff),
        'The wait after the first try.',
      ),
    ),
    max_backoff: optional(
      noted(withDefault(DurationMs, RETRY_DEFAULTS.max_backoff), 'No wait is longer.'),
    ),
    backoff_multiplier: optional(
      Type.Number({
        exclusiveMinimum: 0,
        default: RETRY_DEFAULTS.backoff_multiplier,
        description: 'Each wait is this many times the one before.',
      }),
    ),
    retry_if: optional(
      noted(
        Expression,
        'Asked after each failure, which it sees as _error. No further try if false.',
      ),
    ),
    non_retryable_codes: optional(
      Type.Array(Name, { description: 'An error with one of these codes is not tried again.' }),
    ),
  },
  { 'x-check': 'retry' },
);
export type Retry = Static<typeof Retry>;

/**
 * A duration, or a wall-clock time in `timezone`, else in the zone of the instance. `holidays`, for
 * `business_days_only`, are calendar days of the zone of that time, and beside a duration of the
 * instance's.
 */
export const Delay = Type.Object({
  duration: optional(noted(DurationMs, 'How long to wait.')),
  fire_at_local: optional(
    Type.String({
      description: 'Waits until this time: YYYY-MM-DDTHH:MM:SS. Not together with a duration.',
    }),
  ),
  timezone: optional(noted(TimeZone, 'Of fire_at_local; else the zone of the instance.')),
  business_days_only: optional(
    Type.Boolean({
      default: false,
      description:
        'Saturdays, Sundays and holidays move the end of the wait to the next business day.',
    }),
  ),
  jitter: optional(
    noted(
      DurationMs,
      'The end of the wait is moved by a random time, by at most this much either way.',
    ),
  ),
  holidays: optional(
    Type.Array(Type.String({ format: 'calendar-day' }), {
      maxItems: 1_000,
      description: 'Days that are no business days, beside those in context.config.holidays.',
    }),
  ),
});
export type Delay = Static<typeof Delay>;

const hourOfDay = (byDefault: number, description: string) =>
  Type.Integer({ minimum: 0, maximum: 23, default: byDefault, description });
const DayOfWeek = Type.Integer({ minimum: 0, maximum: 6, description: '0 is Monday.' });

/**
 * `end_hour` is excluded; a window whose end is before its start goes over midnight
 * (docs/reference/steps.md).
 */
export const SendWindow = Type.Object(
  {
    start_hour: optional(
      hourOfDay(SEND_WINDOW_DEFAULTS.start_hour, 'The first hour in which it is open.'),
    ),
    end_hour: optional(
      hourOfDay(SEND_WINDOW_DEFAULTS.end_hour, 'The hour in which it closes: no longer open.'),
    ),
    days: optional(
      Type.Array(DayOfWeek, {
        maxItems: 7,
        description: 'On which days: 0 is Monday, 6 is Sunday. Empty: every day.',
      }),
    ),
  },
  { description: 'The two hours must differ; a window may go over midnight.' },
);
export type SendWindow = Static<typeof SendWindow>;

/** The check: the values of choices differ. */
export const GateChoice = named('GateChoice', {
  label: noted(Name, 'What the person reads.'),
  value: noted(Name, 'What the answer is then.'),
});
export type GateChoice = Static<typeof GateChoice>;

export const WaitForInput = Type.Object(
  {
    prompt: optional(
      Type.String({
        maxLength: GATE_PROMPT_LENGTH_MAX,
        default: '',
        description: 'What the person is asked; may hold templates.',
      }),
    ),
    choices: optional(
      Type.Array(GateChoice, {
        minItems: 1,
        maxItems: GATE_CHOICES_MAX,
        'x-check': 'gate-choices',
        description: 'What can be answered. When absent: Yes (yes) and No (no).',
      }),
    ),
    store_as: optional(
      noted(PlainName, 'The key of context.data for the value; the id of the block when absent.'),
    ),
    timeout: optional(noted(DurationMs, 'How long to wait for the answer; for ever when absent.')),
    escalation_handler: optional(
      noted(
        Name,
        'When the time is over, the step completes with an output that names it, and does not fail.',
      ),
    ),
    allow_comment: optional(
      Type.Boolean({ default: false, description: 'Whether the answer may have a comment.' }),
    ),
  },
  { description: 'A person has to answer before the first try.' },
);
export type WaitForInput = Static<typeof WaitForInput>;
