/** Calls the hooks and the logger of a worker. */

import type { WorkerHooks, WorkerLogger } from './options.js';
import { textOf } from './texts.js';

export class Reporter {
  readonly #workerId: string;
  readonly #hooks: WorkerHooks;
  readonly #logger: WorkerLogger;

  constructor(workerId: string, hooks: WorkerHooks = {}, logger: WorkerLogger = console) {
    this.#workerId = workerId;
    this.#hooks = hooks;
    this.#logger = logger;
  }

  /** Exceptions of hooks, thrown at once or later, are logged and otherwise ignored. */
  emit<Name extends keyof WorkerHooks>(
    name: Name,
    event: Parameters<NonNullable<WorkerHooks[Name]>>[0],
  ): void {
    const warn = (error: unknown) => this.warn(`the hook ${name} threw: ${textOf(error)}`);
    try {
      const hook = this.#hooks[name] as ((event: unknown) => unknown) | undefined;
      const returned = hook?.call(this.#hooks, event) as PromiseLike<unknown> | undefined;
      if (typeof returned?.then === 'function') returned.then(undefined, warn);
    } catch (error) {
      warn(error);
    }
  }

  info(message: string): void {
    this.#log('info', message);
  }

  warn(message: string): void {
    this.#log('warn', message);
  }

  #log(level: keyof WorkerLogger, message: string): void {
    try {
      this.#logger[level](`worker ${this.#workerId}: ${message}`);
    } catch {
      // The logger itself fails, so there is nowhere to report it.
    }
  }
}
