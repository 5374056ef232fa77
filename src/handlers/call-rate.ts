/**
 * Limits the calls per second of each tenant over all threads (`ENGINE_HTTP_RATE_PER_TENANT`). A table in shared
 * memory holds the time of each tenant's next call; only a tenth of a second may be a burst. Within a thread only the
 * first caller in line holds a reservation, so that withdrawn calls waste almost none.
 */

import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.js';
import { FairSlots, type SlotRefusal } from '../base/quota/fair-slots.js';

/** 64 KiB. A tenant has an entry while it makes calls; beyond this number tenants share entries. */
const PLACES = 4_096;
/** Entries probed for a tenant: with half of them taken, one tenant in 65,000 finds none free. */
const PROBES = 16;
/** The burst of an idle tenant, as a part of a second. */
const BURST_MICROS = 100_000n;
const SECOND_MICROS = 1_000_000;
/** Two numbers per entry: the owner, and the microsecond from which it is within its rate again. */
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

  /** @param memory from `callRateMemory`, shared by all threads @param clock with one monotonic time for all threads */
  constructor(perSecond: number, memory: SharedArrayBuffer, clock: Clock) {
    this.#numbers = new BigInt64Array(memory);
    this.#intervalMicros = BigInt(Math.ceil(SECOND_MICROS / perSecond));
    this.#clock = clock;
  }

  /** Resolves when the tenant may make one more call, or with the reason why it may not. */
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

  close(): void {
    this.#turns.close();
  }

  /** @returns ms until the reserved call may begin */
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

  /** The tenant's own entry, else one whose owner is within its rate, else a shared one. */
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
      // Another thread may have taken it for the same tenant.
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

/** 63 bits of a hash. Never 0, which marks a free entry. */
function ownerOf(tenant: string): bigint {
  const bits = createHash('sha256').update(tenant).digest().readBigInt64LE();
  return BigInt.asIntN(64, bits | (1n << 62n));
}
