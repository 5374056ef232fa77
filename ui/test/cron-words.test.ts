/** Cron expressions in words, in the dialect of the server. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cronWords } from '../src/pages/schedules/cron-words.ts';

const WORDS: readonly (readonly [string, string])[] = [
  ['* * * * *', 'Every minute'],
  ['*/15 * * * *', 'Every 15 minutes'],
  ['0 9 * * 1-5', 'At 09:00, Monday through Friday'],
  ['30 2 * * *', 'At 02:30'],
  ['0,30 9,17 * * *', 'At 0 and 30 minutes past the hour, at 09:00 and 17:00'],
  ['5 * * * *', 'At 5 minutes past the hour'],
  ['@hourly', 'Every hour'],
  ['@Daily', 'At 00:00'],
  ['@weekly', 'At 00:00, only on Sunday'],
  ['@yearly', 'At 00:00, on day 1 of the month, only in January'],
  ['*/10 8-18 * * *', 'Every 10 minutes, between 08:00 and 18:59'],
  ['0 */2 * * *', 'On the hour, every 2 hours'],
  // Weekdays count from 0 with five fields, and from 1 with more.
  ['0 0 * * 7', 'At 00:00, only on Sunday'],
  ['0 30 9 ? * 2-6 *', 'At 09:30, Monday through Friday'],
  ['0 30 9 ? * MON-fri *', 'At 09:30, Monday through Friday'],
  ['15 30 9 * * ?', 'At 09:30:15'],
  ['*/10 * * * * *', 'Every 10 seconds'],
  [
    '0 0 12 1,15 JAN,JUL ? 2030',
    'At 12:00, on day 1 and 15 of the month, only in January and July, only in 2030',
  ],
  // Both must match.
  ['0 0 13 * 5', 'At 00:00, on day 13 of the month, and on Friday'],
  ['0 0 1-31/2 * *', 'At 00:00, every 2 days in a month, between day 1 and 31 of the month'],
];

for (const [expression, words] of WORDS) {
  test(`${expression}: ${words}`, () => assert.equal(cronWords(expression), words));
}

test('what cannot be read has no words', () => {
  for (const expression of ['', 'daily', '61 * * * *', '* * * * XYZ', '*/0 * * * *', '* * * *']) {
    assert.equal(cronWords(expression), undefined, expression);
  }
});
