/** The functions of conditions and templates, and the conversions of format_date. */

import { DATE_CONVERSIONS } from '../../src/core/expression/dates.js';
import { FUNCTION_NAMES } from '../../src/core/expression/functions.js';
import { TEMPLATE_FUNCTIONS } from '../../src/core/expression/template-syntax.js';
import { type Described, evaluated, exampleTable, over } from './evaluated.js';
import { code, flatJson, table } from './markdown.js';
import type { Regions } from './regions.js';
import { rowsFor } from './rows.js';

const PAID = { paid: '2026-03-14T09:30:15Z' };

const FUNCTIONS: Readonly<Record<string, Described>> = {
  abs: {
    forms: ['abs(number)'],
    does: 'The absolute value; null for other types.',
    examples: [...over({ change: -3 }, 'abs(change)'), ...over({ change: 'up' }, 'abs(change)')],
  },
  len: {
    forms: ['len(value)'],
    does: 'The number of members of an array or object, or of UTF-8 bytes of a string. Else null.',
    examples: [
      ...over({ items: ['tea', 'milk'] }, 'len(items)'),
      ...over({ name: 'Zoë' }, 'len(name)'),
      ...over({ total: 12 }, 'len(total)'),
    ],
  },
  json: {
    forms: ['json(value)'],
    does: 'The value as compact JSON.',
    examples: over({ item: { id: 7, tags: ['new'] } }, 'json(item)'),
  },
  now: {
    forms: ['now()'],
    does: 'The engine time in UTC; the same in a replay.',
    examples: over({}, 'now()'),
  },
  uuid: {
    forms: ['uuid()'],
    does: 'A random id; the same in a replay.',
    examples: over({}, 'uuid()'),
  },
  random: {
    forms: ['random(min, max)'],
    does: 'A random number; for two integers an integer, both ends included. Without arguments: at least 0 and less than 1.',
    examples: over({}, 'random(1, 6)', 'random()'),
  },
  format_date: {
    forms: ['format_date(time, format)'],
    does: 'Formats a time such as 2026-03-14T09:30:15Z with [these letters](#dates); null for other values.',
    examples: [
      ...over(PAID, 'format_date(paid, "%d.%m.%Y %H:%M")'),
      ...over({ paid: 'yesterday' }, 'format_date(paid, "%Y")'),
    ],
  },
  day_of_week: {
    forms: ['day_of_week(time)'],
    does: 'The day of the week: 0 is Monday.',
    examples: over(PAID, 'day_of_week(paid)', 'day_of_week(paid) < 5'),
  },
  keys: {
    forms: ['keys(object)'],
    does: 'The names of the members.',
    examples: over({ prices: { tea: 3, milk: 2 } }, 'keys(prices)'),
  },
  values: {
    forms: ['values(object)'],
    does: 'The values of the members.',
    examples: over({ prices: { tea: 3, milk: 2 } }, 'sum(values(prices))'),
  },
  contains: {
    forms: ['contains(whole, part)'],
    does: 'Whether a string has the part, an array the member, or an object the key.',
    examples: [
      ...over({ note: 'please hurry' }, 'contains(note, "hurry")'),
      ...over({ tags: ['new', 'paid'] }, 'contains(tags, "paid")'),
      ...over({ address: { city: 'Rome' } }, 'contains(address, "city")'),
    ],
  },
  starts_with: {
    forms: ['starts_with(text, part)'],
    does: 'Whether the string starts with the part; null for other types.',
    examples: [
      ...over({ sku: 'tea-12' }, 'starts_with(sku, "tea")'),
      ...over({ sku: 12 }, 'starts_with(sku, "1")'),
    ],
  },
  ends_with: {
    forms: ['ends_with(text, part)'],
    does: 'Whether the string ends with the part.',
    examples: over({ file: 'bill.pdf' }, 'ends_with(file, ".pdf")'),
  },
  sum: {
    forms: ['sum(array)', 'sum(a, b, …)'],
    does: 'The sum; null if a member is not a number.',
    examples: [
      ...over({ prices: [3, 2.5] }, 'sum(prices)'),
      ...over({ tea: 3, milk: 2 }, 'sum(tea, milk)'),
      ...over({ prices: [3, 'free'] }, 'sum(prices)'),
    ],
  },
  avg: {
    forms: ['avg(array)', 'avg(a, b, …)'],
    does: 'The mean; null for an empty array.',
    examples: [...over({ marks: [1, 2, 6] }, 'avg(marks)'), ...over({ marks: [] }, 'avg(marks)')],
  },
  min: {
    forms: ['min(array)', 'min(a, b, …)'],
    does: 'The smallest number.',
    examples: over({ prices: [3, 2.5] }, 'min(prices)', 'min(prices.0, 1)'),
  },
  max: {
    forms: ['max(array)', 'max(a, b, …)'],
    does: 'The largest number.',
    examples: over({ prices: [3, 2.5] }, 'max(prices)'),
  },
  first: {
    forms: ['first(array)'],
    does: 'The first member; null for an empty array.',
    examples: over({ items: ['tea', 'milk'] }, 'first(items)'),
  },
  last: {
    forms: ['last(array)'],
    does: 'The last member; null for an empty array.',
    examples: over({ items: ['tea', 'milk'] }, 'last(items)'),
  },
  slice: {
    forms: ['slice(value, from, to)'],
    does: 'The part of an array or string from index `from`, before `to` or up to the end. Negative indexes count from the end.',
    examples: [
      ...over({ items: ['tea', 'milk', 'jam'] }, 'slice(items, 0, 2)', 'slice(items, -1)'),
      ...over({ sku: 'tea-12' }, 'slice(sku, 0, 3)'),
    ],
  },
  sort: {
    forms: ['sort(array)', 'sort(array, "desc")'],
    does: 'The sorted array, smallest or largest first.',
    examples: over({ prices: [3, 10, 2] }, 'sort(prices)', 'sort(prices, "desc")'),
  },
  unique: {
    forms: ['unique(array)'],
    does: 'The array without duplicates.',
    examples: over({ tags: ['a', 'b', 'a'] }, 'unique(tags)'),
  },
  count: {
    forms: ['count(array)'],
    does: 'The number of members of an array; null for other types.',
    examples: over({ items: ['tea', 'milk'] }, 'count(items)', 'count("tea")'),
  },
  change_pct: {
    forms: ['change_pct(from, to)'],
    does: 'The change from `from` to `to` in percent; null if `from` is 0.',
    examples: over({ before: 80, after: 100 }, 'change_pct(before, after)'),
  },
  clamp: {
    forms: ['clamp(number, low, high)'],
    does: 'The number, limited to `low` … `high`.',
    examples: over({ wish: 250 }, 'clamp(wish, 1, 100)'),
  },
};

const IN_TEMPLATES: { readonly [Name in (typeof TEMPLATE_FUNCTIONS)[number]]: Described } = {
  json: {
    forms: ['{{ json(path) }}'],
    does: 'The value as compact JSON.',
    examples: over({ item: { id: 7 } }, '{{ json(data.item) }}'),
  },
  len: {
    forms: ['{{ len(path) }}'],
    does: 'As in conditions.',
    examples: over({ items: ['tea', 'milk'] }, '{{ len(data.items) }} things'),
  },
};

const CONVERSIONS: Readonly<Record<string, string>> = {
  Y: 'year',
  y: 'year, two digits',
  m: 'month',
  d: 'day of the month',
  e: 'day of the month, with a space before a single digit',
  j: 'day of the year',
  H: 'hour, 00 to 23',
  I: 'hour, 01 to 12',
  M: 'minute',
  S: 'second',
  f: 'milliseconds',
  p: 'AM or PM',
  A: 'day of the week',
  a: 'day of the week, short',
  B: 'month by name',
  b: 'month by name, short',
  u: 'day of the week, 1 is Monday',
  w: 'day of the week, 0 is Sunday',
  V: 'week of the year',
  G: 'year of that week',
  F: 'date, as %Y-%m-%d',
  T: 'time, as %H:%M:%S',
  R: 'time, as %H:%M',
  s: 'seconds since 1970',
  z: 'offset from UTC',
  Z: 'offset from UTC, or UTC',
  '%': 'a percent sign',
};

export function functionRegions(): Regions {
  return {
    functions: exampleTable('function', rowsFor('function', FUNCTION_NAMES, FUNCTIONS)),
    'template-functions': exampleTable(
      'function',
      rowsFor('function of templates', TEMPLATE_FUNCTIONS, IN_TEMPLATES),
    ),
    dates: table(
      ['letter', 'inserts', `for ${PAID.paid}`],
      rowsFor('letter of format_date', DATE_CONVERSIONS, CONVERSIONS).map(([letter, words]) => {
        const text = `format_date(paid, "%${letter}")`;
        const given = evaluated({ text, data: PAID });
        return [code(`%${letter}`), words, given.ok ? code(flatJson(given.value)) : given.message];
      }),
    ),
  };
}
