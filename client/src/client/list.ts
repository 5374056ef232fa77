/** Lists with any kind of pagination: one page when awaited, all items when iterated. */

import type { List, OperationRow, Page } from './operation.js';

export interface PageAnswer {
  readonly body: unknown;
  readonly cursor: string | undefined;
  /** The header `link`, by which lists with page numbers announce further pages. */
  readonly link: string;
}

/**
 * @param queryOf the query of the call, which may be invalid: then the first page rejects
 * @param ask requests one page with this query
 */
export function listOf<T>(
  row: OperationRow,
  queryOf: () => Readonly<Record<string, unknown>>,
  ask: (query: Readonly<Record<string, unknown>>) => Promise<PageAnswer>,
): List<T> {
  const page = async (place: object): Promise<Page<T>> =>
    pageOf<T>(row, await ask({ ...queryOf(), ...place }));
  const pages = async function* () {
    let offset = Number(queryOf().offset ?? 0);
    for (let place = {}; ; ) {
      const found = await page(place);
      yield found;
      if (!found.hasMore) return;
      offset += found.items.length;
      place =
        found.nextCursor === undefined
          ? { offset }
          : { offset: undefined, cursor: found.nextCursor };
    }
  };
  return {
    // biome-ignore lint/suspicious/noThenProperty: awaiting a list returns its first page
    then: (resolve, reject) => page({}).then(resolve, reject),
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { items } of pages()) yield* items;
    },
  };
}

function pageOf<T>({ pages }: OperationRow, { body, cursor, link }: PageAnswer): Page<T> {
  if (pages === 'changes') {
    const { changes, next_cursor, has_more } = body as {
      changes: T[];
      next_cursor?: string;
      has_more: boolean;
    };
    return { items: changes, hasMore: has_more, ...nextOf(next_cursor) };
  }
  const { items, total } = pages === 'page' ? (body as Page<T>) : { items: body as T[] };
  const hasMore = cursor !== undefined || /rel="?next"?/.test(link);
  return { items, hasMore, ...nextOf(cursor), ...(total === undefined ? {} : { total }) };
}

const nextOf = (cursor: string | undefined) => (cursor === undefined ? {} : { nextCursor: cursor });
