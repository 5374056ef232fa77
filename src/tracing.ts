/**
 * Spans, through `@opentelemetry/api` alone: who wants them starts the engine with an SDK
 * (docs/tracing.md). Without one there is no tracer, and nothing here is called. Spans never name
 * what a caller sent: neither addresses nor bodies nor keys.
 */

import {
  type Context,
  createTraceState,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { StepOutcome } from './core/builtin.js';
import { formatTraceparent, parseTraceparent } from './core/traceparent.js';

export type { Tracer } from '@opentelemetry/api';

const NAME = 'workflow-engine';

/** Asked once, at the start of a thread: an SDK registers itself before it. */
export function findTracer(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  // The proxy of this very copy of the API stands for nobody until an SDK has registered.
  const isMissing =
    provider instanceof ProxyTracerProvider && provider.getDelegateTracer(NAME) === undefined;
  return isMissing ? undefined : provider.getTracer(NAME);
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

/** Ends with the status of the reply, or undefined when the client went away before it. */
export function traceRequest(
  tracer: Tracer,
  { name, method, route, traceparent, tracestate }: TracedRequest,
): WorkSpan<number | undefined> {
  const attributes = { 'http.request.method': method, 'http.route': route };
  const options = { kind: SpanKind.SERVER, attributes };
  const span = tracer.startSpan(name, options, parentOf(traceparent, tracestate));
  return workSpan(span, (status: number | undefined) => {
    if (status === undefined) return;
    span.setAttribute('http.response.status_code', status);
    if (status < 500) return;
    span.setAttribute('error.type', String(status));
    span.setStatus({ code: SpanStatusCode.ERROR });
  });
}

export interface TracedStep {
  readonly handler: string;
  readonly instance: string;
  readonly attempt: number;
  /** Of its instance. */
  readonly traceparent: string | undefined;
}

/** Ends with what became of the step; undefined when it was withdrawn. */
export function traceStep(
  tracer: Tracer,
  { handler, instance, attempt, traceparent }: TracedStep,
): WorkSpan<StepOutcome['kind'] | undefined> {
  const attributes = { 'engine.instance.id': instance, 'engine.step.attempt': attempt };
  const options = { kind: SpanKind.INTERNAL, attributes };
  const span = tracer.startSpan(`step ${handler}`, options, parentOf(traceparent, undefined));
  return workSpan(span, (outcome: StepOutcome['kind'] | undefined) => {
    span.setAttribute('engine.step.outcome', outcome ?? 'withdrawn');
    if (outcome === 'failure') span.setStatus({ code: SpanStatusCode.ERROR });
  });
}

function workSpan<Outcome>(span: Span, describe: (outcome: Outcome) => void): WorkSpan<Outcome> {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const flags = traceFlags.toString(16).padStart(2, '0');
  let isEnded = false;
  return {
    traceparent: formatTraceparent({ traceId, spanId, flags }),
    end(outcome) {
      if (isEnded) return;
      isEnded = true;
      describe(outcome);
      span.end();
    },
  };
}

function parentOf(traceparent: string | undefined, tracestate: string | undefined): Context {
  const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent);
  if (parent === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: parent.traceId,
    spanId: parent.spanId,
    traceFlags: Number.parseInt(parent.flags, 16),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}
