/** Which requests leave a line in the log, and with what. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import { RequestWatch } from '../../src/http/request-watch.js';
import type { HttpExchange, HttpRequest } from '../../src/http/server.js';
import { createLogger } from '../../src/log.js';
import { lines } from '../helpers/rows.js';

const INSTANCE = '0195ffff-0000-7000-8000-000000000001';

interface Answer {
  readonly route: RouteId;
  readonly status: number;
  readonly ms?: number;
  readonly id?: string;
}

/** The lines that the answers leave, without what every line has. */
function linesOf(level: string, answers: readonly Answer[]): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger(level, 'front', {
    write: (line) => {
      const { time, thread, ...rest } = JSON.parse(line) as Record<string, unknown>;
      lines.push(rest);
    },
  });
  let now = 0;
  const watch = new RequestWatch({ log, monotonic: () => now, tracer: undefined });
  for (const { route, status, ms = 3, id = INSTANCE } of answers) {
    const request = { method: ROUTES[route].method, requestId: 'r-1', header: () => undefined };
    const exchange = { aborted: false, onAbort: () => {}, reply: () => {} };
    const watched = watch.watch(
      request as unknown as HttpRequest,
      exchange as unknown as HttpExchange,
    );
    watched.begin(ROUTES[route], { id });
    now += ms;
    watched.reply({ status, body: '{}', headers: [['x-error-code', 'ENG_SOME']] });
  }
  return lines;
}

test('at info requests that went well, or wrong by the caller, leave no line', () => {
  const statuses = [200, 201, 204, 400, 403, 404, 409, 413, 422];
  assert.deepEqual(
    linesOf(
      'info',
      statuses.map((status) => ({ route: 'instances.get', status })),
    ),
    [],
  );
});

test('at debug each request has one line with route, status and time', () => {
  assert.deepEqual(linesOf('debug', [{ route: 'instances.create', status: 201, ms: 3.4 }]), [
    {
      level: 20,
      requestId: 'r-1',
      method: 'POST',
      route: 'instances.create',
      status: 201,
      ms: 3,
      msg: 'request',
    },
  ]);
});

test('an answer of 500 is an error, any other 5xx a warning, with the ids and the code', () => {
  const facts = {
    requestId: 'r-1',
    method: 'GET',
    route: 'instances.get',
    instanceId: INSTANCE,
    ms: 3,
    code: 'ENG_SOME',
    msg: 'request failed',
  };
  assert.deepEqual(
    linesOf('info', [
      { route: 'instances.get', status: 500 },
      { route: 'instances.get', status: 503 },
      { route: 'health.ready', status: 503 },
    ]),
    [
      { level: 50, status: 500, ...facts },
      { level: 40, status: 503, ...facts },
    ],
  );
});

test('what stands in a path where an id should be is not told', () => {
  const [line] = linesOf('info', [{ route: 'instances.get', status: 503, id: 'canary' }]);
  assert.ok(line);
  assert.ok(!('instanceId' in line));
});

test('a refused key and a slow request are warnings; a poll may take its time', () => {
  const shown = linesOf('info', [
    { route: 'instances.list', status: 401 },
    { route: 'instances.list', status: 200, ms: 1_000 },
    { route: 'workers.poll', status: 200, ms: 60_000 },
  ]);
  assert.deepEqual(lines(shown, 'level', 'msg', 'status', 'ms'), [
    '40 key refused 401 3',
    '40 slow request 200 1000',
  ]);
});

test('a crowd of refusals leaves ten lines in a second; the next tells how many more there were', () => {
  const crowd = Array.from({ length: 50 }, () => ({
    route: 'instances.list' as const,
    status: 401,
    ms: 1,
  }));
  const lines = linesOf('info', [...crowd, { route: 'instances.list', status: 401, ms: 2_000 }]);
  assert.equal(lines.length, 11);
  assert.equal(lines.at(-1)?.omitted, 40);
});
