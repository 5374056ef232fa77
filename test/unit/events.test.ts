/** Events: the actor of one key, their order on a shard, and the job that fires triggers. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { pino } from 'pino';
import { EventFiring, type FiringEvent } from '../../actors/event/front/firing.js';
import { EventKey, type EventKeyRows, type OpenEvent } from '../../actors/event/key.js';
import type { EventListenerRow, EventRow, EventTakeRow } from '../../actors/event/loads.js';
import type { PeerMessage } from '../../actors/runtime/protocol.js';
import { Turn } from '../../actors/runtime/turn.js';
import { invalid, RESTARTING } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import type { Json } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';
import { HandClock } from '../helpers/hand-clock.js';
import { HandShard } from '../helpers/hand-shard.js';
import { check } from '../helpers/properties.js';
import { MUTATION_KINDS } from '../helpers/store.js';

let clock: HandClock;
let events: FiringEvent[];
/** What each slug of an event is answered with, in turn; then it is fired. */
let refusals: Map<string, Error[]>;
/** Slugs of events that were asked for. */
let asked: string[];
/** What was stored. */
let stored: (readonly [id: string, left: readonly string[] | null])[];
/** How many rows each page had. */
let pages: number[];
let logged: { msg: string; code?: string; trigger?: string }[];
let firing: EventFiring;

beforeEach(() => {
  clock = new HandClock();
  [events, asked, stored, pages, logged] = [[], [], [], [], []];
  refusals = new Map();
  const log = pino({}, { write: (line) => logged.push(JSON.parse(line)) });
  firing = new EventFiring({ clock, log, page, fire, fired });
});

async function page(at: string, id: string, rows: number): Promise<FiringEvent[]> {
  const isBehind = (event: FiringEvent) =>
    at === '-infinity' || event.created_at > at || (event.created_at === at && event.id > id);
  const found = events.filter(({ fires }) => fires !== null).filter(isBehind);
  pages.push(Math.min(found.length, rows));
  return found.slice(0, rows);
}

async function fire(slug: string, { id }: FiringEvent): Promise<void> {
  asked.push(`${slug} ${id}`);
  const refusal = refusals.get(slug)?.shift();
  if (refusal !== undefined) throw refusal;
}

async function fired({ id }: FiringEvent, left: readonly string[] | null): Promise<void> {
  stored.push([id, left]);
  events = events.map((event) =>
    event.id === id ? { ...event, fires: left && JSON.stringify(left) } : event,
  );
}

const event = (number: number, ...slugs: string[]): FiringEvent => ({
  id: `e${String(number).padStart(3, '0')}`,
  ...{ key_id: 'key', tenant_id: 'tenant', event_name: 'paid', correlation_key: null },
  payload: 'null',
  fires: JSON.stringify(slugs),
  created_at: '2031-06-01T00:00:00.000Z',
});

/** Lets so much time pass, bit by bit. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left >= 0; left -= 100) {
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    clock.pass(Math.min(100, left));
  }
}

test('every trigger of every event is fired, by pages', async () => {
  events = Array.from({ length: 45 }, (_, n) => event(n, 'a', 'b'));
  firing.wake();
  await pass(1_000);
  assert.deepEqual([asked.length, new Set(asked).size], [90, 90]);
  const expected = events.map(({ id }) => [id, null]);
  assert.deepEqual(stored, expected);
  assert.deepEqual(pages, [20, 20, 5]);
});

test('what is not available is tried again in the next round, and nothing else is', async () => {
  events = [event(1, 'a', 'b', 'c')];
  refusals.set('b', [RESTARTING, new Error('a defect')]);
  firing.wake();
  await pass(1_000);
  assert.deepEqual(stored, [['e001', ['b']]]);
  await pass(25_000);
  assert.deepEqual(asked, ['a e001', 'b e001', 'c e001', 'b e001', 'b e001']);
  assert.deepEqual(stored, [
    ['e001', ['b']],
    ['e001', null],
  ]);
});

test('what is refused is logged and given up', async () => {
  events = [event(1, 'a', 'b')];
  refusals.set('a', [invalid('amount is required')]);
  firing.wake();
  await pass(1_000);
  assert.deepEqual(stored, [['e001', null]]);
  const [line] = logged;
  const seen = [logged.length, line?.msg, line?.trigger, line?.code];
  assert.deepEqual(seen, [1, 'an event could not fire its trigger', 'a', 'ENG_VALIDATION']);
  assert.doesNotMatch(JSON.stringify(logged), /amount/);
});

test('a stop leaves what has yet to be fired for the next start', async () => {
  events = [event(1, 'a', 'b'), event(2, 'a')];
  firing.wake();
  firing.stop();
  await pass(30_000);
  assert.deepEqual([asked, stored], [[], []]);
  firing.wake();
  await pass(30_000);
  assert.deepEqual(asked, []);
});

const KEY = '00000000-0000-8000-8000-000000000000';
const START = 1_700_000_000_000;
const TTL_MS = 60_000;

type Arrived = Extract<PeerMessage, { kind: 'event.arrived' }>;
type Word = () => void;
type Writable<T> = { -readonly [K in keyof T]: T[K] };

class World {
  now = START;
  readonly events = new Map<string, Writable<EventRow>>();
  /** Open waits, each with what its schema refuses. */
  readonly waits = new Map<string, string | undefined>();
  readonly takes: EventTakeRow[] = [];
  /** Words that are under way, in both directions. */
  words: Word[] = [];
  /** Those of them that are the outcome of a unit: it may be lost, and is told no second time. */
  readonly outcomes = new Set<Word>();
  key: EventKey;

  constructor() {
    this.key = this.#born();
  }

  /** What the actor had in mind is gone. */
  restart(): void {
    this.key = this.#born();
  }

  post(id: string, { isRefused = false } = {}): number {
    const targets = this.key.reserve();
    const matched = targets.size;
    const status = matched > 0 ? 'consumed' : 'pending';
    const expiresAt = this.now + TTL_MS;
    const seq = this.key.nextSeq();
    if (isRefused) {
      this.#turn((turn) => this.key.free(turn, targets.keys()));
      return 0;
    }
    this.events.set(id, {
      id,
      tenant_id: 'acme',
      seq,
      payload: `"${id}"`,
      status,
      matched,
      targets: matched === 0 ? null : JSON.stringify([...targets]),
      expires_at: isoTime(expiresAt),
    });
    const given = { id, seq, payload: `"${id}"`, expiresAt, status, matched, targets } as const;
    const event: OpenEvent = { ...given, isUsed: false, unsent: [] };
    const by = this.key;
    const stored = () =>
      this.#turn((turn) => {
        if (this.key === by) by.stored(turn, event);
        else this.key.reread();
      });
    this.outcomes.add(stored);
    this.words.push(stored);
    return matched;
  }

  /** @param refuses the event that its schema does not let in */
  open(wait: string, refuses?: string): this {
    this.waits.set(wait, refuses);
    this.words.push(() => this.#turn((turn) => this.key.wanted(turn, wait, instanceOf(wait))));
    return this;
  }

  close(wait: string): void {
    if (!this.waits.delete(wait)) return;
    this.words.push(() => this.key.unwanted(wait));
  }

  /** All words are heard, and those that follow from them. */
  settle(): void {
    for (let heard = 0; this.words.length > 0; heard += 1) {
      assert.ok(heard < 10_000, 'words without end');
      this.words.shift()!();
    }
  }

  /** Which waits took which event. */
  get taken(): string[] {
    return this.takes.map(({ event_id, wait_id, outcome }) => `${event_id} ${outcome} ${wait_id}`);
  }

  #born(): EventKey {
    const open = [...this.events.values()].filter(
      ({ status, targets }) => status === 'pending' || targets !== null,
    );
    const rows: EventKeyRows = {
      events: open.sort((a, b) => a.seq - b.seq).map((row) => ({ ...row })),
      waits: [...this.waits.keys()].sort().map((id) => ({ id, instance_id: instanceOf(id) })),
      takes: this.takes.filter(({ event_id }) => open.some(({ id }) => id === event_id)),
    };
    const key = new EventKey(KEY, { now: () => this.now, shards: 1 }, rows);
    this.key = key;
    this.#turn((turn) => key.settle(turn, rows));
    return key;
  }

  #turn(decide: (turn: Turn) => void): void {
    const turn = new Turn();
    decide(turn);
    const next = this.key.flush(turn);
    for (let i = 0; i < turn.mutations.length; i += 3) {
      assert.equal(MUTATION_KINDS[turn.mutations[i] as number], 'event.update');
      const { id, status, matched, targets } = JSON.parse(turn.mutations[i + 2] as string);
      const row = this.events.get(id)!;
      Object.assign(row, { status, matched, targets: targets && JSON.stringify(targets) });
    }
    for (const effect of turn.effects) {
      if (effect.kind !== 'peer') continue;
      this.words.push(() => this.#arrive(effect.message as Arrived));
    }
    if (next === 'reload') this.restart();
  }

  /** What an instance does. */
  #arrive({ event, wait }: Arrived): void {
    const isOpen = this.waits.has(wait);
    const outcome = !isOpen ? 'gone' : this.waits.get(wait) === event ? 'refused' : 'taken';
    if (outcome === 'taken') this.waits.delete(wait);
    if (outcome !== 'gone') {
      const isKnown = this.takes.some((row) => row.event_id === event && row.wait_id === wait);
      if (!isKnown) this.takes.push({ event_id: event, wait_id: wait, outcome });
    }
    this.words.push(() => this.#turn((turn) => this.key.answered(turn, event, wait, outcome)));
  }
}

const instanceOf = (wait: string) => `00000000-0000-7000-8000-00000000000${wait.length}`;

/** With waits that are open. */
function worldWith(...waits: readonly string[]): World {
  const world = new World();
  for (const wait of waits) world.open(wait);
  world.settle();
  return world;
}

describe('an event', () => {
  test('that a wait has no use for is used up, and the wait gets the next one', () => {
    const world = new World();
    world.open('a', 'E');
    world.settle();
    for (const event of ['E', 'F']) world.post(event);
    world.settle();
    assert.deepEqual(world.taken, ['E refused a', 'F taken a']);
    assert.equal(world.events.get('E')!.status, 'consumed');
  });

  test('whose wait was over by then is kept again', () => {
    const world = worldWith('a');
    assert.equal(world.post('E'), 1);
    world.close('a');
    world.settle();
    assert.equal(world.events.get('E')!.status, 'pending');
    world.open('b').settle();
    assert.deepEqual(world.taken, ['E taken b']);
  });

  test('of a large payload is told to some waits at a time, and to all in the end', () => {
    const world = worldWith(...Array.from({ length: 200 }, (_, n) => `w${n}`));
    world.post('E'.repeat(1024 * 1024));
    const [stored] = world.words.splice(0);
    stored?.();
    assert.equal(world.words.length, 64);
    world.settle();
    assert.equal(world.takes.length, 200);
  });

  test('that could not be stored leaves its waits to the next one', () => {
    const world = worldWith('a');
    world.post('E', { isRefused: true });
    assert.equal(world.post('F'), 1);
    world.settle();
    assert.deepEqual(world.taken, ['F taken a']);
  });

  test('whose row was found before its word came goes to nobody again', () => {
    const world = new World();
    world.post('E');
    const [stored] = world.words.splice(0);
    world.open('a');
    world.restart();
    world.settle();
    world.restart();
    world.open('b');
    stored?.();
    world.settle();
    assert.deepEqual(world.taken, ['E taken a']);
  });
});

type Act =
  | { readonly kind: 'post' | 'open' | 'close'; readonly at: number }
  | { readonly kind: 'hear' | 'lose' | 'repeat' | 'restart'; readonly at: number };

const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom(
    ...(['post', 'post', 'open', 'open', 'close', 'hear', 'hear'] as const),
    ...(['lose', 'repeat', 'restart'] as const),
  ),
  at: fc.nat({ max: 9 }),
});

/** By default none would be longer than ten. */
const manyActs = fc.array(act, { maxLength: 60, size: 'max' });

test('with messages lost, repeated or late, no wait takes two events, a kept event goes to one wait, and no event is lost', (t) => {
  check(t, byDepth(500, 20_000), manyActs, (acts) => {
    const world = new World();
    /** How many waits each event was for when it came. */
    const matched = new Map<string, number>();
    let made = 0;
    for (const { kind, at } of acts) {
      made += 1;
      const word = world.words[at % Math.max(1, world.words.length)];
      if (kind === 'post') matched.set(`E${made}`, world.post(`E${made}`));
      else if (kind === 'open') world.open(`w${made}`, at === 0 ? `E${made + 1}` : undefined);
      else if (kind === 'close') world.close([...world.waits.keys()][at] ?? '');
      else if (kind === 'restart') world.restart();
      else if (word !== undefined) {
        const isAgain = kind === 'repeat' && !world.outcomes.has(word);
        if (!isAgain) world.words = world.words.filter((other) => other !== word);
        if (kind !== 'lose') word();
      }
    }
    // What was lost is found by the rows, as from time to time.
    for (let round = 0; round < 3; round += 1) {
      world.settle();
      world.restart();
    }
    world.settle();
    const took = world.takes.filter(({ outcome }) => outcome === 'taken');
    const twice = took.filter(({ wait_id }, i) => took.findIndex((o) => o.wait_id === wait_id) < i);
    assert.deepEqual(twice, []);
    for (const [event, count] of matched) {
      const takers = world.takes.filter(({ event_id }) => event_id === event).length;
      const { status, targets } = world.events.get(event)!;
      assert.equal(targets, null);
      assert.equal(status === 'consumed', takers > 0, `${event} is ${status}`);
      if (count === 0) assert.ok(takers <= 1, `${event} was kept, and ${takers} took it`);
      if (status === 'pending') assert.equal(world.waits.size, 0, `${event} waits beside a wait`);
    }
  });
});

type LookUp = { readonly name: string; readonly found: (rows: EventListenerRow[]) => void };

/** Of triggers, which find nothing until the test says so. */
let lookUps: LookUp[];
let shard: HandShard;

beforeEach(async () => {
  lookUps = [];
  shard = new HandShard({
    eventListeners: ({ name }) => new Promise((found) => lookUps.push({ name, found })),
  });
  await shard.start();
  shard.units = [];
});
afterEach(() => shard.shard.stop());

async function send(event_name: string, producer_event_id: string): Promise<number> {
  const body: Json = { event_name, producer_event_id };
  const request = shard.ask('events.send', '', body);
  await shard.run();
  return request;
}

async function find(which: LookUp | undefined): Promise<void> {
  which?.found([]);
  await shard.run();
}

test('an event does not wait for the look-up of another key', async () => {
  const slow = await send('slow', '1');
  const fast = await send('fast', '2');
  await find(lookUps.find(({ name }) => name === 'fast'));
  await shard.ack();
  assert.deepEqual([shard.answer(fast), shard.answer(slow)], [201, undefined]);
  await find(lookUps.find(({ name }) => name === 'slow'));
  await shard.ack();
  assert.equal(shard.answer(slow), 201);
});

test('events of one key are stored in the order in which they came', async () => {
  const first = await send('paid', '1');
  const second = await send('paid', '2');
  await find(lookUps[1]);
  assert.deepEqual(shard.units, []);
  await find(lookUps[0]);
  assert.equal(shard.units.length, 2);
  assert.deepEqual(
    shard.units.map(
      ({ mutations }) => JSON.stringify(mutations).match(/producer_event_id\D*(\d)/)?.[1],
    ),
    ['1', '2'],
  );
  await shard.ack();
  assert.deepEqual([shard.answer(first), shard.answer(second)], [201, 201]);
});
