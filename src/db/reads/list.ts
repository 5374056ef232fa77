/**
 * Lists as data: what is selected in which order, whose rows they are, and by what they can be
 * narrowed. Pure.
 */

import { invalid } from '../../errors.js';
import { type Filters, type Narrowing, narrow } from './filters.js';
import type { Order } from './order.js';
import { Conditions, type PageBounds } from './query.js';
import type { PageRequest } from './reader.js';

interface List<Row, Of extends string, By extends string> {
  readonly columns: string;
  readonly from: string;
  /** What has to be named: no list spans more by mistake. */
  readonly of?: Filters<Of>;
  /** What may be named. */
  readonly by?: Filters<By>;
  /** What holds of every row, whatever is asked. */
  readonly always?: string;
  /** As text where no page goes on by a cursor. */
  readonly order: Order | string;
  /** The wire record of a row as JSON text. */
  readonly toText: (row: Row) => string;
  /** What a caller is told to do instead when it takes too long. */
  readonly cheaper: string;
}

/** The checked query of a list, which may say more than concerns the list. */
type Asked<Of extends string, By extends string> = { readonly [M in Of]: string } & Narrowing<By> &
  Partial<PageBounds>;

/** What a reader is asked for. */
export function list<Row, Of extends string = never, By extends string = never>(
  shape: List<Row, Of, By>,
): (asked: Asked<Of, By>) => PageRequest<Row> {
  const { columns, from, of, by, always, toText, cheaper } = shape;
  const order = typeof shape.order === 'string' ? undefined : shape.order;
  const orderText = order?.text ?? shape.order;
  return (asked) => {
    const conditions = new Conditions();
    for (const [member, { column, type }] of Object.entries<Filters<Of>[Of]>(of ?? {})) {
      conditions.add(`${column} = ${conditions.param(asked[member as Of])}::${type}`);
    }
    if (by !== undefined) narrow(conditions, by, asked);
    if (always !== undefined) conditions.add(always);
    if (asked.cursor !== undefined) {
      if ((asked.offset ?? 0) > 0) throw invalid('offset and cursor cannot both be given');
      order?.goOn(conditions, asked.cursor);
    }
    const text =
      `select ${columns} from ${from} ${conditions.where} ` +
      `order by ${orderText} ${conditions.page(asked)}`;
    return { query: conditions.query(text), toText, cheaper, cursorAfter: order?.cursorAfter };
  };
}
