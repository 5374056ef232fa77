/** How the inserts of a commit unit treat rows that already exist. */

/**
 * - `none`: no inserted row can exist.
 * - `exists`: the unit is applied only if the row of its first insert is new (an idempotency key, a sequence's id or
 *   version).
 * - `batch`: instances that exist are skipped with their rows; the outcome lists the inserted instances.
 */
export type UnitGate = 'none' | 'exists' | 'batch';
