/** What blocks and steps may say beside what they hold: the members of the engine's own shapes, typed by what stands before them. */

import type { Failure, FailureCode, Retry, StepBlock, WaitForInput } from '../generated/types.js';
import type { Ref, Term, Untyped, Value } from './expressions.js';
import type { AnyTemplated, BuiltinHandlers } from './handlers.js';

/** What the engine keeps of the run. */
export interface Runtime {
  readonly instance_id: string;
  readonly started_at: string | null;
  readonly current_step: string | null;
  readonly current_step_started_at: string | null;
  readonly attempt: number;
  readonly total_steps_executed: number;
}

/** What expressions can see where a block stands. */
export interface Scope<I, O, A> {
  /** What the instance was started with: `context.data`. */
  readonly input: Ref<I>;
  /** The latest output of each block before this one; null in its type: it may not have run. */
  readonly outputs: { readonly [Id in keyof O]: Ref<O[Id]> };
  /** What people have answered. */
  readonly answers: { readonly [Key in keyof A]: Ref<A[Key]> };
  readonly config: Ref<Untyped>;
  readonly runtime: Ref<Runtime>;
  readonly instanceId: Ref<string>;
}

/** A credential by its id, put in when the handler is called (docs/secrets.md). It takes filters only. */
export interface Secret extends Value<string> {
  readonly [name: string]: Secret;
}

/** A value, or what makes it of what can be seen. */
export type Given<S, T> = T | ((scope: S) => T);

/** What was caught, or what an instance failed with. */
export interface Caught extends Failure {
  readonly source: string;
  /** The block that caught it. */
  readonly failed_blocks?: readonly string[];
}

/** Why a compensation runs: an action of its saga has failed, or the saga was cut off. */
export interface Undone extends Partial<Omit<Failure, 'code' | 'message'>> {
  readonly source: string;
  /** The saga. */
  readonly block_id: string;
  /** The step whose action failed, and the block in it; null and none: the saga was cut off. */
  readonly failed_step: string | null;
  readonly failed_block_id?: string | null;
  readonly code: FailureCode | 'cancelled';
  readonly message: string;
}

/** The failure of one try. */
interface TryError {
  readonly message: string;
  readonly details: Untyped;
}

/** @typeParam G inferred from `when`, never without it: a block that may be skipped gives null */
export interface BlockOptions<S, G> {
  /** The block is skipped when it does not hold. */
  readonly when?: Given<S, Term<G>> | undefined;
  /** Milliseconds. Past it, all inside is cut off and the block has failed. */
  readonly timeout?: number | undefined;
}

/** @typeParam V the values of the choices, never without a gate */
interface Gate<S, V extends string, Key extends string, E extends string>
  extends Omit<WaitForInput, 'prompt' | 'choices' | 'store_as' | 'escalation_handler'> {
  readonly prompt?: Given<S, string | Value<string>> | undefined;
  readonly choices: readonly { readonly label: string; readonly value: V }[];
  /** The name of the answer: that of the block when absent. */
  readonly store_as?: Key | undefined;
  /** When the time is over the step completes with an output that names it, and does not fail. */
  readonly escalation_handler?: E | undefined;
}

/** What is taken as it is. */
type PlainOption =
  | 'delay'
  | 'send_window'
  | 'rate_limit_key'
  | 'cancellable'
  | 'queue_name'
  | 'queue_timeout'
  | 'deadline'
  | 'output_schema'
  | 'merge_output';

/** Of any step: docs/reference/steps.md. Times are milliseconds. */
export interface StepOptions<
  S,
  G = never,
  V extends string = never,
  Key extends string = string,
  E extends string = never,
> extends Pick<StepBlock, PlainOption> {
  readonly when?: Given<S, Term<G>> | undefined;
  /** Milliseconds that one try may take. */
  readonly timeout?: number | undefined;
  readonly retry?: RetryOptions<S> | undefined;
  readonly on_deadline_breach?: BreachOptions<S> | undefined;
  /** A person has to answer before the first try: `answers` has the answer then. */
  readonly wait_for_input?: Gate<S, V, Key, E> | undefined;
}

interface RetryOptions<S> extends Omit<Retry, 'retry_if'> {
  /** Asked after each failure; no further try if it does not hold. */
  readonly retry_if?: Given<S & { readonly error: Ref<TryError> }, Term<unknown>> | undefined;
}

interface BreachOptions<S> {
  readonly handler: 'noop' | 'log' | 'http_request' | 'fail' | 'transform' | 'assert';
  readonly params?: Given<S, { readonly [name: string]: AnyTemplated }> | undefined;
}

/** Whom secrets are given to: workers, and who sends requests. */
type ParamsScope<S, K> =
  K extends Exclude<keyof BuiltinHandlers, 'http_request'> ? S : S & { readonly secrets: Secret };

/**
 * The handler of a step with its parameters, which may be left out where none is needed.
 *
 * @typeParam P what the handler takes
 * @typeParam Q what it is given
 */
export type HandlerOptions<S, K, P, Q> = { readonly handler: K } & (Record<never, never> extends P
  ? { readonly params?: Given<ParamsScope<S, K>, Q & Only<Q, P>> | undefined }
  : { readonly params: Given<ParamsScope<S, K>, Q & Only<Q, P>> });

/** No member that the handler does not know. */
type Only<Q, P> =
  Q extends Value<unknown>
    ? unknown
    : { readonly [Name in Exclude<keyof Q, P extends unknown ? keyof P : never>]: never };

/** A JSON Schema, of which the type may be known. */
export type Schema<T> = { readonly [word: string]: unknown } & { readonly static?: T };
