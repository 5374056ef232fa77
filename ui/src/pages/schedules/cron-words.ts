/**
 * A cron expression in words (docs/cron.md). The server checks expressions and computes their times; what cannot be read
 * here has no words. Pure.
 */

const SHORTHANDS: ReadonlyMap<string, string> = new Map([
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
]);

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  ...['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September'],
  ...['October', 'November', 'December'],
];

interface Item {
  /** Undefined: from the first value. */
  readonly from: number | undefined;
  /** Undefined: to the last value. Equal to `from`: one value. */
  readonly to: number | undefined;
  readonly step: number;
}

/** No items: every value. */
type Field = readonly Item[];

const ITEM = /^(?:([*?])|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/;

/** @returns undefined for an expression that cannot be read */
export function cronWords(expression: string): string | undefined {
  const text = expression.trim();
  const atoms = (SHORTHANDS.get(text.toLowerCase()) ?? text).split(/\s+/);
  if (atoms.length < 5 || atoms.length > 7) return undefined;
  const isFromOne = atoms.length > 5;
  if (!isFromOne) atoms.unshift('0');
  const [seconds, minutes, hours, days, months, weekdays, years] = [
    fieldOf(atoms[0], 59),
    fieldOf(atoms[1], 59),
    fieldOf(atoms[2], 23),
    fieldOf(atoms[3], 31, 1),
    fieldOf(atoms[4], 12, 1, (name) => indexOf(MONTHS, name, 1)),
    fieldOf(atoms[5], 7, isFromOne ? 1 : 0, (name) => indexOf(WEEKDAYS, name, isFromOne ? 1 : 0)),
    fieldOf(atoms[6] ?? '*', 2999, 1970),
  ];
  if (!seconds || !minutes || !hours || !days || !months || !weekdays || !years) return undefined;
  const weekday = (value: number) => WEEKDAYS[(value - (isFromOne ? 1 : 0)) % 7] ?? '';
  const parts = [
    timeOf(seconds, minutes, hours),
    weekdays.length > 0 && `on ${textOf(weekdays, weekday, 'weekday')}`,
    days.length > 0 &&
      `${weekdays.length > 0 ? 'only ' : ''}on ${textOf(days, String, 'day', 'day ')} of the month`,
    months.length > 0 && `in ${textOf(months, (value) => MONTHS[value - 1] ?? '', 'month')}`,
    years.length > 0 && `in ${textOf(years, String, 'year')}`,
  ];
  const words = parts.filter((part) => part !== false).join(', ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** Times of the day, as far as they are few; else each field by itself. */
function timeOf(seconds: Field, minutes: Field, hours: Field): string {
  const second = only(seconds);
  const [minuteValues, hourValues] = [valuesOf(minutes), valuesOf(hours)];
  if (second !== undefined && minuteValues && hourValues) {
    const times = hourValues.flatMap((hour) =>
      minuteValues.map((minute) =>
        [hour, minute, ...(second === 0 ? [] : [second])].map(twoDigits).join(':'),
      ),
    );
    if (times.length <= TIMES_MAX) return `at ${listOf(times)}`;
  }
  const ofSeconds = second === 0 ? '' : unitOf(seconds, 'second');
  // At second 0 of every minute is every minute.
  const isEachMinute = minutes.length === 0 && ofSeconds !== '';
  const ofMinutes = isEachMinute ? '' : unitOf(minutes, 'minute');
  const ofHours = hours.length === 0 ? hourly(minutes) : `during ${hoursOf(hours)}`;
  return [ofSeconds, ofMinutes, ofHours].filter((part) => part !== '').join(', ');
}

const TIMES_MAX = 6;
const twoDigits = (value: number) => String(value).padStart(2, '0');

/** `at minute 5` alone would not say of which hour. */
const hourly = (minutes: Field) =>
  minutes.length > 0 && minutes.some(({ from }) => from !== undefined) ? 'every hour' : '';

function unitOf(field: Field, unit: string): string {
  const [item, ...others] = field;
  if (item === undefined) return `every ${unit}`;
  if (item.from === undefined && others.length === 0) return `every ${item.step} ${unit}s`;
  return `at ${textOf(field, String, unit, `${unit} `)}`;
}

function hoursOf(field: Field): string {
  const [item, ...others] = field;
  if (item !== undefined && item.from === undefined && others.length === 0) {
    return `every ${ordinal(item.step)} hour`;
  }
  const span = ({ from = 0, to = 23, step }: Item) => {
    const range =
      from === to
        ? `${twoDigits(from)}:00–${twoDigits(from)}:59`
        : `${twoDigits(from)}:00–${twoDigits(to)}:59`;
    return step === 1 ? range : `every ${ordinal(step)} hour of ${range}`;
  };
  return listOf(field.map(span));
}

/** @param before stands before the first value, such as `minute ` */
function textOf(field: Field, nameOf: (value: number) => string, unit: string, before = '') {
  const texts = field.map(({ from, to, step }) => {
    if (from === undefined) return `every ${ordinal(step)} ${unit}`;
    const range =
      from === to
        ? nameOf(from)
        : `${nameOf(from)} to ${to === undefined ? 'the last' : nameOf(to)}`;
    return step === 1 ? range : `every ${ordinal(step)} ${unit} from ${range}`;
  });
  const isNumber = !texts[0]?.startsWith('every');
  return `${isNumber ? before : ''}${listOf(texts)}`;
}

const ENDINGS: Readonly<Record<string, string>> = { one: 'st', two: 'nd', few: 'rd', other: 'th' };
const rules = new Intl.PluralRules('en', { type: 'ordinal' });
const ordinal = (value: number) => `${value}${ENDINGS[rules.select(value)]}`;

function listOf(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;
}

function only(field: Field): number | undefined {
  const values = valuesOf(field);
  return values?.length === 1 ? values[0] : undefined;
}

/** Undefined unless it is a list of single values. */
function valuesOf(field: Field): number[] | undefined {
  if (field.length === 0) return undefined;
  const values = field.flatMap(({ from, to }) => (from !== undefined && from === to ? [from] : []));
  return values.length === field.length ? [...new Set(values)].sort((a, b) => a - b) : undefined;
}

/** @param numberOf the value of a name */
function fieldOf(
  atom = '',
  max: number,
  min = 0,
  numberOf: (name: string) => number | undefined = () => undefined,
): Field | undefined {
  const items: Item[] = [];
  for (const text of atom.split(',')) {
    const [, any, first = '', last, every = '1'] = ITEM.exec(text) ?? [];
    const step = Number(every);
    if (step < 1) return undefined;
    if (any !== undefined) {
      if (step === 1) return [];
      items.push({ from: undefined, to: undefined, step });
      continue;
    }
    const from = /^\d+$/.test(first) ? Number(first) : numberOf(first);
    const given =
      last === undefined ? undefined : /^\d+$/.test(last) ? Number(last) : numberOf(last);
    if (from === undefined || from < min || from > max) return undefined;
    if (last !== undefined && (given === undefined || given < min || given > max)) return undefined;
    // A step without an end runs to the last value.
    const to = last === undefined ? (step === 1 ? from : undefined) : given;
    items.push({ from, to, step });
  }
  return items;
}

function indexOf(names: readonly string[], name: string, first: number): number | undefined {
  const at = names.findIndex((one) => one.slice(0, 3).toLowerCase() === name.toLowerCase());
  return at === -1 ? undefined : at + first;
}
