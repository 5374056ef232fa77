/**
 * Statements whose conditions depend on the request. They contain only the conditions in use, so that the
 * planner can choose the matching index. Values are always parameters. Pure.
 */

/**
 * Excludes rows of deleted sequences that are still being removed (docs/retention.md). The few tombstones,
 * usually none, are read once per statement.
 *
 * The planner expects a `case` to pass half of the rows. It expects a plain `<> all` to pass none when one
 * sequence has nearly all instances, and then reads and sorts all of them for the first page.
 * @param alias of a table with a sequence_id
 */
export function isPresent(alias: string): string {
  return `case when ${alias}.sequence_id = any (array(select id from sequence_tombstones)) then false else true end`;
}
export const IS_PRESENT = isPresent('i');

export type Query = { readonly text: string; readonly values: readonly unknown[] };

/** Without `limit` only the size of the response ends the page. */
export interface PageBounds {
  readonly offset: number;
  readonly cursor?: string | undefined;
  readonly limit?: number | null | undefined;
}

export class Conditions {
  readonly values: unknown[];
  readonly #terms: string[] = [];

  /** @param values of the enclosing statement */
  constructor(values: unknown[] = []) {
    this.values = values;
  }

  param(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  add(term: string): void {
    this.#terms.push(term);
  }

  get isEmpty(): boolean {
    return this.#terms.length === 0;
  }

  get all(): string {
    return `(${this.#terms.join(' and ')})`;
  }

  /** '' without conditions. */
  get where(): string {
    return this.#terms.length === 0 ? '' : `where ${this.#terms.join(' and ')}`;
  }

  page({ offset = 0, limit }: Partial<PageBounds>): string {
    const most = limit == null ? '' : `limit ${this.param(limit)}::bigint `;
    return offset === 0 ? most : `${most}offset ${this.param(offset)}::bigint`;
  }

  query(text: string): Query {
    return { text, values: this.values };
  }
}
