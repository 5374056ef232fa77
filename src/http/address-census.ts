/**
 * Counts connections by address for a backend that does not report which connection has closed. The count is an upper
 * bound; when it reaches the limit, Linux is asked which connections are open. Other systems have no such table: only
 * the limit of all connections holds there.
 */

import { readFileSync } from 'node:fs';

/** A census takes some 10 ms for 10,000 connections of the machine. */
const CENSUS_INTERVAL_MS = 200;
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** Established, and closed by the other side only. */
const OPEN_STATES = new Set(['01', '08']);
const IPV4_MAPPED = `${'0'.repeat(20)}ffff`;

export class AddressCensus {
  readonly #read: () => readonly string[];
  readonly #places = new Map<string, (() => void)[]>();
  #unknown = 0;
  #countedAtMs = Number.NEGATIVE_INFINITY;

  /** @param read the tables of the system; throws where there are none */
  constructor(read: () => readonly string[] = readTables) {
    this.#read = read;
  }

  /** @param address as `addressKey` writes it */
  came(address: string, place: () => void): void {
    const places = this.#places.get(address);
    if (places === undefined) this.#places.set(address, [place]);
    else places.push(place);
  }

  /** A connection of an unknown address has closed. */
  left(): void {
    this.#unknown += 1;
  }

  /** Places of connections that have closed. */
  get stale(): number {
    return this.#unknown;
  }

  /**
   * Gives back the places of connections that have closed, unless that was done a moment ago.
   *
   * @param placeless how many connections of an address are open without a place
   * @returns whether places were given back
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

/** One spelling for the bytes of an address, be it IPv4 or IPv4 in IPv6. */
export function addressKey(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return hex.startsWith(IPV4_MAPPED) ? hex.slice(IPV4_MAPPED.length) : hex;
}

/** How many connections to the port each address has, out of the tables of the system. */
export function openByAddress(tables: readonly string[], port: number): Map<string, number> {
  const counts = new Map<string, number>();
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  for (const line of tables.flatMap((table) => table.split('\n'))) {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/);
    if (!local.endsWith(`:${wanted}`) || !OPEN_STATES.has(state)) continue;
    const words = remote.slice(0, remote.indexOf(':')).match(/.{8}/g) ?? [];
    // The table shows each word as the number that its bytes are in memory.
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
      // Without IPv6 there is one of them.
      return [];
    }
  });
}
