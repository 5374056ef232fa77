/** The client of a durable workflow engine, for every platform with a standard `fetch`. */

export type { Applied } from './builder/apply.js';
export type { Blocks } from './builder/blocks.js';
export {
  type Primitive,
  type Ref,
  raw,
  type Template,
  type Term,
  t,
  type Untyped,
  type Value,
} from './builder/expressions.js';
export { filter, fn } from './builder/functions.js';
export type { HandlerTypes, WorkerHandlers } from './builder/handlers.js';
export type { Scope } from './builder/options.js';
export { type Sequence, type SequenceOptions, sequence } from './builder/sequence.js';
export { Client, type ClientOptions } from './client/client.js';
export { EngineError, InstanceFailedError } from './client/errors.js';
export type {
  Change,
  FollowChangesOptions,
  FollowInstanceOptions,
  FollowOptions,
  InstanceEvent,
} from './client/follow.js';
export type {
  CallOptions,
  CreationOptions,
  EventStream,
  List,
  Page,
  StreamEvent,
} from './client/operation.js';
export type { Outputs, RunOptions, RunResult, SequenceRef, WaitOptions } from './client/run.js';
export type { Operations } from './generated/operations.js';
export type * from './generated/types.js';
export {
  type AbortReason,
  FatalError,
  RetryableError,
  type RetryableErrorOptions,
  TaskAbortedError,
} from './worker/errors.js';
export type {
  HandlerFunction,
  Handlers,
  HandlerWithSchemas,
  Named,
  Output,
  Task,
  TaskContext,
  TaskLog,
} from './worker/handlers.js';
export type { TaskEnding, WorkerHooks, WorkerLogger, WorkerOptions } from './worker/options.js';
export type { Schema, StandardSchema } from './worker/schemas.js';
export { Worker } from './worker/worker.js';
