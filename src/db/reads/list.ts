/**
 * Lists as data: columns, order, owner and filters. A list with filters that no index serves scans its rows
 * in order, up to a bounded number. Pure.
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
  /** Required parameters: a list never spans more by mistake. */
  readonly of?: Filters<Of>;
  /** Optional parameters. */
  readonly by?: Filters<By>;
  /** A condition on every row. */
  readonly always?: string;
  /** Absent: indexes find the rows, or there are few. */
  readonly walk?: Walk<NoInfer<By>>;
  /** SQL text for lists without a cursor. */
  readonly order: Order | string;
}

const SMALLER_PAGE = 'name the tenant, or ask for a smaller offset and limit';

/** How a bounded number of rows is scanned, in the order of the list, if no index serves the filters. */
interface Walk<By extends string> {
  /** With the alias of the list. */
  readonly table: string;
  readonly alias: string;
  /**
   * Each has its own index: the first requested one is scanned. For several values, their rows are merged
   * in the order of the list.
   */
  readonly along: readonly By[];
  /** Selective filters, whose rows are looked up instead. */
  readonly found?: readonly By[];
  /** The index of all rows, used without any of them. Absent: there is none. */
  readonly isOfAll?: true;
  /** The condition of the partial indexes. */
  readonly only?: string;
  /** Bounds of the order, which every index has. */
  readonly within: readonly By[];
  /** Read with each scanned row. */
  readonly join?: string;
  /** The same, where scanned rows tell whether it is needed. */
  readonly sieve?: Sieve;
}

interface Sieve {
  /** Joined for scanned rows that meet a condition. */
  readonly join: (only: string) => string;
  /** By what walked rows tell. */
  readonly by: Filters<string>;
  /** Whether a scanned row has the filtered value itself; otherwise everything is joined. */
  readonly isTold: string;
}

/** A checked query, which may have other parameters too. */
type Asked<Of extends string, By extends string> = { readonly [M in Of]: string } & Narrowing<By> &
  Partial<PageBounds> & { readonly max_bytes?: number | undefined };

/** A list as the request of one of its pages. */
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
    const query = conditions.query(text);
    return {
      ...common,
      query,
      ...(asked.max_bytes !== undefined && { bytesMax: asked.max_bytes }),
    };
  };
}

/** Undefined: the list is not scanned, or the index has all that is filtered. */
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
  if (!Object.keys(others).some((member) => isAsked(narrowing[member as By]))) return undefined;
  const { offset = 0, limit } = asked;
  const query = (rows: number, cursor: string | undefined, taken: number) => {
    const place = new Conditions();
    if (walk.only !== undefined) place.add(walk.only);
    const stretches = along === undefined ? undefined : narrowing[along];
    const isMerged = Array.isArray(stretches);
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
    walk: {
      skip: offset,
      on: (cursor, taken) => query(all - first, cursor, taken),
    },
    toText: (row) => {
      const { walk_match: _match, walk_end: _end, ...own } = row as WalkedRow;
      return toText(own as Row);
    },
  };
}

/** The rows of each value in the order of the list, of each at most as many as the merged list takes. */
function merged(
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
