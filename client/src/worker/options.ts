/** What a worker can be told, and whom it tells what it does. */

import type { Handlers, Named, Task } from './handlers.js';

export interface WorkerOptions<P extends Named, O> {
  readonly handlers: Handlers<P, O>;
  /** Only tasks of these queues. Default: of every queue, and those of none. */
  readonly queues?: readonly string[];
  /** How many tasks it does at once, of all handlers together. Default: 100. */
  readonly concurrency?: number;
  /** Unique among the workers that run at the same time. Default: host, process and chance. */
  readonly workerId?: string;
  /** Of your program: the server lists it with the worker. */
  readonly version?: string;
  /** The silence after which the server gives a task away: its `ENGINE_WORKER_REAPER_STALE_SECS`. Default: 60 s. */
  readonly leaseMs?: number;
  /** How often it says that a task is being worked on. Default: a quarter of `leaseMs`. */
  readonly heartbeatMs?: number;
  /** How long a poll waits for a task. Default: 20 s. */
  readonly pollWaitMs?: number;
  /** How long `stop` lets tasks go on before it aborts their signals. Default: 20 s. */
  readonly stopTimeoutMs?: number;
  /** Whether SIGTERM and SIGINT stop it. A second one ends the process. Default: false. */
  readonly handleSignals?: boolean;
  /** When handlers and queues that had no task are looked at; 0: never. Default: a minute after the start. */
  readonly complainAfterMs?: number;
  readonly hooks?: WorkerHooks;
  /** Where it says what an operator should know. Default: `console`. */
  readonly logger?: WorkerLogger;
}

export interface WorkerLogger {
  info(message: string): void;
  warn(message: string): void;
}

/**
 * What became of a run of a handler. `dropped`: nothing is reported, because the claim is lost. `given_up`: it did
 * not end while the worker stopped, and will be offered again when its lease is over.
 */
export type TaskEnding = 'completed' | 'failed' | 'dropped' | 'given_up';

/** For metrics and traces. They are called in passing: what they throw is a warning, what they return nothing. */
export interface WorkerHooks {
  onTaskStart?(event: { readonly task: Task }): void;
  /** When the handler has ended, not when its result was taken. */
  onTaskEnd?(event: {
    readonly task: Task;
    readonly ending: TaskEnding;
    readonly durationMs: number;
    /** What the handler threw. */
    readonly error?: unknown;
    /** Of a failure. */
    readonly retryable?: boolean;
  }): void;
  /** A poll was answered. */
  onPoll?(event: {
    readonly limit: number;
    readonly tasks: number;
    readonly durationMs: number;
  }): void;
  /** Results and heartbeats were answered, in one request. */
  onReport?(event: {
    readonly results: number;
    /** Those that were not taken: their claims are lost, or what they say is wrong. */
    readonly refused: number;
    readonly durationMs: number;
  }): void;
  /** A request failed, or a result was refused. Requests are sent again. */
  onError?(event: { readonly error: unknown; readonly task?: Task }): void;
}
