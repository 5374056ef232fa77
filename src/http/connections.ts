/**
 * Limits on clients (docs/limits.md): open connections in all, so that file descriptors are left for everything else;
 * and connections and requests in flight per address, so that one client cannot exhaust the limits. Behind a trusted
 * proxy the address of a request is that of its client.
 */

import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { EngineError, unavailable } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import { LineLimit } from '../base/log.js';
import { FairSlots } from '../base/quota/fair-slots.js';
import { Tally } from '../base/quota/tally.js';
import { AddressCensus } from './address-census.js';
import type { HttpLog } from './server.js';

const RETRY_AFTER_MS = 1_000;
const REFUSED_LINES_PER_SECOND = 1;

export interface ConnectionBounds {
  readonly max: number;
  readonly perAddressMax: number;
}

/** @param descriptors the limit of open files of the process; undefined: unknown */
export function connectionBounds(
  wanted: ConnectionBounds,
  descriptors: number | undefined,
): ConnectionBounds {
  const room =
    descriptors === undefined
      ? wanted.max
      : Math.max(Math.floor(descriptors / 2), descriptors - LIMITS.descriptorsReserved);
  const max = Math.max(1, Math.min(wanted.max, room));
  const share = Math.max(1, Math.floor(max * LIMITS.connectionShareOfAddress));
  return { max, perAddressMax: Math.min(wanted.perAddressMax || share, max) };
}

/** The limit of open files, which Node has raised at its start. */
export function descriptorLimit(): number | undefined {
  try {
    const text = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files +(\d+)/m.exec(text)?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // Not Linux: the configured limit applies.
    return undefined;
  }
}

/** A connection beyond the limit gets one response, the refusal or a health check, and is closed. */
export class Connections {
  readonly bounds: ConnectionBounds;
  refused = 0;
  /** Refused connections that are still open. */
  readonly spare = new SpareConnections();
  readonly #slots: FairSlots;
  readonly #log: Pick<HttpLog, 'warn'>;
  readonly #census = new AddressCensus();
  readonly #lines = new LineLimit(REFUSED_LINES_PER_SECOND);

  constructor(bounds: ConnectionBounds, log: Pick<HttpLog, 'warn'>) {
    this.bounds = bounds;
    this.#slots = new FairSlots([{ activeMax: bounds.max }, { activeMax: bounds.perAddressMax }]);
    this.#log = log;
  }

  get open(): number {
    return this.#slots.active - this.#census.stale;
  }

  /** @param address undefined: a trusted proxy @returns a function that releases the slot, or the refusal */
  admit(address: string | undefined, nowMs: number): (() => void) | EngineError {
    return this.#slots.take(address === undefined ? [] : [address]) ?? this.#refuse(nowMs);
  }

  /**
   * Like `admit`, for a backend that does not report which connection has closed, and calls `left` for each.
   *
   * @param address from `addressKey`
   * @param port the server's own
   */
  admitAnonymous(
    address: string,
    isProxy: boolean,
    port: number,
    nowMs: number,
  ): EngineError | undefined {
    const path = isProxy ? [] : [address];
    let place = this.#slots.take(path);
    // The table of the system already contains the new connection.
    const placeless = (of: string) => this.spare.countOf(of) + (of === address ? 1 : 0);
    if (place === undefined && this.#census.settle(port, nowMs, placeless)) {
      place = this.#slots.take(path);
    }
    if (place === undefined) return this.#refuse(nowMs);
    this.#census.came(address, place);
    return undefined;
  }

  left(): void {
    this.#census.left();
  }

  #refuse(nowMs: number): EngineError {
    this.refused += 1;
    const { max, perAddressMax } = this.bounds;
    const more = this.#lines.admit(nowMs);
    if (more !== undefined) {
      this.#log.warn({ open: this.open, max, perAddressMax, ...more }, 'a connection was refused');
    }
    if (this.#slots.active >= max) {
      return unavailable('ENG_OVERLOADED', `${max} connections are open (ENGINE_MAX_CONNECTIONS)`);
    }
    return new EngineError(
      'ENG_TOO_MANY_CONNECTIONS',
      `too many connections: ${perAddressMax} of this address are open ` +
        '(ENGINE_MAX_CONNECTIONS_PER_ADDRESS)',
      RETRY_AFTER_MS,
    );
  }
}

export interface SpareConnection {
  readonly address: string;
  readonly refusal: EngineError;
  /** Called at most once, and never after `letGo`. */
  readonly close: () => void;
}

/**
 * A few connections beyond the limits, each for one health check, so that a client that exhausts the limits does not
 * make the engine look dead. A silent connection is closed soon, or earlier when its slot is needed: first those of
 * the address with the most.
 */
export class SpareConnections {
  /** By address, oldest first. */
  readonly #silent = new Map<string, Map<SpareConnection, NodeJS.Timeout>>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  hold(spare: SpareConnection): void {
    if (this.#count >= LIMITS.spareConnections) this.#closeOne();
    const timer = setTimeout(() => this.#close(spare), LIMITS.spareSilenceMs);
    timer.unref();
    const mine = this.#silent.get(spare.address) ?? new Map();
    this.#silent.set(spare.address, mine.set(spare, timer));
    this.#count += 1;
  }

  /** Called when a request arrives or the connection closes. @returns whether it was still held */
  letGo(spare: SpareConnection): boolean {
    const mine = this.#silent.get(spare.address);
    const timer = mine?.get(spare);
    if (mine === undefined || timer === undefined) return false;
    clearTimeout(timer);
    mine.delete(spare);
    if (mine.size === 0) this.#silent.delete(spare.address);
    this.#count -= 1;
    return true;
  }

  countOf(address: string): number {
    return this.#silent.get(address)?.size ?? 0;
  }

  closeAll(address: string): void {
    for (const spare of [...(this.#silent.get(address)?.keys() ?? [])]) this.#close(spare);
  }

  #closeOne(): void {
    let most: Map<SpareConnection, NodeJS.Timeout> | undefined;
    for (const each of this.#silent.values()) {
      if (most === undefined || each.size > most.size) most = each;
    }
    const [oldest] = most?.keys() ?? [];
    if (oldest !== undefined) this.#close(oldest);
  }

  #close(spare: SpareConnection): void {
    if (this.letGo(spare)) spare.close();
  }
}

export class AddressRequests {
  refused = 0;
  readonly #max: number;
  readonly #inFlight = new Tally();

  /** @param max `ENGINE_MAX_REQUESTS_PER_ADDRESS`; 0: three quarters of all */
  constructor(max: number) {
    this.#max = max || Math.floor(LIMITS.requestsInFlightMax * LIMITS.requestShareOfAddress);
  }

  /** @returns the refusal; undefined: the request is admitted, and `leave` must be called at its end */
  enter(address: string): EngineError | undefined {
    if (this.#inFlight.of(address) >= this.#max) {
      this.refused += 1;
      return new EngineError(
        'ENG_TOO_MANY_REQUESTS',
        `too many requests: ${this.#max} of this address are in flight (ENGINE_MAX_REQUESTS_PER_ADDRESS)`,
        RETRY_AFTER_MS,
      );
    }
    this.#inFlight.add(address, 1);
    return undefined;
  }

  leave(address: string): void {
    this.#inFlight.add(address, -1);
  }
}

/** An address in `x-forwarded-for`; some proxies add a port, and brackets with it. */
const ENTRY = /^\[?([^\]]*?)\]?(?::\d{1,5})?$/;

export interface AddressRange {
  readonly address: string;
  readonly bits: number;
}

/** Any client may send `x-forwarded-for`, so only the header of trusted proxies counts. */
export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #isAny: boolean;

  constructor(ranges: readonly AddressRange[]) {
    this.#isAny = ranges.length > 0;
    for (const { address, bits } of ranges) {
      this.#ranges.addSubnet(address, bits, familyOf(address));
    }
  }

  /** Also matches an IPv4 address in its IPv4-mapped IPv6 form. */
  has(address: string): boolean {
    return this.#isAny && isIP(address) !== 0 && this.#ranges.check(address, familyOf(address));
  }

  /**
   * Each proxy appends the address of its client, so the header is read from its end, up to the first address that is
   * no trusted proxy.
   *
   * @param peer the remote address of the connection
   * @param forwarded all lines of the header, joined by commas
   */
  clientOf(peer: string, forwarded: string | undefined): string {
    let client = peer;
    if (!this.#isAny) return peer;
    const entries = forwarded?.split(',') ?? [];
    while (this.has(client)) {
      const entry = entries.pop()?.trim() ?? '';
      const before = isIP(entry) === 0 ? (ENTRY.exec(entry)?.[1] ?? '') : entry;
      if (isIP(before) === 0) break;
      client = before;
    }
    return client;
  }
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
