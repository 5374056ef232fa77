/** The client of a durable workflow engine, for everything that standard `fetch` runs on. */

export { Client, type ClientOptions } from './client/client.js';
export { EngineError, InstanceFailedError } from './client/errors.js';
export type {
  Change,
  FollowChangesOptions,
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
