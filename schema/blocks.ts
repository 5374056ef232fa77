/**
 * The block kinds of a sequence and their parts. Rules on the whole tree, such as unique ids and depth, are in
 * `core/plan.ts`. A new kind is a schema, its type, and a row of the table at the end (docs/adding-blocks.md).
 */

import type { TObject, TProperties, TSchema } from '@sinclair/typebox';
import * as t from './common.js';
import { BUILTIN_HANDLERS, PARAMS_NOTE } from './handlers.js';
import { words } from './states.js';
import { Delay, Retry, SendWindow, WaitForInput } from './step-options.js';

/** Bounds against deep stacks and endless turns (docs/reference/blocks.md). */
export const DEPTH_MAX = 64;
export const BLOCKS_MAX = 5_000;
export const BRANCHES_MAX = 256;
export const ITERATIONS_MAX = 100_000;
export const CONCURRENCY_MAX = 256;
/** Blocks of a plan, which repeats the body of a for_each for each concurrent item. */
export const PLAN_BLOCKS_MAX = 20_000;
/** Total size of the item outputs that a for_each collects as its own output. */
export const COLLECTED_BYTES_MAX = 1024 * 1024;

export const MAX_ITERATIONS_DEFAULT = 1_000;
export const ITEM_VAR_DEFAULT = 'item';

/** Blocks contain blocks: the validators resolve this schema by its `$id`. */
const BlockRef = t.typed<Block>({ $ref: 'Block' });
const BlockList = t.list(BlockRef);
const NonEmptyBlockList = t.list(BlockRef, { minItems: 1 });
/** A block, or a list of blocks. `if` selects one schema, so that a mistake is reported once. */
function blocksOrOne<List extends TSchema>(list: List) {
  return t.typed<Block | t.Static<List>>({
    if: { type: ['array', 'null'] },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: list,
    else: BlockRef,
  });
}
const Branches = t.list(BlockList, { minItems: 1, maxItems: BRANCHES_MAX });
const MaxIterations = t.integer({
  exclusiveMinimum: 0,
  maximum: ITERATIONS_MAX,
  default: MAX_ITERATIONS_DEFAULT,
});

const headOf = <K extends string>(kind: K) => ({
  type: t.literal(kind, 'Kind of the block.'),
  id: t.noted(t.BlockId, 'Unique in the sequence. Expressions use it to refer to the output.'),
  when: t.nullish(t.text({ maxLength: t.EXPRESSION_LENGTH_MAX }), 'If false, skips the block.'),
  timeout: t.nullish(t.DurationMs, 'Time limit in ms; then the block is cancelled, and fails.'),
});

/** @param note description of the kind in the document */
function blockObject<K extends string, P extends TProperties>(
  kind: K,
  note: string,
  properties: P,
) {
  return t.object({ ...headOf(kind), ...properties }, note);
}

/** Runs inside the server: `log` and the other pure handlers, or `http_request`. */
const OnDeadlineBreach = t.object({
  handler: t.noted(t.Name, 'A built-in handler that does not wait.'),
  params: t.nullish(
    t.JsonObjectSchema,
    'Parameters, with templates. The server adds _breach_block_id, ' +
      '_breach_instance_id, _breach_elapsed_ms and _breach_deadline_ms.',
  ),
});

// An interface may refer to itself by way of `Block`, where an alias may not.

const STEP_NOTE =
  'Runs a handler: a built-in one ' +
  `(${BUILTIN_HANDLERS.join(', ')}) in the server, any other in an external worker.`;

const Step = blockObject('step', STEP_NOTE, {
  handler: t.noted(t.Name, 'Name of a built-in handler, or of one that external workers serve.'),
  params: t.nullish(
    t.JsonObjectSchema,
    'Parameters of the handler. Invalid ones of built-in handlers are answered 400. ' +
      `${PARAMS_NOTE}`,
  ),
  delay: t.nullish(Delay, 'Waits before the first attempt.'),
  retry: t.nullish(Retry, 'Retries after failed attempts.'),
  timeout: t.nullish(t.DurationMs, 'Time limit of an attempt in ms, for a task from its claim.'),
  queue_timeout: t.nullish(t.DurationMs, 'Time limit in ms for a worker to claim the task.'),
  deadline: t.nullish(t.DurationMs, 'Time limit of the step in ms, with all waits and attempts.'),
  on_deadline_breach: t.nullish(OnDeadlineBreach, 'Called once when the deadline passes.'),
  send_window: t.nullish(SendWindow, 'Hours in which the step may start. It waits for them.'),
  rate_limit_key: t.nullish(
    t.Key,
    'Steps with the same key share a rate limit, and wait for it. A template.',
  ),
  cancellable: t.flag(true, 'False: the signal cancel waits for the step.'),
  queue_name: t.nullish(t.Name, 'Queue of the task. A poll can select one queue.'),
  output_schema: t.nullish(t.UserSchema, 'Schema of the output; a violation fails the step.'),
  merge_output: t.flag(true, "Merges a worker's output into context.data."),
  wait_for_input: t.nullish(WaitForInput),
  reply: t.optional(
    t.AnyJson,
    'For wait_for_input and wait_for_event: the answer to a sender of the signal who waits, with ' +
      'templates.',
  ),
  ...t.unsupported('context_access', 'fallback_handler', 'cache_key', 'compensation'),
});
export interface StepBlock extends t.Static<typeof Step> {}

const Parallel = blockObject('parallel', 'Runs all branches concurrently; fails if one fails.', {
  branches: t.noted(Branches, 'Lists of blocks that run concurrently.'),
});
export interface ParallelBlock extends t.Static<typeof Parallel> {}

const RACE_SEMANTICS = ['first_to_resolve', 'first_to_succeed'] as const;
const RACE_NOTE =
  'first_to_resolve: the first branch to finish wins, even by ' +
  'failing. first_to_succeed: the first branch to succeed wins; the ' +
  'block fails if all fail. The other branches are cancelled.';

const Race = blockObject('race', RACE_NOTE, {
  branches: t.noted(Branches, 'Lists of blocks that run until one has won.'),
  semantics: t.nullish(
    t.withDefault(t.oneOf(RACE_SEMANTICS, 'Which branch wins.'), 'first_to_resolve'),
  ),
});
export interface RaceBlock extends t.Static<typeof Race> {}

const Route = t.object({
  condition: t.noted(t.Expression, 'Condition of the route.'),
  blocks: t.noted(BlockList, 'Blocks of the route.'),
});

const Router = t.checked(
  'router',
  blockObject('router', 'Runs the first route whose condition is true, else default.', {
    routes: t.nullish(t.list(Route), 'The first route whose condition is true runs.'),
    default: t.nullish(BlockList, 'Blocks that run if no condition is true.'),
  }),
);
export interface RouterBlock extends t.Static<typeof Router> {}

const TryCatch = blockObject(
  'try_catch',
  'Runs catch_block on failure, and finally_block always.',
  {
    try_block: t.noted(NonEmptyBlockList, 'Blocks that run first.'),
    catch_block: t.noted(BlockList, 'Blocks that run if try_block failed.'),
    finally_block: t.nullish(BlockList, 'Blocks that always run last, also after a cancellation.'),
  },
);
export interface TryCatchBlock extends t.Static<typeof TryCatch> {}

const Loop = blockObject('loop', 'Repeats its body while the condition is true.', {
  condition: t.noted(t.Expression, 'Evaluated before each iteration; false ends the loop.'),
  body: t.noted(NonEmptyBlockList, 'Blocks of each iteration.'),
  max_iterations: t.nullish(MaxIterations, 'Maximum number of iterations; the loop then succeeds.'),
  ...t.unsupported('break_on', 'poll_interval', 'continue_on_error', 'retain_iterations'),
});
export interface LoopBlock extends t.Static<typeof Loop> {}

const ForEach = blockObject('for_each', 'Runs its body for each item of a context.data array.', {
  collection: t.noted(t.Expression, 'An array: path in context.data, or template. May be missing.'),
  item_var: t.nullish(
    t.withDefault(t.PlainName, ITEM_VAR_DEFAULT),
    'Key of context.data with the item, in the body.',
  ),
  body: t.noted(NonEmptyBlockList, 'Blocks that run for each item.'),
  index_var: t.nullish(t.PlainName, 'Key of context.data with the index of the item, from 0.'),
  concurrency: t.nullish(
    t.integer({ minimum: 1, maximum: CONCURRENCY_MAX, default: 1 }),
    'Number of items that run concurrently.',
  ),
  max_iterations: t.nullish(MaxIterations, 'Maximum number of items; more fail the block at once.'),
});
export interface ForEachBlock extends t.Static<typeof ForEach> {}

const SubSequence = blockObject(
  'sub_sequence',
  'Starts a child instance of another sequence, and waits for it.',
  {
    sequence_name: t.noted(t.Name, 'Sequence of the child, in the namespace of this instance.'),
    version: t.nullish(t.Version, 'Pins this version. Default: chosen as the child starts.'),
    input: t.nullish(t.JsonObjectSchema, 'context.data of the child; strings may be templates.'),
  },
);
export interface SubSequenceBlock extends t.Static<typeof SubSequence> {}

const CancellationScope = blockObject(
  'cancellation_scope',
  'Runs its blocks in order; the signal cancel takes effect after them.',
  { blocks: t.noted(NonEmptyBlockList, 'Blocks to run.') },
);
export interface CancellationScopeBlock extends t.Static<typeof CancellationScope> {}

const SagaStep = t.named('SagaStep', {
  id: t.noted(t.PlainName, "Id of the saga's step, unique in the sequence among all block ids."),
  action: t.noted(blocksOrOne(NonEmptyBlockList), 'A block, or a list of blocks.'),
  compensation: t.optional(
    blocksOrOne(t.nullish(BlockList)),
    'A block, or a list of blocks, that undoes the action.',
  ),
});

const SAGA_NOTE =
  'Runs its actions in order. If one fails, the compensations of the ' +
  'completed ones run in reverse order, and the saga fails.';

const Saga = blockObject('saga', SAGA_NOTE, {
  steps: t.list(SagaStep, {
    maxItems: BRANCHES_MAX,
    description: 'Actions with their compensations. If empty, the saga completes.',
  }),
});
export interface SagaBlock extends t.Static<typeof Saga> {}

const Variant = t.named('SplitVariant', {
  name: t.noted(t.Name, 'Unique in the block; part of its output.'),
  weight: t.noted(t.integer({ minimum: 0, maximum: t.INT32_MAX }), 'Share of the total weight.'),
  blocks: t.noted(BlockList, 'Blocks of this variant.'),
});

const SPLIT_NOTE =
  'Runs one of its variants, chosen in proportion to the ' +
  'weights by a hash of instance and block id.';

const SPLIT_WORDS = ['ab_split', 'a_b_split'] as const;

const AbSplit = t.object(
  {
    ...headOf('ab_split'),
    type: t.oneOf(SPLIT_WORDS, 'Kind of the block; both names mean the same.'),
    variants: t.noted(
      t.list(Variant, { minItems: 2, maxItems: BRANCHES_MAX }),
      'Variants, one of which is chosen.',
    ),
  },
  { 'x-check': 'variants', description: SPLIT_NOTE },
);
export interface AbSplitBlock extends t.Static<typeof AbSplit> {}

export type Block =
  | StepBlock
  | ParallelBlock
  | RaceBlock
  | RouterBlock
  | TryCatchBlock
  | LoopBlock
  | ForEachBlock
  | SubSequenceBlock
  | CancellationScopeBlock
  | SagaBlock
  | AbSplitBlock;

const BLOCKS = {
  step: Step,
  parallel: Parallel,
  race: Race,
  router: Router,
  try_catch: TryCatch,
  loop: Loop,
  for_each: ForEach,
  sub_sequence: SubSequence,
  cancellation_scope: CancellationScope,
  saga: Saga,
  ab_split: AbSplit,
  a_b_split: AbSplit,
} as const satisfies { readonly [T in Block['type']]: TObject };

export const BLOCK_TYPES = Object.keys(BLOCKS) as Block['type'][];

/** Names of each kind; some have two. */
export type KindName = Exclude<Block['type'], 'a_b_split'>;

export function kindName({ type }: Pick<Block, 'type'>): KindName {
  return type === 'a_b_split' ? 'ab_split' : type;
}

export const KIND_NAMES: readonly KindName[] = [
  ...new Set(BLOCK_TYPES.map((type) => kindName({ type }))),
];

export const HOOK_TIMEOUT_MS = 30_000;
export const HOOKS_MAX = 100;

/** A finished instance receives no events. */
const HOOK_HANDLERS = BUILTIN_HANDLERS.filter((name) => name !== 'wait_for_event');

const HOOK_MEMBERS = {
  ...headOf('step'),
  handler: t.oneOf(HOOK_HANDLERS, 'A built-in handler; hooks cannot use workers.'),
  params: Step.properties.params,
  timeout: t.nullish(t.DurationMs, `Time limit in ms. Default and maximum: ${HOOK_TIMEOUT_MS}.`),
  ...t.unsupported(
    ...words('delay retry send_window rate_limit_key queue_name'),
    ...words('cancellable merge_output output_schema'),
  ),
};

/**
 * A list of steps that run once, in the server. Members for retries, waits or workers are refused.
 *
 * @param name of its steps
 * @param when end of a sentence: what the hooks follow
 */
export function hooks(name: 'FailureHook' | 'CancelHook', when: string) {
  const step = t.named(name, `A step that runs in the server after ${when}.`, HOOK_MEMBERS);
  return t.list(step, {
    maxItems: HOOKS_MAX,
    description:
      `Steps that run in the server after ${when}, in order. A failed step does not stop the ` +
      'next.',
  });
}
export type HookStep = t.Static<ReturnType<typeof hooks>>[number];

export const HOOK_LISTS = ['on_failure', 'on_cancel'] as const;
export type HookList = (typeof HOOK_LISTS)[number];
export type Hooks = { readonly [List in HookList]?: readonly HookStep[] | null | undefined };

/** Members that the kind uses; others are stored without effect. */
export function membersOf(kind: Block['type']): TProperties {
  return BLOCKS[kind].properties;
}

/** The tag selects the kind to check, so that a mistake is reported once, at its place. */
export const Block = t.typed<Block>({
  $id: 'Block',
  description:
    `A block of a sequence. Nested at most ${DEPTH_MAX} levels; a ` +
    `sequence has at most ${BLOCKS_MAX} blocks with unique ids.`,
  type: 'object',
  properties: { type: { type: 'string' } },
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [...new Set(Object.values(BLOCKS))],
});

export const InjectedBlocks = NonEmptyBlockList;

export const RootBlocks = NonEmptyBlockList;
