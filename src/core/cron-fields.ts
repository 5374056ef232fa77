/** Cron expressions as sets of values (docs/cron.md). */

/** Values in ascending order. A moment matches when each of its parts is among them. */
export interface CronFields {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** Of the month, from 1. */
  readonly days: readonly number[];
  /** From 1. */
  readonly months: readonly number[];
  /** 0 is Sunday, 6 Saturday. */
  readonly weekdays: readonly number[];
  readonly years: readonly ValueRange[];
}

export interface ValueRange {
  readonly first: number;
  readonly last: number;
  readonly step: number;
}

export type ParsedCron =
  | { readonly ok: true; readonly fields: CronFields }
  /** `message` begins with the name of the field of the request. */
  | { readonly ok: false; readonly message: string };

export const YEAR_MIN = 1970;
/** Nobody plans beyond it, and the search for a day that never comes ends there. */
export const YEAR_MAX = 2999;

/** A Map, since an object would find `constructor`, too. */
const SHORTHANDS: ReadonlyMap<string, string> = new Map([
  ['@hourly', '0 0 * * * ? *'],
  ['@daily', '0 0 0 * * ? *'],
  ['@weekly', '0 0 0 ? * SUN *'],
  ['@monthly', '0 0 0 1 * ? *'],
  ['@yearly', '0 0 0 1 1 ? *'],
]);

/** A field of an expression. */
interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The value of a number or a name; NaN when there is none. */
  readonly read: (text: string) => number;
  /** A range may lead over the end. */
  readonly isCircular?: true;
}

const MONTHS = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ');
const WEEKDAYS = 'SUN MON TUE WED THU FRI SAT'.split(' ');

const SECOND: Field = { name: 'second', min: 0, max: 59, read: Number };
const MINUTE: Field = { name: 'minute', min: 0, max: 59, read: Number };
const HOUR: Field = { name: 'hour', min: 0, max: 23, read: Number };
const DAY: Field = { name: 'day', min: 1, max: 31, read: Number };
const MONTH: Field = {
  name: 'month',
  min: 1,
  max: 12,
  read: (text) => MONTHS.indexOf(text) + 1 || Number(text),
};
/** Of five fields: Sunday is 0 as well as 7. */
const WEEKDAY: Field = {
  name: 'day of the week',
  min: 0,
  max: 6,
  read: (text) => weekdayOf(text, 0, 7),
  isCircular: true,
};
/** Of six and seven fields. */
const WEEKDAY_FROM_ONE: Field = { ...WEEKDAY, read: (text) => weekdayOf(text, 1, 7) };
const YEAR: Field = { name: 'year', min: YEAR_MIN, max: YEAR_MAX, read: Number };

/** As many as the largest field has values; more would only repeat some. */
const ITEMS_MAX = 60;

const ITEM = /^(?:([*?])|(\d{1,4}|[A-Z]{3})(?:-(\d{1,4}|[A-Z]{3}))?)(?:\/(\d{1,4}))?$/;

class CronError extends Error {}

/** Reads an expression of five, six or seven fields, or a shorthand such as `@daily`. */
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
  const [second, minute, hour, day, month, weekday, year = '*'] = atoms as [string, ...string[]];
  return {
    seconds: valuesOf(SECOND, second),
    minutes: valuesOf(MINUTE, minute),
    hours: valuesOf(HOUR, hour),
    days: valuesOf(DAY, day),
    months: valuesOf(MONTH, month),
    weekdays: valuesOf(count === 5 ? WEEKDAY : WEEKDAY_FROM_ONE, weekday),
    years: rangesOf(YEAR, year),
  };
}

function valuesOf(field: Field, atom: string | undefined): readonly number[] {
  const values = new Set<number>();
  for (const { first, last, step } of rangesOf(field, atom)) {
    for (let value = first; value <= last; value += step) {
      values.add(value > field.max ? value - WEEKDAYS.length : value);
    }
  }
  return [...values].sort((a, b) => a - b);
}

function rangesOf(field: Field, atom = ''): ValueRange[] {
  const items = [...new Set(atom.split(','))];
  if (items.length > ITEMS_MAX) throw new CronError(`lists too many values for the ${field.name}`);
  return items.map((item) => {
    const range = rangeOf(field, item);
    if (range !== undefined) return range;
    throw new CronError(`has a value for the ${field.name} that cannot be read: "${item}"`);
  });
}

function rangeOf(field: Field, item: string): ValueRange | undefined {
  const parts = ITEM.exec(item);
  if (parts === null) return undefined;
  const [, wildcard, from = '', to, stepText] = parts;
  const { min, max, read } = field;
  const isOpen = wildcard !== undefined || (to === undefined && stepText !== undefined);
  const first = wildcard === undefined ? read(from) : min;
  const last = isOpen ? max : read(to ?? from);
  // Of a single day, which one may write as a range, a step says nothing.
  const isSingleDay = field.isCircular === true && from === to;
  const step = isSingleDay ? 1 : Number(stepText ?? 1);
  if (!(first >= min && first <= max && last >= min && last <= max && step > 0)) return undefined;
  if (field.isCircular === true && to !== undefined && !isSingleDay) {
    return rangeOfDays(first, last, to === '7', step);
  }
  return first <= last ? { first, last, step } : undefined;
}

/** Sunday is the end of the week as well as its beginning; steps do not lead over it. */
function rangeOfDays(
  first: number,
  last: number,
  isSeven: boolean,
  step: number,
): ValueRange | undefined {
  const isAround = last < first || (last === 0 && isSeven);
  const end = isAround ? last + WEEKDAYS.length : last;
  return end > WEEKDAYS.length && step !== 1 ? undefined : { first, last: end, step };
}

/** 0 is Sunday. */
function weekdayOf(text: string, sunday: number, most: number): number {
  const named = WEEKDAYS.indexOf(text);
  if (named >= 0) return named;
  const number = Number(text);
  return number >= sunday && number <= most ? (number - sunday) % WEEKDAYS.length : Number.NaN;
}
