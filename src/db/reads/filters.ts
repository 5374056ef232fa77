/** Filters as data: one row for each query parameter that narrows a list. Pure. */

import { type BaseType, type ColumnOf, columnType, type Table } from '../table.js';
import type { Conditions } from './query.js';

/** Selects rows whose column has the value or one of several; of a JSON column, its top-level keys. */
export interface Filter {
  readonly column: string;
  readonly type: BaseType;
  /** Another condition. @param value a placeholder */
  readonly holds?: (column: string, value: string) => string;
  readonly textsOf?: (value: string) => readonly string[];
}

export type Filters<Member extends string> = { readonly [M in Member]: Filter };

/** The value of a parameter. Undefined, null, '' and an empty list do not filter. */
type Wanted =
  | string
  | number
  | boolean
  | readonly string[]
  | Readonly<Record<string, string>>
  | null
  | undefined;

export type Narrowing<Member extends string> = { readonly [M in Member]?: Wanted };

export function filtersOf<T extends Table, const C extends ColumnOf<T>>(
  table: T,
  columns: readonly C[],
  alias: string = table.name,
): Filters<C> {
  const rows = columns.map((column) => {
    const filter = { column: `${alias}.${column}`, type: columnType(table, column).base };
    return [column, filter] as const;
  });
  return Object.fromEntries(rows) as unknown as Filters<C>;
}

export function timeFilters<T extends Table>(
  table: T,
  column: ColumnOf<T>,
  alias: string = table.name,
): { readonly before: Filter; readonly after: Filter } {
  const at = { column: `${alias}.${column}`, type: 'timestamptz' } as const;
  return {
    before: { ...at, holds: (time, bound) => `${time} < ${bound}` },
    after: { ...at, holds: (time, bound) => `${time} > ${bound}` },
  };
}

/** Ignores case in all of Unicode, independent of the locale. @param texts SQL of the texts of a column */
export function contains(column: string, texts = (name: string) => `array[${name}]`): Filter {
  const decomposed =
    'case when octet_length(said) = length(said) then said ' +
    "else replace(replace(normalize(said, nfkd), 'ß', 'ss'), 'ẞ', 'ss') end";
  return {
    column,
    type: 'text',
    textsOf: (value) => {
      const { text, from, to } = soughtInAnyCase(value);
      return [text, from, to];
    },
    holds: (name, sought) =>
      `exists (select from unnest(${texts(name)}) said where ` +
      `strpos(translate(${decomposed}, ${sought}[2], ${sought}[3]) collate "C", ${sought}[1]) > 0)`,
  };
}

export function isAsked(value: Wanted): value is NonNullable<Wanted> {
  return value != null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

export function narrow<Member extends string>(
  conditions: Conditions,
  filters: Filters<Member>,
  wanted: Narrowing<NoInfer<Member>>,
): void {
  for (const member of Object.keys(filters) as Member[]) {
    const value: Wanted = wanted[member];
    if (isAsked(value)) add(conditions, filters[member], value);
  }
}

function add(
  conditions: Conditions,
  { column, type, holds, textsOf }: Filter,
  value: NonNullable<Wanted>,
): void {
  if (holds !== undefined && textsOf !== undefined) {
    conditions.add(holds(column, `(${conditions.param(textsOf(String(value)))}::text[])`));
  } else if (holds !== undefined) {
    conditions.add(holds(column, `${conditions.param(value)}::${type}`));
  } else if (Array.isArray(value)) {
    conditions.add(`${column} = any(${conditions.param(value)}::${type}[])`);
  } else if (typeof value === 'object') {
    for (const [key, text] of Object.entries(value)) {
      const place = conditions.param(key);
      conditions.add(`${column} ->> ${place}::text = ${conditions.param(text)}::text`);
    }
  } else {
    conditions.add(`${column} = ${conditions.param(value)}::${type}`);
  }
}

// Case-insensitive comparison in all of Unicode, independent of the database's locale
// (docs/decisions/0016-lists.md): `lower` of Postgres folds nothing beyond ASCII in `C`. So letters are
// folded here, and the database gets the few that it has to map.

/** The folded search text, and the letters that make stored texts comparable with it. */
interface Sought {
  readonly text: string;
  /** Letters, each mapped to the letter at its index in `to`, or removed without one. */
  readonly from: string;
  readonly to: string;
}

/** The dot of a Turkish capital, which small letters lack. */
const DOT = '\u0307';
/** Small letters without a capital: final sigma, dotless i, iota below, and old Cyrillic forms. */
const FURTHER = 'ς\u0131\u0345ᲀᲁᲂᲃᲄᲅᲆᲇᲈ';

/** For `strpos(translate(decomposed, from, to), text)`; see `decomposed`. */
function soughtInAnyCase(text: string): Sought {
  const letters = new Map<string, string>();
  let folded = '';
  for (const letter of decomposed(text)) {
    const one = foldLetter(letter);
    folded += one;
    for (const like of likeLetters(one)) letters.set(like, one);
  }
  const bare = folded.replaceAll(DOT, '');
  const from = [...letters.keys(), ...(bare === '' ? [] : DOT)].join('');
  return { text: bare || folded, from, to: [...letters.values()].join('') };
}

/** Each letter followed by its marks, and ligatures as letters, as Postgres decomposes them too. */
function decomposed(text: string): string {
  return text.normalize('NFKD').replace(/[ßẞ]/g, 'ss');
}

/** A letter that maps to several letters stays as it is. */
function foldLetter(letter: string): string {
  const upper = single(letter.toUpperCase(), letter);
  return single(upper.toLowerCase(), upper);
}

function likeLetters(folded: string): Set<string> {
  const upper = single(folded.toUpperCase(), folded);
  const all = [upper, ...[...FURTHER].filter((letter) => foldLetter(letter) === folded)];
  return new Set(all.filter((letter) => letter !== folded && foldLetter(letter) === folded));
}

function single(letters: string, otherwise: string): string {
  return [...letters].length === 1 ? letters : otherwise;
}
