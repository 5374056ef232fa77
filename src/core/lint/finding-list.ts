/** Collects findings up to a limit, and counts the rest. */

import { FINDINGS_MAX, type Finding } from '../../../schema/finding.js';

const COUNTED_MAX = 10_000;

export class FindingList {
  readonly #found: Finding[] = [];
  #omitted = 0;

  /** Whether further findings make no difference. */
  get isOver(): boolean {
    return this.#omitted >= COUNTED_MAX;
  }

  /** @param describe called only for findings that are listed: suggestions are expensive */
  add(describe: () => Finding): void {
    if (this.#found.length < FINDINGS_MAX) this.#found.push(describe());
    else this.#omitted += 1;
  }

  /** The last one tells how many are left out. */
  all(): Finding[] {
    if (this.#omitted === 0) return this.#found;
    const more = this.isOver ? `more than ${COUNTED_MAX}` : String(this.#omitted);
    return [...this.#found, { path: '', message: `and ${more} more` }];
  }
}
