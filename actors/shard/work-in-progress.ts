/**
 * Admission by work in progress: bodies that are sent to shards, and instances that are being created. A
 * request that would wait much longer than a second is refused early, so that memory stays bounded and a
 * flood is over soon; the recent throughput determines the limit. One tenant has at most three quarters of
 * it (docs/limits.md). Pure: time is an argument.
 */

import { type EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { Tally } from '../../src/base/quota/tally.js';

/** The throughput of a loaded server: sequential requests of one caller do not measure it. */
const BUSY_BYTES = LIMITS.workBytesMin / 2;

/**
 * When a sample of the throughput ends, under continuous load and when all work is done, and its weight. A
 * sample has to complete as much as was ever in progress in it: the first of replies that arrive together,
 * or after a long wait, would be too small.
 */
const SAMPLE_MS = 1_000;
const SAMPLE_MS_MIN = 100;
const SAMPLE_WEIGHT = 0.5;

/** The part of one tenant: the rest is left to others. */
export const TENANT_SHARE = 0.75;

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 10_000;

export class WorkInProgress {
  readonly #bytes = new Tally();
  /** Bytes per millisecond; undefined: never busy so far. */
  #rate: number | undefined;
  #requests = 0;
  /** The start of the current sample, and its completed and maximum work. */
  #since: number | undefined;
  #done = 0;
  #most = 0;
  /** Whether more than one request was in progress: a single one waits for itself. */
  #isShared = false;

  /** Bytes, including the weight of rows. */
  get bytes(): number {
    return this.#bytes.sum;
  }

  /**
   * @param rows instances that it creates; 0: it continues existing work, and is refused last
   * @returns the argument of `end`
   * @throws EngineError 503
   */
  begin(tenant: string, bytes: number, rows: number, now: number): number {
    const weight = bytes + rows * LIMITS.workBytesPerRow;
    if (weight === 0) return 0;
    const max = rows === 0 ? LIMITS.workBytesMax : this.#roomForNew(now);
    const own = this.#bytes.of(tenant);
    // Alone, a body of any size that the transport accepts is served.
    const part = max * TENANT_SHARE;
    if (own > 0 && own + weight > part) throw this.#refusal('of the tenant ', own, part);
    // The part of a new tenant is not reduced by what others got while there was more room.
    const all = own + weight <= max - part ? LIMITS.workBytesMax : max;
    if (this.bytes > 0 && this.bytes + weight > all) throw this.#refusal('', this.bytes, all);
    this.#bytes.add(tenant, weight);
    this.#requests += 1;
    if (this.#since === undefined && this.bytes >= BUSY_BYTES) this.#beginSample(now);
    this.#most = Math.max(this.#most, this.bytes);
    if (this.#requests > 1) this.#isShared = true;
    return weight;
  }

  /** Why no request of this size is accepted; undefined: it may be. */
  refusalOf(bytes: number): EngineError | undefined {
    const max = LIMITS.workBytesMax;
    return this.bytes > 0 && this.bytes + bytes > max
      ? this.#refusal('', this.bytes, max)
      : undefined;
  }

  end(tenant: string, weight: number, now: number): void {
    if (weight === 0) return;
    this.#bytes.add(tenant, -weight);
    this.#requests -= 1;
    if (this.#since === undefined) return;
    this.#done += weight;
    const ms = now - this.#since;
    const isOver = this.bytes < BUSY_BYTES;
    if (isOver ? ms >= SAMPLE_MS_MIN : ms >= SAMPLE_MS && this.#done >= this.#most) {
      this.#endSample(ms);
      this.#beginSample(now);
    }
    if (isOver) this.#since = undefined;
  }

  #beginSample(now: number): void {
    this.#since = now;
    this.#done = 0;
    this.#most = this.bytes;
    this.#isShared = this.#requests > 1;
  }

  #endSample(ms: number): void {
    const rate = this.#done / ms;
    const before = this.#rate;
    const next = before === undefined ? rate : before + (rate - before) * SAMPLE_WEIGHT;
    if (this.#isShared || (before !== undefined && next > before)) this.#rate = next;
  }

  /**
   * The work that is completed within the wait. A few clients with batches have that much in progress even
   * where it takes longer, up to the longest wait.
   */
  #roomForNew(now: number): number {
    const rate = Math.min(this.#rate ?? LIMITS.workBytesUnmeasured, this.#bestRate(now));
    const least = Math.min(LIMITS.workBytesUnmeasured, rate * LIMITS.workWaitMsMax);
    const usual = this.#rate === undefined ? 0 : rate * LIMITS.workWaitMs;
    return Math.min(LIMITS.workBytesMax, Math.max(LIMITS.workBytesMin, least, usual));
  }

  /** An upper bound of the current throughput, which falls even when no reply arrives. */
  #bestRate(now: number): number {
    if (this.#since === undefined) return Number.POSITIVE_INFINITY;
    return (this.#done + this.bytes) / Math.max(1, now - this.#since);
  }

  #refusal(whose: string, held: number, max: number): EngineError {
    const rate = this.#rate ?? LIMITS.workBytesUnmeasured / LIMITS.workWaitMs;
    const retryMs = Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, held / rate));
    const text = `too much work ${whose}is under way: ${kib(held)} of ${kib(max)} KiB`;
    return unavailable('ENG_OVERLOADED', text, retryMs);
  }
}

function kib(bytes: number): number {
  return Math.ceil(bytes / 1_024);
}
