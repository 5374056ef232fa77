/** Cron expressions: what they mean, what is refused, and when they fire where clocks are changed. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nextFire, nextFires } from '../../src/core/cron.js';
import { type CronFields, parseCron } from '../../src/core/cron-fields.js';
import { casesIn } from '../helpers/table.js';

function fieldsOf(expression: string): CronFields {
  const parsed = parseCron(expression);
  assert.ok(parsed.ok, `${expression}: ${parsed.ok ? '' : parsed.message}`);
  return parsed.fields;
}

/** The next fires after an instant, as texts without their milliseconds. */
function fires(expression: string, zone: string, after: string, count: number): string[] {
  return nextFires(fieldsOf(expression), zone, Date.parse(after), count).map((at) =>
    new Date(at).toISOString().replace('.000Z', 'Z'),
  );
}

const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('fields', () => {
  test('seven, six and five of them mean the same where they say the same', () => {
    const seven = fieldsOf('0 30 9 * * MON-FRI *');
    assert.deepEqual(fieldsOf('0 30 9 * * MON-FRI'), seven);
    assert.deepEqual(fieldsOf('30 9 * * MON-FRI'), seven);
    assert.deepEqual(fieldsOf('  0\t30 9  ? * mon-Fri  ? '), seven);
    assert.deepEqual(seven, {
      seconds: [0],
      minutes: [30],
      hours: [9],
      days: range(1, 31),
      months: range(1, 12),
      weekdays: range(1, 5),
      years: [{ first: 1970, last: 2999, step: 1 }],
    });
  });

  const CASES: readonly (readonly [string, keyof CronFields, readonly number[]])[] = [
    ['*/15 * * * * * *', 'seconds', [0, 15, 30, 45]],
    ['5/20 * * * * * *', 'seconds', [5, 25, 45]],
    ['0 10-20/5,12,12 * * * * *', 'minutes', [10, 12, 15, 20]],
    ['0 0 22,1-3,2-4 * * * *', 'hours', [1, 2, 3, 4, 22]],
    ['0 0 00,08 * * * *', 'hours', [0, 8]],
    ['0 0 0 */10 * * *', 'days', [1, 11, 21, 31]],
    ['0 0 0 30 2 ? *', 'days', [30]],
    ['0 0 0 * jan,Mar-MAY,12 * *', 'months', [1, 3, 4, 5, 12]],
    ['0 0 0 ? * SUN,TUE-THU *', 'weekdays', [0, 2, 3, 4]],
  ];
  for (const [expression, field, values] of CASES) {
    test(`${expression} has the ${field} ${values.join(' ')}`, () => {
      assert.deepEqual(fieldsOf(expression)[field], values);
    });
  }

  const YEARS: readonly (readonly [string, object])[] = [
    ['2030', { first: 2030, last: 2030, step: 1 }],
    ['2030-2034', { first: 2030, last: 2034, step: 1 }],
    ['2030/4', { first: 2030, last: 2999, step: 4 }],
    ['*/4', { first: 1970, last: 2999, step: 4 }],
  ];
  for (const [year, expected] of YEARS) {
    test(`the year ${year} is read`, () => {
      assert.deepEqual(fieldsOf(`0 0 0 1 1 ? ${year}`).years, [expected]);
    });
  }
});

describe('days of the week', () => {
  const SEVEN: readonly (readonly [string, readonly number[]])[] = [
    ['1', [0]],
    ['7', [6]],
    ['2-6', range(1, 5)],
    ['MON-6', range(1, 5)],
    ['2/2', [1, 3, 5]],
    ['3/5', [2]],
    ['*/2', [0, 2, 4, 6]],
    ['*/5', [0, 5]],
    ['SAT-SUN', [0, 6]],
    ['FRI-MON', [0, 1, 5, 6]],
    ['FRI-SUN/2', [0, 5]],
    ['7-1', [0, 6]],
    ['1-7', range(0, 6)],
    ['SUN-SUN', [0]],
    ['?', range(0, 6)],
  ];
  for (const [text, weekdays] of SEVEN) {
    test(`${text} in seven fields and in six`, () => {
      assert.deepEqual(fieldsOf(`0 0 0 ? * ${text} *`).weekdays, weekdays);
      assert.deepEqual(fieldsOf(`0 0 0 ? * ${text}`).weekdays, weekdays);
    });
  }

  const FIVE: readonly (readonly [string, readonly number[]])[] = [
    ['0', [0]],
    ['7', [0]],
    ['0,7', [0]],
    ['1-5', range(1, 5)],
    ['5-7', [0, 5, 6]],
    ['0-7', range(0, 6)],
    ['1/3', [1, 4]],
    ['SAT-SUN', [0, 6]],
  ];
  for (const [text, weekdays] of FIVE) {
    test(`${text} in five fields`, () => {
      assert.deepEqual(fieldsOf(`0 0 * * ${text}`).weekdays, weekdays);
    });
  }
});

test('shorthands stand for what they say, in any case', () => {
  const after = '2026-05-06T07:08:09Z';
  assert.deepEqual(fires('@hourly', 'UTC', after, 1), ['2026-05-06T08:00:00Z']);
  assert.deepEqual(fires('@daily', 'UTC', after, 1), ['2026-05-07T00:00:00Z']);
  assert.deepEqual(fires('@Weekly', 'UTC', after, 1), ['2026-05-10T00:00:00Z']);
  assert.deepEqual(fires('@monthly', 'UTC', after, 1), ['2026-06-01T00:00:00Z']);
  assert.deepEqual(fires('@YEARLY', 'UTC', after, 1), ['2027-01-01T00:00:00Z']);
});

describe('what is refused', () => {
  const REFUSED = [
    '',
    '*',
    '* * * *',
    '* * * * * * * *',
    '@reboot',
    'constructor',
    '__proto__',
    'toString',
    'soon',
    '60 * * * * * *',
    '0 60 * * * * *',
    '0 0 24 * * * *',
    '0 0 0 0 * * *',
    '0 0 0 32 * * *',
    '0 0 0 * 0 * *',
    '0 0 0 * 13 * *',
    '0 0 0 * JANFEB * *',
    '0 0 0 * FOO * *',
    '0 0 0 ? * 0 *',
    '0 0 0 ? * 8 *',
    '0 0 * * 8',
    '0 0 0 ? * FRI-MON/2 *',
    '0 0 0 ? * MON#2 *',
    '0 0 0 L * ? *',
    '0 0 0 15W * ? *',
    '0 0 0 1 1 ? 1969',
    '0 0 0 1 1 ? 3000',
    '0 0 0 1 1 ? 2031-2030',
    '0 0 0 1 1 ? 2030/0',
    '0 30-10 * * * * *',
    '0 */0 * * * * *',
    '0 ,1 * * * * *',
    '0 1,, * * * * *',
    '0 1- * * * * *',
    '0 -1 * * * * *',
    '0 1.5 * * * * *',
    '0 1e1 * * * * *',
    '0 H * * * * *',
    '0 **/2 * * * * *',
    `0 ${range(0, 99).join(',')} * * * * *`,
  ];
  for (const expression of REFUSED) {
    test(`"${expression.slice(0, 40)}"`, () => {
      const parsed = parseCron(expression);
      assert.ok(!parsed.ok);
      assert.match(parsed.message, /^cron_expr /);
    });
  }
});

describe('the calendar', () => {
  test('day and day of the week must both match', () => {
    assert.deepEqual(fires('0 0 12 13 * FRI *', 'UTC', '2026-01-01T00:00:00Z', 4), [
      '2026-02-13T12:00:00Z',
      '2026-03-13T12:00:00Z',
      '2026-11-13T12:00:00Z',
      '2027-08-13T12:00:00Z',
    ]);
  });

  test('leap days come every four years, but not in 2100', () => {
    assert.deepEqual(fires('0 0 0 29 2 ? *', 'UTC', '2095-01-01T00:00:00Z', 3), [
      '2096-02-29T00:00:00Z',
      '2104-02-29T00:00:00Z',
      '2108-02-29T00:00:00Z',
    ]);
    assert.deepEqual(fires('0 0 0 29 2 MON *', 'UTC', '2073-01-01T00:00:00Z', 2), [
      '2112-02-29T00:00:00Z',
      '2140-02-29T00:00:00Z',
    ]);
  });

  test('months without the day are passed over', () => {
    assert.deepEqual(fires('0 0 0 31 * ? *', 'UTC', '2026-01-31T00:00:00Z', 3), [
      '2026-03-31T00:00:00Z',
      '2026-05-31T00:00:00Z',
      '2026-07-31T00:00:00Z',
    ]);
  });

  test('years are honoured, and after the last one nothing fires', () => {
    const expression = '59 59 23 31 12 ? 2027,2030-2040/5';
    assert.deepEqual(fires(expression, 'UTC', '2026-01-01T00:00:00Z', 9), [
      '2027-12-31T23:59:59Z',
      '2030-12-31T23:59:59Z',
      '2035-12-31T23:59:59Z',
      '2040-12-31T23:59:59Z',
    ]);
    // The year is that of the zone's clocks.
    assert.deepEqual(fires('0 0 0 1 1 ? 2030', 'Asia/Tokyo', '2026-01-01T00:00:00Z', 2), [
      '2029-12-31T15:00:00Z',
    ]);
  });

  test('a fire is strictly after the instant that is asked about', () => {
    const fields = fieldsOf('30 * * * * * *');
    const at = Date.parse('2026-01-01T00:00:30.000Z');
    assert.equal(nextFire(fields, 'UTC', at - 1), at);
    assert.equal(nextFire(fields, 'UTC', at), at + 60_000);
    assert.equal(nextFire(fields, 'UTC', at + 0.5), at + 60_000);
  });

  for (const expression of ['0 0 0 30 2 ? *', '0 0 0 31 4,6,9,11 ? *', '0 0 0 29 2 ? 2097-2103']) {
    test(`${expression} never fires, and the search ends`, () => {
      assert.equal(nextFire(fieldsOf(expression), 'Europe/Berlin', Date.UTC(2026, 0, 1)), null);
    });
  }

  test('a day that is far away is found', () => {
    assert.deepEqual(fires('0 0 0 29 2 FRI 2900/1', 'UTC', '2026-01-01T00:00:00Z', 1), [
      '2904-02-29T00:00:00Z',
    ]);
  });
});

/** What fires after an instant: zone, expression, instant and the fires, each to the minute. */
function table(text: string): void {
  for (const [zone = '', expression = '', after = '', times = ''] of casesIn(text)) {
    const expected = times.split(' ').flatMap((time) => (time === '' ? [] : `${time}:00Z`));
    test(`${expression} in ${zone} after ${after}`, () => {
      assert.deepEqual(fires(expression, zone, after, expected.length || 1), expected);
    });
  }
}

describe('where clocks are put forward, skipped times fire once at the first minute after the gap', () => {
  table(`
# 02:00 → 03:00 on 29 March.
Europe/Berlin       | 0 30 2 * * ? *         | 2026-03-27T12:00:00Z | 2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30
# All that was skipped is one fire, which is also that of 03:00.
Europe/Berlin       | 0 */20 1-3 29 3 ? 2026 | 2026-03-29T00:30:00Z | 2026-03-29T00:40 2026-03-29T01:00 2026-03-29T01:20 2026-03-29T01:40
# Asked just before the gap, and at its end.
Europe/Berlin       | 15 59 2 29 3 ? 2026    | 2026-03-29T00:59:59Z | 2026-03-29T01:00
Europe/Berlin       | 15 59 2 29 3 ? 2026    | 2026-03-29T01:00:00Z |
# 02:00 → 03:00 on 8 March.
America/New_York    | 0 5 2 * * SUN *        | 2026-03-02T00:00:00Z | 2026-03-08T07:00 2026-03-15T06:05
# 02:00 → 02:30 on 4 October.
Australia/Lord_Howe | 0 10,40 2 4 10 ? 2026  | 2026-10-03T00:00:00Z | 2026-10-03T15:30 2026-10-03T15:40
# 00:00 → 01:00 on 6 September.
America/Santiago    | @daily                 | 2026-09-05T12:00:00Z | 2026-09-06T04:00 2026-09-07T03:00
# A whole day, the 30th of December, is left out.
Pacific/Apia        | 0 0 12 * 12 ? 2011     | 2011-12-29T00:00:00Z | 2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00
`);
});

describe('where clocks are put back, a fixed hour fires the first time only, and every hour each time', () => {
  table(`
# 03:00 → 02:00 on 25 October.
Europe/Berlin       | 0 30 2 * * ? *           | 2026-10-24T12:00:00Z | 2026-10-25T00:30 2026-10-26T01:30
# Asked between the two.
Europe/Berlin       | 0 30 2 * * ? *           | 2026-10-25T00:45:00Z | 2026-10-26T01:30
Europe/Berlin       | 0 30 2 * * ? *           | 2026-10-25T01:10:00Z | 2026-10-26T01:30
Europe/Berlin       | 0 0,30 1-3 25 10 ? 2026  | 2026-10-24T23:15:00Z | 2026-10-24T23:30 2026-10-25T00:00 2026-10-25T00:30 2026-10-25T02:00 2026-10-25T02:30
Europe/Berlin       | 0 0,30 * * * ? *         | 2026-10-25T00:10:00Z | 2026-10-25T00:30 2026-10-25T01:00 2026-10-25T01:30 2026-10-25T02:00
# 02:00 → 01:00 on 1 November.
America/New_York    | 0 15 1 * * ? *           | 2026-10-31T12:00:00Z | 2026-11-01T05:15 2026-11-02T06:15
America/New_York    | 0 45 * 1 11 ? *          | 2026-11-01T05:00:00Z | 2026-11-01T05:45 2026-11-01T06:45 2026-11-01T07:45
# 02:00 → 01:30 on 5 April: half an hour comes twice.
Australia/Lord_Howe | 0 0/15 * 5 4 ? 2026      | 2026-04-04T14:20:00Z | 2026-04-04T14:30 2026-04-04T14:45 2026-04-04T15:00 2026-04-04T15:15 2026-04-04T15:30
Australia/Lord_Howe | 0 0,30,45 1,2 5 4 ? 2026 | 2026-04-04T14:20:00Z | 2026-04-04T14:30 2026-04-04T14:45 2026-04-04T15:30
# 24:00 → 23:00 on 4 April, before midnight: the day has 25 hours.
America/Santiago    | 0 30 23 * * ? *          | 2026-04-04T12:00:00Z | 2026-04-05T02:30 2026-04-06T03:30
# 03:00 → 02:00 on 15 February, when Ramadan begins, and 02:00 → 03:00 on 22 March.
Africa/Casablanca   | 0 30 2 15,22 2,3 ? 2026  | 2026-02-14T12:00:00Z | 2026-02-15T01:30 2026-02-22T02:30 2026-03-15T02:30 2026-03-22T02:00
`);
});
