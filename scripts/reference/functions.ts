/** The functions of conditions, the two of templates, and what format_date puts in. */

import { DATE_CONVERSIONS } from '../../src/core/expression/dates.js';
import { FUNCTION_NAMES } from '../../src/core/expression/functions.js';
import { TEMPLATE_FUNCTIONS } from '../../src/core/expression/template-syntax.js';
import { evaluated, over, type Told, toldTable } from './evaluated.js';
import { code, flatJson, table } from './markdown.js';
import type { Regions } from './regions.js';
import { rowsFor } from './rows.js';

const PAID = { paid: '2026-03-14T09:30:15Z' };

const FUNCTIONS: Readonly<Record<string, Told>> = {
  abs: {
    forms: ['abs(number)'],
    does: 'The number without its sign. Null for what is no number.',
    examples: [...over({ change: -3 }, 'abs(change)'), ...over({ change: 'up' }, 'abs(change)')],
  },
  len: {
    forms: ['len(value)'],
    does: 'Of an array or object, how many members it has. Of a text, its bytes as UTF-8, so that a letter beyond ASCII counts as more than one. Else null.',
    examples: [
      ...over({ items: ['tea', 'milk'] }, 'len(items)'),
      ...over({ name: 'Zoë' }, 'len(name)'),
      ...over({ total: 12 }, 'len(total)'),
    ],
  },
  json: {
    forms: ['json(value)'],
    does: 'The value as a text of compact JSON.',
    examples: over({ item: { id: 7, tags: ['new'] } }, 'json(item)'),
  },
  now: {
    forms: ['now()'],
    does: 'The time of the engine, in UTC. A replay sees the same time.',
    examples: over({}, 'now()'),
  },
  uuid: {
    forms: ['uuid()'],
    does: 'A new random id. A replay sees the same one.',
    examples: over({}, 'uuid()'),
  },
  random: {
    forms: ['random(min, max)'],
    does: 'A random number. With two whole numbers: a whole one, both ends included. Without arguments: from 0 up to, but not, 1.',
    examples: over({}, 'random(1, 6)', 'random()'),
  },
  format_date: {
    forms: ['format_date(time, format)'],
    does: 'The time as a text; [the table below](#dates) has the letters. The time is a text such as 2026-03-14T09:30:15Z; null for any other.',
    examples: [
      ...over(PAID, 'format_date(paid, "%d.%m.%Y %H:%M")'),
      ...over({ paid: 'yesterday' }, 'format_date(paid, "%Y")'),
    ],
  },
  day_of_week: {
    forms: ['day_of_week(time)'],
    does: 'The day as a number: 0 is Monday, 6 is Sunday.',
    examples: over(PAID, 'day_of_week(paid)', 'day_of_week(paid) < 5'),
  },
  keys: {
    forms: ['keys(object)'],
    does: 'The names of the members, as an array.',
    examples: over({ prices: { tea: 3, milk: 2 } }, 'keys(prices)'),
  },
  values: {
    forms: ['values(object)'],
    does: 'The values of the members, as an array.',
    examples: over({ prices: { tea: 3, milk: 2 } }, 'sum(values(prices))'),
  },
  contains: {
    forms: ['contains(whole, part)'],
    does: 'Whether a text has a part, an array a member, or an object a key.',
    examples: [
      ...over({ note: 'please hurry' }, 'contains(note, "hurry")'),
      ...over({ tags: ['new', 'paid'] }, 'contains(tags, "paid")'),
      ...over({ address: { city: 'Rome' } }, 'contains(address, "city")'),
    ],
  },
  starts_with: {
    forms: ['starts_with(text, part)'],
    does: 'Whether the text begins with the part. Null if one of them is no text.',
    examples: [
      ...over({ sku: 'tea-12' }, 'starts_with(sku, "tea")'),
      ...over({ sku: 12 }, 'starts_with(sku, "1")'),
    ],
  },
  ends_with: {
    forms: ['ends_with(text, part)'],
    does: 'Whether the text ends with the part.',
    examples: over({ file: 'bill.pdf' }, 'ends_with(file, ".pdf")'),
  },
  sum: {
    forms: ['sum(array)', 'sum(a, b, …)'],
    does: 'The sum. Null if a member is no number.',
    examples: [
      ...over({ prices: [3, 2.5] }, 'sum(prices)'),
      ...over({ tea: 3, milk: 2 }, 'sum(tea, milk)'),
      ...over({ prices: [3, 'free'] }, 'sum(prices)'),
    ],
  },
  avg: {
    forms: ['avg(array)', 'avg(a, b, …)'],
    does: 'The mean. Null for an empty array.',
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
    does: 'The first member. Null for an empty array.',
    examples: over({ items: ['tea', 'milk'] }, 'first(items)'),
  },
  last: {
    forms: ['last(array)'],
    does: 'The last member. Null for an empty array.',
    examples: over({ items: ['tea', 'milk'] }, 'last(items)'),
  },
  slice: {
    forms: ['slice(value, from, to)'],
    does: 'A part of an array or text. The first place is 0, and `to` is left out; without `to`, up to the end. Negative places count from the end.',
    examples: [
      ...over({ items: ['tea', 'milk', 'jam'] }, 'slice(items, 0, 2)', 'slice(items, -1)'),
      ...over({ sku: 'tea-12' }, 'slice(sku, 0, 3)'),
    ],
  },
  sort: {
    forms: ['sort(array)', 'sort(array, "desc")'],
    does: 'The array in order, smallest first, or largest first.',
    examples: over({ prices: [3, 10, 2] }, 'sort(prices)', 'sort(prices, "desc")'),
  },
  unique: {
    forms: ['unique(array)'],
    does: 'The array, with the first of each set of equal members only.',
    examples: over({ tags: ['a', 'b', 'a'] }, 'unique(tags)'),
  },
  count: {
    forms: ['count(array)'],
    does: 'How many members an array has. Null for anything else.',
    examples: over({ items: ['tea', 'milk'] }, 'count(items)', 'count("tea")'),
  },
  change_pct: {
    forms: ['change_pct(from, to)'],
    does: 'By how many percent `to` is above `from`. Null if `from` is 0.',
    examples: over({ before: 80, after: 100 }, 'change_pct(before, after)'),
  },
  clamp: {
    forms: ['clamp(number, low, high)'],
    does: 'The number; `low` if it is smaller, `high` if it is larger.',
    examples: over({ wish: 250 }, 'clamp(wish, 1, 100)'),
  },
};

const IN_TEMPLATES: { readonly [Name in (typeof TEMPLATE_FUNCTIONS)[number]]: Told } = {
  json: {
    forms: ['{{ json(path) }}'],
    does: 'The value as a text of compact JSON.',
    examples: over({ item: { id: 7 } }, '{{ json(data.item) }}'),
  },
  len: {
    forms: ['{{ len(path) }}'],
    does: 'As `len` in conditions: members of an array or object, bytes of a text.',
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
  G: 'year to which that week belongs',
  F: 'date, as %Y-%m-%d',
  T: 'time, as %H:%M:%S',
  R: 'time, as %H:%M',
  s: 'seconds since 1970',
  z: 'offset from UTC',
  Z: 'offset from UTC, by name if it is none',
  '%': 'a percent sign',
};

export function functionRegions(): Regions {
  return {
    functions: toldTable('function', rowsFor('function', FUNCTION_NAMES, FUNCTIONS)),
    'template-functions': toldTable(
      'function',
      rowsFor('function of templates', TEMPLATE_FUNCTIONS, IN_TEMPLATES),
    ),
    dates: table(
      ['letter', 'puts in', `for ${PAID.paid}`],
      rowsFor('letter of format_date', DATE_CONVERSIONS, CONVERSIONS).map(([letter, words]) => {
        const text = `format_date(paid, "%${letter}")`;
        const given = evaluated({ text, data: PAID });
        return [code(`%${letter}`), words, given.ok ? code(flatJson(given.value)) : given.message];
      }),
    ),
  };
}
