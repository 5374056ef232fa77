/** A sequence in code: its name, input schema, blocks and hooks. It is immutable plain data; `apply` publishes it. */

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

/** The members of a sequence besides its blocks. */
interface Head {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly status?: CreateSequence['status'];
  readonly input_schema?: object;
  readonly on_failure?: readonly FailureHook[];
  readonly on_cancel?: readonly FailureHook[];
}

export interface SequenceOptions {
  /** Default: the namespace of the client. */
  readonly namespace?: string;
  readonly status?: NonNullable<CreateSequence['status']>;
}

/**
 * A sequence without blocks: `sequence<Handlers, Order>('order').step('charge', …)`.
 *
 * @typeParam H the types of your workers' handlers; default: any handler
 * @typeParam I the input of instances, `context.data`
 */
export function sequence<H extends HandlerTypes<H> = AnyHandlers, I = Untyped>(
  name: string,
  options: SequenceOptions = {},
): Sequence<H, I> {
  return new Sequence({ name, ...options });
}

// biome-ignore lint/complexity/noBannedTypes: an empty set of names
type Nothing = {};

export class Sequence<in out H, in out I, in out O = Nothing, in out A = Nothing>
  extends Blocks<H, I, O, A, 'sequence'>
  implements Child<I, O>
{
  /** Never set at run time, like the next one: they carry the types for `client.instances.run`. */
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

  /**
   * The JSON Schema of the input; the server rejects other input. The type is the static type of the schema if it has
   * one.
   */
  input<T = I>(schema: Schema<T>): Sequence<H, T, O, A> {
    return new Sequence({ ...this.#head, input_schema: schema }, this.blocks);
  }

  /** Steps that run in the server after an instance has failed for any reason. */
  onFailure<B extends AnyHooks>(
    hooks: (h: Hooks<I, Maybe<O>, Maybe<A>>, error: Ref<Caught>) => B,
  ): Sequence<H, I, O, A> {
    const { steps } = hooks(new Hooks(), ERROR);
    return new Sequence({ ...this.#head, on_failure: steps }, this.blocks);
  }

  /** Steps that run in the server after an instance was cancelled. */
  onCancel<B extends AnyHooks>(
    hooks: (h: Hooks<I, Maybe<O>, Maybe<A>>) => B,
  ): Sequence<H, I, O, A> {
    const { steps } = hooks(new Hooks());
    return new Sequence({ ...this.#head, on_cancel: steps }, this.blocks);
  }

  /** In the form of `POST /sequences`; `apply` assigns the version number. */
  get definition(): CreateSequence {
    return { version: 1, ...this.#head, blocks: this.blocks };
  }

  /**
   * Publishes the definition as the next version of its name, unless the newest version already has it. Concurrent
   * processes end up with one version. With `hold` the name keeps referring to the previous version until the hold is
   * lifted or a release promotes the new one.
   *
   * @throws EngineError 400 for an invalid definition
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

/** Hooks: steps with built-in handlers, which run once each after a failure or a cancellation. */
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
