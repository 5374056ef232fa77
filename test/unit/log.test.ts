/** The log: what it shows and never shows, which requests leave a line, and that all lines are documented. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import { EngineError } from '../../src/base/errors.js';
import { createLogger, describeError } from '../../src/base/log.js';
import { palette, textLine } from '../../src/base/log-text.js';
import { RequestContext } from '../../src/http/pipeline/context.js';
import { RequestWatch } from '../../src/http/request-watch.js';
import type { HttpRequest } from '../../src/http/server.js';
import { lines } from '../helpers/columns.js';
import { NotedExchange } from '../helpers/noted-exchange.js';

const SECRET = 'canary-4711';

function logged(level: string, write: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  write(createLogger(level, 'front', { write: (line) => void lines.push(line) }));
  return lines;
}

test('a line is JSON with the time, the thread and the level', () => {
  const [line = ''] = logged('info', (log) => log.info({ instanceId: 'i1' }, 'something'));
  const { time, ...rest } = JSON.parse(line) as Record<string, unknown>;
  assert.match(String(time), /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.deepEqual(rest, { level: 30, thread: 'front', instanceId: 'i1', msg: 'something' });
});

test('headers with keys are redacted wherever somebody puts them', () => {
  const headers = { 'x-api-key': SECRET, authorization: SECRET, cookie: SECRET, accept: 'seen' };
  const lines = logged('info', (log) => {
    log.info(headers, 'm');
    log.info({ headers }, 'm');
    log.info({ req: { headers }, request: { headers } }, 'm');
    log.info({ apiKey: SECRET, settings: { apiKey: SECRET, secret: SECRET } }, 'm');
  });
  assert.equal(lines.length, 4);
  for (const line of lines) assert.ok(!line.includes(SECRET), line);
  assert.match(lines[1] ?? '', /seen/);
});

test('an error is shown by type, code, message and frames, and by nothing that hangs on it', () => {
  const error = Object.assign(new TypeError('the pool is closed'), {
    code: 'ERR_CLOSED',
    detail: SECRET,
    parameters: [SECRET],
    input: SECRET,
    cause: new Error(SECRET),
  });
  const [line = ''] = logged('info', (log) => log.warn({ err: error }, 'm'));
  assert.ok(!line.includes(SECRET), line);
  const { type, code, message, stack } = describeError(error);
  assert.deepEqual([type, code, message], ['TypeError', 'ERR_CLOSED', 'the pool is closed']);
  assert.match(stack ?? '', /^\s+at /);
});

test('texts that quote what somebody sent are left out', () => {
  const parse = () => JSON.parse(`{"key": ${SECRET}}`) as unknown;
  assert.throws(parse, (error) => !JSON.stringify(describeError(error)).includes(SECRET));
  for (const code of ['22P02', '23505', '22021', 'P0001']) {
    const refused = Object.assign(new Error(`invalid input: "${SECRET}"`), { code });
    assert.equal(describeError(refused).message, undefined);
    assert.equal(describeError(refused).code, code);
    assert.ok(!JSON.stringify(describeError(refused)).includes(SECRET));
  }
  const lost = Object.assign(new Error('terminating connection'), { code: '57P01' });
  assert.equal(describeError(lost).message, 'terminating connection');
  assert.equal(describeError(new EngineError('ENG_VALIDATION', SECRET)).message, undefined);
  assert.deepEqual(describeError(SECRET), { type: 'string' });
});

const PLAIN = palette(false);
const time = '2026-01-31T10:11:12.345Z';

function shown(fields: object, paint = PLAIN): string {
  const line = textLine(JSON.stringify({ time, level: 30, thread: 'front', ...fields }), paint);
  return line.replace(/\d\d:11:12/, 'TIME');
}

test('a line has the time, the level if it is wrong, the message, other threads and its fields', () => {
  assert.equal(
    shown({ msg: 'ready', epoch: 1, url: 'http://h:1', isNew: true, ms: 1.23456, none: null }),
    'TIME ready epoch=1 url=http://h:1 isNew=true ms=1.235 none=null\n',
  );
  assert.equal(shown({ level: 40, msg: 'slow', thread: 'shard-0' }), 'TIME WARN slow [shard-0]\n');
  assert.equal(shown({ level: 60, msg: 'gone', thread: 'writer' }), 'TIME ERROR gone [writer]\n');
});

test('an error is its type, code and message, with the stack below what is grave; a text with blanks is quoted', () => {
  const err = { type: 'TypeError', code: 'E1', message: 'no x', stack: '    at f (a.js:1:2)' };
  const line = 'm error="TypeError E1: no x"\n';
  assert.equal(shown({ level: 40, msg: 'm', err }), `TIME WARN ${line}`);
  assert.equal(shown({ level: 50, msg: 'm', err }), `TIME ERROR ${line}    at f (a.js:1:2)\n`);
  assert.equal(shown({ level: 40, msg: 'm', err: { type: 'Error' } }), 'TIME WARN m error=Error\n');
  assert.equal(shown({ msg: 'm', a: 'x b=1', b: ['y z'] }), 'TIME m a="x b=1" b=["y z"]\n');
});

test('nothing that a caller sends moves the cursor, colours the terminal or begins another line', () => {
  const hostile = '\u001b[2J\u009b31m\r\nTIME ready\u202e\u2028';
  for (const line of [
    shown({ msg: 'm', tenantId: hostile }),
    shown({ msg: hostile }),
    shown({ msg: 'm', [hostile]: { [hostile]: hostile } }),
    shown({ msg: 'm', err: { type: hostile, message: hostile } }),
    shown({ level: 50, msg: 'm', err: { stack: hostile.replace('\n', '') } }).replace('\n', ''),
    shown({ msg: 'm', thread: hostile }),
  ]) {
    assert.match(line, /^[^\p{Cc}\p{Cf}\u2028]*\n$/u);
  }
});

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
    const exchange = new NotedExchange();
    const context = new RequestContext(watch, request as unknown as HttpRequest, exchange);
    context.matched(ROUTES[route], { id });
    now += ms;
    exchange.reply({ status, body: '{}', headers: [['x-error-code', 'ENG_SOME']] });
  }
  return lines;
}

const REQUEST = {
  ...{ requestId: 'r-1', method: 'GET', route: 'instances.get', instanceId: INSTANCE, ms: 3 },
};

test('at info requests that went well, or wrong by the caller, leave no line; at debug each has one', () => {
  const statuses = [200, 201, 204, 400, 403, 404, 409, 413, 422];
  const answers = statuses.map((status) => ({ route: 'instances.get', status }) as const);
  assert.deepEqual(linesOf('info', answers), []);
  const lines = linesOf('debug', [{ route: 'instances.get', status: 200, ms: 3.4 }]);
  assert.deepEqual(lines, [{ ...REQUEST, level: 20, status: 200, msg: 'request' }]);
});

test('an answer of 500 is an error, any other 5xx a warning, with the ids and the code', () => {
  const facts = { ...REQUEST, code: 'ENG_SOME', msg: 'request failed' };
  const lines = linesOf('info', [
    { route: 'instances.get', status: 500 },
    { route: 'instances.get', status: 503 },
    { route: 'health.ready', status: 503 },
  ]);
  const warning = { level: 40, status: 503, ...facts };
  assert.deepEqual(lines, [{ level: 50, status: 500, ...facts }, warning]);
  // What stands in a path where an id should be is not told.
  const [line] = linesOf('info', [{ route: 'instances.get', status: 503, id: 'canary' }]);
  assert.ok(line && !('instanceId' in line));
});

test('a refused key and a slow request are warnings; a poll may take its time', () => {
  const shown = linesOf('info', [
    { route: 'instances.list', status: 401 },
    { route: 'instances.list', status: 200, ms: 1_000 },
    { route: 'workers.poll', status: 200, ms: 60_000 },
  ]);
  const told = lines(shown, 'level', 'msg', 'status', 'ms');
  assert.deepEqual(told, ['40 key refused 401 3', '40 slow request 200 1000']);
});

test('a crowd of refusals leaves ten lines in a second; the next tells how many more there were', () => {
  const refusal = { route: 'instances.list', status: 401, ms: 1 } as const;
  const crowd = Array.from({ length: 50 }, () => refusal);
  const lines = linesOf('info', [...crowd, { ...refusal, ms: 2_000 }]);
  assert.deepEqual([lines.length, lines.at(-1)?.omitted], [11, 40]);
});

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CALL = /\blog\??\.(debug|info|warn|error|fatal)\(/gi;
/** The message is the last argument; what it inserts is written as … */
const MESSAGE = /(?:'([^'\n]*)'|`([^`]*)`),?\s*$/;
const ROW = /^\| ((?:debug|info|warn|error|fatal)(?:, \w+)*) \| (.+?) \|/gm;

/** `level message` of each call whose message is spelled out. */
function writtenIn(text: string): string[] {
  return [...text.matchAll(CALL)].flatMap((match) => {
    const message = MESSAGE.exec(argumentsAt(text, match.index + match[0].length));
    const words = message?.[1] ?? message?.[2]?.replace(/\$\{.*/s, '…');
    return words === undefined ? [] : [`${match[1]} ${words}`];
  });
}

/** Up to the parenthesis that closes the call. */
function argumentsAt(text: string, start: number): string {
  let depth = 1;
  let at = start;
  for (; depth > 0 && at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    else if (text[at] === ')') depth -= 1;
  }
  return text.slice(start, at - 1);
}

function filesIn(folder: string): string[] {
  const names = readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => path.join(ROOT, folder, name));
}

function documented(text: string): string[] {
  return [...text.matchAll(ROW)].flatMap(([, levels = '', message = '']) =>
    levels.split(', ').map((level) => `${level} ${message}`),
  );
}

test('the documentation has each line of the log, and the log each line of the documentation', () => {
  const files = [...filesIn('src'), ...filesIn('actors')];
  const written = new Set(files.flatMap((file) => writtenIn(readFileSync(file, 'utf8'))));
  const told = new Set(documented(readFileSync(path.join(ROOT, 'docs/logs.md'), 'utf8')));
  assert.ok(written.size > 50);
  const undocumented = [...written].filter((line) => !told.has(line));
  const unwritten = [...told].filter((line) => !written.has(line));
  assert.deepEqual({ undocumented, unwritten }, { undocumented: [], unwritten: [] });
});
