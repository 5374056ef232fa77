/**
 * What is traced. Who wants spans starts the engine with an SDK of OpenTelemetry (docs/tracing.md);
 * without one there is no tracer, and nothing is loaded or called. Spans never name what a caller
 * sent: neither addresses nor bodies nor keys.
 */

import type { StepOutcome } from '../core/builtin.js';

/** Makes the spans of one thread. */
export interface Tracer {
  /** Ends with the status of the reply, or undefined when the client went away before it. */
  request(traced: TracedRequest): WorkSpan<number | undefined>;
  /** Ends with what became of the step; undefined when it was withdrawn. */
  step(traced: TracedStep): WorkSpan<StepOutcome['kind'] | undefined>;
}

/** Work under way that a trace shows. */
export interface WorkSpan<Outcome> {
  /** The header for what is done on its behalf: this span is the parent. */
  readonly traceparent: string;
  /** Counts the first time. */
  end(outcome: Outcome): void;
}

export interface TracedRequest {
  /** The id of the route. */
  readonly name: string;
  readonly method: string;
  /** As the route is written, with its parameters in braces. */
  readonly route: string;
  /** The headers of these names, as received. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

export interface TracedStep {
  readonly handler: string;
  readonly instance: string;
  readonly attempt: number;
  /** Of its instance. */
  readonly traceparent: string | undefined;
}

/** Where every copy of the API, of the engine or of an SDK, keeps what has registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** Asked once, at the start of a thread: an SDK registers itself before it. */
export async function findTracer(): Promise<Tracer | undefined> {
  // The API takes 20 ms to load in each thread, which would find nothing in it.
  if (!(REGISTERED in globalThis)) return undefined;
  const { registeredTracer } = await import('./spans.js');
  return registeredTracer();
}
