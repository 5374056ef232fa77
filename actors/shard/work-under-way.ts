/**
 * The work that was taken and is not answered: bodies on their way to shards, and instances that are not born
 * yet. What would wait for much longer than a second is refused while it costs nothing, so that memory
 * stays bounded and calm is back soon after a flood; how long that is follows from how fast work was answered
 * lately. One tenant has three quarters of the room at most (docs/limits.md). Pure: time is handed in.
 */

import { type EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { Tally } from '../../src/base/quota/tally.js';

/** The rate is that of a server with enough to do: what one caller after the other does tells nothing. */
const BUSY_BYTES = LIMITS.workBytesMin / 2;

/**
 * A sample of the rate, when work goes on coming and when all is done, and what it weighs among those before. It
 * ends when as much is done as was ever under way in it: the first of answers that come together, or behind a long
 * wait, would tell far too little.
 */
const SAMPLE_MS = 1_000;
const SAMPLE_MS_MIN = 100;
const SAMPLE_WEIGHT = 0.5;

/** So much of what all may have is a tenant's part: the rest is found by others at once. */
export const TENANT_SHARE = 0.75;

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 10_000;

export class WorkUnderWay {
  readonly #bytes = new Tally();
  /** Bytes a millisecond; undefined: never busy so far. */
  #rate: number | undefined;
  #requests = 0;
  /** When the sample began that is being taken, and what was done and at most under way in it. */
  #since: number | undefined;
  #done = 0;
  #most = 0;
  /** Whether there was more than one request at a time: one alone has to wait for itself. */
  #isShared = false;

  /** Bytes, with what rows count as. */
  get bytes(): number {
    return this.#bytes.sum;
  }

  /**
   * @param rows instances that it makes; 0: it goes on with what is there, and is refused last
   * @returns what `end` is to be told
   * @throws EngineError 503
   */
  begin(tenant: string, bytes: number, rows: number, now: number): number {
    const weight = bytes + rows * LIMITS.workBytesPerRow;
    if (weight === 0) return 0;
    const max = rows === 0 ? LIMITS.workBytesMax : this.#roomForNew(now);
    const own = this.#bytes.of(tenant);
    // Alone, a body of any size that the transport lets in is served.
    const part = max * TENANT_SHARE;
    if (own > 0 && own + weight > part) throw this.#refusal('of the tenant ', own, part);
    // What a newcomer finds is not taken from it by what others were given while there was more room.
    const all = own + weight <= max - part ? LIMITS.workBytesMax : max;
    if (this.bytes > 0 && this.bytes + weight > all) throw this.#refusal('', this.bytes, all);
    this.#bytes.add(tenant, weight);
    this.#requests += 1;
    if (this.#since === undefined && this.bytes >= BUSY_BYTES) this.#beginSample(now);
    this.#most = Math.max(this.#most, this.bytes);
    if (this.#requests > 1) this.#isShared = true;
    return weight;
  }

  /** Why nobody can begin so much; undefined: somebody may. */
  refusalOf(bytes: number): EngineError | undefined {
    const max = LIMITS.workBytesMax;
    return this.bytes > 0 && this.bytes + bytes > max
      ? this.#refusal('', this.bytes, max)
      : undefined;
  }

  /** It was answered, whatever the answer is. */
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
   * What is done within the wait. A handful of clients with batches has that much under way even where it
   * takes longer, up to the longest wait.
   */
  #roomForNew(now: number): number {
    const rate = Math.min(this.#rate ?? LIMITS.workBytesUnmeasured, this.#bestRate(now));
    const least = Math.min(LIMITS.workBytesUnmeasured, rate * LIMITS.workWaitMsMax);
    const usual = this.#rate === undefined ? 0 : rate * LIMITS.workWaitMs;
    return Math.min(LIMITS.workBytesMax, Math.max(LIMITS.workBytesMin, least, usual));
  }

  /** Even if all that is under way were answered now, it was not faster: so a stop is seen without any answer. */
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
