/**
 * The address of a client behind proxies. Any client may send `x-forwarded-for`: it counts only from trusted proxies.
 */

import { BlockList, isIP } from 'node:net';

/** The entry of one address in `x-forwarded-for`; some proxies add a port, and brackets with it. */
const ENTRY = /^\[?([^\]]*?)\]?(?::\d{1,5})?$/;

export interface AddressRange {
  readonly address: string;
  readonly bits: number;
}

export class TrustedProxies {
  readonly #ranges = new BlockList();
  readonly #isAny: boolean;

  constructor(ranges: readonly AddressRange[]) {
    this.#isAny = ranges.length > 0;
    for (const { address, bits } of ranges) {
      this.#ranges.addSubnet(address, bits, familyOf(address));
    }
  }

  /** An IPv4 address also in the form that sockets for both families show. */
  has(address: string): boolean {
    return this.#isAny && isIP(address) !== 0 && this.#ranges.check(address, familyOf(address));
  }

  /**
   * Each proxy appends the address of its client, so the header is read from its end, up to the first address that is
   * no trusted proxy.
   *
   * @param peer the other end of the connection
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
