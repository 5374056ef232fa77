/**
 * The counts of commit units, exact even if a thread dies: memory that the writer and the front thread share, kept
 * consistent with the flush numbers in the database (docs/decisions/0038-counters-logs-and-traces.md).
 *
 * Each lane has two pages of totals, for even and odd flush numbers. Before a flush is committed, the totals after it
 * are written to its page, while the other page keeps those of the flush before. Storing the number of a committed
 * flush makes its page valid. If the writer dies in between, its successor reads the last committed flush from the
 * database and stores its number: either way the page of that flush is complete.
 *
 *   stage 7 ─► page odd = page even + counts of 7 ─► commit ─► settle 7 ─► page odd is valid
 *                                 writer dies ──► successor reads the row: settle 6, or settle 7
 */

import assert from 'node:assert/strict';
import { COUNTER_NAMES } from './catalog.js';

/** The counts of one unit as a flat list: index of a counter, count, … */
export type UnitCounts = readonly number[];
const PAGE_NUMBERS = COUNTER_NAMES.length;
const PAGE_BYTES = PAGE_NUMBERS * Float64Array.BYTES_PER_ELEMENT;
/** One number per lane, padded to align the pages. */
const HEAD_BYTES = 8;
type LanePages = readonly [even: Float64Array, odd: Float64Array];

export class CommitLedger {
  readonly lanes: number;
  readonly memory: SharedArrayBuffer;
  /** Per lane, the low 32 bits of the number of the last committed flush. */
  readonly #settled: Int32Array[] = [];
  readonly #pages: LanePages[] = [];

  /** @param memory of another ledger with the same number of lanes */
  constructor(
    lanes: number,
    memory = new SharedArrayBuffer(lanes * (HEAD_BYTES + 2 * PAGE_BYTES)),
  ) {
    this.lanes = lanes;
    this.memory = memory;
    for (let lane = 0; lane < lanes; lane++) {
      const at = lane * (HEAD_BYTES + 2 * PAGE_BYTES);
      this.#settled.push(new Int32Array(memory, at, 1));
      this.#pages.push([
        new Float64Array(memory, at + HEAD_BYTES, PAGE_NUMBERS),
        new Float64Array(memory, at + HEAD_BYTES + PAGE_BYTES, PAGE_NUMBERS),
      ]);
    }
  }

  /** Prepares the next flush; replaces a prepared one that was not committed. */
  stage(lane: number, flush: number, counts: Iterable<UnitCounts>): void {
    assert.equal(this.#lastOf(lane), (flush - 1) | 0, 'a flush was left out');
    const page = this.#pageOf(lane, flush);
    page.set(this.#pageOf(lane, flush - 1));
    for (const unit of counts) {
      for (let i = 0; i < unit.length; i += 2) page[unit[i]!]! += unit[i + 1]!;
    }
  }

  /** Marks the last flush committed on the lane. Idempotent. */
  settle(lane: number, flush: number): void {
    Atomics.store(this.#settled[lane]!, 0, flush | 0);
  }

  isBehind(lane: number, flush: number): boolean {
    const last = this.#lastOf(lane);
    return last !== 0 && ((flush - last) | 0) < 0;
  }

  /** The committed counts of all lanes, by counter index. */
  totals(): Float64Array {
    const sums = new Float64Array(PAGE_NUMBERS);
    for (let lane = 0; lane < this.#pages.length; lane++) {
      const totals = this.#totalsOf(lane);
      for (let i = 0; i < PAGE_NUMBERS; i++) sums[i] = sums[i]! + totals[i]!;
    }
    return sums;
  }

  /** Reads again if the flush after the next one overwrote the page meanwhile. */
  #totalsOf(lane: number): Float64Array {
    for (;;) {
      const flush = this.#lastOf(lane);
      const totals = this.#pageOf(lane, flush).slice();
      if (this.#lastOf(lane) === flush) return totals;
    }
  }

  #lastOf(lane: number): number {
    return Atomics.load(this.#settled[lane]!, 0);
  }

  #pageOf(lane: number, flush: number): Float64Array {
    return this.#pages[lane]![flush & 1]!;
  }
}
