/** Options of blocks and steps: the members of the server's types, typed by what is in scope. */

import type { Failure, FailureCode, Retry, StepBlock, WaitForInput } from '../generated/types.js';
import type { Ref, Term, Untyped, Value } from './expressions.js';
import type { AnyTemplated, BuiltinHandlers } from './handlers.js';

/** The engine's data about the run. */
export interface Runtime {
  readonly instance_id: string;
  readonly started_at: string | null;
  readonly current_step: string | null;
  readonly current_step_started_at: string | null;
  readonly attempt: number;
  readonly total_steps_executed: number;
}

/** What expressions can refer to at a block. */
export interface Scope<I, O, A> {
  /** The input of the instance: `context.data`. */
  readonly input: Ref<I>;
  /** The latest output of each earlier block; its type includes null, since the block may not have run. */
  readonly outputs: { readonly [Id in keyof O]: Ref<O[Id]> };
  /** The answers to approvals. */
  readonly answers: { readonly [Key in keyof A]: Ref<A[Key]> };
  readonly config: Ref<Untyped>;
  readonly runtime: Ref<Runtime>;
  readonly instanceId: Ref<string>;
}

/** A secret by its id, inserted when the handler is called (docs/secrets.md). Only filters apply to it. */
export interface Secret extends Value<string> {
  readonly [name: string]: Secret;
}

/** A value, or a function that computes it from the scope. */
export type Given<S, T> = T | ((scope: S) => T);

/** A caught failure, or the failure of the instance. */
export interface Caught extends Failure {
  readonly source: string;
  /** The blocks that failed. */
  readonly failed_blocks?: readonly string[];
}

/** Why a compensation runs: an action of its saga failed, or the saga was interrupted. */
export interface Undone extends Partial<Omit<Failure, 'code' | 'message'>> {
  readonly source: string;
  /** The id of the saga. */
  readonly block_id: string;
  /** The step whose action failed, and the failed block in it; null and absent if the saga was interrupted. */
  readonly failed_step: string | null;
  readonly failed_block_id?: string | null;
  readonly code: FailureCode | 'cancelled';
  readonly message: string;
}

/** The failure of one attempt. */
interface TryError {
  readonly message: string;
  readonly details: Untyped;
}

/** @typeParam G inferred from `when`, never without it: a block that may be skipped may have null as output */
export interface BlockOptions<S, G> {
  /** The block is skipped unless this holds. */
  readonly when?: Given<S, Term<G>> | undefined;
  /** Milliseconds after which everything inside is stopped and the block fails. */
  readonly timeout?: number | undefined;
}

/** @typeParam V the values of the choices, never without an approval */
interface Gate<S, V extends string, Key extends string, E extends string>
  extends Omit<WaitForInput, 'prompt' | 'choices' | 'store_as' | 'escalation_handler'> {
  readonly prompt?: Given<S, string | Value<string>> | undefined;
  readonly choices: readonly { readonly label: string; readonly value: V }[];
  /** The name of the answer. Default: the id of the block. */
  readonly store_as?: Key | undefined;
  /** After the timeout, the step completes with an output that names this handler instead of failing. */
  readonly escalation_handler?: E | undefined;
}

/** Options that are passed on unchanged. */
type PlainOption =
  | 'delay'
  | 'send_window'
  | 'cancellable'
  | 'queue_name'
  | 'queue_timeout'
  | 'deadline'
  | 'output_schema'
  | 'merge_output';

/** Options of any step: docs/reference/steps.md. Times are in milliseconds. */
export interface StepOptions<
  S,
  G = never,
  V extends string = never,
  Key extends string = string,
  E extends string = never,
> extends Pick<StepBlock, PlainOption> {
  readonly when?: Given<S, Term<G>> | undefined;
  /** Time limit of one attempt, in milliseconds. */
  readonly timeout?: number | undefined;
  readonly retry?: RetryOptions<S> | undefined;
  /** Attempts with the same key share a rate limit. */
  readonly rate_limit_key?: Given<S, string | Value<unknown>> | undefined;
  readonly on_deadline_breach?: BreachOptions<S> | undefined;
  /** Requires an answer before the first attempt, which is then available in `answers`. */
  readonly wait_for_input?: Gate<S, V, Key, E> | undefined;
  /**
   * Answers a sender of the signal who waits (`wait_ms`). `taken` is what the step took: the payload of a
   * wait_for_event, or the value of the answer.
   */
  readonly reply?: Given<S & { readonly taken: Untyped }, AnyTemplated> | undefined;
}

interface RetryOptions<S> extends Omit<Retry, 'retry_if'> {
  /** Evaluated after each failure; there is no further attempt unless it holds. */
  readonly retry_if?: Given<S & { readonly error: Ref<TryError> }, Term<unknown>> | undefined;
}

interface BreachOptions<S> {
  readonly handler: 'noop' | 'log' | 'http_request' | 'fail' | 'transform' | 'assert';
  readonly params?: Given<S, { readonly [name: string]: AnyTemplated }> | undefined;
}

/** Handlers that may receive secrets: those of workers, and those that send requests. */
type ParamsScope<S, K> =
  K extends Exclude<keyof BuiltinHandlers, 'http_request'> ? S : S & { readonly secrets: Secret };

/**
 * The handler of a step with its parameters, which may be omitted if none are required.
 *
 * @typeParam P the declared parameters
 * @typeParam Q the given parameters
 */
export type HandlerOptions<S, K, P, Q> = { readonly handler: K } & (Record<never, never> extends P
  ? { readonly params?: Given<ParamsScope<S, K>, Q & Only<Q, P>> | undefined }
  : { readonly params: Given<ParamsScope<S, K>, Q & Only<Q, P>> });

/** Rejects members that the handler does not have. */
type Only<Q, P> =
  Q extends Value<unknown>
    ? unknown
    : { readonly [Name in Exclude<keyof Q, P extends unknown ? keyof P : never>]: never };

/** A JSON Schema, optionally with its static type. */
export type Schema<T> = { readonly [word: string]: unknown } & { readonly static?: T };
