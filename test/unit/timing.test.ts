/** Back-off, delays and windows, case by case and against luxon, and the clock of the engine. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { offsetFrom } from '../../src/base/clock.js';
import { EngineClock, realClock } from '../../src/base/real-clock.js';
import {
  backoffMs,
  type DelayTimes,
  type DelayWorld,
  delayTarget,
  isKnownTimezone,
  isLocalTime,
  nextOpening,
} from '../../src/core/timing.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const DAY_MS = 86_400_000;

function target(delay: Partial<DelayTimes>, world: Partial<DelayWorld> & { at?: string } = {}) {
  const { at = '2024-03-06T09:15:00Z', ...rest } = world;
  const env = { now: Date.parse(at), timezone: 'UTC', random: () => 0.5, configHolidays: [] };
  return new Date(delayTarget({ duration: 0, ...delay }, { ...env, ...rest })).toISOString();
}

test('the back-off grows by the multiplier up to its cap', () => {
  const retry = { initial_backoff: 1_000, max_backoff: 10_000, backoff_multiplier: 2 };
  const seen = [0, 1, 2, 3, 4, 500].map((attempt) => backoffMs(retry, attempt));
  assert.deepEqual(seen, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
});

test('the back-off is whole milliseconds and never NaN', () => {
  const retry = { initial_backoff: 100, max_backoff: 10_000, backoff_multiplier: 1.333 };
  assert.equal(backoffMs(retry, 1), 133);
  assert.equal(backoffMs({ ...retry, initial_backoff: 0, backoff_multiplier: 1e300 }, 50), 0);
  assert.equal(backoffMs({ ...retry, backoff_multiplier: 1e300 }, 50), 10_000);
  assert.equal(backoffMs({ ...retry, backoff_multiplier: 0 }, 1), 0);
  assert.equal(backoffMs({ ...retry, max_backoff: 0 }, 1), 0);
});

test('business days move a weekend to Monday with the clock time of the zone kept, holidays further', () => {
  const delay = { duration: 3 * DAY_MS, business_days_only: true };
  assert.equal(target({ duration: 1_500 }), '2024-03-06T09:15:01.500Z');
  assert.equal(target(delay), '2024-03-11T09:15:00.000Z');
  assert.equal(target({ ...delay, duration: DAY_MS }), '2024-03-07T09:15:00.000Z');
  const holiday = { ...delay, holidays: ['2024-03-11'] };
  assert.equal(target(holiday, { configHolidays: ['2024-03-12'] }), '2024-03-13T09:15:00.000Z');
  assert.equal(target({ ...holiday, business_days_only: false }), '2024-03-09T09:15:00.000Z');
  const friday = { at: '2024-03-08T20:00:00Z' };
  assert.equal(target({ business_days_only: true }, friday), '2024-03-08T20:00:00.000Z');
  const inTokyo = { ...friday, timezone: 'Asia/Tokyo' };
  assert.equal(target({ business_days_only: true }, inTokyo), '2024-03-10T20:00:00.000Z');
  const inBerlin = { at: '2024-03-30T08:00:00Z', timezone: 'Europe/Berlin' };
  assert.equal(target({ business_days_only: true }, inBerlin), '2024-04-01T07:00:00.000Z');
});

test('an endless run of holidays ends after thirty moves', () => {
  const holidays = Array.from({ length: 400 }, (_, i) =>
    new Date(Date.UTC(2024, 2, 1) + i * DAY_MS).toISOString().slice(0, 10),
  );
  const due = Date.parse(target({ business_days_only: true, holidays }));
  assert.ok(due <= Date.parse('2024-03-06T09:15:00Z') + 60 * DAY_MS);
});

test('fire_at_local means a wall-clock time in its own zone, else that of the instance', () => {
  const fire = { fire_at_local: '2024-07-01T09:00:00' };
  assert.equal(target(fire, { timezone: 'Europe/Berlin' }), '2024-07-01T07:00:00.000Z');
  assert.equal(target({ ...fire, timezone: 'America/New_York' }), '2024-07-01T13:00:00.000Z');
  assert.equal(target({ ...fire, timezone: 'No/Where' }), '2024-07-01T09:00:00.000Z');
});

test('a wall-clock time in a gap is moved on by the gap, a repeated one means the first', () => {
  const cases: [string, string, string][] = [
    ['Europe/Berlin', '2024-03-31T02:30:00', '2024-03-31T01:30:00.000Z'],
    ['Europe/Berlin', '2024-10-27T02:30:00', '2024-10-27T00:30:00.000Z'],
    ['America/New_York', '2024-03-10T02:30:00', '2024-03-10T07:30:00.000Z'],
    ['America/New_York', '2024-11-03T01:30:00', '2024-11-03T05:30:00.000Z'],
    ['Australia/Lord_Howe', '2024-10-06T02:15:00', '2024-10-05T15:45:00.000Z'],
    ['Europe/Berlin', '2024-02-29T12:00:00', '2024-02-29T11:00:00.000Z'],
  ];
  for (const [timezone, local, due] of cases) {
    assert.equal(target({ fire_at_local: local, timezone }), due, `${timezone} ${local}`);
  }
});

test('a delay has one zone: weekdays and clock times of fire_at_local are those of its own', () => {
  const fire = { fire_at_local: '2024-03-09T09:00:00', business_days_only: true };
  const world = { timezone: 'Europe/Berlin' };
  assert.equal(target(fire, world), '2024-03-11T08:00:00.000Z');
  const inNewYork = { ...fire, timezone: 'America/New_York' };
  assert.equal(target(inNewYork, world), '2024-03-11T13:00:00.000Z');
});

test('only real days and times are local times', () => {
  const days = ['2023-02-29T00:00:00', '2024-02-30T00:00:00', '2024-01-01T24:00:00', '2024-01-01'];
  assert.equal(isLocalTime('2024-02-29T23:59:59'), true);
  for (const text of [...days, 'x']) assert.equal(isLocalTime(text), false, text);
});

test('jitter is added last, in whole milliseconds of either sign', () => {
  const base = Date.parse('2024-03-06T09:15:00Z');
  const shift = (random: number) =>
    Date.parse(target({ jitter: 100 }, { random: () => random })) - base;
  assert.deepEqual([shift(0), shift(0.5), shift(0.999_999)], [-100, 0, 100]);
  assert.equal(target({ jitter: 0 }, { random: () => 0 }), '2024-03-06T09:15:00.000Z');
});

test('a delay beyond the calendar ends in the year 9999', () => {
  const due = target({ duration: Number.MAX_SAFE_INTEGER, business_days_only: true, jitter: 10 });
  assert.equal(due, '9999-12-31T23:59:59.999Z');
});

describe('a send window', () => {
  function opening(hours: string, days: string, at: string, zone: string): string {
    const [start_hour = 0, end_hour = 0] = hours.split('-').map(Number);
    const list = days === '' ? [] : days.split(',').map(Number);
    const now = Date.parse(at.endsWith('Z') ? at : `${at}Z`);
    const due = nextOpening({ start_hour, end_hour, days: list }, now, zone);
    return due === now ? 'open' : new Date(due).toISOString().replace('.000', '');
  }

  // Title, hours, days, time, zone, what comes. 2024-03-06 is a Wednesday; Monday is day 0.
  for (const [title, hours = '', days = '', at = '', zone = '', expected] of casesIn(`
at its first moment               | 9-17 |           | 2024-03-06T09:00:00     | UTC           | open
at its last moment                | 9-17 |           | 2024-03-06T16:59:59.999 | UTC           | open
when its end has come             | 9-17 |           | 2024-03-06T17:00:00     | UTC           | 2024-03-07T09:00:00Z
before it                         | 9-17 |           | 2024-03-06T08:59:59.999 | UTC           | 2024-03-06T09:00:00Z
in its zone                       | 9-17 |           | 2024-03-06T07:00:00     | Asia/Kolkata  | open
before it in a zone               | 9-17 |           | 2024-03-06T03:00:00     | Asia/Kolkata  | 2024-03-06T03:30:00Z
in no known zone                  | 9-17 |           | 2024-03-06T10:00:00     | No/Where      | open
on another day                    | 9-17 | 0         | 2024-03-06T10:00:00     | UTC           | 2024-03-11T09:00:00Z
behind it on its only day         | 9-17 | 2         | 2024-03-06T18:00:00     | UTC           | 2024-03-13T09:00:00Z
on a weekend                      | 9-17 | 0,1,2,3,4 | 2024-03-09T10:00:00     | UTC           | 2024-03-11T09:00:00Z
on the day of its zone            | 0-23 | 3         | 2024-03-06T20:00:00     | Asia/Tokyo    | open
over midnight, before it          | 22-6 |           | 2024-03-06T23:00:00     | UTC           | open
over midnight, behind it          | 22-6 |           | 2024-03-06T05:59:59     | UTC           | open
over midnight, at noon            | 22-6 |           | 2024-03-06T12:00:00     | UTC           | 2024-03-06T22:00:00Z
up to midnight                    | 18-0 |           | 2024-03-06T23:59:59     | UTC           | open
up to midnight, behind it         | 18-0 |           | 2024-03-07T00:00:00     | UTC           | 2024-03-07T18:00:00Z
from midnight                     | 0-6  |           | 2024-03-06T07:00:00     | UTC           | 2024-03-07T00:00:00Z
before midnight of an allowed day | 22-6 | 2         | 2024-03-06T23:00:00     | UTC           | open
in the small hours of that day    | 22-6 | 2         | 2024-03-06T01:00:00     | UTC           | open
in those of the next              | 22-6 | 2         | 2024-03-07T01:00:00     | UTC           | 2024-03-13T22:00:00Z
whose start is in a gap           | 2-5  |           | 2024-03-30T12:00:00     | Europe/Berlin | 2024-03-31T01:00:00Z
whose hours are all in a gap      | 2-3  |           | 2024-03-30T12:00:00     | Europe/Berlin | 2024-04-01T00:00:00Z
whose only day has the gap        | 2-3  | 6         | 2024-03-30T12:00:00     | Europe/Berlin | 2024-04-07T00:00:00Z
whose start comes twice           | 2-5  |           | 2024-10-26T12:00:00     | Europe/Berlin | 2024-10-27T00:00:00Z
in the second of two same hours   | 2-3  |           | 2024-10-27T01:30:00     | Europe/Berlin | open
when midnight is in a gap         | 0-6  |           | 2024-04-25T12:00:00     | Africa/Cairo  | 2024-04-25T22:00:00Z
whose day a zone has skipped      | 9-17 | 4         | 2011-12-29T12:00:00     | Pacific/Apia  | 2012-01-05T19:00:00Z
in the last days of the year      | 9-17 | 0         | 2024-12-31T18:00:00     | UTC           | 2025-01-06T09:00:00Z
in the past                       | 9-17 |           | 1969-12-31T18:00:00     | UTC           | 1970-01-01T09:00:00Z
`)) {
    test(`${title}: ${expected}`, () => assert.equal(opening(hours, days, at, zone), expected));
  }
});

test('known time zones are IANA names', () => {
  for (const zone of ['UTC', 'Europe/Berlin', 'America/Argentina/Ushuaia', 'europe/berlin']) {
    assert.equal(isKnownTimezone(zone), true, zone);
    assert.equal(isKnownTimezone(zone), true, `${zone} again`);
  }
  const others = ['', 'Mars/Phobos', '+02:00', 'UTC+2', 'local', 'x'.repeat(1_000)];
  for (const zone of [...others, 'Europe/Berlin\n']) {
    assert.equal(isKnownTimezone(zone), false, zone);
  }
});

const ZONES =
  'UTC Europe/Berlin America/New_York Asia/Kolkata Australia/Lord_Howe America/Sao_Paulo';
const zone = fc.constantFrom(...ZONES.split(' '));
const instant = fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2035, 0, 1) });

test('the back-off is monotone, capped and whole, and jitter stays within its bounds', (t) => {
  const multipliers = fc.double({ min: 1, max: 1e6, noNaN: true });
  const chances = fc.double({ min: 0, max: 0.999_999, noNaN: true });
  const cases = fc.tuple(fc.nat(100_000), fc.nat(10_000_000), multipliers, fc.nat(200), chances);
  check(t, 100, cases, ([initial_backoff, max_backoff, backoff_multiplier, attempt, chance]) => {
    const retry = { initial_backoff, max_backoff, backoff_multiplier };
    const wait = backoffMs(retry, attempt);
    assert.ok(Number.isSafeInteger(wait) && wait >= 0 && wait <= max_backoff);
    assert.ok(backoffMs(retry, attempt + 1) >= wait);
    const world = { now: 1e12, timezone: 'UTC', random: () => chance, configHolidays: [] };
    const due = delayTarget({ duration: 5, jitter: initial_backoff }, world);
    assert.ok(Number.isInteger(due) && Math.abs(due - 1e12 - 5) <= initial_backoff);
  });
});

test('a business day is a weekday at the same clock time, at most one weekend later', (t) => {
  const cases = fc.tuple(instant, zone, fc.nat(10 * DAY_MS));
  check(t, byDepth(600, 2_000), cases, ([now, timezone, duration]) => {
    const world = { now, timezone, random: () => 0, configHolidays: [] };
    const due = delayTarget({ duration, business_days_only: true }, world);
    const plain = DateTime.fromMillis(now + duration, { zone: timezone });
    const moved = DateTime.fromMillis(due, { zone: timezone });
    assert.ok(moved.weekday <= 5);
    const days = Math.round((due - now - duration) / DAY_MS);
    assert.ok(days >= 0 && days <= 2);
    const clock = (time: DateTime) => time.hour * 60 + time.minute;
    // A clock time inside a gap is the one case in which it cannot be kept.
    assert.equal(clock(moved), clock(plain.plus({ days })));
  });
});

test('a local time reads back as itself unless it falls into a gap', (t) => {
  check(t, byDepth(600, 2_000), fc.tuple(instant, zone), ([at, timezone]) => {
    const local = DateTime.fromMillis(at, { zone: timezone }).toFormat("yyyy-MM-dd'T'HH:mm:ss");
    const world = { now: 0, timezone, random: () => 0, configHolidays: [] };
    const due = delayTarget({ duration: 0, fire_at_local: local }, world);
    const shown = DateTime.fromMillis(due, { zone: timezone }).toFormat("yyyy-MM-dd'T'HH:mm:ss");
    assert.equal(shown, local);
    assert.ok(due <= at);
  });
});

test('a window opens at its start on an allowed day, and at no such moment before', (t) => {
  const hour = fc.integer({ min: 0, max: 23 });
  const days = fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 7 });
  // Among them a zone that has skipped a whole day, and one whose clocks change at midnight.
  const anyZone = fc.oneof(zone, fc.constantFrom('Pacific/Apia', 'Africa/Cairo', 'Asia/Gaza'));
  const cases = fc.tuple(instant, anyZone, hour, hour, days);
  check(t, 2_000, cases, ([now, timezone, start, end, allowed]) => {
    fc.pre(start !== end);
    const isInside = ({ hour }: DateTime) =>
      start < end ? hour >= start && hour < end : hour >= start || hour < end;
    const isOpen = (time: DateTime) =>
      isInside(time) && (allowed.length === 0 || allowed.includes(time.weekday - 1));
    const due = nextOpening({ start_hour: start, end_hour: end, days: allowed }, now, timezone);
    const from = DateTime.fromMillis(now, { zone: timezone });
    if (isOpen(from)) {
      assert.equal(due, now);
      return;
    }
    const opened = DateTime.fromMillis(due, { zone: timezone });
    // Luxon moves a clock time on that falls into a gap, as the rules do.
    const at = { hour: start, minute: 0, second: 0, millisecond: 0 };
    assert.ok(due > now && isOpen(opened), opened.toISO() ?? '');
    assert.equal(opened.set(at).toMillis(), due);
    for (let day = from.startOf('day'); day < opened; day = day.plus({ days: 1 })) {
      const moment = day.set(at);
      const isBetween = from < moment && moment < opened;
      assert.ok(!isBetween || !isOpen(moment), `it opens at ${moment.toISO()}`);
    }
  });
});

const HOUR_MS = 3_600_000;

/** A machine whose clock reads 0 at monotonic time 0. */
function machine() {
  let monotonic = 0;
  const clock = new EngineClock({ ...realClock, now: () => 0, monotonic: () => monotonic });
  const pass = (ms: number) => {
    monotonic += ms;
    return clock.now();
  };
  return { clock, pass };
}

test('the first reading is taken as made in the middle of its round trip', () => {
  assert.equal(offsetFrom({ unixMs: 5_000, sentAt: 100, receivedAt: 140 }), 4_880);
});

test('an offset that is known moves only as far as a reading proves it wrong', () => {
  const cases: readonly [known: number, sentAt: number, receivedAt: number, offset: number][] = [
    [4_880, 100, 140, 4_880],
    [4_880, 0, 2_000, 4_880],
    [4_000, 100, 140, 4_860],
    [6_000, 100, 140, 4_900],
  ];
  for (const [known, sentAt, receivedAt, offset] of cases) {
    assert.equal(offsetFrom({ unixMs: 5_000, sentAt, receivedAt }, known), offset);
  }
});

test('time goes ahead at once, and tells of a jump that matters', () => {
  const { clock, pass } = machine();
  assert.equal(clock.setOffset(900), 0);
  assert.equal(pass(1), 901);
  assert.equal(clock.setOffset(HOUR_MS + 900), HOUR_MS);
  assert.equal(pass(1), HOUR_MS + 902);
});

test('time stands still while it is a little ahead, however often it is set back', () => {
  const { clock, pass } = machine();
  clock.setOffset(10_000);
  assert.equal(pass(100), 10_100);
  assert.equal(clock.setOffset(9_400), 0);
  assert.deepEqual([pass(100), pass(600)], [10_100, 10_200]);
  assert.equal(clock.setOffset(9_300), 0);
  assert.deepEqual([pass(50), pass(100)], [10_200, 10_250]);
});

test('time goes back when it is far ahead, also by many small steps', () => {
  const { clock, pass } = machine();
  clock.setOffset(HOUR_MS);
  assert.equal(pass(100), HOUR_MS + 100);
  assert.equal(clock.setOffset(0), -HOUR_MS);
  assert.equal(pass(100), 200);
  clock.setOffset(-600);
  assert.equal(pass(0), 200);
  assert.equal(clock.setOffset(-1_200), -1_200);
  assert.equal(pass(0), -1_000);
});
