/**
 * Presents lists with offset pagination as lists with cursors: the cursor is the number of rows before the page. Pure.
 */

import type { Page } from 'durable-workflow-engine-client';

export interface PageAsked {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** @param read reads a page of a list that reports only whether there is more */
export async function pageByOffset<Row>(
  { limit, cursor }: PageAsked,
  read: (asked: { readonly limit: number; readonly offset: number }) => PromiseLike<Page<Row>>,
): Promise<Page<Row>> {
  const offset = offsetOf(cursor);
  const { items, hasMore } = await read({ limit, offset });
  return { items, hasMore, ...(hasMore && { nextCursor: `${offset + items.length}` }) };
}

/** A page of rows that are all loaded, with their total. */
export function pageOf<Row>(rows: readonly Row[], { limit, cursor }: PageAsked): Page<Row> {
  const offset = offsetOf(cursor);
  const end = offset + limit;
  const hasMore = end < rows.length;
  const items = rows.slice(offset, end);
  return { items, hasMore, total: rows.length, ...(hasMore && { nextCursor: `${end}` }) };
}

/** The offset in an address; anything invalid means the first page. */
function offsetOf(cursor: string | undefined): number {
  return /^\d{1,9}$/.test(cursor ?? '') ? Number(cursor) : 0;
}
