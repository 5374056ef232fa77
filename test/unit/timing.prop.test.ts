/** Laws of back-off, delays and windows over random instants and zones, with luxon as the oracle. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { backoffMs, delayTarget, nextOpening } from '../../src/core/timing.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const DAY_MS = 86_400_000;
const zone = fc.constantFrom(
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'America/Sao_Paulo',
);
const instant = fc.integer({ min: Date.UTC(2000, 0, 1), max: Date.UTC(2035, 0, 1) });

test('the back-off is monotone, capped and whole', (t) => {
  check(
    t,
    100,
    fc.tuple(
      fc.nat(100_000),
      fc.nat(10_000_000),
      fc.double({ min: 1, max: 1e6, noNaN: true }),
      fc.nat(200),
    ),
    ([initial, max, multiplier, attempt]) => {
      const retry = {
        initial_backoff: initial,
        max_backoff: max,
        backoff_multiplier: multiplier,
      };
      const wait = backoffMs(retry, attempt);
      assert.ok(Number.isSafeInteger(wait) && wait >= 0 && wait <= max);
      assert.ok(backoffMs(retry, attempt + 1) >= wait);
    },
  );
});

test('a business day is a weekday at the same clock time, at most one weekend later', (t) => {
  check(
    t,
    byDepth(600, 2_000),
    fc.tuple(instant, zone, fc.nat(10 * DAY_MS)),
    ([now, timezone, duration]) => {
      const world = { now, timezone, random: () => 0, configHolidays: [] };
      const due = delayTarget({ duration, business_days_only: true }, world);
      const plain = DateTime.fromMillis(now + duration, { zone: timezone });
      const moved = DateTime.fromMillis(due, { zone: timezone });
      assert.ok(moved.weekday <= 5);
      const days = Math.round((due - now - duration) / DAY_MS);
      assert.ok(days >= 0 && days <= 2);
      const clock = (time: DateTime) => time.hour * 60 + time.minute;
      // A clock time inside a gap is the one case in which it cannot be kept.
      const wanted = plain.plus({ days });
      assert.equal(clock(moved), clock(wanted));
    },
  );
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

test('jitter stays within its bounds', (t) => {
  check(
    t,
    100,
    fc.tuple(fc.nat(10_000), fc.double({ min: 0, max: 0.999_999, noNaN: true })),
    ([jitter, chance]) => {
      const world = { now: 1e12, timezone: 'UTC', random: () => chance, configHolidays: [] };
      const due = delayTarget({ duration: 5, jitter }, world);
      assert.ok(Number.isInteger(due) && Math.abs(due - 1e12 - 5) <= jitter);
    },
  );
});

test('a window opens at its start on an allowed day, and at no such moment before', (t) => {
  const hour = fc.integer({ min: 0, max: 23 });
  const days = fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 7 });
  // Among them a zone that has skipped a whole day, and one whose clocks change at midnight.
  const anyZone = fc.oneof(zone, fc.constantFrom('Pacific/Apia', 'Africa/Cairo', 'Asia/Gaza'));
  check(
    t,
    2_000,
    fc.tuple(instant, anyZone, hour, hour, days),
    ([now, timezone, start, end, allowed]) => {
      fc.pre(start !== end);
      const isOpen = (time: DateTime) => {
        const isInside =
          start < end
            ? time.hour >= start && time.hour < end
            : time.hour >= start || time.hour < end;
        return isInside && (allowed.length === 0 || allowed.includes(time.weekday - 1));
      };
      const window = { start_hour: start, end_hour: end, days: allowed };
      const due = nextOpening(window, now, timezone);
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
    },
  );
});
