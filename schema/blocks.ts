/**
 * The block kinds of a sequence and their sub-objects. Shapes only: unique ids, depth and the
 * number of blocks are rules on the whole tree and belong to `core/plan.ts`. A further kind is one
 * more row: a schema, its type, and a line in the table at the end; `docs/blocks.md` shows the
 * rest.
 *
 * Fields that change what runs and that nothing implements are refused, not ignored
 * (docs/decisions/0018-fields-that-are-not-supported.md).
 */

import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox';
import {
  DurationMs,
  EXPRESSION_LENGTH_MAX,
  Expression,
  INT32_MAX,
  JsonObjectSchema,
  Key,
  Name,
  oneOfWords,
  optional,
  PlainName,
  TimeZone,
  UserSchema,
  unsupported,
} from './common.js';

/** Caps of ours, against stacks and turns without end (docs/reference/blocks.md). */
export const BRANCHES_MAX = 256;
export const ITERATIONS_MAX = 100_000;

/** A wait is min(initial_backoff × multiplier^attempt, max_backoff); see docs/reference/steps.md. */
export const RETRY_DEFAULTS = {
  initial_backoff: 1_000,
  max_backoff: 60_000,
  backoff_multiplier: 2,
} as const;

/** Hours of the day in the zone of the instance. */
export const SEND_WINDOW_DEFAULTS = { start_hour: 9, end_hour: 17 } as const;

export const MAX_ITERATIONS_DEFAULT = 1_000;
export const ITEM_VAR_DEFAULT = 'item';

/** Blocks refer to blocks: the validators know this schema under its `$id`. */
const BlockRef = Type.Unsafe<Block>({ $ref: 'Block' });
const BlockList = Type.Array(BlockRef);
const NonEmptyBlockList = Type.Array(BlockRef, { minItems: 1 });
const Branches = Type.Array(BlockList, { minItems: 1, maxItems: BRANCHES_MAX });
const MaxIterations = Type.Integer({
  exclusiveMinimum: 0,
  maximum: ITERATIONS_MAX,
  description: `Default ${MAX_ITERATIONS_DEFAULT}.`,
});

/** Tries in total are `max_attempts`. The check: initial_backoff is not above max_backoff. */
export const Retry = Type.Object(
  {
    max_attempts: Type.Integer({ exclusiveMinimum: 0, maximum: INT32_MAX }),
    initial_backoff: optional(DurationMs),
    max_backoff: optional(DurationMs),
    backoff_multiplier: optional(Type.Number({ exclusiveMinimum: 0 })),
    retry_if: optional(Expression),
    non_retryable_codes: optional(Type.Array(Name)),
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
  duration: optional(DurationMs),
  fire_at_local: optional(
    Type.String({ description: 'YYYY-MM-DDTHH:MM:SS; not together with a duration.' }),
  ),
  timezone: optional(TimeZone),
  business_days_only: optional(Type.Boolean()),
  jitter: optional(DurationMs),
  holidays: optional(Type.Array(Type.String({ format: 'calendar-day' }), { maxItems: 1_000 })),
});
export type Delay = Static<typeof Delay>;

const hourOfDay = (byDefault: number) =>
  Type.Integer({ minimum: 0, maximum: 23, description: `Default ${byDefault}.` });
const DayOfWeek = Type.Integer({ minimum: 0, maximum: 6, description: '0 is Monday.' });

/**
 * `end_hour` is excluded; a window whose end is before its start goes over midnight
 * (docs/reference/steps.md).
 */
export const SendWindow = Type.Object(
  {
    start_hour: optional(hourOfDay(SEND_WINDOW_DEFAULTS.start_hour)),
    end_hour: optional(hourOfDay(SEND_WINDOW_DEFAULTS.end_hour)),
    days: optional(Type.Array(DayOfWeek, { maxItems: 7, description: 'Empty: every day.' })),
  },
  { description: 'The two hours must differ; a window may go over midnight.' },
);
export type SendWindow = Static<typeof SendWindow>;

function blockObject<K extends string, P extends TProperties>(kind: K, properties: P) {
  return Type.Object({ type: Type.Literal(kind), id: PlainName, ...properties });
}

// An interface may refer to itself by way of `Block`, where an alias may not.

const Step = blockObject('step', {
  handler: Name,
  params: optional(JsonObjectSchema),
  delay: optional(Delay),
  retry: optional(Retry),
  timeout: optional(DurationMs),
  send_window: optional(SendWindow),
  rate_limit_key: optional(Key),
  when: optional(Type.String({ maxLength: EXPRESSION_LENGTH_MAX })),
  cancellable: optional(Type.Boolean()),
  queue_name: optional(Name),
  output_schema: optional(UserSchema),
  ...unsupported(
    'context_access',
    'wait_for_input',
    'deadline',
    'on_deadline_breach',
    'fallback_handler',
    'cache_key',
    'compensation',
  ),
});
export interface StepBlock extends Static<typeof Step> {}

const Parallel = blockObject('parallel', { branches: Branches });
export interface ParallelBlock extends Static<typeof Parallel> {}

const Race = blockObject('race', {
  branches: Branches,
  semantics: optional(
    oneOfWords(['first_to_resolve', 'first_to_succeed'], 'Default first_to_resolve.'),
  ),
});
export interface RaceBlock extends Static<typeof Race> {}

const Route = Type.Object({ condition: Expression, blocks: BlockList });

const Router = Type.Object(
  {
    type: Type.Literal('router'),
    id: PlainName,
    routes: optional(Type.Array(Route)),
    default: optional(BlockList),
  },
  { 'x-check': 'router' },
);
export interface RouterBlock extends Static<typeof Router> {}

const TryCatch = blockObject('try_catch', {
  try_block: NonEmptyBlockList,
  catch_block: BlockList,
  finally_block: optional(BlockList),
});
export interface TryCatchBlock extends Static<typeof TryCatch> {}

const Loop = blockObject('loop', {
  condition: Expression,
  body: NonEmptyBlockList,
  max_iterations: optional(MaxIterations),
  ...unsupported('break_on', 'poll_interval', 'continue_on_error', 'retain_iterations'),
});
export interface LoopBlock extends Static<typeof Loop> {}

const ForEach = blockObject('for_each', {
  collection: Expression,
  item_var: optional(PlainName),
  body: NonEmptyBlockList,
  max_iterations: optional(MaxIterations),
});
export interface ForEachBlock extends Static<typeof ForEach> {}

export type Block =
  | StepBlock
  | ParallelBlock
  | RaceBlock
  | RouterBlock
  | TryCatchBlock
  | LoopBlock
  | ForEachBlock;

const BLOCKS = {
  step: Step,
  parallel: Parallel,
  race: Race,
  router: Router,
  try_catch: TryCatch,
  loop: Loop,
  for_each: ForEach,
} as const satisfies { readonly [T in Block['type']]: TObject };

/** The members that mean something in blocks of the kind; others are stored and have no effect. */
export function membersOf(kind: Block['type']): TProperties {
  return BLOCKS[kind].properties;
}

/** The tag decides which kind is checked, so that a mistake is reported once and in its place. */
export const Block = Type.Unsafe<Block>({
  $id: 'Block',
  type: 'object',
  properties: { type: { type: 'string' } },
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: Object.values(BLOCKS),
});

/** Blocks that one instance runs beside its sequence's own. */
export const InjectedBlocks = NonEmptyBlockList;

/** The root list of a sequence. */
export const RootBlocks = NonEmptyBlockList;
export type RootBlocks = Static<typeof RootBlocks>;
