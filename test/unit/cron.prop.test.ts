/**
 * Random expressions in random zones, held against croner, which was written by others. Its rules
 * differ from ours where clocks are changed, and those times are left out: in a gap it moves what is
 * no single time by the gap's width instead of to its end; and what comes twice it repeats for every
 * expression that is no single time, we for those of every hour. `test/unit/cron.test.ts` has them.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cron } from 'croner';
import fc from 'fast-check';
import { IANAZone } from 'luxon';
import { nextFire, nextFires } from '../../src/core/cron.js';
import { type CronFields, parseCron } from '../../src/core/cron-fields.js';
import { byDepth } from '../helpers/depth.js';
import { check, isWholeRun } from '../helpers/properties.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const zone = fc.constantFrom(
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Africa/Casablanca',
  'America/Santiago',
  'Asia/Kathmandu',
  'Pacific/Apia',
);

const MONTHS = 'JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC'.split(',');
const WEEKDAYS = 'SUN,MON,TUE,WED,THU,FRI,SAT'.split(',');

/** One field: what both libraries read the same way. */
function field(min: number, max: number, names: readonly string[] = []): fc.Arbitrary<string> {
  const number = fc.integer({ min, max });
  const value = number.chain((n) => fc.constantFrom(String(n), names[n - min] ?? String(n)));
  const range = fc.tuple(number, number).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: max - min });
  const item = fc.oneof(
    value,
    range,
    fc.tuple(range, step).map(([text, by]) => `${text}/${by}`),
    step.map((by) => `*/${by}`),
  );
  const list = fc.uniqueArray(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(','));
  return fc.oneof({ weight: 2, arbitrary: fc.constant('*') }, { weight: 3, arbitrary: list });
}

/** Mostly small parts of a day, so that many expressions fire rarely. */
const expression = fc
  .tuple(
    fc.oneof(fc.constant('0'), field(0, 59)),
    field(0, 59),
    field(0, 23),
    field(1, 31),
    field(1, 12, MONTHS),
    field(1, 7, WEEKDAYS),
    fc.constantFrom('*', '*', '2027-2029', '2028', '*/2', '2026,2031'),
  )
  .map((fields) => fields.join(' '));

const start = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2030, 0, 1) });

const ORACLE = {
  mode: '7-part',
  domAndDow: true,
  alternativeWeekdays: true,
  paused: true,
} as const;
const FIRES = 12;

function fieldsOf(text: string): CronFields {
  const parsed = parseCron(text);
  assert.ok(parsed.ok, text);
  return parsed.fields;
}

/** Fires around a change of clocks that the two see differently. */
function isDisputed(timezone: string, { hours, minutes, seconds }: CronFields, at: number) {
  const local = IANAZone.create(timezone);
  const [before, behind] = [local.offset(at - DAY_MS), local.offset(at + DAY_MS)];
  if (before === behind) return false;
  const isSingle = hours.length * minutes.length * seconds.length === 1;
  return before < behind || !(isSingle || hours.length === 24);
}

test('fires are those that croner finds', (t) => {
  let compared = 0;
  check(t, byDepth(120, 600), fc.tuple(expression, zone, start), ([text, timezone, from]) => {
    const fields = fieldsOf(text);
    const found = nextFires(fields, timezone, from, FIRES);
    const until = found.length < FIRES ? Number.POSITIVE_INFINITY : (found.at(-1) as number);
    const expected = new Cron(text, { ...ORACLE, timezone })
      .nextRuns(2 * FIRES, new Date(from))
      .map((date) => date.getTime());
    const shared = (times: readonly number[]) =>
      times.filter((at) => at <= until && !isDisputed(timezone, fields, at));
    assert.deepEqual(shared(found), shared(expected).slice(0, shared(found).length));
    compared += shared(found).length;
  });
  t.diagnostic(`${compared} fires compared`);
  if (isWholeRun) assert.ok(compared > byDepth(300, 1_500));
});

test('fires are whole seconds, in order, and none is passed over by whoever asks later', (t) => {
  const ahead = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  check(
    t,
    byDepth(250, 1_000),
    fc.tuple(expression, zone, start, ahead),
    ([text, timezone, from, part]) => {
      const fields = fieldsOf(text);
      const [first, second] = nextFires(fields, timezone, from, 2);
      if (first === undefined || second === undefined) return;
      assert.ok(first > from && second > first);
      assert.equal(first % 1_000, 0);
      const between = from + Math.floor((first - from) * part);
      assert.equal(nextFire(fields, timezone, between), first);
      assert.equal(nextFire(fields, timezone, first + Math.floor((second - first) * part)), second);
    },
  );
});

test('whatever is written is read or refused, and the search always ends', (t) => {
  const atom = fc.stringMatching(/^[0-9A-Za-z*?,/#LW-]{1,12}$/);
  const wild = fc.array(fc.oneof(atom, field(0, 59)), { minLength: 4, maxLength: 8 });
  check(t, byDepth(1_000, 3_000), fc.tuple(wild, zone, start), ([atoms, timezone, from]) => {
    const parsed = parseCron(atoms.join(' '));
    if (!parsed.ok) return;
    const at = nextFire(parsed.fields, timezone, from);
    assert.ok(at === null || at > from);
  });
});
