/** How the inserts of a commit unit treat rows that already exist. */

/**
 * - `none`: nothing is inserted that could exist.
 * - `exists`: if the row of its first insert exists, the unit is not applied and the outcome says so (an idempotency
 *   key, a sequence's id or version).
 * - `batch`: each instance is inserted with its rows if it is new, and skipped otherwise; the outcome lists the
 *   inserted ones.
 */
export type UnitGate = 'none' | 'exists' | 'batch';
