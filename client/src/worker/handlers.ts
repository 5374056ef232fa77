/** The types of tasks and handlers, with parameters and outputs typed by their schemas. */

import type { JsonObject, WorkerTask } from '../generated/types.js';
import type { Schema } from './schemas.js';

/** A value whose type is not declared. */
type Known<P> = unknown extends P ? JsonObject : P;

/** A claimed task as the server returns it, with its checkpoint. */
export interface Task<P = JsonObject> extends Omit<WorkerTask, 'params'> {
  readonly params: P;
  /** The value that the last attempt, or an earlier claim, saved with `ctx.checkpoint`; undefined if there is none. */
  readonly checkpoint: unknown;
}

/** Writes to the log of the step, which is stored with the instance. Lines are sent with the result. */
export interface TaskLog {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface TaskContext {
  /**
   * Aborted with a `TaskAbortedError` when the claim is lost (the instance was cancelled, or another worker has the
   * task), when the task exceeds its time limit, or when a stopping worker no longer waits.
   */
  readonly signal: AbortSignal;
  /** W3C trace context of the task, the parent of spans created for it. */
  readonly traceparent: string | undefined;
  readonly log: TaskLog;
  /**
   * Saves progress durably: it is `task.checkpoint` of the next claim and of the next attempt. An object of at most 256
   * KiB as JSON.
   *
   * @throws TaskAbortedError if the claim is lost
   */
  checkpoint(value: object): Promise<void>;
}

/** The return value is the output of the step; nothing means `{}`. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing, which is no undefined to the compiler
export type Output = object | void;

export type HandlerFunction<P = unknown, O = Output> = (
  task: Task<Known<P>>,
  ctx: TaskContext,
) => O | Promise<O>;

/**
 * A handler with schemas: parameters that do not match fail the step permanently. `output` does the same for the return
 * value of `run`.
 */
export type HandlerWithSchemas<P = unknown, O = unknown> = { readonly params?: Schema<P> } & (
  | { readonly output: Schema<O>; readonly run: HandlerFunction<P, NoInfer<O>> }
  | { readonly output?: undefined; readonly run: HandlerFunction<P> }
);

/** Types by handler name. */
export type Named = Readonly<Record<string, unknown>>;

/** By the name in `handler` of the steps. */
export type Handlers<P extends Named, O> = {
  readonly [Name in keyof P]:
    | HandlerFunction<P[Name]>
    | HandlerWithSchemas<P[Name], Name extends keyof O ? O[Name] : unknown>;
} & { readonly [Name in keyof O]: object | { readonly output?: Schema<O[Name]> } };

/** The normalized form that the worker runs. */
export interface Handler {
  readonly params: Schema<unknown> | undefined;
  readonly output: Schema<unknown> | undefined;
  readonly run: HandlerFunction;
}
