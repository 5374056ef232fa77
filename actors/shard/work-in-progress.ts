/**
 * Admission by work in progress: bodies that are sent to shards, and instances that are being created. A request that
 * would wait much longer than a second is refused early, so that memory stays bounded and a flood is over soon. The
 * recent throughput determines the limit; one tenant may use three quarters of it (docs/limits.md). Pure.
 */

import { type EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { Tally } from '../../src/base/quota/tally.js';

/** Work at which a sample of the throughput begins: sequential requests of one caller do not measure it. */
const BUSY_BYTES = LIMITS.workBytesMin / 2;

/**
 * When a sample of the throughput ends, under continuous load and when all work is done, and its weight. A
 * sample has to complete the most work that was in progress in it; otherwise replies that arrive together,
 * or after a long wait, would make it too small.
 */
const SAMPLE_MS = 1_000;
const SAMPLE_MS_MIN = 100;
const SAMPLE_WEIGHT = 0.5;
/** The share of one tenant. */
export const TENANT_SHARE = 0.75;
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 10_000;

export class WorkInProgress {
  readonly #bytes = new Tally();
  /** Bytes per millisecond; undefined: not measured yet. */
  #rate: number | undefined;
  #requests = 0;
  /** The current sample: its start, and its completed and maximum work. */
  #since: number | undefined;
  #done = 0;
  #most = 0;
  /** Whether several requests were in progress in the sample: a single one does not wait. */
  #isShared = false;

  /** Bytes, including the weight of rows. */
  get bytes(): number {
    return this.#bytes.sum;
  }

  /**
   * @param rows instances that the request creates; 0: it continues existing work, and is refused last
   * @returns the argument of `end`
   * @throws EngineError 503
   */
  begin(tenant: string, bytes: number, rows: number, now: number): number {
    const weight = bytes + rows * LIMITS.workBytesPerRow;
    if (weight === 0) return 0;
    const max = rows === 0 ? LIMITS.workBytesMax : this.#roomForNew(now);
    const own = this.#bytes.of(tenant);
    // A single body of any size that the transport accepts is served.
    const part = max * TENANT_SHARE;
    if (own > 0 && own + weight > part) throw this.#refusal('of the tenant ', own, part);
    // The share of a new tenant is not reduced by what others got under a higher limit.
    const all = own + weight <= max - part ? LIMITS.workBytesMax : max;
    if (this.bytes > 0 && this.bytes + weight > all) throw this.#refusal('', this.bytes, all);
    this.#bytes.add(tenant, weight);
    this.#requests += 1;
    if (this.#since === undefined && this.bytes >= BUSY_BYTES) this.#beginSample(now);
    this.#most = Math.max(this.#most, this.bytes);
    if (this.#requests > 1) this.#isShared = true;
    return weight;
  }

  /** The error if no request of this size can be accepted. */
  refusalOf(bytes: number): EngineError | undefined {
    const max = LIMITS.workBytesMax;
    const isRefused = this.bytes > 0 && this.bytes + bytes > max;
    return isRefused ? this.#refusal('', this.bytes, max) : undefined;
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

  /** The work of the usual wait; at least that of a few clients with batches, up to the maximum wait. */
  #roomForNew(now: number): number {
    const rate = Math.min(this.#rate ?? LIMITS.workBytesUnmeasured, this.#bestRate(now));
    const least = Math.min(LIMITS.workBytesUnmeasured, rate * LIMITS.workWaitMsMax);
    const usual = this.#rate === undefined ? 0 : rate * LIMITS.workWaitMs;
    return Math.min(LIMITS.workBytesMax, Math.max(LIMITS.workBytesMin, least, usual));
  }

  /** An upper bound of the current throughput; it falls even when no reply arrives. */
  #bestRate(now: number): number {
    if (this.#since === undefined) return Number.POSITIVE_INFINITY;
    return (this.#done + this.bytes) / Math.max(1, now - this.#since);
  }

  #refusal(scope: string, held: number, max: number): EngineError {
    const rate = this.#rate ?? LIMITS.workBytesUnmeasured / LIMITS.workWaitMs;
    const retryMs = Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, held / rate));
    const text = `too much work ${scope}is under way: ${kib(held)} of ${kib(max)} KiB`;
    return unavailable('ENG_OVERLOADED', text, retryMs);
  }
}

function kib(bytes: number): number {
  return Math.ceil(bytes / 1_024);
}
