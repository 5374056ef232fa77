/** The log: what of errors and headers is never shown, and how often a line may come. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineError } from '../../src/errors.js';
import { createLogger, describeError, LineLimit } from '../../src/log.js';

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

test('of a crowd of lines so many are told in a second, and the next says how many were not', () => {
  const limit = new LineLimit(2);
  assert.deepEqual(limit.admit(0), {});
  assert.deepEqual(limit.admit(1), {});
  assert.equal(limit.admit(2), undefined);
  assert.equal(limit.admit(999), undefined);
  assert.deepEqual(limit.admit(1_000), { omitted: 2 });
  assert.deepEqual(limit.admit(1_001), {});
  assert.equal(limit.admit(1_002), undefined);
  assert.deepEqual(limit.admit(90_000), { omitted: 1 });
  assert.deepEqual(limit.admit(90_001), {});
});
