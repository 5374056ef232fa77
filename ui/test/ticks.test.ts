/** Marks of an axis of time, by the clock of whoever looks. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { momentText, tickText, tickTexts } from '../src/lib/ticks.ts';

const AT = Date.parse('2026-07-01T15:05:09.250Z');
const BERLIN = { locale: 'de-DE', zone: 'Europe/Berlin' };
const BRITISH = { locale: 'en-GB', zone: 'UTC' };
const AMERICAN = { locale: 'en-US', zone: 'UTC' };
const HOUR = 3_600_000;
/** What stands before AM and PM differs between versions of ICU. */
const plain = (text: string) => text.replaceAll(/\s/g, ' ');

test('the clock has 24 hours where the locale of the viewer says so, and 12 where it does not', () => {
  assert.equal(tickText(AT, HOUR, BRITISH), '15:05');
  assert.equal(tickText(AT, HOUR, BERLIN), '17:05');
  assert.equal(plain(tickText(AT, HOUR, AMERICAN)), '03:05 PM');
  assert.match(momentText(AT, BRITISH), /15:05:09/);
  assert.match(plain(momentText(AT, AMERICAN)), /03:05:09 PM/);
});

test('a mark says as much of the time as tells it from the next one', () => {
  assert.equal(tickText(AT, 10, BRITISH), '05:09.250');
  assert.equal(tickText(AT, 1_000, BRITISH), '15:05:09');
  assert.equal(tickText(AT, 24 * HOUR, BRITISH), '1 Jul');
});

test('marks name the day once, and again where another one begins', () => {
  const evening = Date.parse('2026-07-01T22:00:00Z');
  const ticks = [0, 1, 2, 3].map((hours) => evening + hours * HOUR);
  assert.deepEqual(tickTexts(ticks, HOUR, BRITISH), [
    '22:00\n1 Jul',
    '23:00',
    '00:00\n2 Jul',
    '01:00',
  ]);
  assert.deepEqual(tickTexts([evening], 24 * HOUR, BRITISH), ['1 Jul']);
});
