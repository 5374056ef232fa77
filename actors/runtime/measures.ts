/**
 * Measures a shard's own work: turns, advanced instances, attempts of steps. An attempt is measured when it
 * ends, whether or not it is committed.
 */

import type { Clock } from '../../src/base/clock.js';
import type { Meter } from '../../src/metrics/meter.js';

export class Measures {
  readonly #meter: Meter;
  readonly #clock: Clock;
  #advanced = 0;

  constructor(meter: Meter, clock: Clock) {
    this.#meter = meter;
    this.#clock = clock;
  }

  /** @param stepsInPlace pure steps that the evaluation ran; each counts as an equal share of the time */
  advanced(seconds: number, stepsInPlace: number): void {
    this.#advanced += 1;
    this.#meter.observe('engine_instance_processing_seconds', seconds);
    if (stepsInPlace === 0) return;
    this.#meter.observe('engine_step_duration_seconds', seconds / stepsInPlace, stepsInPlace);
  }

  /** An attempt of a handler with effects, in the process or by a worker. */
  attemptEnded(handler: string, seconds: number, hasSucceeded: boolean): void {
    this.#meter.observe('engine_step_duration_seconds', seconds);
    this.#meter.countNamed('engine_handler_attempt_seconds_total', handler, seconds);
    const result = hasSucceeded ? 'succeeded' : 'failed';
    this.#meter.countNamed(`engine_handler_attempts_${result}_total`, handler);
  }

  /**
   * @param began by the monotonic clock
   * @param running steps in the process
   * @param waiting steps for a slot
   * @param due instances with work
   */
  turnEnded(began: number, running: number, waiting: number, due: number): void {
    this.#meter.set('engine_queue_depth', this.#advanced);
    this.#meter.set('engine_active_tasks', running);
    this.#meter.set('engine_steps_waiting', waiting);
    this.#meter.set('engine_instances_due', due);
    this.#advanced = 0;
    const seconds = (this.#clock.monotonic() - began) / 1_000;
    this.#meter.observe('engine_tick_duration_seconds', seconds);
  }
}
