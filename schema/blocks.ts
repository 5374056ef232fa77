/**
 * The block kinds of a sequence and their sub-objects. Shapes only: unique ids, depth and the
 * number of blocks are rules on the whole tree and belong to `core/plan.ts`. A further kind is one
 * more row: a schema, its type, and a line in the table at the end; `docs/blocks.md` shows the
 * rest.
 *
 * Fields that change what runs and that nothing implements are refused, not ignored
 * (docs/decisions/0017-unknown-fields.md).
 */

import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import {
  BlockId,
  DurationMs,
  EXPRESSION_LENGTH_MAX,
  Expression,
  INT32_MAX,
  JsonObjectSchema,
  Key,
  Name,
  named,
  noted,
  oneOfWords,
  optional,
  PlainName,
  UserSchema,
  unsupported,
  Version,
  withDefault,
} from './common.js';
import { BUILTIN_HANDLERS, PARAMS_NOTE } from './handlers.js';
import { Delay, Retry, SendWindow, WaitForInput } from './step-options.js';

/** Caps of ours, against stacks and turns without end (docs/reference/blocks.md). */
export const DEPTH_MAX = 64;
export const BLOCKS_MAX = 5_000;
export const BRANCHES_MAX = 256;
export const ITERATIONS_MAX = 100_000;
/** Items of one for_each that run at once. */
export const CONCURRENCY_MAX = 256;
/** Blocks of a plan, which has the body of a for_each once for each item that runs at once. */
export const PLAN_BLOCKS_MAX = 20_000;
/** The outputs of the items of a for_each that become its own output, together. */
export const COLLECTED_BYTES_MAX = 1024 * 1024;

export const MAX_ITERATIONS_DEFAULT = 1_000;
export const ITEM_VAR_DEFAULT = 'item';

/** Blocks refer to blocks: the validators know this schema under its `$id`. */
const BlockRef = Type.Unsafe<Block>({ $ref: 'Block' });
const BlockList = Type.Array(BlockRef);
const NonEmptyBlockList = Type.Array(BlockRef, { minItems: 1 });
/** A block, or a list of blocks, by one schema; told apart by `if`, so that a mistake is told once. */
function blocksOrOne<List extends TSchema>(list: List) {
  return Type.Unsafe<Block | Static<List>>({
    if: { type: ['array', 'null'] },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
    then: list,
    else: BlockRef,
  });
}
const Branches = Type.Array(BlockList, { minItems: 1, maxItems: BRANCHES_MAX });
const MaxIterations = Type.Integer({
  exclusiveMinimum: 0,
  maximum: ITERATIONS_MAX,
  default: MAX_ITERATIONS_DEFAULT,
});

/** What every kind has. */
const headOf = <K extends string>(kind: K) => ({
  type: Type.Literal(kind, { description: 'The kind of the block.' }),
  id: noted(BlockId, 'Unique in the sequence. Expressions find its output by it.'),
  when: optional(
    Type.String({
      maxLength: EXPRESSION_LENGTH_MAX,
      description: 'An expression; the block is skipped when it does not hold.',
    }),
  ),
  timeout: optional(
    noted(
      DurationMs,
      'How long the block may take; past it, all inside is cut off and it has failed.',
    ),
  ),
});

/** @param note what the document says of the kind */
function blockObject<K extends string, P extends TProperties>(
  kind: K,
  note: string,
  properties: P,
) {
  const shape = { ...headOf(kind), ...properties };
  return Type.Object(shape, { description: note });
}

/** Called inside the server: `log` and the other pure handlers, or `http_request`. */
export const OnDeadlineBreach = Type.Object({
  handler: noted(Name, 'A built-in handler; not one that waits.'),
  params: optional(
    noted(
      JsonObjectSchema,
      'Its parameters, with templates; the server adds _breach_block_id, _breach_instance_id, ' +
        '_breach_elapsed_ms and _breach_deadline_ms.',
    ),
  ),
});

// An interface may refer to itself by way of `Block`, where an alias may not.

const STEP_NOTE =
  `Runs a handler: a built-in one (${BUILTIN_HANDLERS.join(', ')}) in the server, any other by an ` +
  'external worker.';

const Step = blockObject('step', STEP_NOTE, {
  handler: noted(Name, 'A name that is not built in is served by external workers.'),
  params: optional(
    noted(
      JsonObjectSchema,
      `The parameters of the handler; what a built-in one always refuses is 400. ${PARAMS_NOTE}`,
    ),
  ),
  delay: optional(noted(Delay, 'Waits before the first try.')),
  retry: optional(noted(Retry, 'What is done after a failed try.')),
  timeout: optional(
    noted(
      DurationMs,
      'How long one try may take, of a task from its claim on; past it, the try has failed.',
    ),
  ),
  queue_timeout: optional(
    noted(DurationMs, 'How long a task may wait for a worker; past it, the try has failed.'),
  ),
  deadline: optional(
    noted(
      DurationMs,
      'How long the step may take with all of its waits and tries; past it, it has failed.',
    ),
  ),
  on_deadline_breach: optional(
    noted(OnDeadlineBreach, 'What is called, once, when the deadline has passed.'),
  ),
  send_window: optional(noted(SendWindow, 'Waits until an hour in which the step may start.')),
  rate_limit_key: optional(
    noted(Key, 'Steps with the same key share a limit per time. Past the limit a step waits.'),
  ),
  cancellable: optional(
    Type.Boolean({
      default: true,
      description: 'If false, the signal cancel lets the step end first.',
    }),
  ),
  queue_name: optional(
    noted(Name, 'The queue of the task. Polls may ask for the tasks of one queue only.'),
  ),
  output_schema: optional(
    noted(UserSchema, 'What the output must conform to; another one fails the step for good.'),
  ),
  merge_output: optional(
    Type.Boolean({
      default: true,
      description: "Whether a worker's output is merged into context.data.",
    }),
  ),
  wait_for_input: optional(WaitForInput),
  ...unsupported('context_access', 'fallback_handler', 'cache_key', 'compensation'),
});
export interface StepBlock extends Static<typeof Step> {}

const Parallel = blockObject(
  'parallel',
  `Runs all branches, at most ${BRANCHES_MAX}; fails if one of them fails.`,
  { branches: noted(Branches, 'Lists of blocks; all lists run.') },
);
export interface ParallelBlock extends Static<typeof Parallel> {}

const RACE_NOTE =
  'first_to_resolve: the first branch that ends wins, whether it succeeds or fails; ' +
  'first_to_succeed: the first that succeeds, failures count once all failed. The other branches ' +
  'are cancelled.';

const Race = blockObject('race', RACE_NOTE, {
  branches: noted(Branches, 'Lists of blocks; all lists run until one has won.'),
  semantics: optional(
    withDefault(
      oneOfWords(['first_to_resolve', 'first_to_succeed'], 'Which branch wins.'),
      'first_to_resolve',
    ),
  ),
});
export interface RaceBlock extends Static<typeof Race> {}

const Route = Type.Object({
  condition: noted(Expression, 'When the route is taken.'),
  blocks: noted(BlockList, 'What runs then.'),
});

const Router = Type.Object(
  {
    ...headOf('router'),
    routes: optional(
      Type.Array(Route, { description: 'Asked in order; the first that holds runs.' }),
    ),
    default: optional(noted(BlockList, 'What runs when no condition holds.')),
  },
  {
    'x-check': 'router',
    description: 'Runs the blocks of the first route whose condition holds, else default.',
  },
);
export interface RouterBlock extends Static<typeof Router> {}

const TryCatch = blockObject(
  'try_catch',
  'catch_block runs only if try_block failed, finally_block always.',
  {
    try_block: noted(NonEmptyBlockList, 'What runs first.'),
    catch_block: noted(BlockList, 'What runs if try_block failed.'),
    finally_block: optional(noted(BlockList, 'What always runs last, also when cancelled.')),
  },
);
export interface TryCatchBlock extends Static<typeof TryCatch> {}

const Loop = blockObject('loop', 'Repeats its body while the condition holds.', {
  condition: noted(Expression, 'Asked before each iteration; the loop ends when it does not hold.'),
  body: noted(NonEmptyBlockList, 'What is repeated.'),
  max_iterations: optional(noted(MaxIterations, 'The loop ends, successfully, after this many.')),
  ...unsupported('break_on', 'poll_interval', 'continue_on_error', 'retain_iterations'),
});
export interface LoopBlock extends Static<typeof Loop> {}

const ForEach = blockObject(
  'for_each',
  'Runs its body for each item of an array of context.data.',
  {
    collection: noted(
      Expression,
      'A path in context.data, or a template, of an array. Missing or empty: nothing runs.',
    ),
    item_var: optional(
      noted(
        withDefault(PlainName, ITEM_VAR_DEFAULT),
        'The key of context.data under which the body sees the item.',
      ),
    ),
    body: noted(NonEmptyBlockList, 'What runs for each item.'),
    index_var: optional(
      noted(
        PlainName,
        'The key of context.data under which the body sees the number of the item, counted from 0.',
      ),
    ),
    concurrency: optional(
      Type.Integer({
        minimum: 1,
        maximum: CONCURRENCY_MAX,
        default: 1,
        description: 'How many items run at once.',
      }),
    ),
    max_iterations: optional(
      noted(MaxIterations, 'A longer collection fails the block before its first item.'),
    ),
  },
);
export interface ForEachBlock extends Static<typeof ForEach> {}

const SubSequence = blockObject(
  'sub_sequence',
  'Starts another sequence as a child instance, and waits for its end.',
  {
    sequence_name: noted(Name, 'The sequence of the child, in the namespace of this instance.'),
    version: optional(
      noted(
        Version,
        'Pins this version. Absent: as a creation by name chooses one when the child starts.',
      ),
    ),
    input: optional(
      noted(JsonObjectSchema, 'The context.data of the child; texts in it may be templates.'),
    ),
  },
);
export interface SubSequenceBlock extends Static<typeof SubSequence> {}

const CancellationScope = blockObject(
  'cancellation_scope',
  'Runs its blocks one after the other, and the signal cancel lets them end first.',
  { blocks: noted(NonEmptyBlockList, 'What runs.') },
);
export interface CancellationScopeBlock extends Static<typeof CancellationScope> {}

const SagaStep = named('SagaStep', {
  id: noted(
    PlainName,
    'Of the step of the saga; unique in the sequence, among those of blocks too.',
  ),
  action: noted(blocksOrOne(NonEmptyBlockList), 'A block, or a list of blocks.'),
  compensation: Type.Optional(
    noted(blocksOrOne(optional(BlockList)), 'What takes back what the action did; likewise.'),
  ),
});

const SAGA_NOTE =
  'Runs its actions in order. When one fails, the compensations of those that completed run, the ' +
  'last one first, and the saga fails.';

const Saga = blockObject('saga', SAGA_NOTE, {
  steps: Type.Array(SagaStep, {
    maxItems: BRANCHES_MAX,
    description: 'Actions, each with what takes it back. None: the saga completes.',
  }),
});
export interface SagaBlock extends Static<typeof Saga> {}

const Variant = named('SplitVariant', {
  name: noted(Name, 'Unique in the block; shown in its output.'),
  weight: Type.Integer({
    minimum: 0,
    maximum: INT32_MAX,
    description: 'Its share is this of the sum of all weights.',
  }),
  blocks: noted(BlockList, 'What runs for this variant.'),
});

const SPLIT_NOTE =
  'Runs one of its variants, chosen by the id of the instance and that of the block, in ' +
  'proportion to the weights.';

const SPLIT_WORDS = ['ab_split', 'a_b_split'] as const;

const AbSplit = Type.Object(
  {
    ...headOf('ab_split'),
    type: oneOfWords(SPLIT_WORDS, 'The kind of the block: two words for one.'),
    variants: Type.Array(Variant, {
      minItems: 2,
      maxItems: BRANCHES_MAX,
      description: 'Of which one runs.',
    }),
  },
  { 'x-check': 'variants', description: SPLIT_NOTE },
);
export interface AbSplitBlock extends Static<typeof AbSplit> {}

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

/** One word for each kind: some have two in definitions. */
export type KindName = Exclude<Block['type'], 'a_b_split'>;

export function kindName({ type }: Pick<Block, 'type'>): KindName {
  return type === 'a_b_split' ? 'ab_split' : type;
}

export const KIND_NAMES: readonly KindName[] = [
  ...new Set(BLOCK_TYPES.map((type) => kindName({ type }))),
];

/** What each hook may take, in ms: nobody waits for it. */
export const HOOK_TIMEOUT_MS = 30_000;
export const HOOKS_MAX = 100;

/** An instance that has ended is told of no events. */
const HOOK_HANDLERS = BUILTIN_HANDLERS.filter((name) => name !== 'wait_for_event');

const HOOK_MEMBERS = {
  ...headOf('step'),
  handler: oneOfWords(HOOK_HANDLERS, 'A built-in handler: hooks have no tasks for workers.'),
  params: Step.properties.params,
  timeout: optional(
    noted(DurationMs, `How long it may take; no more than ${HOOK_TIMEOUT_MS}, the default.`),
  ),
  ...unsupported(
    'delay',
    'retry',
    'send_window',
    'rate_limit_key',
    'queue_name',
    'cancellable',
    'merge_output',
    'output_schema',
  ),
};

/**
 * A list of steps that run in the server, once. What a further try, a wait or a worker would need is refused.
 *
 * @param name of its steps
 * @param when the end of a sentence: what they run after
 */
export function hooks(name: 'FailureHook' | 'CancelHook', when: string) {
  const step = named(name, `A step that runs in the server after ${when}.`, HOOK_MEMBERS);
  return Type.Array(step, {
    maxItems: HOOKS_MAX,
    description: `What runs in the server after ${when}, one after the other, whatever each comes to.`,
  });
}
export type HookStep = Static<ReturnType<typeof hooks>>[number];

export const HOOK_LISTS = ['on_failure', 'on_cancel'] as const;
export type HookList = (typeof HOOK_LISTS)[number];
/** The hooks of a definition. */
export type Hooks = { readonly [List in HookList]?: readonly HookStep[] | null | undefined };

/** The members that mean something in blocks of the kind; others are stored and have no effect. */
export function membersOf(kind: Block['type']): TProperties {
  return BLOCKS[kind].properties;
}

/** The tag decides which kind is checked, so that a mistake is reported once and in its place. */
export const Block = Type.Unsafe<Block>({
  $id: 'Block',
  description:
    `A block of a sequence. Blocks nest at most ${DEPTH_MAX} levels deep; a sequence has at most ` +
    `${BLOCKS_MAX} of them, each with an id of its own.`,
  type: 'object',
  properties: { type: { type: 'string' } },
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [...new Set(Object.values(BLOCKS))],
});

/** Blocks that one instance runs beside its sequence's own. */
export const InjectedBlocks = NonEmptyBlockList;

/** The root list of a sequence. */
export const RootBlocks = NonEmptyBlockList;
export type RootBlocks = Static<typeof RootBlocks>;
