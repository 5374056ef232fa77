/** Whom a worker tells what it does: the hooks of its owner, and the logger. */

import type { WorkerHooks, WorkerLogger } from './options.js';
import { textOf } from './texts.js';

export class Telling {
  readonly #workerId: string;
  readonly #hooks: WorkerHooks;
  readonly #logger: WorkerLogger;

  constructor(workerId: string, hooks: WorkerHooks = {}, logger: WorkerLogger = console) {
    this.#workerId = workerId;
    this.#hooks = hooks;
    this.#logger = logger;
  }

  /** What a hook throws, at once or later, is nobody's failure. */
  tell<Name extends keyof WorkerHooks>(
    name: Name,
    event: Parameters<NonNullable<WorkerHooks[Name]>>[0],
  ): void {
    const complain = (error: unknown) => this.warn(`the hook ${name} threw: ${textOf(error)}`);
    try {
      const hook = this.#hooks[name] as ((event: unknown) => unknown) | undefined;
      const returned = hook?.call(this.#hooks, event) as PromiseLike<unknown> | undefined;
      if (typeof returned?.then === 'function') returned.then(undefined, complain);
    } catch (error) {
      complain(error);
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
      // There is nobody left to complain to.
    }
  }
}
