/**
 * A sequence in code: its head, its blocks, and what runs after a bad end. It is plain data that is made once;
 * `apply` stores it.
 */

import type { Client } from '../client/client.js';
import type { Block, CreateSequence, FailureHook, StepBlock } from '../generated/types.js';
import { type Applied, type ApplyOptions, apply } from './apply.js';
import { Blocks, type Child } from './blocks.js';
import type { Ref, Untyped } from './expressions.js';
import type {
  AnyHandlers,
  AnyTemplated,
  BuiltinHandlers,
  HandlerTypes,
  OutputOf,
  ParamsOf,
  Rendered,
  Templated,
} from './handlers.js';
import { ERROR, stepBlock } from './members.js';
import type { BlockOptions, Caught, Given, HandlerOptions, Schema, Scope } from './options.js';
import type { Maybe, NewId, OrNull, RunOutputs } from './outputs.js';

/** What a sequence is beside its blocks. */
interface Head {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly status?: CreateSequence['status'];
  readonly input_schema?: object;
  readonly on_failure?: readonly FailureHook[];
  readonly on_cancel?: readonly FailureHook[];
}

export interface SequenceOptions {
  /** That of the client when absent. */
  readonly namespace?: string;
  readonly status?: NonNullable<CreateSequence['status']>;
}

/**
 * A sequence without blocks: `sequence<Handlers, Order>('order').step('charge', …)`.
 *
 * @typeParam H what the handlers of your workers take and give; of any handler anything when absent
 * @typeParam I what instances are started with, `context.data`
 */
export function sequence<H extends HandlerTypes<H> = AnyHandlers, I = Untyped>(
  name: string,
  options: SequenceOptions = {},
): Sequence<H, I> {
  return new Sequence({ name, ...options });
}

// biome-ignore lint/complexity/noBannedTypes: no outputs, no answers: no names
type Nothing = {};

export class Sequence<in out H, in out I, in out O = Nothing, in out A = Nothing>
  extends Blocks<H, I, O, A, 'sequence'>
  implements Child<I, O>
{
  /** Never there, as the next: by them `client.instances.run` knows what to take and what it gives. */
  declare readonly inputs?: I | undefined;
  declare readonly outputs?: RunOutputs<O> | undefined;
  readonly #head: Head;

  constructor(head: Head, blocks: readonly Block[] = []) {
    super(blocks);
    this.#head = head;
  }

  get name(): string {
    return this.#head.name;
  }

  get namespace(): string | undefined {
    return this.#head.namespace;
  }

  /** What the server refuses other input by, a JSON Schema. The type is that of the schema if it has one. */
  input<T = I>(schema: Schema<T>): Sequence<H, T, O, A> {
    return new Sequence({ ...this.#head, input_schema: schema }, this.blocks);
  }

  /** Steps that run in the server once an instance has failed, whatever it failed by. */
  onFailure<B extends AnyHooks>(
    hooks: (h: Hooks<I, Maybe<O>, Maybe<A>>, error: Ref<Caught>) => B,
  ): Sequence<H, I, O, A> {
    const { steps } = hooks(new Hooks(), ERROR);
    return new Sequence({ ...this.#head, on_failure: steps }, this.blocks);
  }

  /** Steps that run in the server once an instance was cancelled. */
  onCancel<B extends AnyHooks>(
    hooks: (h: Hooks<I, Maybe<O>, Maybe<A>>) => B,
  ): Sequence<H, I, O, A> {
    const { steps } = hooks(new Hooks());
    return new Sequence({ ...this.#head, on_cancel: steps }, this.blocks);
  }

  /** As `POST /sequences` takes it; the number is the server's to give, by `apply`. */
  get definition(): CreateSequence {
    return { version: 1, ...this.#head, blocks: this.blocks };
  }

  /**
   * Stores the definition as the next version of its name, unless the newest one is the same. Processes that do so
   * at the same time end with one version. With `hold` the name leads on to what it led to, until the hold is
   * lifted or a release promotes what was stored.
   *
   * @throws EngineError 400 for a definition that the server refuses
   */
  apply(
    client: Pick<Client, 'sequences'>,
    options?: Omit<ApplyOptions, 'versionMin'>,
  ): Promise<Applied> {
    return apply(client, this.definition, options);
  }

  protected override of(blocks: readonly Block[]): Untyped {
    return new Sequence(this.#head, blocks);
  }
}

type AnyHooks = Hooks<Untyped, Untyped, Untyped>;

/** What runs after a bad end: steps of the engine's own handlers, once each. */
export class Hooks<in out I, in out O, in out A> {
  readonly steps: readonly FailureHook[];

  constructor(steps: readonly FailureHook[] = []) {
    this.steps = steps;
  }

  step<const Id extends string, K extends keyof BuiltinHandlers, G = never>(
    id: NewId<Id, O>,
    step: HandlerOptions<Scope<I, O, A>, K, ParamsOf<object, K>, Templated<ParamsOf<object, K>>> &
      BlockOptions<Scope<I, O, A>, G>,
  ): Hooks<I, O & { readonly [Name in Id]: OutputOf<object, K> | null }, A> {
    return this.#with(stepBlock(id, step));
  }

  transform<const Id extends string, const P, G = never>(
    id: NewId<Id, O>,
    params: Given<Scope<I, O, A>, P & AnyTemplated>,
    options: BlockOptions<Scope<I, O, A>, G> = {},
  ): Hooks<I, O & { readonly [Name in Id]: OrNull<G, Rendered<P>> }, A> {
    return this.#with(stepBlock(id, { handler: 'transform', params, ...options }));
  }

  #with(step: StepBlock): Hooks<I, Untyped, A> {
    return new Hooks([...this.steps, step as FailureHook]);
  }
}
