/** Creates spans. The only module that imports `@opentelemetry/api`, loaded only when the engine is traced. */

import {
  type Context,
  createTraceState,
  type Tracer as OtelTracer,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { formatTraceparent, parseTraceparent } from '../core/traceparent.js';
import type { Tracer, WorkSpan } from './tracing.js';

const NAME = 'workflow-engine';

export function registeredTracer(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  // The API's proxy has no delegate until an SDK has registered.
  const isMissing =
    provider instanceof ProxyTracerProvider && provider.getDelegateTracer(NAME) === undefined;
  return isMissing ? undefined : tracerOver(provider.getTracer(NAME));
}

export function tracerOver(otel: OtelTracer): Tracer {
  return {
    request({ name, method, route, traceparent, tracestate }) {
      const attributes = { 'http.request.method': method, 'http.route': route };
      const options = { kind: SpanKind.SERVER, attributes };
      const span = otel.startSpan(name, options, parentOf(traceparent, tracestate));
      return workSpan(span, (status) => {
        if (status === undefined) return;
        span.setAttribute('http.response.status_code', status);
        if (status < 500) return;
        span.setAttribute('error.type', String(status));
        span.setStatus({ code: SpanStatusCode.ERROR });
      });
    },
    step({ handler, instance, attempt, traceparent }) {
      const attributes = { 'engine.instance.id': instance, 'engine.step.attempt': attempt };
      const options = { kind: SpanKind.INTERNAL, attributes };
      const span = otel.startSpan(`step ${handler}`, options, parentOf(traceparent, undefined));
      return workSpan(span, (outcome) => {
        span.setAttribute('engine.step.outcome', outcome ?? 'withdrawn');
        if (outcome === 'failure') span.setStatus({ code: SpanStatusCode.ERROR });
      });
    },
  };
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
