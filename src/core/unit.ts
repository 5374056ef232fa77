/** How a commit unit treats rows that are there already. A unit is what an actor hands to the writer. */

/**
 * How the inserts of a unit treat a row that is there already.
 * - `none`: nothing is inserted that could be there.
 * - `exists`: if its first insert finds its row, nothing of the unit happens and the outcome says so
 *   (an idempotency key, a sequence's id or version).
 * - `batch`: each instance is inserted if it is new and skipped otherwise, with the rows that belong to
 *   it; the outcome names those that were inserted.
 */
export type UnitGate = 'none' | 'exists' | 'batch';
