/**
 * Counts connections per address for a backend that does not report which connection has closed. The count is an
 * upper bound; at the limit, the open connections are read from Linux. Other systems have no such table: there only
 * the limit of all connections applies.
 */

import { readFileSync } from 'node:fs';
import { valueFor } from '../base/quota/last-used.js';

/** Reading the tables takes some 10 ms for 10,000 connections of the machine. */
const CENSUS_INTERVAL_MS = 200;
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const OPEN_STATES = new Set(['01', '08']);
const IPV4_MAPPED = `${'0'.repeat(20)}ffff`;

export class AddressCensus {
  readonly #read: () => readonly string[];
  readonly #places = new Map<string, (() => void)[]>();
  #unknown = 0;
  #countedAtMs = Number.NEGATIVE_INFINITY;

  /** @param read returns the tables of the system; empty where there are none */
  constructor(read: () => readonly string[] = readTables) {
    this.#read = read;
  }

  /** @param address from `addressKey` @param place releases the slot */
  came(address: string, place: () => void): void {
    valueFor(this.#places, address, () => []).push(place);
  }

  /** A connection has closed; its address is unknown. */
  left(): void {
    this.#unknown += 1;
  }

  /** The number of slots still held by closed connections. */
  get stale(): number {
    return this.#unknown;
  }

  /**
   * Releases the slots of closed connections, at most once per interval.
   *
   * @param placeless the number of open connections of an address without a slot
   * @returns whether slots were released
   */
  settle(port: number, nowMs: number, placeless: (address: string) => number): boolean {
    if (this.#unknown === 0 || nowMs - this.#countedAtMs < CENSUS_INTERVAL_MS) return false;
    this.#countedAtMs = nowMs;
    const counts = openByAddress(this.#read(), port);
    const before = this.#unknown;
    for (const [address, places] of this.#places) {
      const openCount = (counts.get(address) ?? 0) - placeless(address);
      while (places.length > openCount && this.#unknown > 0) {
        this.#unknown -= 1;
        places.pop()?.();
      }
      if (places.length === 0) this.#places.delete(address);
    }
    return this.#unknown < before;
  }
}

/** The same key for an IPv4 address and its IPv4-mapped IPv6 form. */
export function addressKey(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return hex.startsWith(IPV4_MAPPED) ? hex.slice(IPV4_MAPPED.length) : hex;
}

export function openByAddress(tables: readonly string[], port: number): Map<string, number> {
  const counts = new Map<string, number>();
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  for (const line of tables.flatMap((table) => table.split('\n'))) {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/);
    if (!local.endsWith(`:${wanted}`) || !OPEN_STATES.has(state)) continue;
    const words = remote.slice(0, remote.indexOf(':')).match(/.{8}/g) ?? [];
    // The table prints each word in host byte order.
    const bytes = words.map((word) => Buffer.from(word, 'hex').reverse());
    const address = addressKey(Buffer.concat(bytes));
    counts.set(address, (counts.get(address) ?? 0) + 1);
  }
  return counts;
}

function readTables(): string[] {
  return TABLES.flatMap((table) => {
    try {
      return [readFileSync(table, 'latin1')];
    } catch {
      // A table is missing without IPv6, both outside Linux.
      return [];
    }
  });
}
