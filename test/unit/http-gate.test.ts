/** Who is answered in which state, and what a lease that was not looked after means. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { realClock } from '../../src/clock.js';
import { Gate } from '../../src/http/gate.js';
import { LIMITS } from '../../src/limits.js';

function serving() {
  let now = 1_000;
  const gate = new Gate({ ...realClock, monotonic: () => now });
  gate.times = { confirmedAt: now, trustedUntil: now + 6_000 };
  gate.set('serving');
  const pass = (ms: number) => {
    now += ms;
  };
  return { gate, pass };
}

const codes = (gate: Gate) => ({
  ready: gate.unreadiness()?.code,
  request: gate.refusal()?.code,
});

const NONE = { ready: undefined, request: undefined };

test('a database that has been silent for too long makes the engine unready, and refuses nothing', () => {
  const { gate, pass } = serving();
  pass(LIMITS.databaseSilenceMs);
  assert.deepEqual(codes(gate), NONE);
  assert.ok(gate.isDatabaseUp);
  pass(1);
  assert.deepEqual(codes(gate), { ...NONE, ready: 'ENG_DATABASE_DOWN' });
  assert.ok(!gate.isDatabaseUp);
});

test('after a pause longer than the lease nothing is answered until the lease was looked at', () => {
  for (const state of ['serving', 'database-away'] as const) {
    const { gate, pass } = serving();
    gate.set(state);
    pass(6_000);
    assert.equal(gate.state, state);
    pass(1);
    assert.equal(gate.state, 'paused');
    assert.deepEqual(codes(gate), { ready: 'ENG_STANDBY', request: 'ENG_STANDBY' });
    gate.times = { confirmedAt: 7_001, trustedUntil: 13_000 };
    assert.equal(gate.state, state);
  }
});

test('a thread that is being replaced makes the engine unready, and refuses nothing', () => {
  const { gate } = serving();
  gate.isComplete = false;
  assert.deepEqual(codes(gate), { ...NONE, ready: 'ENG_SHARD_RESTARTING' });
});
