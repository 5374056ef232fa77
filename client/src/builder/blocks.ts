/**
 * Lists of blocks, built by chaining. Each method returns a new list with one more block, and a type that includes its
 * output: later blocks can refer to it, earlier ones cannot. `blocks` has the form that the server accepts; no method
 * sends a request (docs/builder.md).
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

/** The types that a list of blocks carries. */
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
/** The lists that the branches return. */
type Made<B> = B extends (...given: never[]) => infer L ? L : never;

interface Route<H, I, O, A> {
  readonly condition: Given<Scope<I, O, A>, Term<unknown>>;
  readonly blocks: Branch<H, I, O, A>;
}

interface Variant<H, I, O, A> {
  readonly name: string;
  /** Its share of the sum of all weights. */
  readonly weight: number;
  readonly blocks: Branch<H, I, O, A>;
}

type One<Id extends PropertyKey, T> = { readonly [Name in Id]: T };

/** The type that a method returns: the sequence itself, or a list inside a block. */
type Next<Kind, H, I, O, A> = Kind extends 'sequence' ? Sequence<H, I, O, A> : Blocks<H, I, O, A>;

/** The types of a sequence that its parent block needs. */
export interface Child<I, O> extends Listed<O, Untyped> {
  readonly name: string;
  readonly inputs?: I | undefined;
}

/** Options of a step that waits for an event. */
interface EventOptions<S, G, T> extends StepOptions<S, G> {
  /** Name of the events, and after `custom:` of the signals, that end the wait. */
  readonly name: string;
  /** The `correlation_key` of the events; if undefined, events without a key. */
  readonly key?: Given<S, string | number | Value<string | number>>;
  /** Milliseconds after which the attempt fails. */
  readonly timeout_ms?: number;
  /** Schema of the payload. An event that does not match is consumed, and the wait continues. */
  readonly schema?: Schema<T>;
}

/**
 * The variance annotations `in out` are explicit: inferring them would make the compiler compare all methods and create
 * twice as many types.
 *
 * @typeParam H the handlers of the program
 * @typeParam I the input of instances
 * @typeParam O the outputs of the blocks so far, by block id
 * @typeParam A the answers to approvals so far
 */
export class Blocks<in out H, in out I, in out O, in out A, in out Kind = 'blocks'>
  implements Listed<O, A>
{
  declare readonly [TYPES]: { readonly outputs: O; readonly answers: A };
  /** In the form that the server accepts. */
  readonly blocks: readonly Block[];

  constructor(blocks: readonly Block[] = []) {
    this.blocks = blocks;
  }

  /** A step with a handler of the program or a built-in handler: docs/reference/steps.md. */
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

  /** A step that outputs its parameters with their templates filled in. */
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

  /** Runs all branches; later blocks can refer to the outputs of each. */
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

  /** The first branch to finish wins; the others are cancelled. */
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

  /** Runs the first route whose condition holds, or else `default`. */
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

  /** `catch` runs if the blocks fail, `finally` always. Write them in this order: each can refer to the ones before. */
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

  /** Repeats the body while the condition holds; it is evaluated before each iteration. */
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

  /** Runs the body for each item of an array. Its output has the last output of each iteration. */
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
    // Names that do not collide with the input, since the item is merged over the data.
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

  /** Starts another sequence, given by its definition here or by name, and waits until it ends. */
  subSequence<const Id extends string, CI = Untyped, CO = Untyped, G = never>(
    id: NewId<Id, O>,
    child: Child<CI, CO> | string,
    {
      input,
      version,
      ...options
    }: BlockOptions<Scope<I, O, A>, G> & {
      readonly input?: Given<Scope<I, O, A>, Templated<CI>>;
      /** Undefined: the newest version that is not deprecated. */
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

  /** The signal `cancel` takes effect only after these blocks have finished. */
  cancellationScope<const Id extends string, B extends AnyListed, G = never>(
    id: NewId<Id, O>,
    body: Branch<H, I, O, A, B>,
    options: BlockOptions<Scope<I, O, A>, G> = {},
  ): Next<Kind, H, I, O & Guarded<G, NewOutputs<B, O>>, A & Guarded<G, NewAnswers<B, A>>> {
    return this.with({ type: 'cancellation_scope', id, ...headOf(options), blocks: listOf(body) });
  }

  /** Actions in order, each with a compensation that runs if a later action fails. */
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

  /** This list with one more block. */
  private with<B extends Block>(block: B): Untyped {
    return this.of([...this.blocks, compact(block)]);
  }

  /** Another list of the same kind. */
  protected of(blocks: readonly Block[]): Untyped {
    return new Blocks(blocks);
  }
}

/** The steps of a saga. */
export class SagaSteps<in out H, in out I, in out O, in out A> implements Listed<O, A> {
  declare readonly [TYPES]: { readonly outputs: O; readonly answers: A };
  readonly blocks: readonly Block[] = [];
  readonly steps: readonly SagaStep[];

  constructor(steps: readonly SagaStep[] = []) {
    this.steps = steps;
  }

  /**
   * An action that has a compensation and consists of a single worker step or `http_request` becomes `cancellable:
   * false` unless it is set explicitly.
   *
   * @param compensation runs if a later action fails or the saga is interrupted; it can refer to the output of its
   * action
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
