/** The change feed in virtual time: its watermark, cursors, and watches of instances. */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ChangeFeed } from '../../actors/feed/changes.js';
import {
  cursorOf,
  FEED_START,
  placeBefore,
  placeOf,
} from '../../actors/feed/core/change-cursor.js';
import { type StreamPlace, StreamPlaces } from '../../actors/feed/front/event-stream.js';
import { Watchers } from '../../actors/feed/watchers.js';
import { AUDIT } from '../../actors/instance/output-tables.js';
import { CommitLog, type PendingUnit, type Settlement } from '../../actors/runtime/commit-log.js';
import { type Effect, Turn } from '../../actors/runtime/turn.js';
// Turns need the indexes of the mutations.
import '../../actors/shard/store.js';
import type { Clock } from '../../src/base/clock.js';
import { createLogger } from '../../src/base/log.js';
import { HandClock } from '../helpers/hand-clock.js';

const T0 = Date.parse('2026-03-01T12:00:00Z');
const TENANT = 't';

/** One shard's feed, its commits, and a clock of its own. */
class World {
  now = T0;
  readonly commits = new CommitLog();
  readonly feed: ChangeFeed;
  /** By request: a body, or the code of an error. */
  readonly answers = new Map<number, string>();
  isWriterAway = false;
  #onWriterKnown: (() => void)[] = [];
  #seq = 0;
  #requests = 0;
  #timers: (() => void)[] = [];

  constructor(shard = 0, stampsFrom = 0) {
    const clock: Clock = {
      now: () => this.now,
      monotonic: () => 0,
      setTimeout: (fn) => this.#timers.push(fn),
      clearTimeout: () => undefined,
    };
    this.feed = new ChangeFeed({
      shard,
      clock,
      random: () => 0.5,
      now: () => this.now,
      commits: this.commits,
      log: createLogger('silent', 'test'),
      whenWriterKnown: (then) => {
        if (this.isWriterAway) this.#onWriterKnown.push(then);
        else then();
      },
      release: (effects) => this.#release(effects),
      schedule: (work) => work(),
    });
    this.feed.stampFrom(stampsFrom);
  }

  /** Makes a unit with an entry; returns its number and time. */
  entry(settled?: (ack: Settlement) => void): { readonly seq: number; readonly at: number } {
    const at = this.feed.stamp();
    const turn = new Turn();
    turn.put(AUDIT.insert, 'key', '{}');
    const owner = {
      key: 'a',
      incarnation: 1,
      settled: (_unit: PendingUnit, ack: Settlement) => {
        settled?.(ack);
        if (ack.outcome === 'committed') this.feed.watchers.changed(TENANT);
      },
    };
    this.commits.append(owner, turn);
    return { seq: this.taken(), at };
  }

  /** The number of the unit that was made last. */
  taken(): number {
    this.#seq = this.commits.take().at(-1)?.seq ?? this.#seq;
    return this.#seq;
  }

  /** The rows of the mark that wait for the writer. */
  marks(): { readonly seq: number; readonly stampsFrom: number }[] {
    return this.commits
      .take()
      .filter(({ actor }) => actor === 'change-mark')
      .map(({ seq, mutations }) => ({
        seq,
        stampsFrom: Date.parse(JSON.parse(String(mutations[2])).stamps_from),
      }));
  }

  commit(...seqs: number[]): void {
    this.commits.settle(seqs.map((seq) => ({ seq, outcome: 'committed' })));
  }

  ask(past = 0): number {
    this.#requests += 1;
    this.feed.watermark(this.#requests, past);
    return this.#requests;
  }

  watch(known?: number): number {
    this.#requests += 1;
    this.feed.watchers.watch(TENANT, { request: this.#requests, tenant: TENANT }, known);
    return this.#requests;
  }

  loseWriter(): void {
    this.isWriterAway = true;
    this.commits.lose();
  }

  regainWriter(): void {
    this.isWriterAway = false;
    for (const then of this.#onWriterKnown.splice(0)) then();
    this.feed.watchers.changedAll();
  }

  #release(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'reply') this.answers.set(effect.request, effect.body);
      if (effect.kind === 'error') this.answers.set(effect.request, effect.error.code);
    }
  }
}

/** The time in an answer that was given. */
const numberOf = (body: string | undefined): number => {
  const { at, ahead } = JSON.parse(String(body));
  assert.ok(Number.isInteger(at) && ahead < at, body);
  return at;
};

let world: World;
beforeEach(() => {
  world = new World(1);
});

describe('the times of entries', () => {
  test('never go back, although the clock does', () => {
    world = new World();
    const times = [0, 5, -3_600_000, -10, 6, 7].map((offset) => {
      world.now = T0 + offset;
      return world.feed.stamp();
    });
    assert.deepEqual(times, [T0, T0 + 5, T0 + 5, T0 + 5, T0 + 6, T0 + 7]);
  });

  test('are not below a watermark that was answered, although the clock is', () => {
    const at = numberOf(world.answers.get(world.ask()));
    world.now = T0 - 86_400_000;
    const entry = world.entry();
    assert.ok(entry.at >= at);
    const request = world.ask(T0 + 50);
    world.commit(entry.seq);
    assert.ok(numberOf(world.answers.get(request)) > T0 + 50);
    assert.ok(world.entry().at > T0 + 50);
  });
});

describe('the answer', () => {
  test('comes when the units that were made before are settled, and waits for no later one', () => {
    const [first, second] = [world.entry(), world.entry()];
    const request = world.ask();
    const later = world.entry();
    world.commit(second.seq);
    assert.equal(world.answers.get(request), undefined);
    world.commit(first.seq);
    const at = numberOf(world.answers.get(request));
    assert.ok(later.at >= at);
  });

  test('waits for a new writer when the old one died: its units may have been committed', () => {
    world.entry();
    const request = world.ask();
    world.loseWriter();
    const meanwhile = world.ask();
    assert.deepEqual([...world.answers], []);
    world.regainWriter();
    numberOf(world.answers.get(request));
    numberOf(world.answers.get(meanwhile));
  });
});

describe('the mark on the first shard', () => {
  test('is durable before a watermark is answered, and ahead of it', () => {
    world = new World(0);
    const request = world.ask();
    const [mark] = world.marks();
    assert.ok(mark);
    assert.equal(world.answers.get(request), undefined);
    world.commit(mark.seq);
    const at = numberOf(world.answers.get(request));
    assert.ok(mark.stampsFrom > at);
    const again = world.ask(at + 10);
    assert.deepEqual(world.marks(), []);
    numberOf(world.answers.get(again));
    world.ask(mark.stampsFrom);
    assert.equal(world.marks().length, 1);
  });

  test('an answer whose mark was lost is an error, and the next one sets it anew', () => {
    world = new World(0);
    const request = world.ask();
    world.marks();
    world.loseWriter();
    world.regainWriter();
    assert.equal(world.answers.get(request), 'ENG_DATABASE_DOWN');
    const again = world.ask();
    world.commit(...world.marks().map(({ seq }) => seq));
    numberOf(world.answers.get(again));
  });

  test('an owner that begins with it stamps above all answers, an hour behind by its clock', () => {
    world = new World(0);
    const request = world.ask();
    const [mark] = world.marks();
    world.commit(mark?.seq ?? 0);
    const at = numberOf(world.answers.get(request));
    const successor = new World(0, mark?.stampsFrom);
    successor.now = T0 - 3_600_000;
    assert.ok(successor.feed.stamp() >= at);
  });
});

describe('a watch', () => {
  test('is answered when entries of its tenant were committed, with a time that is not below', () => {
    const first = JSON.parse(String(world.answers.get(world.watch())));
    const request = world.watch(first.version);
    assert.equal(world.answers.get(request), undefined);
    const entry = world.entry();
    assert.equal(world.answers.get(request), undefined);
    world.commit(entry.seq);
    const { version, latest } = JSON.parse(String(world.answers.get(request)));
    assert.notEqual(version, first.version);
    assert.ok(latest >= entry.at);
  });

  test('is answered when a writer died: nobody was told of what it had committed', () => {
    const { version } = JSON.parse(String(world.answers.get(world.watch())));
    world.entry();
    const request = world.watch(version);
    world.loseWriter();
    world.regainWriter();
    assert.ok(world.answers.has(request));
  });
});

const ID = '01950000-0000-7000-8000-00000000abcd';
const AT = Date.parse('2026-03-01T12:00:00.123Z');

const encoded = (text: string) => Buffer.from(text).toString('base64url');
const ofFields = (created_at: unknown, id: unknown) => encoded(JSON.stringify({ created_at, id }));

test('a cursor is base64url without padding of the JSON of time and id, and is read back', () => {
  const cursor = cursorOf({ at: AT, id: ID });
  assert.match(cursor, /^[A-Za-z0-9_-]+$/);
  const read = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  assert.deepEqual(read, { created_at: '2026-03-01T12:00:00.123Z', id: ID });
  for (const place of [{ at: AT, id: ID }, FEED_START, placeBefore(AT)]) {
    assert.deepEqual(placeOf(cursorOf(place)), place);
  }
});

test('a time with another offset, another order of fields and upper case name the same place', () => {
  const place = { at: AT, id: ID };
  assert.deepEqual(placeOf(ofFields('2026-03-01T13:00:00.123+01:00', ID.toUpperCase())), place);
  const seen = placeOf(encoded(`{"id":"${ID}", "created_at":"2026-03-01T12:00:00.123Z"}`));
  assert.deepEqual(seen, place);
});

test('a time between two milliseconds lies behind every entry of the first', () => {
  const id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  assert.deepEqual(placeOf(ofFields('2026-03-01T12:00:00.123456Z', ID)), { at: AT, id });
  assert.deepEqual(placeOf(ofFields('2026-03-01T12:00:00.123000Z', ID)), { at: AT, id: ID });
});

const TIME = '2026-03-01T12:00:00Z';
const MALFORMED: Readonly<Record<string, string>> = {
  'no base64url': '%%%',
  'base64 with padding': `${ofFields(TIME, ID)}=`,
  'base64 of the other alphabet': Buffer.from(`{"created_at":"${TIME}","id":"${ID}","x":"??>>"}`)
    .toString('base64')
    .replace(/=+$/, ''),
  'bytes that are not UTF-8': Buffer.from([0xff, 0xfe, 0xfd]).toString('base64url'),
  'no JSON': encoded('created_at'),
  'an array': encoded(`["${TIME}","${ID}"]`),
  'no time': encoded(`{"id":"${ID}"}`),
  'no id': encoded(`{"created_at":"${TIME}"}`),
  'a time that is a number': ofFields(AT, ID),
  'a time without an offset': ofFields('2026-03-01T12:00:00', ID),
  'a day that does not exist': ofFields('2026-02-30T12:00:00Z', ID),
  'a year beyond what can be stored': ofFields('12026-03-01T12:00:00Z', ID),
  'an id with something behind it': ofFields(TIME, `${ID}'`),
};

for (const [what, cursor] of Object.entries(MALFORMED)) {
  test(`it is no cursor: ${what}`, () => assert.equal(placeOf(cursor), undefined));
}

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

/** The requests of those who were told to look. */
const looking = () => looks.map((look) => Number(look.split('/')[1]));

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
  watchers.changed('c');
  assert.equal(looks.length, 0);
  watchers.changed('a');
  assert.deepEqual(looking(), parked);
  const versions = looks.map((look) => Number(look.split('/')[2]));
  assert.ok(versions[0] === versions[1] && versions[0] !== version);
  watchers.changed('a');
  assert.equal(looks.length, 2);
});

test('a change between two watches is not missed, nor one of a shard that died in between', () => {
  const version = present('a');
  watchers.changed('a');
  watch('a', version);
  assert.equal(looks.length, 1);
  const known = present('a');
  watchers = create(0.25);
  watch('a', known);
  assert.equal(looks.length, 2);
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
  for (const gone of [goes, goes, 99]) watchers.abort(gone);
  assert.deepEqual(released, [goes]);
  watchers.changed('a');
  assert.deepEqual(looking(), [stays]);
});

test('when the engine stops nobody waits, nor begins to, and no timer is left', () => {
  const parked = [watch('a', present('a')), watch('b', present('b'))];
  watchers.drain();
  watch('a', Number(looks[0]?.split('/')[2]));
  assert.deepEqual(looking(), [...parked, request]);
  clock.pass(WATCH_MS);
  assert.equal(clock.waiting, 0);
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

test('several large tenants leave streams to small ones and to the root key', () => {
  const places = new StreamPlaces();
  const fill = (tenant: string, isRoot = false) => {
    const taken: StreamPlace[] = [];
    for (let last = places.take(tenant, isRoot); last.ok; last = places.take(tenant, isRoot)) {
      taken.push(last);
    }
    return taken;
  };
  const count = (tenant: string, isRoot = false) => fill(tenant, isRoot).length;
  const large = fill('a');
  assert.deepEqual([large.length, count('b'), count('c')], [256, 32, 8]);
  const small = Array.from({ length: 8 }, (_, at) => count(`small ${at}`));
  assert.deepEqual(small, [8, 8, 8, 8, 8, 8, 8, 0]);
  assert.deepEqual([count('a', true), count('', true)], [32, 0]);
  // What one gives back is another one's, and of a tenant that has few first.
  for (const place of large.slice(0, 4)) if (place.ok) place.release();
  assert.deepEqual([count('b'), count('small 7'), count('a')], [0, 4, 0]);
});
