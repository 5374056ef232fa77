/**
 * Tracing: with an OpenTelemetry SDK in the process (docs/tracing.md) there are spans, else nothing is loaded or
 * called. Spans contain no data of callers: no addresses, bodies or keys.
 */

import type { StepOutcome } from '../core/builtin.js';

export interface Tracer {
  /** Ends with the status of the response; undefined: the client disconnected first. */
  request(traced: {
    readonly name: string;
    readonly method: string;
    /** The path of the route, with parameters in braces. */
    readonly route: string;
    readonly traceparent: string | undefined;
    readonly tracestate: string | undefined;
  }): WorkSpan<number | undefined>;
  /** Ends with the outcome of the step; undefined: it was withdrawn. */
  step(traced: {
    readonly handler: string;
    readonly instance: string;
    readonly attempt: number;
    readonly traceparent: string | undefined;
  }): WorkSpan<StepOutcome['kind'] | undefined>;
}

export interface WorkSpan<Outcome> {
  /** The header for requests made by this work, with this span as the parent. */
  readonly traceparent: string;
  /** Idempotent. */
  end(outcome: Outcome): void;
}

/** The global that all copies of the API use. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** Called once at the start of a thread: an SDK registers itself before it. */
export async function findTracer(): Promise<Tracer | undefined> {
  // Loading the API takes 20 ms in each thread.
  if (!(REGISTERED in globalThis)) return undefined;
  const { registeredTracer } = await import('./spans.js');
  return registeredTracer();
}
