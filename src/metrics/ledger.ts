/**
 * The counts of commit units, exact whichever thread dies and whenever: memory that the writer and the
 * front share, kept in step with the flush numbers that the database keeps
 * (docs/decisions/0038-counters-logs-and-traces.md).
 *
 * Each lane has two pages of totals. Before a flush is committed, the totals as they will be after it
 * go to the page of its number, even or odd; the other page holds those of the flush before. Once it
 * is known to be committed, its number is stored, and that one store makes its page the valid one. If
 * the writer dies in between, its successor reads from the rows which flush was the last, and
 * stores that number: the page is there, if it was committed, and untouched, if it was not.
 *
 *   stage 7 ─► page odd = page even + counts of 7 ─► commit ─► settle 7 ─► page odd is valid
 *                                 writer dies ──► successor reads the row: settle 6, or settle 7
 */

import assert from 'node:assert/strict';
import { COUNTER_NAMES } from './catalog.js';

/** Counts of one unit, flat: index of the counter, how many, … */
export type UnitCounts = readonly number[];

const PAGE_NUMBERS = COUNTER_NAMES.length;
const PAGE_BYTES = PAGE_NUMBERS * Float64Array.BYTES_PER_ELEMENT;
/** One number per lane, in as much as aligns the pages behind it. */
const HEAD_BYTES = 8;

interface LanePages {
  readonly even: Float64Array;
  readonly odd: Float64Array;
}

export class CommitLedger {
  readonly lanes: number;
  readonly memory: SharedArrayBuffer;
  /** By lane, the number of the last committed flush, of which the low 32 bits tell enough. */
  readonly #settled: Int32Array[] = [];
  readonly #pages: LanePages[] = [];

  /** @param memory of another ledger for as many lanes */
  constructor(
    lanes: number,
    memory = new SharedArrayBuffer(lanes * (HEAD_BYTES + 2 * PAGE_BYTES)),
  ) {
    this.lanes = lanes;
    this.memory = memory;
    for (let lane = 0; lane < lanes; lane++) {
      const at = lane * (HEAD_BYTES + 2 * PAGE_BYTES);
      this.#settled.push(new Int32Array(memory, at, 1));
      this.#pages.push({
        even: new Float64Array(memory, at + HEAD_BYTES, PAGE_NUMBERS),
        odd: new Float64Array(memory, at + HEAD_BYTES + PAGE_BYTES, PAGE_NUMBERS),
      });
    }
  }

  /** Prepares the flush that may be committed next; again, if the one before came to nothing. */
  stage(lane: number, flush: number, counts: Iterable<UnitCounts>): void {
    assert.equal(this.#lastOf(lane), (flush - 1) | 0, 'a flush was left out');
    const page = this.#pageOf(lane, flush);
    page.set(this.#pageOf(lane, flush - 1));
    for (const unit of counts) {
      for (let i = 0; i < unit.length; i += 2) page[unit[i]!]! += unit[i + 1]!;
    }
  }

  /** That flush is the last one committed on the lane; the same one may be settled again. */
  settle(lane: number, flush: number): void {
    Atomics.store(this.#settled[lane]!, 0, flush | 0);
  }

  /** A flush of the lane is known to be committed that comes behind this one. */
  isBehind(lane: number, flush: number): boolean {
    const last = this.#lastOf(lane);
    return last !== 0 && ((flush - last) | 0) < 0;
  }

  /** What was committed on all lanes, by the index of the counter. */
  totals(): Float64Array {
    const sums = new Float64Array(PAGE_NUMBERS);
    for (let lane = 0; lane < this.#pages.length; lane++) {
      const totals = this.#totalsOf(lane);
      for (let i = 0; i < PAGE_NUMBERS; i++) sums[i] = sums[i]! + totals[i]!;
    }
    return sums;
  }

  /** A page is written anew when the flush after the next one is prepared: then this looks again. */
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
    const pages = this.#pages[lane]!;
    return (flush & 1) === 0 ? pages.even : pages.odd;
  }
}
