/** The options and hooks of a worker. */

import type { Handlers, Named, Task } from './handlers.js';

export interface WorkerOptions<P extends Named, O> {
  readonly handlers: Handlers<P, O>;
  /** Only tasks of these queues. Default: tasks of all queues and without a queue. */
  readonly queues?: readonly string[];
  /** Maximum number of concurrent tasks, over all handlers. Default: 100. */
  readonly concurrency?: number;
  /** Unique among workers that run at the same time. Default: host name, process id and random characters. */
  readonly workerId?: string;
  /** The version of your program, shown in the list of workers. */
  readonly version?: string;
  /**
   * How long the server waits for a heartbeat before it gives the task to another worker: its
   * `ENGINE_WORKER_REAPER_STALE_SECS`. Default: 60 s.
   */
  readonly leaseMs?: number;
  /** Interval of heartbeats. Default: a quarter of `leaseMs`. */
  readonly heartbeatMs?: number;
  /** How long a poll waits for a task. Default: 20 s. */
  readonly pollWaitMs?: number;
  /** How long `stop` waits for running tasks before it aborts their signals. Default: 20 s. */
  readonly stopTimeoutMs?: number;
  /** Whether SIGTERM and SIGINT stop the worker. A second signal ends the process. Default: false. */
  readonly handleSignals?: boolean;
  /** When to check handlers and queues that had no task; 0: never. Default: a minute after the start. */
  readonly complainAfterMs?: number;
  readonly hooks?: WorkerHooks;
  /** Receives messages for operators. Default: `console`. */
  readonly logger?: WorkerLogger;
}

export interface WorkerLogger {
  info(message: string): void;
  warn(message: string): void;
}

/**
 * The outcome of a handler. `dropped`: nothing is reported, because the claim is lost. `given_up`: it did not end while
 * the worker stopped, and the task is offered again when its lease expires.
 */
export type TaskEnding = 'completed' | 'failed' | 'dropped' | 'given_up';

/** For metrics and traces. Called synchronously; an exception is logged as a warning, and return values are ignored. */
export interface WorkerHooks {
  onTaskStart?(event: { readonly task: Task }): void;
  /** Called when the handler has ended, before its result is acknowledged. */
  onTaskEnd?(event: {
    readonly task: Task;
    readonly ending: TaskEnding;
    readonly durationMs: number;
    /** The error that the handler threw. */
    readonly error?: unknown;
    /** Set for a failure. */
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
    /** Reports that were rejected: their claims are lost, or they are invalid. */
    readonly refused: number;
    readonly durationMs: number;
  }): void;
  /** A request failed, or a result was rejected. Requests are retried. */
  onError?(event: { readonly error: unknown; readonly task?: Task }): void;
}
