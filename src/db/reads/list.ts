/**
 * Lists as data: columns, order, owner and filters. If no index serves the filters, a list scans a bounded
 * number of its rows in order. Pure.
 */

import { invalid } from '../../base/errors.js';
import { LIMITS } from '../../base/limits.js';
import { type Filter, type Filters, isAsked, type Narrowing, narrow } from './filters.js';
import type { Order } from './order.js';
import { Conditions, type PageBounds } from './query.js';
import type { PageRequest, WalkedRow } from './reader.js';

interface List<Row, Of extends string, By extends string>
  extends Partial<Pick<PageRequest<Row>, 'toText' | 'cheaper'>> {
  readonly columns: string;
  readonly from: string;
  /** Required parameters: no list omits them by mistake. */
  readonly of?: Filters<Of>;
  readonly by?: Filters<By>;
  readonly always?: string;
  /** Absent: indexes serve all filters, or there are few rows. */
  readonly walk?: Walk<NoInfer<By>>;
  readonly order: Order | string;
}

const SMALLER_PAGE = 'name the tenant, or ask for a smaller offset and limit';

/** How a list whose filters no index serves scans a bounded number of rows, in its order. */
interface Walk<By extends string> {
  /** Includes the alias of the list. */
  readonly table: string;
  readonly alias: string;
  /** Filters with an index: the first requested one is scanned; several values are merged. */
  readonly along: readonly By[];
  /** Several values are merged even if no other filter is requested: no index has all of them in order. */
  readonly isMergedAlone?: true;
  /** Selective filters: their rows are looked up instead. */
  readonly found?: readonly By[];
  /** Whether there is an index of all rows, used without such filters. */
  readonly isOfAll?: true;
  readonly only?: string;
  /** Bounds of the order, which all indexes serve. */
  readonly within: readonly By[];
  readonly join?: string;
  /** A join that only some scanned rows need. */
  readonly sieve?: Sieve;
}

interface Sieve {
  /** @param only the condition of the rows that need it */
  readonly join: (only: string) => string;
  /** Filters on columns of the scanned rows. */
  readonly by: Filters<string>;
  /** Whether a scanned row has the filtered value itself; otherwise everything is joined. */
  readonly isTold: string;
}

/** A validated query, which may have other parameters too. */
type Asked<Of extends string, By extends string> = { readonly [M in Of]: string } & Narrowing<By> &
  Partial<PageBounds> & { readonly max_bytes?: number | undefined };

/** Returns a function from queries to requests of a page. */
export function list<Row, Of extends string = never, By extends string = never>(
  shape: List<Row, Of, By>,
): (asked: Asked<Of, By>) => PageRequest<Row> {
  const { columns, from, of, by, always, toText = JSON.stringify, cheaper = SMALLER_PAGE } = shape;
  const order = typeof shape.order === 'string' ? undefined : shape.order;
  const orderText = order?.text ?? shape.order;
  const common = { toText, cheaper, cursorAfter: order?.cursorAfter };
  return (asked) => {
    if (asked.cursor !== undefined && (asked.offset ?? 0) > 0) {
      throw invalid('offset and cursor cannot both be given');
    }
    const walked = walkOf(shape, asked);
    if (walked !== undefined) return { ...common, ...walked };
    const conditions = new Conditions();
    for (const [member, { column, type }] of Object.entries<Filters<Of>[Of]>(of ?? {})) {
      conditions.add(`${column} = ${conditions.param(asked[member as Of])}::${type}`);
    }
    if (by !== undefined) narrow(conditions, by, asked);
    if (always !== undefined) conditions.add(always);
    if (asked.cursor !== undefined) order?.goOn(conditions, asked.cursor);
    const text =
      `select ${columns} from ${from} ${conditions.where} ` +
      `order by ${orderText} ${conditions.page(asked)}`;
    const bytes = asked.max_bytes !== undefined && { bytesMax: asked.max_bytes };
    return { ...common, query: conditions.query(text), ...bytes };
  };
}

/** Undefined if the list is not scanned: an index serves all filters. */
function walkOf<Row, Of extends string, By extends string>(
  { columns, by, always, walk, order, toText = JSON.stringify }: List<Row, Of, By>,
  asked: Asked<Of, By>,
): Pick<PageRequest<Row>, 'query' | 'walk' | 'toText'> | undefined {
  if (walk === undefined || by === undefined || typeof order === 'string') return undefined;
  const { table, alias, join = '', sieve } = walk;
  const narrowing: Narrowing<By> = asked;
  if (walk.found?.some((member) => isAsked(narrowing[member]))) return undefined;
  const along = walk.along.find((member) => isAsked(narrowing[member]));
  if (along === undefined && walk.isOfAll === undefined) return undefined;
  const served = new Set<By>(along === undefined ? walk.within : [along, ...walk.within]);
  const pick = (isServed: boolean) =>
    Object.fromEntries(
      Object.entries<Filters<By>[By]>(by).filter(
        ([member]) => served.has(member as By) === isServed,
      ),
    ) as unknown as Filters<By>;
  const others = pick(false);
  const isMerged = along !== undefined && Array.isArray(narrowing[along]);
  const isScanned =
    (walk.isMergedAlone && isMerged) ||
    Object.keys(others).some((member) => isAsked(narrowing[member as By]));
  if (!isScanned) return undefined;
  const { offset = 0, limit } = asked;
  const query = (rows: number, cursor: string | undefined, taken: number) => {
    const place = new Conditions();
    if (walk.only !== undefined) place.add(walk.only);
    const stretches = isMerged ? (narrowing[along] as readonly string[]) : [];
    const within = pick(true);
    narrow(place, within, isMerged ? { ...narrowing, [along as By]: undefined } : narrowing);
    if (cursor !== undefined) order.goOn(place, cursor);
    const most = place.param(rows);
    const page = `order by ${order.text} limit ${most}::bigint`;
    const walked = isMerged
      ? merged(table, alias, place, page, within[along as By], stretches)
      : `${table} ${place.where}`;
    const conditions = new Conditions(place.values);
    narrow(conditions, others, narrowing);
    if (always !== undefined) conditions.add(always);
    const sieved = new Conditions(place.values);
    if (sieve !== undefined) narrow(sieved, sieve.by, narrowing);
    const isEnd = `${alias}.walked = ${most}::bigint`;
    const read =
      sieve?.join(sieved.isEmpty ? 'true' : `(${sieved.all} or not ${sieve.isTold} or ${isEnd})`) ??
      join;
    const text =
      `select ${columns}, ${conditions.all} is true as walk_match, ${isEnd} as walk_end from (` +
      `select ${alias}.*, row_number() over (order by ${order.text}) as walked from (` +
      `select * from ${walked} ${page}` +
      `) ${alias}) ${alias} ${read} where ${conditions.all} or ${isEnd} order by ${order.text} ` +
      place.page({ limit: limit == null ? limit : limit + offset - taken });
    return place.query(text);
  };
  const first = LIMITS.firstRowsWalkedMax;
  const isSieved = Object.keys(sieve?.by ?? {}).some((member) => isAsked(narrowing[member as By]));
  const isEachFetched = !isSieved && (walk.join ?? walk.sieve) !== undefined;
  const all = isEachFetched ? LIMITS.rowsFetchedMax : LIMITS.rowsWalkedMax;
  return {
    query: query(first, asked.cursor, 0),
    walk: { skip: offset, on: (cursor, taken) => query(all - first, cursor, taken) },
    toText: (row) => {
      const { walk_match: _match, walk_end: _end, ...own } = row as WalkedRow;
      return toText(own as Row);
    },
  };
}

/** The rows of each value in the order of the list, at most one page of each. */
export function merged(
  table: string,
  alias: string,
  place: Conditions,
  page: string,
  { column, type }: Filter,
  values: readonly string[],
): string {
  const where = place.where === '' ? 'where true' : place.where;
  const stretches = values.map(
    (value) =>
      `(select ${alias}.* from ${table} ${where} and ${column} = ${place.param(value)}::${type} ${page})`,
  );
  return `(${stretches.join(' union all ')}) ${alias}`;
}
