/** Traces: what is taken of the header `traceparent`, and spans that end once whatever becomes of their work. */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, test } from 'node:test';
import type { Attributes, Context, Tracer as OtelTracer, Span } from '@opentelemetry/api';
import { trace } from '@opentelemetry/api';
import type { InProcessStep } from '../../actors/runtime/turn.js';
import { HandlerPool } from '../../actors/shard/handler-pool.js';
import { ROUTES } from '../../schema/routes.js';
import type { JsonValue } from '../../src/base/json.js';
import { createLogger } from '../../src/base/log.js';
import { realClock } from '../../src/base/real-clock.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import {
  formatTraceparent,
  keptTraceparent,
  parseTraceparent,
} from '../../src/core/traceparent.js';
import type { HandlerContext } from '../../src/handlers/registry.js';
import { RequestContext } from '../../src/http/pipeline/context.js';
import { RequestHead } from '../../src/http/request-head.js';
import { RequestWatch } from '../../src/http/request-watch.js';
import type { HttpRequest } from '../../src/http/server.js';
import { tracerOver } from '../../src/metrics/spans.js';
import { findTracer, type Tracer } from '../../src/metrics/tracing.js';
import { NotedExchange } from '../helpers/noted-exchange.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test('a header of version 00 is kept as it is, and of a later version what that one has', () => {
  const header = `00-${TRACE}-${SPAN}-01`;
  const context = parseTraceparent(header);
  assert.deepEqual(context, { traceId: TRACE, spanId: SPAN, flags: '01' });
  assert.equal(formatTraceparent(context!), header);
  for (const [given, kept] of [
    [header, header],
    [` ${header}\t`, header],
    [`01-${TRACE}-${SPAN}-01`, header],
    [`cc-${TRACE}-${SPAN}-ff-more-yet`, header],
    [`cc-${TRACE}-${SPAN}-fe-`, `00-${TRACE}-${SPAN}-00`],
  ]) {
    assert.equal(keptTraceparent(given), kept);
  }
});

test('a malformed header is as good as none', () => {
  const [long, none, no] = [TRACE.toUpperCase(), '0'.repeat(32), '0'.repeat(16)];
  for (const header of [
    ...[undefined, '', 'garbage', `00-${TRACE}-${SPAN}`, `00-${TRACE}-${SPAN}-01-more`],
    ...[`00-${TRACE}-${SPAN}-01-`, `ff-${TRACE}-${SPAN}-01`, `0-${TRACE}-${SPAN}-01`],
    ...[`00-${long}-${SPAN}-01`, `00-${TRACE.slice(1)}-${SPAN}-01`, `00-${TRACE}0-${SPAN}-01`],
    ...[`00-${none}-${SPAN}-01`, `00-${TRACE}-${no}-01`, `00-${TRACE}-${SPAN}-1`],
    ...[`00-${TRACE}-${SPAN}-0g`, `00-${TRACE.replace('a', 'g')}-${SPAN}-01`],
    ...[`cc-${TRACE}-${SPAN}-01.more`, `00_${TRACE}_${SPAN}_01`],
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  ]) {
    assert.equal(keptTraceparent(header), undefined, header);
  }
});

test('of two headers nobody knows which one counts: both are ignored', () => {
  const head = new RequestHead('POST', '/api/v1/instances', '');
  head.add('traceparent', `00-${TRACE}-${SPAN}-01`);
  assert.equal(keptTraceparent(head.header('traceparent')), `00-${TRACE}-${SPAN}-01`);
  head.add('traceparent', `00-${SPAN}${SPAN}-${SPAN}-01`);
  assert.equal(keptTraceparent(head.header('traceparent')), undefined);
});

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
  ...{ node: 0, iteration: '', attempt: 2, handler: 'h', tenant: 'a', params: {} },
  idempotencyKey: 'k',
  ...more,
});

function poolWith(tracer: Tracer | undefined, outcome: Promise<StepOutcome>) {
  const seen: (string | undefined)[] = [];
  const events = new EventEmitter();
  const [called, woken] = [once(events, 'called'), once(events, 'woken')];
  const handler = (_params: JsonValue, context: HandlerContext) => {
    seen.push(context.traceparent);
    events.emit('called');
    return outcome;
  };
  const pool = new HandlerPool({
    secrets: { fill: () => Promise.reject(new Error('no secret is named')) },
    callMsMax: 60_000,
    handlers: new Map([['h', handler]]),
    clock: realClock,
    log: LOG,
    tracer,
    wakeShard: () => void events.emit('woken'),
    isSuspended: () => false,
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
    pool.begin('i1', step({ traceparent: PARENT }));
    await woken;
    pool.handOver(() => true);
    assert.deepEqual(seen, [`00-${TRACE}-0000000000000001-01`]);
    const attributes = {
      'engine.instance.id': 'i1',
      'engine.step.attempt': 2,
      'engine.step.outcome': 'success',
    };
    assert.deepEqual(made, [{ name: 'step h', attributes, parentId: 'b7ad6b7169203331', ends: 1 }]);
  });

  test('a step that is withdrawn ends its span, although its handler never does', async () => {
    const { tracer, made } = memoryTracer();
    const { pool, called } = poolWith(tracer, new Promise(() => undefined));
    pool.begin('i1', step());
    await called;
    const [span] = made;
    assert.equal(span?.ends, 0);
    pool.abort('i1', step());
    assert.deepEqual([span?.ends, span?.parentId], [1, undefined]);
    assert.equal(span?.attributes['engine.step.outcome'], 'withdrawn');
  });

  test('without a tracer the handler is given the trace of the instance as it is', async () => {
    const { pool, seen, called } = poolWith(undefined, new Promise(() => undefined));
    pool.begin('i1', step({ traceparent: PARENT }));
    await called;
    pool.stop();
    assert.deepEqual(seen, [PARENT]);
  });
});

describe('requests', () => {
  test('a request whose client went away ends its span without a status', () => {
    const { tracer, made } = memoryTracer();
    const exchange = new NotedExchange();
    const request = { method: 'GET', requestId: 'r', header: () => undefined };
    const log = createLogger('silent', 'front');
    const watch = new RequestWatch({ log, monotonic: () => 0, tracer });
    const context = new RequestContext(watch, request as unknown as HttpRequest, exchange);
    context.matched(ROUTES['instances.list'], {});
    assert.equal(context.traceparent, `00-${TRACE}-0000000000000001-01`);
    exchange.abort();
    exchange.reply({ status: 200, body: '[]' });
    assert.equal(made[0]?.ends, 1);
    assert.ok(!('http.response.status_code' in (made[0]?.attributes ?? {})));
  });

  test('no SDK has registered here, so there is no tracer, until one does', async () => {
    assert.equal(await findTracer(), undefined);
    const { otel } = memoryTracer();
    trace.setGlobalTracerProvider({ getTracer: () => otel });
    try {
      const tracer = await findTracer();
      const work = { handler: 'h', instance: 'i', attempt: 1, traceparent: undefined };
      assert.equal(tracer?.step(work)?.traceparent, `00-${TRACE}-0000000000000001-01`);
    } finally {
      trace.disable();
    }
    assert.equal(await findTracer(), undefined);
  });
});
