/** Spans of steps and requests with a tracer in memory: each ends once, whatever becomes of its work. */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, test } from 'node:test';
import {
  type Attributes,
  type Context,
  type Tracer as OtelTracer,
  type Span,
  trace,
} from '@opentelemetry/api';
import type { InProcessStep } from '../../actors/runtime/turn.js';
import { HandlerPool } from '../../actors/shard/handler-pool.js';
import { ROUTES } from '../../schema/routes.js';
import { realClock } from '../../src/clock.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import { RequestWatch } from '../../src/http/request-watch.js';
import type { HttpExchange, HttpRequest } from '../../src/http/server.js';
import { createLogger } from '../../src/log.js';
import { tracerOver } from '../../src/spans.js';
import { findTracer, type Tracer } from '../../src/tracing.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const LOG = { debug: () => undefined, info: () => undefined, warn: () => undefined };

interface Made {
  readonly name: string;
  readonly attributes: Attributes;
  readonly parentId: string | undefined;
  ends: number;
}

function memoryTracer() {
  const made: Made[] = [];
  const otel = {
    startSpan(name: string, { attributes = {} } = {}, context?: Context) {
      const parent = context && trace.getSpanContext(context);
      const span: Made = { name, attributes: { ...attributes }, parentId: parent?.spanId, ends: 0 };
      made.push(span);
      const spanId = made.length.toString(16).padStart(16, '0');
      return {
        spanContext: () => ({ traceId: parent?.traceId ?? TRACE, spanId, traceFlags: 1 }),
        setAttribute: (key: string, value: string) => {
          span.attributes[key] = value;
        },
        setStatus: () => undefined,
        end: () => {
          span.ends += 1;
        },
      } as unknown as Span;
    },
  } as unknown as OtelTracer;
  return { otel, tracer: tracerOver(otel), made };
}

const step = (more: Partial<InProcessStep> = {}): InProcessStep => ({
  node: 0,
  iteration: '',
  attempt: 2,
  handler: 'h',
  tenant: 'a',
  params: {},
  token: 't',
  ...more,
});

function poolWith(tracer: Tracer | undefined, outcome: Promise<StepOutcome>) {
  const seen: (string | undefined)[] = [];
  const events = new EventEmitter();
  const [called, woken] = [once(events, 'called'), once(events, 'woken')];
  const pool = new HandlerPool({
    secrets: { fill: () => Promise.reject(new Error('no secret is named')) },
    callMsMax: 60_000,
    handlers: new Map([
      [
        'h',
        (_params, context) => {
          seen.push(context.traceparent);
          events.emit('called');
          return outcome;
        },
      ],
    ]),
    clock: realClock,
    log: LOG,
    tracer,
    wakeShard: () => void events.emit('woken'),
    canTake: () => true,
    onOutcome: () => undefined,
  });
  return { pool, seen, called, woken };
}

describe('steps', () => {
  test('a step is a span under its instance, and its handler sends that span', async () => {
    const { tracer, made } = memoryTracer();
    const done = Promise.resolve<StepOutcome>({ kind: 'success', output: {} });
    const { pool, seen, woken } = poolWith(tracer, done);
    pool.start('i1', step({ traceparent: PARENT }));
    await woken;
    pool.handOver(() => true);
    assert.deepEqual(seen, [`00-${TRACE}-0000000000000001-01`]);
    assert.deepEqual(made, [
      {
        name: 'step h',
        attributes: {
          'engine.instance.id': 'i1',
          'engine.step.attempt': 2,
          'engine.step.outcome': 'success',
        },
        parentId: 'b7ad6b7169203331',
        ends: 1,
      },
    ]);
  });

  test('a step that is withdrawn ends its span, although its handler never does', async () => {
    const { tracer, made } = memoryTracer();
    const { pool, called } = poolWith(tracer, new Promise(() => undefined));
    pool.start('i1', step());
    await called;
    assert.equal(made[0]?.ends, 0);
    pool.abort('i1', step());
    assert.equal(made[0]?.ends, 1);
    assert.equal(made[0]?.attributes['engine.step.outcome'], 'withdrawn');
    assert.equal(made[0]?.parentId, undefined);
  });

  test('without a tracer the handler is given the trace of the instance as it is', async () => {
    const { pool, seen, called } = poolWith(undefined, new Promise(() => undefined));
    pool.start('i1', step({ traceparent: PARENT }));
    await called;
    pool.abortAll();
    assert.deepEqual(seen, [PARENT]);
  });
});

describe('requests', () => {
  function begin(tracer: Tracer) {
    const listeners: (() => void)[] = [];
    const exchange = {
      onAbort: (listener: () => void) => listeners.push(listener),
      reply: () => undefined,
    } as unknown as HttpExchange;
    const request = { method: 'GET', requestId: 'r', header: () => undefined };
    const log = createLogger('silent', 'front');
    const watch = new RequestWatch({ log, monotonic: () => 0, tracer });
    const watched = watch.watch(request as unknown as HttpRequest, exchange);
    return {
      traceparent: watched.begin(ROUTES['instances.list'], {}),
      reply: () => watched.reply({ status: 200, body: '[]' }),
      abort: () => listeners.forEach((listener) => void listener()),
    };
  }

  test('a request whose client went away ends its span without a status', () => {
    const { tracer, made } = memoryTracer();
    const { traceparent, reply, abort } = begin(tracer);
    assert.equal(traceparent, `00-${TRACE}-0000000000000001-01`);
    abort();
    reply();
    assert.equal(made[0]?.ends, 1);
    assert.ok(!('http.response.status_code' in (made[0]?.attributes ?? {})));
  });

  test('no SDK has registered here, so there is no tracer, until one does', async () => {
    assert.equal(await findTracer(), undefined);
    const { otel } = memoryTracer();
    trace.setGlobalTracerProvider({ getTracer: () => otel });
    try {
      const tracer = await findTracer();
      const span = tracer?.step({
        handler: 'h',
        instance: 'i',
        attempt: 1,
        traceparent: undefined,
      });
      assert.equal(span?.traceparent, `00-${TRACE}-0000000000000001-01`);
    } finally {
      trace.disable();
    }
    assert.equal(await findTracer(), undefined);
  });
});
