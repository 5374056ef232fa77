/** Bodies in pieces: limits, budget and deadlines, without a socket. */

import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import {
  BodyBudget,
  BodyDeadlines,
  BodyReader,
  type BodyReaderOptions,
  DISCARD_BYTES_MAX,
} from '../../src/http/request-body.js';

const deadlines = new BodyDeadlines(60_000);
after(() => deadlines.stop());

function reader(options: Partial<BodyReaderOptions> = {}) {
  const seen: { body?: Buffer; status?: number } = {};
  const made = new BodyReader({
    maxBodyBytes: 10,
    contentLength: undefined,
    mustCopy: false,
    refusal: undefined,
    budget: new BodyBudget(100),
    deadlines,
    onComplete: (body) => {
      seen.body = body;
    },
    onRefused: ({ status }) => {
      seen.status = status;
    },
    ...options,
  });
  return { made, seen };
}

test('a body in one piece is handed on without a copy where chunks may be kept', () => {
  const { made, seen } = reader();
  const chunk = Buffer.from('abc');
  made.push(chunk, true);
  assert.equal(seen.body, chunk);
});

test('a lent chunk is copied before its owner takes it back', () => {
  const { made, seen } = reader({ mustCopy: true });
  const chunk = Buffer.from('abc');
  made.push(chunk, false);
  chunk.fill('z');
  made.push(Buffer.alloc(0), true);
  assert.equal(seen.body?.toString(), 'abc');
});

test('a body in pieces is joined in order', () => {
  const { made, seen } = reader();
  for (const piece of ['ab', '', 'cd']) made.push(Buffer.from(piece), false);
  made.push(Buffer.from('e'), true);
  assert.equal(seen.body?.toString(), 'abcde');
});

test('a body beyond the limit is read to its end before it is refused', () => {
  const { made, seen } = reader();
  made.push(Buffer.alloc(11), false);
  assert.equal(seen.status, undefined);
  made.push(Buffer.alloc(1_000), true);
  assert.equal(seen.status, 413);
  assert.equal(seen.body, undefined);
});

test('a refused body that does not end is cut off', () => {
  const { made, seen } = reader();
  made.push(Buffer.alloc(DISCARD_BYTES_MAX), false);
  assert.equal(seen.status, undefined);
  made.push(Buffer.alloc(11), false);
  assert.equal(seen.status, 413);
  assert.equal(made.isOver, true);
});

test('a body whose announced rest is not worth reading is refused at once', () => {
  const refusal = { status: 413, message: 'too large' };
  const near = reader({ refusal, contentLength: 11 });
  assert.equal(near.seen.status, undefined);
  near.made.push(Buffer.alloc(11), true);
  assert.equal(near.seen.status, 413);
  assert.equal(reader({ refusal, contentLength: DISCARD_BYTES_MAX + 1 }).seen.status, 413);
});

test('the memory of a body is given back when it is complete, refused or cancelled', () => {
  const budget = new BodyBudget(10);
  const ends: ((made: BodyReader) => void)[] = [
    (made) => made.push(Buffer.alloc(1), true),
    (made) => made.push(Buffer.alloc(9), true),
    (made) => made.cancel(),
    (made) => made.tick(0, 0),
  ];
  for (const end of ends) {
    const { made } = reader({ budget });
    made.push(Buffer.alloc(9), false);
    assert.equal(budget.take(2), false);
    end(made);
    assert.equal(budget.take(10), true);
    budget.give(10);
  }
});

test('a body in one piece needs none of the common memory', () => {
  const { made, seen } = reader({ budget: new BodyBudget(0) });
  made.push(Buffer.from('abc'), true);
  assert.equal(seen.body?.toString(), 'abc');
});

test('a body that finds no memory is a 503', () => {
  const { made, seen } = reader({ budget: new BodyBudget(3) });
  made.push(Buffer.from('ab'), false);
  made.push(Buffer.from('cd'), true);
  assert.equal(seen.status, 503);
});

test('idle ticks in a row, or all ticks together, end a body with 408', () => {
  const idle = reader();
  idle.made.tick(1, 100);
  idle.made.push(Buffer.alloc(1), false);
  idle.made.tick(1, 100);
  assert.equal(idle.seen.status, undefined);
  idle.made.tick(1, 100);
  assert.equal(idle.seen.status, 408);

  const trickling = reader();
  for (let i = 0; i < 3; i += 1) {
    trickling.made.push(Buffer.alloc(1), false);
    trickling.made.tick(100, 2);
  }
  assert.equal(trickling.seen.status, 408);
});

test('of bodies that stall at once each is ended, and none that was over', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const ticking = new BodyDeadlines(4_000);
  try {
    const stalled = Array.from({ length: 3 }, () => reader({ deadlines: ticking }));
    const whole = reader({ deadlines: ticking });
    whole.made.push(Buffer.from('a'), true);
    stalled[1]?.made.cancel();
    const last = reader({ deadlines: ticking });
    mock.timers.tick(4_000);
    assert.deepEqual(
      [...stalled, last].map(({ seen }) => seen.status),
      [undefined, undefined, undefined, undefined],
    );
    mock.timers.tick(1_000);
    assert.deepEqual(
      [...stalled, last].map(({ seen }) => seen.status),
      [408, undefined, 408, 408],
    );
    assert.deepEqual(whole.seen, { body: Buffer.from('a') });
  } finally {
    ticking.stop();
    mock.timers.reset();
  }
});

test('nothing is reported after a cancel', () => {
  const { made, seen } = reader();
  made.push(Buffer.from('a'), false);
  made.cancel();
  made.push(Buffer.from('b'), true);
  made.cancel();
  assert.deepEqual(seen, {});
});
