/**
 * The in-process steps of one shard that act on the outside world: starts at most a bounded number
 * at once, aborts those that are withdrawn, and reports every outcome as a message to its instance.
 */

import { LIMITS } from '../src/config.js';
import type { StepOutcome } from '../src/core/builtin.js';
import type { EffectHandler, HandlerContext } from '../src/handlers/registry.js';
import { stepKey } from './instance.js';
import type { InProcessStep, StepRef } from './turn.js';

interface Run {
  readonly instance: string;
  readonly step: InProcessStep;
  readonly controller: AbortController;
}

export interface HandlerPoolDeps {
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  readonly now: () => number;
  readonly log: HandlerContext['log'];
  readonly onOutcome: (instance: string, step: StepRef, outcome: StepOutcome) => void;
}

export class HandlerPool {
  readonly #deps: HandlerPoolDeps;
  /** Started or waiting, by instance, node and iteration. */
  readonly #runs = new Map<string, Run>();
  readonly #waiting: Run[] = [];
  #active = 0;

  constructor(deps: HandlerPoolDeps) {
    this.#deps = deps;
  }

  get active(): number {
    return this.#active;
  }

  /** @throws nothing: an unknown handler is a defect of the plan and fails the step */
  start(instance: string, step: InProcessStep): void {
    const run = { instance, step, controller: new AbortController() };
    this.#runs.set(runKey(instance, step), run);
    if (this.#active < LIMITS.handlersPerShardMax) this.#begin(run);
    else this.#waiting.push(run);
  }

  abort(instance: string, step: Omit<StepRef, 'attempt'>): void {
    const key = runKey(instance, step);
    this.#runs.get(key)?.controller.abort();
    this.#runs.delete(key);
  }

  /** The shard stops: what runs will run again after the next start (spec/06 row 56). */
  abortAll(): void {
    for (const run of this.#runs.values()) run.controller.abort();
    this.#runs.clear();
    this.#waiting.length = 0;
  }

  #begin(run: Run): void {
    const handler = this.#deps.handlers.get(run.step.handler);
    if (handler === undefined) throw new Error(`no handler ${run.step.handler}`);
    this.#active += 1;
    const context: HandlerContext = {
      signal: run.controller.signal,
      idempotencyToken: run.step.token,
      log: this.#deps.log,
      now: this.#deps.now,
    };
    handler(run.step.params, context).then(
      (outcome) => this.#end(run, outcome),
      (error: unknown) =>
        this.#end(run, {
          kind: 'failure',
          retryable: false,
          message: `handler ${run.step.handler} failed: ${String(error)}`,
        }),
    );
  }

  #end(run: Run, outcome: StepOutcome): void {
    this.#active -= 1;
    const key = runKey(run.instance, run.step);
    // An aborted run's outcome interests no one; a repetition may be running under the same key.
    if (this.#runs.get(key) === run) {
      this.#runs.delete(key);
      const { node, iteration, attempt } = run.step;
      this.#deps.onOutcome(run.instance, { node, iteration, attempt }, outcome);
    }
    this.#next();
  }

  #next(): void {
    for (;;) {
      const run = this.#waiting.shift();
      if (run === undefined) return;
      if (run.controller.signal.aborted) continue;
      this.#begin(run);
      return;
    }
  }
}

function runKey(instance: string, step: { node: number; iteration: string }): string {
  return `${instance}/${stepKey(step)}`;
}
