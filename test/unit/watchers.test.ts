/** Watches of instances in virtual time: what parks them, and what answers them. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Watchers } from '../../actors/feed/watchers.js';
import type { Effect } from '../../actors/runtime/turn.js';
import { HandClock } from '../helpers/hand-clock.js';

/** The longest that a watch is parked. */
const WATCH_MS = 20_000;

let clock: HandClock;
/** Who was told to look, as `instance/request/version`. */
let looks: string[];
/** Requests that were answered without a look. */
let released: number[];
let errors: number;
let watchers: Watchers;
let request: number;

beforeEach(() => {
  clock = new HandClock();
  looks = [];
  released = [];
  errors = 0;
  request = 0;
  watchers = create(0.5);
});

function create(random: number): Watchers {
  return new Watchers({
    clock,
    random: () => random,
    look: (instance, watch, version) => void looks.push(`${instance}/${watch.request}/${version}`),
    release: (effects) => {
      for (const effect of effects) take(effect);
    },
    schedule: (work) => work(),
  });
}

function take(effect: Effect): void {
  if (effect.kind === 'reply') released.push(effect.request);
  else if (effect.kind === 'error') errors += 1;
}

/** Watches and gives the number of the request. */
function watch(instance: string, known?: number): number {
  request += 1;
  watchers.watch(instance, { request, tenant: 't' }, known);
  return request;
}

/** The version that a watch without one is answered with at once. */
function present(instance: string): number {
  watch(instance);
  return Number(looks.pop()?.split('/')[2]);
}

test('a watch without a version, or with another one, is answered at once', () => {
  const version = present('a');
  watch('a', version - 1);
  watch('a', 0);
  assert.deepEqual(looks, [`a/2/${version}`, `a/3/${version}`]);
});

test('a watch with the present version waits for the next change of its instance', () => {
  const version = present('a');
  const parked = [watch('a', version), watch('a', version)];
  watch('b', present('b'));
  assert.equal(looks.length, 0);
  watchers.changed('c');
  watchers.changed('a');
  const seen = looks.map((look) => look.split('/').slice(0, 2).join('/'));
  assert.deepEqual(
    seen,
    parked.map((each) => `a/${each}`),
  );
  assert.notEqual(looks[0]?.split('/')[2], version);
  assert.equal(looks[0]?.split('/')[2], looks[1]?.split('/')[2]);
  watchers.changed('a');
  assert.equal(looks.length, 2);
});

test('a change between two watches is not missed', () => {
  const version = present('a');
  watchers.changed('a');
  watch('a', version);
  assert.equal(looks.length, 1);
});

test('versions of a shard that died are not those of its successor', () => {
  const version = present('a');
  watchers = create(0.25);
  watch('a', version);
  assert.equal(looks.length, 1);
});

test('a watch that lasts is answered with the version that it has, so that it is armed again', () => {
  const version = present('a');
  const first = watch('a', version);
  clock.pass(WATCH_MS / 2);
  const second = watch('a', version);
  clock.pass(WATCH_MS / 2);
  assert.deepEqual(looks, [`a/${first}/${version}`]);
  clock.pass(WATCH_MS / 2);
  assert.deepEqual(looks, [`a/${first}/${version}`, `a/${second}/${version}`]);
  assert.equal(clock.waiting, 0);
});

test('a watch whose client goes away is forgotten', () => {
  const version = present('a');
  const [stays, goes] = [watch('a', version), watch('a', version)];
  watchers.abort(goes);
  watchers.abort(goes);
  watchers.abort(99);
  assert.deepEqual(released, [goes]);
  watchers.changed('a');
  const seen = looks.map((look) => look.split('/')[1]);
  assert.deepEqual(seen, [String(stays)]);
});

test('when the engine stops nobody waits, nor begins to', () => {
  const parked = [watch('a', present('a')), watch('b', present('b'))];
  watchers.drain();
  watch('a', Number(looks[0]?.split('/')[2]));
  const seen = looks.map((look) => look.split('/')[1]);
  assert.deepEqual(seen, [...parked, request].map(String));
});

test('the instances of which versions are kept are bounded: those that nobody waits for go first', () => {
  const version = present('idle');
  for (let index = 0; index < 1_023; index++) watch(`i${index}`, present(`i${index}`));
  looks = [];
  watch('one more', present('one more'));
  assert.equal(errors, 0);
  watch('idle', version);
  assert.deepEqual([looks.length, errors], [0, 1]);
  watchers.changed('i5');
  watch('idle', version);
  assert.equal(errors, 1);
  assert.equal(looks.at(-1)?.split('/')[0], 'idle');
});

test('after the last parked watch no timer is left', () => {
  watch('a', present('a'));
  watchers.changed('a');
  clock.pass(WATCH_MS);
  assert.equal(clock.waiting, 0);
  watch('a', present('a'));
  watchers.stop();
  assert.equal(clock.waiting, 0);
});
