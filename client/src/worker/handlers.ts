/** What a worker runs: the types of tasks and handlers, with parameters and outputs as their schemas say. */

import type { JsonObject, WorkerTask } from '../generated/types.js';
import type { Schema } from './schemas.js';

/** What nobody said a type of. */
type Known<P> = unknown extends P ? JsonObject : P;

/** A claimed task as the server gives it, with its checkpoint. */
export interface Task<P = JsonObject> extends Omit<WorkerTask, 'params'> {
  readonly params: P;
  /** What the last try, or an earlier claim, saved with `ctx.checkpoint`; undefined: nothing. */
  readonly checkpoint: unknown;
}

/** Lines of the step's log, kept with the instance. They are sent with the result. */
export interface TaskLog {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface TaskContext {
  /**
   * Aborted with a `TaskAbortedError`: when the claim is lost (the instance was cancelled, another worker has the
   * task), when the time limit of the task has passed, and when a stopping worker waits no longer.
   */
  readonly signal: AbortSignal;
  /** W3C trace context of the task: what is done for it is a child of it. */
  readonly traceparent: string | undefined;
  readonly log: TaskLog;
  /**
   * Saves how far the work got, durably, for whoever has to go on with it: `task.checkpoint` of the next claim and
   * of the next try. An object, of 256 KiB as JSON at most.
   *
   * @throws TaskAbortedError when the claim is lost
   */
  checkpoint(value: object): Promise<void>;
}

/** What is returned is the output of the step; nothing is `{}`. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing, which is no undefined to the compiler
export type Output = object | void;

export type HandlerFunction<P = unknown, O = Output> = (
  task: Task<Known<P>>,
  ctx: TaskContext,
) => O | Promise<O>;

/**
 * A handler that is told what its parameters are: what does not conform fails the step for good. `output` holds for
 * what `run` returns, in the same way.
 */
export type HandlerWithSchemas<P = unknown, O = unknown> = { readonly params?: Schema<P> } & (
  | { readonly output: Schema<O>; readonly run: HandlerFunction<P, NoInfer<O>> }
  | { readonly output?: undefined; readonly run: HandlerFunction<P> }
);

/** Types by the names of handlers. */
export type Named = Readonly<Record<string, unknown>>;

/** By the name that steps have in `handler`. */
export type Handlers<P extends Named, O> = {
  readonly [Name in keyof P]:
    | HandlerFunction<P[Name]>
    | HandlerWithSchemas<P[Name], Name extends keyof O ? O[Name] : unknown>;
} & { readonly [Name in keyof O]: object | { readonly output?: Schema<O[Name]> } };

/** As the worker runs it. */
export interface Handler {
  readonly params: Schema<unknown> | undefined;
  readonly output: Schema<unknown> | undefined;
  readonly run: HandlerFunction;
}
