/** Cron expressions in words, in the dialect of the server. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cronWords } from '../src/pages/schedules/cron-words.ts';

const WORDS: readonly (readonly [string, string])[] = [
  ['* * * * *', 'Every minute'],
  ['*/15 * * * *', 'Every 15 minutes'],
  ['0 9 * * 1-5', 'At 09:00, on Monday to Friday'],
  ['30 2 * * *', 'At 02:30'],
  ['0,30 9,17 * * *', 'At 09:00, 09:30, 17:00 and 17:30'],
  ['5 * * * *', 'At minute 5, every hour'],
  ['@hourly', 'At minute 0, every hour'],
  ['@Daily', 'At 00:00'],
  ['@weekly', 'At 00:00, on Sunday'],
  ['@yearly', 'At 00:00, on day 1 of the month, in January'],
  ['*/10 8-18 * * *', 'Every 10 minutes, during 08:00–18:59'],
  ['0 */2 * * *', 'At minute 0, during every 2nd hour'],
  // Weekdays count from 0 with five fields, and from 1 with more.
  ['0 0 * * 7', 'At 00:00, on Sunday'],
  ['0 30 9 ? * 2-6 *', 'At 09:30, on Monday to Friday'],
  ['0 30 9 ? * MON-fri *', 'At 09:30, on Monday to Friday'],
  ['15 30 9 * * ?', 'At 09:30:15'],
  ['*/10 * * * * *', 'Every 10 seconds'],
  [
    '0 0 12 1,15 JAN,JUL ? 2030',
    'At 12:00, on day 1 and 15 of the month, in January and July, in 2030',
  ],
  // Both must match.
  ['0 0 13 * 5', 'At 00:00, on Friday, only on day 13 of the month'],
  ['0 0 1-31/2 * *', 'At 00:00, on every 2nd day from 1 to 31 of the month'],
];

for (const [expression, words] of WORDS) {
  test(`${expression}: ${words}`, () => assert.equal(cronWords(expression), words));
}

test('what cannot be read has no words', () => {
  for (const expression of ['', 'daily', '61 * * * *', '* * * * XYZ', '*/0 * * * *', '* * * *']) {
    assert.equal(cronWords(expression), undefined, expression);
  }
});
