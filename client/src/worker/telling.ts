/** Whom a worker tells what it does: the hooks of its owner, and the logger. */

import type { WorkerHooks, WorkerLogger } from './options.js';

export class Telling {
  readonly #workerId: string;
  readonly #hooks: WorkerHooks;
  readonly #logger: WorkerLogger;

  constructor(workerId: string, hooks: WorkerHooks = {}, logger: WorkerLogger = console) {
    this.#workerId = workerId;
    this.#hooks = hooks;
    this.#logger = logger;
  }

  /** What a hook throws is nobody's failure. */
  tell<Name extends keyof WorkerHooks>(
    name: Name,
    event: Parameters<NonNullable<WorkerHooks[Name]>>[0],
  ): void {
    try {
      (this.#hooks[name] as ((event: unknown) => void) | undefined)?.call(this.#hooks, event);
    } catch (error) {
      this.warn(`the hook ${name} threw: ${String(error)}`);
    }
  }

  info(message: string): void {
    this.#logger.info(`worker ${this.#workerId}: ${message}`);
  }

  warn(message: string): void {
    this.#logger.warn(`worker ${this.#workerId}: ${message}`);
  }
}
