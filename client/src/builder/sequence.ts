/** A sequence in code: its name, input schema, blocks and hooks. It is immutable plain data; `apply` publishes it. */

import type { Client } from '../client/client.js';
import type {
  Block,
  CancelOn,
  CreateSequence,
  FailureHook,
  StepBlock,
} from '../generated/types.js';
import { type Applied, type ApplyOptions, apply } from './apply.js';
import { Blocks, type Child } from './blocks.js';
import { type Ref, rendered, type Untyped, type Value } from './expressions.js';
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
import { compact, ERROR, given, stepBlock } from './members.js';
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
  readonly concurrency?: CreateSequence['concurrency'];
  readonly throttle?: CreateSequence['throttle'];
  readonly cancel_on?: readonly CancelOn[];
  readonly debounce?: Debounce;
  readonly batch?: Batch;
  readonly searchable?: readonly string[];
}

export type Debounce = NonNullable<CreateSequence['debounce']>;
export type Batch = NonNullable<CreateSequence['batch']>;

/** Exists in types only: it tells a batch from other inputs with `items`. */
declare const ITEM: unique symbol;

/** The data of an instance that a batch starts. */
export interface Batched<I> {
  readonly items: readonly I[];
  readonly [ITEM]: I;
}

/** The input of a creation, and of a child: of a batch, one item. */
type CreationInput<I> = I extends { readonly [ITEM]: infer Item } ? Item : I;

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

/** What is known when an instance is created. */
type CreationScope<I> = Pick<Scope<I, Nothing, Nothing>, 'input' | 'config' | 'instanceId'>;

/** Limits of a definition; a key that is a function becomes a template, and a text is one already. */
type Keyed<I, T> = Omit<T, 'key'> & {
  readonly key?: string | ((scope: Omit<CreationScope<I>, 'instanceId'>) => Value<unknown>);
};

function keyed<T extends object>({ key, ...limits }: Keyed<never, T>): T {
  const template = typeof key === 'function' ? rendered(given(key)) : key;
  return compact({ key: template, ...limits }) as T;
}

export class Sequence<in out H, in out I, in out O = Nothing, in out A = Nothing>
  extends Blocks<H, I, O, A, 'sequence'>
  implements Child<CreationInput<I>, O>
{
  /** Never set at run time, like the next one: they carry the types for `client.instances.run`. */
  declare readonly inputs?: CreationInput<I> | undefined;
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

  /**
   * Limits how many instances with the same key run at once, in all versions of the sequence. The key may refer to the
   * input, or is a template such as `{{ data.customer }}`.
   */
  concurrency(limits: Keyed<I, NonNullable<CreateSequence['concurrency']>>): Sequence<H, I, O, A> {
    return new Sequence({ ...this.#head, concurrency: keyed(limits) }, this.blocks);
  }

  /** Puts off starts beyond `limit` in any window of `per_ms`, for each key, which is given like that of concurrency. */
  throttle(limits: Keyed<I, NonNullable<CreateSequence['throttle']>>): Sequence<H, I, O, A> {
    return new Sequence({ ...this.#head, throttle: keyed(limits) }, this.blocks);
  }

  /**
   * Events with this name and correlation key, sent after the creation of an instance, cancel it. The key may refer to
   * the input. Without a key every event with the name does. Each call adds one.
   */
  cancelOn(
    event: string,
    key?: Given<CreationScope<I>, string | Value<unknown>>,
  ): Sequence<H, I, O, A> {
    const entry = compact<CancelOn>({ event, key: rendered(given(key)) as string | undefined });
    const cancel_on = [...(this.#head.cancel_on ?? []), entry];
    return new Sequence({ ...this.#head, cancel_on }, this.blocks);
  }

  /**
   * Of creations in quick succession with the same key, such as `{{ data.order }}`, only the last one starts an instance,
   * `wait_ms` after it and at most `max_wait_ms` after the first.
   */
  debounce(rules: Keyed<I, Debounce>): Sequence<H, I, O, A> {
    return new Sequence({ ...this.#head, debounce: keyed(rules) }, this.blocks);
  }

  /**
   * One instance starts for several creations with the same key: with `size` of them, or `wait_ms` after the first. Its
   * input is `{ items }`, the inputs of the creations in their order; declare its steps after this call. Creations, dry
   * runs and children give one item, which the schema of `input` describes.
   */
  batch(rules: Keyed<I, Batch>): Sequence<H, Batched<I>, O, A> {
    return new Sequence({ ...this.#head, batch: keyed(rules) }, this.blocks);
  }

  /**
   * Instances are found by the texts and numbers at these paths below `context.data`, such as `customer.email`, or below
   * `metadata`, such as `metadata.order` (`GET /search`, the dashboard).
   */
  searchable(...paths: readonly string[]): Sequence<H, I, O, A> {
    const searchable = [...(this.#head.searchable ?? []), ...paths];
    return new Sequence({ ...this.#head, searchable }, this.blocks);
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
