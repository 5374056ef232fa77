/** Findings as they are collected: no more than are told, and how many more there are. */

import { FINDINGS_MAX, type Finding } from '../../../schema/finding.js';

/** Behind those that are told. */
const COUNTED_MAX = 10_000;

export class FindingList {
  readonly #found: Finding[] = [];
  #omitted = 0;

  /** Nobody wants to know how many more there are. */
  get isOver(): boolean {
    return this.#omitted >= COUNTED_MAX;
  }

  /** @param describe called only for what is told: to guess what was meant takes a while */
  add(describe: () => Finding): void {
    if (this.#found.length < FINDINGS_MAX) this.#found.push(describe());
    else this.#omitted += 1;
  }

  /** The last one says how many are left out. */
  all(): Finding[] {
    if (this.#omitted === 0) return this.#found;
    const more = this.isOver ? `more than ${COUNTED_MAX}` : String(this.#omitted);
    return [...this.#found, { path: '', message: `and ${more} more` }];
  }
}
