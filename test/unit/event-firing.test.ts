/** The job that fires triggers of events: what is tried again, what is given up, and where it goes on. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { pino } from 'pino';
import { invalid, RESTARTING } from '../../src/errors.js';
import { EventFiring, type FiringEvent } from '../../src/event-firing.js';
import { HandClock } from '../helpers/hand-clock.js';

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
  key_id: 'key',
  tenant_id: 'tenant',
  event_name: 'paid',
  correlation_key: null,
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
  assert.deepEqual(
    stored,
    events.map(({ id }) => [id, null]),
  );
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
  assert.deepEqual(
    [logged.length, line?.msg, line?.trigger, line?.code],
    [1, 'an event could not fire its trigger', 'a', 'ENG_VALIDATION'],
  );
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
