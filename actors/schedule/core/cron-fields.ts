/**
 * Parses cron expressions into sets of values (docs/cron.md). cron-parser parses single items only, because it has no
 * year, counts weekdays from 0 only, and refuses repeated values.
 */

import { CronExpressionParser } from 'cron-parser';

/** The matching values of each part of a time, in ascending order. */
export interface CronFields {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** Days of the month, from 1. */
  readonly days: readonly number[];
  /** From 1. */
  readonly months: readonly number[];
  /** 0 is Sunday, 6 Saturday. */
  readonly weekdays: readonly number[];
  readonly years: readonly YearRange[];
}

export type YearRange = { readonly first: number; readonly last: number; readonly step: number };

export type ParsedCron =
  | { readonly ok: true; readonly fields: CronFields }
  /** `message` begins with the name of the field of the request. */
  | { readonly ok: false; readonly message: string };

export const YEAR_MIN = 1970;
/** The end of the search for a day that may not exist. */
export const YEAR_MAX = 2999;

/** A Map, because an object would also have the key `constructor`. */
const SHORTHANDS: ReadonlyMap<string, string> = new Map([
  ['@hourly', '0 0 * * * ? *'],
  ['@daily', '0 0 0 * * ? *'],
  ['@weekly', '0 0 0 ? * SUN *'],
  ['@monthly', '0 0 0 1 * ? *'],
  ['@yearly', '0 0 0 1 1 ? *'],
]);

/** The fields of cron-parser in its order, each with its name in messages. */
const PARTS = [
  ['second', 'second'],
  ['minute', 'minute'],
  ['hour', 'hour'],
  ['dayOfMonth', 'day'],
  ['month', 'month'],
  ['dayOfWeek', 'day of the week'],
] as const;

type Part = 0 | 1 | 2 | 3 | 4 | 5;
const WEEKDAY = 5;

/** The number of values of the largest field; more items would only repeat values. */
const ITEMS_MAX = 60;
const ITEM = /^(?:([*?])|(\d{1,4}|[A-Z]{3})(?:-(\d{1,4}|[A-Z]{3}))?)(?:\/(\d{1,4}))?$/;

class CronError extends Error {}

/** Parses an expression of five, six or seven fields, or a shorthand such as `@daily`. */
export function parseCron(expression: string): ParsedCron {
  try {
    return { ok: true, fields: fieldsOf(expression) };
  } catch (error) {
    if (!(error instanceof CronError)) throw error;
    return { ok: false, message: `cron_expr ${error.message}` };
  }
}

function fieldsOf(expression: string): CronFields {
  const text = expression.trim();
  const whole = SHORTHANDS.get(text.toLowerCase()) ?? text;
  const atoms = whole.toUpperCase().split(/\s+/);
  const count = atoms.length;
  if (count < 5 || count > 7) {
    throw new CronError('must have seven fields, or six, five, or be a shorthand such as @daily');
  }
  if (count === 5) atoms.unshift('0');
  const isFromOne = count > 5;
  const [second, minute, hour, day, month, weekday, year = '*'] = atoms as [string, ...string[]];
  return {
    seconds: valuesOf(0, second),
    minutes: valuesOf(1, minute),
    hours: valuesOf(2, hour),
    days: valuesOf(3, day),
    months: valuesOf(4, month),
    weekdays: valuesOf(WEEKDAY, weekday, (item) => plainWeekdays(item, isFromOne)),
    years: itemsOf('year', year).map(yearRange),
  };
}

function itemsOf(name: string, atom = ''): string[] {
  const items = [...new Set(atom.split(','))];
  if (items.length > ITEMS_MAX) throw new CronError(`lists too many values for the ${name}`);
  for (const item of items) if (!ITEM.test(item)) throw unreadable(name, item);
  return items;
}

function unreadable(name: string, item: string): CronError {
  return new CronError(`has a value for the ${name} that cannot be read: "${item}"`);
}

/** @param plain converts an item to cron-parser's syntax */
function valuesOf(
  part: Part,
  atom: string | undefined,
  plain: (item: string) => readonly string[] = (item) => [item],
): readonly number[] {
  const lists = itemsOf(PARTS[part][1], atom).map((item) => {
    try {
      return plain(item).map((text) => valuesOfItem(part, text));
    } catch {
      // Any error of cron-parser is about the text of this item.
      throw unreadable(PARTS[part][1], item);
    }
  });
  const all = lists.flat();
  return all.length === 1 ? (all[0] as readonly number[]) : ascending(all.flat());
}

/** A cache, because parsing an item takes some 50 µs, and schedules use few different items. */
const knownItems = new Map<string, readonly number[]>();
const KNOWN_ITEMS_MAX = 5_000;

/** @throws Error for an invalid item */
function valuesOfItem(part: Part, item: string): readonly number[] {
  const key = `${part} ${item}`;
  const known = knownItems.get(key);
  if (known !== undefined) return known;
  const atoms = PARTS.map((_, index) => (index === part ? item : '*'));
  const options = { currentDate: new Date(0), tz: 'UTC' };
  const { fields } = CronExpressionParser.parse(atoms.join(' '), options);
  const read = fields[PARTS[part][0]].values.map(Number);
  const values = ascending(part === WEEKDAY ? read.map((value) => value % 7) : read);
  if (knownItems.size < KNOWN_ITEMS_MAX) knownItems.set(key, values);
  return values;
}

function ascending(values: readonly number[]): readonly number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

/** Weekdays as 0 … 6 from Sunday. A range over the end of the week becomes two ranges. */
function plainWeekdays(item: string, isFromOne: boolean): readonly string[] {
  const [, wildcard, from, to, step = '1'] = ITEM.exec(item) ?? [];
  if (wildcard !== undefined) return [item];
  const first = weekday(from, isFromOne);
  if (to === undefined) return item.includes('/') ? [`${first}-6/${step}`] : [String(first)];
  if (from === to) return [String(first)];
  const last = weekday(to, isFromOne);
  // Sunday is both the end and the beginning of the week.
  if (last === 0 && (first > 0 || to === '7')) return [`${first}-7/${step}`];
  if (first <= last) return [`${first}-${last}/${step}`];
  if (step !== '1') throw new CronError('steps over the end of the week');
  return [`${first}-6`, `0-${last}`];
}

/** 0 is Sunday. */
function weekday(text = '', isFromOne: boolean): number {
  const named = WEEKDAYS.indexOf(text);
  if (named >= 0) return named;
  const number = Number(text) - (isFromOne ? 1 : 0);
  const max = isFromOne ? 6 : 7;
  if (!(number >= 0 && number <= max)) throw new CronError('is no day of the week');
  return number % 7;
}

function yearRange(item: string): YearRange {
  const [, wildcard, from, to, stepText] = ITEM.exec(item) ?? [];
  const first = wildcard === undefined ? Number(from) : YEAR_MIN;
  const isOpen = wildcard !== undefined || (to === undefined && stepText !== undefined);
  const last = isOpen ? YEAR_MAX : Number(to ?? from);
  const step = Number(stepText ?? 1);
  const isRange = first >= YEAR_MIN && first <= last && last <= YEAR_MAX && step > 0;
  if (!isRange) throw unreadable('year', item);
  return { first, last, step };
}
