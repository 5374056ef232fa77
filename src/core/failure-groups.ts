/** Failures put together by where they happened and why. Pure. */

import type { FailureGroup } from '../../schema/statistics.js';
import { foldReason } from './failure-reason.js';

/** One failed instance. */
export interface FailedRow
  extends Pick<FailureGroup, 'namespace' | 'sequence_id' | 'sequence_name' | 'version' | 'code'> {
  readonly id: string;
  readonly block_id: string | null;
  readonly handler: string | null;
  readonly message: string;
  readonly failed_at: string;
}

export class FailureGroups {
  readonly #groups = new Map<string, FailureGroup>();

  add(row: FailedRow): void {
    const { id, message, failed_at: at, ...where } = row;
    const reason = foldReason(message);
    const key = JSON.stringify([
      where.sequence_id,
      where.block_id,
      where.handler,
      where.code,
      reason,
    ]);
    const group = this.#groups.get(key);
    if (group === undefined) {
      this.#groups.set(key, {
        ...where,
        reason,
        count: 1,
        first_at: at,
        last_at: at,
        example_instance_id: id,
        example_message: message,
      });
      return;
    }
    group.count += 1;
    if (at < group.first_at) group.first_at = at;
    if (at > group.last_at) {
      group.last_at = at;
      group.example_instance_id = id;
      group.example_message = message;
    }
  }

  /** The largest first; of equal ones the one whose last failure is newest. */
  get sorted(): FailureGroup[] {
    return [...this.#groups.values()].sort(
      (a, b) => b.count - a.count || (a.last_at < b.last_at ? 1 : a.last_at > b.last_at ? -1 : 0),
    );
  }
}
