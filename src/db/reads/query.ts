/**
 * Statements whose conditions depend on what was asked. Each is put together from the filters that
 * are present, so that the planner sees exactly those and picks the index that serves them; values
 * are always parameters. Pure.
 */

/**
 * That what an instance has left is no rest of a deleted sequence: those are gone for every reader while their
 * rows are still being removed (docs/retention.md). There are few tombstones and mostly none; they are
 * read once a statement.
 *
 * A `case`, of which the planner expects half of the rows. Of a plain `<> all` it expects none where one
 * sequence has nearly all instances, and then it reads and sorts every one of them for the first page.
 *
 * @param alias of a table with their sequences
 */
export function isPresent(alias: string): string {
  return `case when ${alias}.sequence_id = any (array(select id from sequence_tombstones)) then false else true end`;
}
export const IS_PRESENT = isPresent('i');

/** A statement and its parameters. */
export interface Query {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A place in an order by creation: the time as text that Postgres reads exactly, and the id. */
export interface Place {
  readonly id: string;
  readonly at: string;
}

/** A part of a list. Without `limit` it ends only at the size of an answer. */
export interface PageBounds {
  readonly offset: number;
  /** Of the page before: the place to go on from. */
  readonly cursor?: string | undefined;
  readonly limit?: number | null | undefined;
}

/** The conditions of one statement, and its numbered parameters. */
export class Conditions {
  readonly values: unknown[];
  readonly #terms: string[] = [];

  /** @param values of a statement that these are a part of, which has conditions elsewhere, too */
  constructor(values: unknown[] = []) {
    this.values = values;
  }

  /** Takes a value and gives the placeholder that stands for it, such as `$3`. */
  param(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  /** What a place is compared with: `(created_at, id) > …`. */
  place({ at, id }: Place): string {
    return `(${this.param(at)}::timestamptz, ${this.param(id)}::uuid)`;
  }

  add(term: string): void {
    this.#terms.push(term);
  }

  get isEmpty(): boolean {
    return this.#terms.length === 0;
  }

  /** All at once, as one condition. */
  get all(): string {
    return `(${this.#terms.join(' and ')})`;
  }

  /** `where … and …`, or nothing when there is no condition. */
  get where(): string {
    return this.#terms.length === 0 ? '' : `where ${this.#terms.join(' and ')}`;
  }

  /** `limit … offset …`, as far as they are asked for. */
  page({ offset = 0, limit }: Partial<PageBounds>): string {
    const most = limit == null ? '' : `limit ${this.param(limit)}::bigint `;
    return offset === 0 ? most : `${most}offset ${this.param(offset)}::bigint`;
  }

  query(text: string): Query {
    return { text, values: this.values };
  }
}
