/**
 * What an OpenTelemetry SDK is to the engine, in its smallest form: loaded before it by `--import`, it
 * registers a provider whose spans are appended to the file `SPANS_FILE` as lines of JSON when they
 * end. It records every trace, as far as its parent does not say otherwise.
 */

import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { threadId } from 'node:worker_threads';
import {
  type Attributes,
  type AttributeValue,
  type Context,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';

/** One line of the file. */
export interface WrittenSpan {
  readonly name: string;
  readonly kind: number | undefined;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly traceState: string | undefined;
  readonly attributes: Attributes;
  readonly status: SpanStatus | undefined;
  readonly threadId: number;
}

/** What the engine asks of a span. */
class FileSpan {
  readonly #name: string;
  readonly #kind: number | undefined;
  readonly #context: SpanContext;
  readonly #parent: SpanContext | undefined;
  readonly #attributes: Attributes;
  #status: SpanStatus | undefined;

  constructor(name: string, options: SpanOptions, parent: SpanContext | undefined) {
    this.#name = name;
    this.#kind = options.kind;
    this.#parent = parent;
    this.#attributes = { ...options.attributes };
    this.#context = {
      traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
      spanId: randomBytes(8).toString('hex'),
      traceFlags: parent?.traceFlags ?? TraceFlags.SAMPLED,
    };
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  setAttribute(key: string, value: AttributeValue): this {
    this.#attributes[key] = value;
    return this;
  }

  setStatus(status: SpanStatus): this {
    this.#status = status;
    return this;
  }

  end(): void {
    const span: WrittenSpan = {
      name: this.#name,
      kind: this.#kind,
      traceId: this.#context.traceId,
      spanId: this.#context.spanId,
      parentId: this.#parent?.spanId,
      traceState: this.#parent?.traceState?.serialize(),
      attributes: this.#attributes,
      status: this.#status,
      threadId,
    };
    appendFileSync(process.env.SPANS_FILE ?? '', `${JSON.stringify(span)}\n`);
  }

  recordException(): void {
    throw new Error('the engine records no exceptions: their texts quote payloads');
  }
}

const tracer: Tracer = {
  startSpan: (name: string, options: SpanOptions = {}, context?: Context) =>
    new FileSpan(name, options, context && trace.getSpanContext(context)) as unknown as Span,
  startActiveSpan: () => {
    throw new Error('the engine hands contexts on by itself');
  },
};

trace.setGlobalTracerProvider({ getTracer: () => tracer });
