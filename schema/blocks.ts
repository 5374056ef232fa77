/**
 * The block kinds of a sequence and their sub-objects (00-mission, 'Block definitions'; 02 §2–§4).
 * Shapes only: unique ids, depth and the number of blocks are rules on the whole tree and belong to
 * `core/plan.ts`. A further block kind is one more schema in the list of `Block`.
 *
 * Fields that change what runs and that nothing implements are refused, not ignored (06 row 39).
 */

import { type Static, type TProperties, Type } from '@sinclair/typebox';
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
  UserSchema,
  unsupported,
} from './common.js';

/** 06 row 64: caps of ours on what the specification leaves unlimited. */
export const BRANCHES_MAX = 256;
export const ITERATIONS_MAX = 100_000;

/** 06 row 4. A wait is min(initial_backoff × multiplier^attempt, max_backoff). */
export const RETRY_DEFAULTS = {
  initial_backoff: 1_000,
  max_backoff: 60_000,
  backoff_multiplier: 2,
} as const;

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

/** `holidays` are calendar days of the instance's time zone, for `business_days_only`. */
export const Delay = Type.Object({
  duration: optional(DurationMs),
  business_days_only: optional(Type.Boolean()),
  jitter: optional(DurationMs),
  holidays: optional(Type.Array(Type.String({ format: 'calendar-day' }), { maxItems: 1_000 })),
  ...unsupported('fire_at_local', 'timezone'),
});
export type Delay = Static<typeof Delay>;

function blockObject<K extends string, P extends TProperties>(kind: K, properties: P) {
  return Type.Object({ type: Type.Literal(kind), id: PlainName, ...properties });
}

export const StepBlock = blockObject('step', {
  handler: Name,
  params: optional(JsonObjectSchema),
  delay: optional(Delay),
  retry: optional(Retry),
  timeout: optional(DurationMs),
  rate_limit_key: optional(Key),
  when: optional(Type.String({ maxLength: EXPRESSION_LENGTH_MAX })),
  cancellable: optional(Type.Boolean()),
  queue_name: optional(Name),
  output_schema: optional(UserSchema),
  ...unsupported(
    'send_window',
    'context_access',
    'wait_for_input',
    'deadline',
    'on_deadline_breach',
    'fallback_handler',
    'cache_key',
    'compensation',
  ),
});
export type StepBlock = Static<typeof StepBlock>;

const ParallelSchema = blockObject('parallel', { branches: Branches });

const RaceSchema = blockObject('race', {
  branches: Branches,
  semantics: optional(oneOfWords(['first_to_resolve', 'first_to_succeed'])),
});

const Route = Type.Object({ condition: Expression, blocks: BlockList });

const RouterSchema = Type.Object(
  {
    type: Type.Literal('router'),
    id: PlainName,
    routes: optional(Type.Array(Route)),
    default: optional(BlockList),
  },
  { 'x-check': 'router' },
);

const TryCatchSchema = blockObject('try_catch', {
  try_block: NonEmptyBlockList,
  catch_block: BlockList,
  finally_block: optional(BlockList),
});

const LoopSchema = blockObject('loop', {
  condition: Expression,
  body: NonEmptyBlockList,
  max_iterations: optional(MaxIterations),
  ...unsupported('break_on', 'poll_interval', 'continue_on_error', 'retain_iterations'),
});

const ForEachSchema = blockObject('for_each', {
  collection: Expression,
  item_var: optional(PlainName),
  body: NonEmptyBlockList,
  max_iterations: optional(MaxIterations),
});

// Types that contain themselves cannot be derived from their schemas, so these are spelled out.

interface BlockBase<K extends string> {
  type: K;
  id: string;
}

export interface ParallelBlock extends BlockBase<'parallel'> {
  branches: Block[][];
}

export interface RaceBlock extends BlockBase<'race'> {
  branches: Block[][];
  /** Default `first_to_resolve`. */
  semantics?: 'first_to_resolve' | 'first_to_succeed' | null;
}

export interface RouterBlock extends BlockBase<'router'> {
  routes?: { condition: string; blocks: Block[] }[] | null;
  default?: Block[] | null;
}

export interface TryCatchBlock extends BlockBase<'try_catch'> {
  try_block: Block[];
  catch_block: Block[];
  finally_block?: Block[] | null;
}

export interface LoopBlock extends BlockBase<'loop'> {
  condition: string;
  body: Block[];
  max_iterations?: number | null;
}

export interface ForEachBlock extends BlockBase<'for_each'> {
  collection: string;
  item_var?: string | null;
  body: Block[];
  max_iterations?: number | null;
}

export type Block =
  | StepBlock
  | ParallelBlock
  | RaceBlock
  | RouterBlock
  | TryCatchBlock
  | LoopBlock
  | ForEachBlock;

/** The tag decides which kind is checked, so that a mistake is reported once and in its place. */
export const Block = Type.Unsafe<Block>({
  $id: 'Block',
  type: 'object',
  properties: { type: { type: 'string' } },
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [
    StepBlock,
    ParallelSchema,
    RaceSchema,
    RouterSchema,
    TryCatchSchema,
    LoopSchema,
    ForEachSchema,
  ],
});

/** The root list of a sequence. */
export const RootBlocks = NonEmptyBlockList;
export type RootBlocks = Static<typeof RootBlocks>;
