/**
 * Bounds the open connections: in all, so that file descriptors are left for everything else, and of one address, so
 * that one client cannot take the places of all others. A connection past a bound gets one answer, which is the
 * refusal unless it requests the health of the engine, and is closed.
 */

import { readFileSync } from 'node:fs';
import { EngineError, unavailable } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import { LineLimit } from '../base/log.js';
import { FairSlots } from '../base/quota/fair-slots.js';
import { AddressCensus } from './address-census.js';
import { SpareConnections } from './spare-connections.js';

const RETRY_AFTER_MS = 1_000;
const REFUSED_LINES_PER_SECOND = 1;

export interface ConnectionBounds {
  readonly max: number;
  readonly perAddressMax: number;
}

export interface WantedConnections {
  /** `ENGINE_MAX_CONNECTIONS` */
  readonly max: number;
  /** `ENGINE_MAX_CONNECTIONS_PER_ADDRESS`; 0: three quarters of all. */
  readonly perAddressMax: number;
}

/** @param descriptors how many files the process may open; undefined: unknown */
export function connectionBounds(
  wanted: WantedConnections,
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

/** How many files this process may open; Node has raised its own limit by then. */
export function descriptorLimit(): number | undefined {
  try {
    const text = readFileSync('/proc/self/limits', 'utf8');
    const soft = /^Max open files +(\d+)/m.exec(text)?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // Not Linux: the configured bound holds.
    return undefined;
  }
}

interface ConnectionsLog {
  warn(fields: object, message: string): void;
}

export class Connections {
  readonly bounds: ConnectionBounds;
  /** Since the start. */
  refused = 0;
  /** Of those that were refused. */
  readonly spare = new SpareConnections();
  readonly #slots: FairSlots;
  readonly #log: ConnectionsLog;
  readonly #census = new AddressCensus();
  readonly #lines = new LineLimit(REFUSED_LINES_PER_SECOND);

  constructor(bounds: ConnectionBounds, log: ConnectionsLog) {
    this.bounds = bounds;
    this.#slots = new FairSlots([{ activeMax: bounds.max }, { activeMax: bounds.perAddressMax }]);
    this.#log = log;
  }

  get open(): number {
    return this.#slots.active - this.#census.stale;
  }

  /**
   * @param address undefined: of a trusted proxy, whose connections are bounded by all
   * @returns what gives the place back once the connection is closed, or why there is none
   */
  admit(address: string | undefined, nowMs: number): (() => void) | EngineError {
    return this.#slots.take(address === undefined ? [] : [address]) ?? this.#refuse(nowMs);
  }

  /**
   * For a backend that does not report which connection has closed: it calls `left` for each that was admitted.
   *
   * @param address as `addressKey` writes it
   * @param isProxy of a trusted proxy, whose connections are bounded by all
   * @param port where the connections come in
   * @returns why there is no place
   */
  admitUntold(
    address: string,
    isProxy: boolean,
    port: number,
    nowMs: number,
  ): EngineError | undefined {
    const path = isProxy ? [] : [address];
    let place = this.#slots.take(path);
    // The new connection is among those that the system reports.
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
