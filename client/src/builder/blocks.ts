/**
 * Lists of blocks, written one behind the other. Each method gives a new list with one block more, and a type that
 * knows its output: what stands behind sees it, what stands before does not. What `blocks` has in the end is what the
 * server takes; no method looks at the server (docs/builder.md).
 */

import type {
  AbSplitBlock,
  Block,
  ForEachBlock,
  LoopBlock,
  ParallelBlock,
  RaceBlock,
  RouterBlock,
  SagaBlock,
  SagaStep,
  SubSequenceBlock,
  TryCatchBlock,
} from '../generated/types.js';
import { type Ref, refTo, rendered, type Term, type Untyped, type Value } from './expressions.js';
import type {
  AnyTemplated,
  HandlerName,
  OutputOf,
  ParamsOf,
  Rendered,
  Templated,
} from './handlers.js';
import { compact, conditionOf, ERROR, given, headOf, stepBlock, takenBack } from './members.js';
import type {
  BlockOptions,
  Caught,
  Given,
  HandlerOptions,
  Schema,
  Scope,
  StepOptions,
  Undone,
} from './options.js';
import type {
  Added,
  Answer,
  ChildOutputs,
  Guarded,
  ItemOutputs,
  Maybe,
  NewId,
  OrNull,
  RaceOutput,
  StepOutput,
  Values,
} from './outputs.js';
import type { Sequence } from './sequence.js';

declare const TYPES: unique symbol;

/** What a list of blocks is typed by, whatever it is. */
export interface Listed<O, A> {
  readonly [TYPES]: { readonly outputs: O; readonly answers: A };
  readonly blocks: readonly Block[];
}
type AnyListed = Listed<Untyped, Untyped>;

type OutputsOf<B> = B extends Listed<infer O, unknown> ? O : never;
type AnswersOf<B> = B extends Listed<unknown, infer A> ? A : never;

/** What the lists add to `O` and `A`. */
type NewOutputs<B, O> = Added<OutputsOf<B>, O>;
type NewAnswers<B, A> = Added<AnswersOf<B>, A>;

/** A list inside a block. */
type Branch<H, I, O, A, B = AnyListed> = (b: Blocks<H, I, O, A>) => B;
/** What comes of the branches. */
type Made<B> = B extends (...given: never[]) => infer L ? L : never;

interface Route<H, I, O, A> {
  readonly condition: Given<Scope<I, O, A>, Term<unknown>>;
  readonly blocks: Branch<H, I, O, A>;
}

interface Variant<H, I, O, A> {
  readonly name: string;
  /** Its share is this of the sum of all weights. */
  readonly weight: number;
  readonly blocks: Branch<H, I, O, A>;
}

type One<Id extends PropertyKey, T> = { readonly [Name in Id]: T };

/** The list that a method gives: that of the sequence itself, or one inside a block. */
type Next<Kind, H, I, O, A> = Kind extends 'sequence' ? Sequence<H, I, O, A> : Blocks<H, I, O, A>;

/** A sequence as the block that starts it needs to know it. */
export interface Child<I, O> extends Listed<O, Untyped> {
  readonly name: string;
  readonly inputs?: I | undefined;
}

/** Of an event that a step waits for. */
interface EventOptions<S, G, T> extends StepOptions<S, G> {
  /** Of the events, and behind `custom:` of the signals, that end the wait. */
  readonly name: string;
  /** The `correlation_key` of the events; without it those that have none. */
  readonly key?: Given<S, string | number | Value<string | number>>;
  /** Milliseconds after which the try fails. */
  readonly timeout_ms?: number;
  /** What the payload has to be; another one is used up, and the wait goes on. */
  readonly schema?: Schema<T>;
}

/**
 * That the types are `in out` is said, not found out: the compiler would compare all methods for it, and make twice as
 * many types.
 *
 * @typeParam H the handlers of the program
 * @typeParam I what instances are started with
 * @typeParam O the outputs of the blocks so far, by their ids
 * @typeParam A the answers of people so far
 */
export class Blocks<in out H, in out I, in out O, in out A, in out Kind = 'blocks'>
  implements Listed<O, A>
{
  declare readonly [TYPES]: { readonly outputs: O; readonly answers: A };
  /** As the server takes them. */
  readonly blocks: readonly Block[];

  constructor(blocks: readonly Block[] = []) {
    this.blocks = blocks;
  }

  /** A step with a handler of the program or one of the engine: docs/reference/steps.md. */
  step<
    const Id extends string,
    K extends HandlerName<H>,
    Q extends Templated<ParamsOf<H, K>>,
    G = never,
    const V extends string = never,
    const Key extends string = Id,
    const E extends string = never,
  >(
    id: NewId<Id, O>,
    step: HandlerOptions<Scope<I, O, A>, K, ParamsOf<H, K>, Q> &
      StepOptions<Scope<I, O, A>, G, V, Key, E>,
  ): Next<Kind, H, I, O & One<Id, StepOutput<OutputOf<H, K>, E, G>>, A & Answer<V, Key, E, G>> {
    return this.with(stepBlock(id, step));
  }

  /** A step that gives its parameters, with the templates filled in. */
  transform<const Id extends string, const P, G = never>(
    id: NewId<Id, O>,
    params: Given<Scope<I, O, A>, P & AnyTemplated>,
    options: StepOptions<Scope<I, O, A>, G> = {},
  ): Next<Kind, H, I, O & One<Id, OrNull<G, Rendered<P>>>, A> {
    return this.with(stepBlock(id, { handler: 'transform', params, ...options }));
  }

  /** A step that waits for an event of the tenant, or for a signal to the instance: docs/events.md. */
  waitForEvent<const Id extends string, T = Untyped, G = never>(
    id: NewId<Id, O>,
    event: EventOptions<Scope<I, O, A>, G, T>,
  ): Next<Kind, H, I, O & One<Id, OrNull<G, T>>, A> {
    const { name, key, timeout_ms, schema, ...step } = event;
    const params = { name, key: given(key), timeout_ms, schema };
    return this.with(stepBlock(id, { handler: 'wait_for_event', params, ...step }));
  }

  /** All branches run; behind it each of them has. */
  parallel<const Id extends string, const B extends readonly Branch<H, I, O, A>[], G = never>(
    id: NewId<Id, O>,
    branches: B,
    options: BlockOptions<Scope<I, O, A>, G> = {},
  ): Next<
    Kind,
    H,
    I,
    O & Guarded<G, NewOutputs<Made<B[number]>, O>>,
    A & Guarded<G, NewAnswers<Made<B[number]>, A>>
  > {
    return this.with<ParallelBlock>({
      type: 'parallel',
      id,
      ...headOf(options),
      branches: branches.map(listOf),
    });
  }

  /** The first branch that ends wins; the others are cancelled. */
  race<const Id extends string, const B extends readonly Branch<H, I, O, A>[], G = never>(
    id: NewId<Id, O>,
    branches: B,
    {
      semantics,
      ...options
    }: BlockOptions<Scope<I, O, A>, G> & {
      readonly semantics?: 'first_to_resolve' | 'first_to_succeed';
    } = {},
  ): Next<
    Kind,
    H,
    I,
    O &
      Maybe<NewOutputs<Made<B[number]>, O>> &
      One<Id, OrNull<G, RaceOutput<Values<NewOutputs<Made<B[number]>, O>>>>>,
    A & Maybe<NewAnswers<Made<B[number]>, A>>
  > {
    return this.with<RaceBlock>({
      type: 'race',
      id,
      ...headOf(options),
      semantics,
      branches: branches.map(listOf),
    });
  }

  /** The first route whose condition holds runs, else `default`. */
  router<
    const Id extends string,
    const R extends readonly Route<H, I, O, A>[],
    D extends AnyListed = never,
    G = never,
  >(
    id: NewId<Id, O>,
    routes: R,
    {
      default: otherwise,
      ...options
    }: BlockOptions<Scope<I, O, A>, G> & {
      readonly default?: Branch<H, I, O, A, D>;
    } = {},
  ): Next<
    Kind,
    H,
    I,
    O & Maybe<NewOutputs<Made<R[number]['blocks']> | D, O>>,
    A & Maybe<NewAnswers<Made<R[number]['blocks']> | D, A>>
  > {
    return this.with<RouterBlock>({
      type: 'router',
      id,
      ...headOf(options),
      routes: routes.map(({ condition, blocks }) => ({
        condition: conditionOf(condition),
        blocks: listOf(blocks),
      })),
      default: otherwise && listOf(otherwise),
    });
  }

  /** `catch` runs if the blocks failed, `finally` always. Write them in this order: each sees those before. */
  tryCatch<
    const Id extends string,
    T extends AnyListed,
    C extends AnyListed = never,
    F extends AnyListed = never,
    G = never,
  >(
    id: NewId<Id, O>,
    tries: Branch<H, I, O, A, T>,
    handling: BlockOptions<Scope<I, O, A>, G> & {
      readonly catch?: (
        b: Blocks<H, I, O & Maybe<NewOutputs<T, O>>, A & Maybe<NewAnswers<T, A>>>,
        error: Ref<Caught>,
      ) => C;
      readonly finally?: Branch<
        H,
        I,
        O & Maybe<NewOutputs<T | C, O>>,
        A & Maybe<NewAnswers<T | C, A>>,
        F
      >;
    },
  ): Next<
    Kind,
    H,
    I,
    O & Maybe<NewOutputs<T | C, O>> & Guarded<G, NewOutputs<F, O>>,
    A & Maybe<NewAnswers<T | C, A>> & Guarded<G, NewAnswers<F, A>>
  > {
    const { catch: caught, finally: last, ...options } = handling;
    return this.with<TryCatchBlock>({
      type: 'try_catch',
      id,
      ...headOf(options),
      try_block: listOf(tries),
      catch_block: caught === undefined ? [] : listOf((b: Untyped) => caught(b, ERROR)),
      finally_block: last && listOf(last),
    });
  }

  /** Repeats the body while the condition holds, which is asked before each pass. */
  loop<const Id extends string, B extends AnyListed, G = never>(
    id: NewId<Id, O>,
    body: Branch<H, I, O, A, B>,
    {
      condition,
      max_iterations,
      ...options
    }: BlockOptions<Scope<I, O, A>, G> & {
      readonly condition: Given<
        Scope<I, O & Maybe<NewOutputs<B, O>>, A & Maybe<NewAnswers<B, A>>>,
        Term<unknown>
      >;
      readonly max_iterations?: number;
    },
  ): Next<
    Kind,
    H,
    I,
    O & Maybe<NewOutputs<B, O>> & One<Id, { readonly _iterations: number } | null>,
    A & Maybe<NewAnswers<B, A>>
  > {
    return this.with<LoopBlock>({
      type: 'loop',
      id,
      ...headOf(options),
      condition: conditionOf(condition),
      body: listOf(body),
      max_iterations,
    });
  }

  /** Runs the body for each item of an array. Behind it, its output has the last output of each item. */
  forEach<const Id extends string, T, B extends AnyListed, G = never>(
    id: NewId<Id, O>,
    collection: Given<Scope<I, O, A>, Value<readonly T[] | null>>,
    body: (b: Blocks<H, I, O, A>, item: Ref<T>, index: Ref<number>) => B,
    {
      item_var,
      index_var,
      concurrency,
      max_iterations,
      ...options
    }: BlockOptions<Scope<I, O, A>, G> &
      Pick<ForEachBlock, 'item_var' | 'index_var' | 'concurrency' | 'max_iterations'> = {},
  ): Next<
    Kind,
    H,
    I,
    O & Maybe<NewOutputs<B, O>> & One<Id, ItemOutputs<Values<NewOutputs<B, O>>> | null>,
    A & Maybe<NewAnswers<B, A>>
  > {
    // Names that no input has by chance: the item lies over the data.
    const item = item_var ?? `${id}_item`;
    const index = index_var ?? `${id}_index`;
    return this.with<ForEachBlock>({
      type: 'for_each',
      id,
      ...headOf(options),
      collection: rendered(given(collection)) as string,
      item_var: item,
      index_var: index,
      concurrency,
      max_iterations,
      body: listOf((b: Untyped) => body(b, refTo(['data', item]), refTo(['data', index]))),
    });
  }

  /** Starts another sequence, by its definition here or by its name, and waits for its end. */
  subSequence<const Id extends string, CI = Untyped, CO = Untyped, G = never>(
    id: NewId<Id, O>,
    child: Child<CI, CO> | string,
    {
      input,
      version,
      ...options
    }: BlockOptions<Scope<I, O, A>, G> & {
      readonly input?: Given<Scope<I, O, A>, Templated<CI>>;
      /** The newest one that is not deprecated when absent. */
      readonly version?: number;
    } = {},
  ): Next<Kind, H, I, O & One<Id, OrNull<G, ChildOutputs<CO>>>, A> {
    return this.with<SubSequenceBlock>({
      type: 'sub_sequence',
      id,
      ...headOf(options),
      sequence_name: typeof child === 'string' ? child : child.name,
      version,
      input: input && (rendered(given(input)) as object),
    });
  }

  /** The signal `cancel` lets the blocks end first. */
  cancellationScope<const Id extends string, B extends AnyListed, G = never>(
    id: NewId<Id, O>,
    body: Branch<H, I, O, A, B>,
    options: BlockOptions<Scope<I, O, A>, G> = {},
  ): Next<Kind, H, I, O & Guarded<G, NewOutputs<B, O>>, A & Guarded<G, NewAnswers<B, A>>> {
    return this.with({ type: 'cancellation_scope', id, ...headOf(options), blocks: listOf(body) });
  }

  /** Actions in order, each with what takes it back when a later one fails. */
  saga<const Id extends string, B extends AnyListed, G = never>(
    id: NewId<Id, O>,
    steps: (saga: SagaSteps<H, I, O, A>) => B,
    options: BlockOptions<Scope<I, O, A>, G> = {},
  ): Next<Kind, H, I, O & Guarded<G, NewOutputs<B, O>>, A & Guarded<G, NewAnswers<B, A>>> {
    return this.with<SagaBlock>({
      type: 'saga',
      id,
      ...headOf(options),
      steps: (steps(new SagaSteps()) as unknown as SagaSteps<H, I, O, A>).steps,
    });
  }

  /** Runs one of the variants, in proportion to their weights. */
  abSplit<const Id extends string, const V extends readonly Variant<H, I, O, A>[], G = never>(
    id: NewId<Id, O>,
    variants: V,
    options: BlockOptions<Scope<I, O, A>, G> = {},
  ): Next<
    Kind,
    H,
    I,
    O &
      Maybe<NewOutputs<Made<V[number]['blocks']>, O>> &
      One<Id, OrNull<G, { readonly variant: V[number]['name']; readonly variant_index: number }>>,
    A & Maybe<NewAnswers<Made<V[number]['blocks']>, A>>
  > {
    return this.with<AbSplitBlock>({
      type: 'ab_split',
      id,
      ...headOf(options),
      variants: variants.map(({ blocks, ...variant }) => ({ ...variant, blocks: listOf(blocks) })),
    });
  }

  /** The same with one block more. */
  private with<B extends Block>(block: B): Untyped {
    return this.of([...this.blocks, compact(block)]);
  }

  /** Another list of the same kind. */
  protected of(blocks: readonly Block[]): Untyped {
    return new Blocks(blocks);
  }
}

/** The steps of a saga, one behind the other. */
export class SagaSteps<in out H, in out I, in out O, in out A> implements Listed<O, A> {
  declare readonly [TYPES]: { readonly outputs: O; readonly answers: A };
  readonly blocks: readonly Block[] = [];
  readonly steps: readonly SagaStep[];

  constructor(steps: readonly SagaStep[] = []) {
    this.steps = steps;
  }

  /**
   * An action that is one step of a worker, or one `http_request`, and has a compensation is `cancellable: false`
   * unless it says otherwise.
   *
   * @param compensation runs when a later action fails, or the saga is cut off: it sees what its own action gave
   */
  step<const Id extends string, B extends AnyListed, C extends AnyListed = never>(
    id: Id,
    action: Branch<H, I, O, A, B>,
    compensation?: (
      b: Blocks<H, I, O & NewOutputs<B, O>, A & NewAnswers<B, A>>,
      error: Ref<Undone>,
    ) => C,
  ): SagaSteps<
    H,
    I,
    O & NewOutputs<B, O> & Maybe<NewOutputs<C, O>>,
    A & NewAnswers<B, A> & Maybe<NewAnswers<C, A>>
  > {
    const undo = compensation && listOf((b: Untyped) => compensation(b, ERROR));
    const actions = undo?.length ? takenBack(listOf(action)) : listOf(action);
    const step = compact<SagaStep>({ id, action: actions, compensation: undo });
    return new SagaSteps([...this.steps, step]);
  }
}

function listOf(branch: Branch<Untyped, Untyped, Untyped, Untyped>): readonly Block[] {
  return branch(new Blocks()).blocks;
}
