/**
 * How many calls of a tenant go out in a second, from all threads of the engine together
 * (`ENGINE_HTTP_RATE_PER_TENANT`): a table in memory that the threads share says when the next call of each
 * tenant may begin. Calls are spread over the second, but for a tenth of it that may come at once. Who comes
 * too early waits in turn, first come first served within a thread, and each thread has one call in the
 * table that still waits, so that calls which are withdrawn take next to nothing from those that are not.
 */

import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.js';
import { FairSlots, type SlotRefusal } from '../base/quota/fair-slots.js';

/** 64 KiB. A tenant has a place while it calls; more than these at once share places with one another. */
const PLACES = 4_096;

/** So many are looked at for a tenant: with half of all places taken, one in 65,000 finds none of them free. */
const PROBES = 16;

/** What a tenant that was silent may do at once, as a part of a second. */
const BURST_MICROS = 100_000n;

const SECOND_MICROS = 1_000_000;

/** Two numbers make a place: whose it is, and the microsecond at which its calls have caught up with the rate. */
const NUMBERS = 2;
const OWNER = 0;
const CAUGHT_UP = 1;

export function callRateMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(PLACES * NUMBERS * BigInt64Array.BYTES_PER_ELEMENT);
}

export class CallRate {
  readonly #numbers: BigInt64Array;
  readonly #intervalMicros: bigint;
  readonly #clock: Clock;
  readonly #turns = new FairSlots([
    { activeMax: Number.POSITIVE_INFINITY },
    { activeMax: 1, waitingMax: Number.POSITIVE_INFINITY },
  ]);

  /**
   * @param perSecond at least 1
   * @param memory from `callRateMemory`, of all threads
   * @param clock whose monotonic time is that of all threads
   */
  constructor(perSecond: number, memory: SharedArrayBuffer, clock: Clock) {
    this.#numbers = new BigInt64Array(memory);
    this.#intervalMicros = BigInt(Math.ceil(SECOND_MICROS / perSecond));
    this.#clock = clock;
  }

  /** Resolves when the tenant may make one more call, or with why it will not. */
  async wait(tenant: string, signal: AbortSignal): Promise<SlotRefusal | undefined> {
    const turn = await this.#turns.acquire([tenant], signal);
    if (!turn.ok) return turn.reason;
    try {
      await this.#until(this.#reserve(tenant), signal);
      return signal.aborted ? 'aborted' : undefined;
    } finally {
      turn.release();
    }
  }

  /** Refuses all who wait for their turn, and all who come. */
  close(): void {
    this.#turns.close();
  }

  /** @returns milliseconds until the call may begin, which counts from now on */
  #reserve(tenant: string): number {
    const now = BigInt(Math.floor(this.#clock.monotonic() * 1_000));
    const at = this.#placeOf(tenant, now) * NUMBERS + CAUGHT_UP;
    for (;;) {
      const before = Atomics.load(this.#numbers, at);
      const after = (before > now ? before : now) + this.#intervalMicros;
      if (Atomics.compareExchange(this.#numbers, at, before, after) !== before) continue;
      const burst = BURST_MICROS > this.#intervalMicros ? BURST_MICROS : this.#intervalMicros;
      return Number(after - burst - now) / 1_000;
    }
  }

  /** Its own, else one whose tenant has caught up, else one that it shares. */
  #placeOf(tenant: string, now: bigint): number {
    const owner = ownerOf(tenant);
    const first = Number(BigInt.asUintN(32, owner)) % PLACES;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const place = (first + probe) % PLACES;
      if (Atomics.load(this.#numbers, place * NUMBERS + OWNER) === owner) return place;
    }
    for (let probe = 0; probe < PROBES; probe += 1) {
      const place = (first + probe) % PLACES;
      const at = place * NUMBERS;
      const found = Atomics.load(this.#numbers, at + OWNER);
      // Another thread may have taken it for the same tenant meanwhile.
      if (found === owner) return place;
      if (found !== 0n && Atomics.load(this.#numbers, at + CAUGHT_UP) > now) continue;
      const met = Atomics.compareExchange(this.#numbers, at + OWNER, found, owner);
      if (met === found || met === owner) return place;
    }
    return first;
  }

  #until(ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        this.#clock.clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = this.#clock.setTimeout(end, Math.ceil(ms));
      signal.addEventListener('abort', end, { once: true });
    });
  }
}

/** 63 bits of a hash, and never 0, which is nobody. */
function ownerOf(tenant: string): bigint {
  const bits = createHash('sha256').update(tenant).digest().readBigInt64LE();
  return BigInt.asIntN(64, bits | (1n << 62n));
}
