/**
 * One concurrency key of one tenant: the holders of its slots, and the waiting instances, oldest first. A slot that the
 * creation of its instance took is the request of the instance. Any other slot has a row, which is committed before the
 * instance is notified. The instance releases the slot when it has ended, or is paused without a running attempt. Request
 * numbers reveal late and repeated messages.
 */

import { routeOf, shardOf } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { SlotAsked } from '../runtime/slots.js';
import type { Turn } from '../runtime/turn.js';
import type { PermitHolderRow, PermitWaiterRow } from './loads.js';
import { PERMIT } from './tables.js';
import { isOlder, type Waiter, WaitingLine } from './waiting-line.js';

/** Each instance has a `max` of its own, and numbers its requests. */
export type SlotRequest = Extract<PeerMessage, { kind: 'permit.wanted' }>;

export interface KeyRows {
  readonly holders: readonly PermitHolderRow[];
  readonly waiters: readonly PermitWaiterRow[];
}

export interface Holder extends Waiter {
  /** Of the granted request. */
  readonly number: number;
  /** False: the request itself is the slot. */
  readonly hasPermit: boolean;
}

interface KeyDeps {
  readonly shards: number;
  readonly now: () => UnixMs;
}

/** What a lost message changes is noticed after this time. */
export const READ_AGAIN_MS = 5_000;

export class ConcurrencyKey {
  readonly #id: string;
  readonly #deps: KeyDeps;
  readonly #readAt: UnixMs;
  tenant: string | undefined;
  /** By instance. */
  readonly #holders: Map<string, Holder>;
  readonly #line: WaitingLine<SlotRequest>;
  /** Holders that make room for a newer instance. */
  readonly #leaving = new Set<string>();
  /** The rows have more: a newer request of a holder that lost its slot, or an unknown slot. */
  #isOutdated = false;

  /** @param pending slots whose creation is not settled yet; their rows may be missing */
  constructor(
    id: string,
    deps: KeyDeps,
    { holders, waiters }: KeyRows,
    pending: ReadonlyMap<string, Holder>,
  ) {
    this.#id = id;
    this.#deps = deps;
    this.#readAt = deps.now();
    // Rows of a removed instance have no tenant.
    this.tenant =
      [...holders, ...waiters].find((row) => row.tenant_id !== null)?.tenant_id ?? undefined;
    this.#holders = new Map(pending);
    const requests = waiters.map(
      (row): SlotRequest => ({
        kind: 'permit.wanted',
        key: id,
        instance: row.instance_id,
        tenant: row.tenant_id ?? '',
        number: row.number,
        max: row.max_concurrency,
        createdAt: Date.parse(row.created_at),
        whenFull: row.when_full,
      }),
    );
    this.#line = new WaitingLine(requests);
  }

  /** Repeats messages that may be lost. */
  settle(turn: Turn, { holders }: KeyRows): void {
    for (const { instance_id: instance, number, wanted, ...row } of holders) {
      const createdAt = row.created_at === null ? 0 : Date.parse(row.created_at);
      this.#holders.set(instance, { instance, number, createdAt, hasPermit: row.has_permit });
      // The instance has released the slot, but its message was lost.
      if (wanted !== number) {
        this.#free(turn, instance);
        this.#isOutdated ||= wanted !== null;
      }
      // The instance may not have received its slot.
      else if (row.is_awaited) this.#sendGranted(turn, instance, number);
    }
  }

  get isIdle(): boolean {
    return this.#holders.size === 0 && this.#line.first === undefined;
  }

  /** Admits in order: a younger instance with a higher limit does not overtake. */
  flush(turn: Turn): 'done' | 'reload' {
    if (this.#isOutdated) return 'reload';
    for (;;) {
      const next = this.#line.first;
      if (next === undefined || this.#holders.size >= next.max) break;
      this.#line.shift();
      this.#grant(turn, next);
    }
    if (this.#line.first !== undefined && this.#isOld) return 'reload';
    this.#makeRoom(turn);
    return this.#line.isUsedUp ? 'reload' : 'done';
  }

  /**
   * A creation takes a slot, unless others wait for it.
   * @returns `outdated` if the rows have to be read first, which may have fewer holders
   */
  take({ tenant, instance, max, createdAt }: SlotAsked): Taken {
    this.tenant ??= tenant;
    if (this.#holders.has(instance) || this.#line.find(instance) !== undefined) return 'known';
    const [next] = this.#line.all;
    // Searched only when it is full: a key may have many holders.
    const isFull = next !== undefined || this.#holders.size >= max;
    if (isFull && (this.#isOutdated || this.#isOld)) return 'outdated';
    const holder = isFull ? (this.#newestHolder ?? next?.instance) : undefined;
    if (holder !== undefined) return { holder };
    const number = FIRST_REQUEST;
    this.#holders.set(instance, { instance, number, createdAt, hasPermit: false });
    return 'free';
  }

  reread(): void {
    this.#isOutdated = true;
  }

  /** The creation that took the slot needs none, or was not committed. */
  untake(instance: string): void {
    this.#holders.delete(instance);
    this.#leaving.delete(instance);
  }

  wanted(turn: Turn, request: SlotRequest): void {
    this.tenant ??= request.tenant;
    const held = this.#holders.get(request.instance)?.number;
    if (held !== undefined) {
      if (held === request.number) this.#sendGranted(turn, request.instance, held);
      if (held >= request.number) return;
      this.#free(turn, request.instance);
    }
    const known = this.#line.find(request.instance);
    if (known === undefined || known.number < request.number) this.#line.put(request);
  }

  /** The instance withdraws the request or releases the slot. */
  left(turn: Turn, instance: string, number: number): void {
    if (this.#holders.get(instance)?.number === number) {
      this.#free(turn, instance);
      return;
    }
    const known = this.#line.find(instance);
    if (known !== undefined && known.number <= number) this.#line.remove(instance);
  }

  /**
   * Acts on arrivals while there is no room (`Concurrency.when_full`). Rows have the same information, so a lost message
   * is repeated, to the same instances.
   */
  #makeRoom(turn: Turn): void {
    if (this.#line.all.some(({ whenFull }) => whenFull === 'cancel_newest')) {
      this.#deny(turn, ({ whenFull }) => whenFull === 'cancel_newest', 'cancel_newest');
    }
    if (!this.#line.all.some(({ whenFull }) => whenFull === 'cancel_oldest')) return;
    const newest = this.#line.isComplete ? this.#line.all.at(-1) : undefined;
    this.#deny(turn, (request) => request !== newest, 'cancel_oldest');
    if (newest?.whenFull !== 'cancel_oldest') return;
    const tooMany = this.#holders.size + 1 - newest.max - this.#leaving.size;
    if (tooMany <= 0) return;
    const staying = [...this.#holders.values()]
      .filter(({ instance }) => !this.#leaving.has(instance))
      .sort((a, b) => (isOlder(a, b) ? -1 : 1));
    for (const { instance, number } of staying.slice(0, tooMany)) {
      this.#leaving.add(instance);
      this.#send(turn, { kind: 'permit.denied', instance, number, why: 'cancel_oldest' });
    }
  }

  #deny(turn: Turn, isDenied: (request: SlotRequest) => boolean, why: Denial): void {
    for (const request of this.#line.all) {
      if (!isDenied(request)) continue;
      const { instance, number } = request;
      this.#send(turn, { kind: 'permit.denied', instance, number, why });
    }
    this.#line.keep((request) => !isDenied(request));
  }

  get #newestHolder(): string | undefined {
    let newest: Holder | undefined;
    for (const holder of this.#holders.values()) {
      if (newest === undefined || isOlder(newest, holder)) newest = holder;
    }
    return newest?.instance;
  }

  /** A holder may have ended unnoticed. */
  get #isOld(): boolean {
    const { now } = this.#deps;
    return now() - this.#readAt >= READ_AGAIN_MS;
  }

  #free(turn: Turn, instance: string): void {
    const hasPermit = this.#holders.get(instance)?.hasPermit === true;
    this.untake(instance);
    if (hasPermit) turn.put(PERMIT.clear, instance, { instance_id: instance });
  }

  #grant(turn: Turn, { instance, number, createdAt }: SlotRequest): void {
    this.#holders.set(instance, { instance, number, createdAt, hasPermit: true });
    turn.put(PERMIT.set, instance, { instance_id: instance, key_id: this.#id, number });
    this.#sendGranted(turn, instance, number);
  }

  #sendGranted(turn: Turn, instance: string, number: number): void {
    this.#send(turn, { kind: 'permit.granted', instance, number });
  }

  #send(turn: Turn, message: PeerMessage & { readonly instance: string }): void {
    const shard = shardOf(routeOf(message.instance), this.#deps.shards);
    turn.effects.push({ kind: 'peer', shard, message });
  }
}

type Taken = 'free' | 'known' | 'outdated' | { readonly holder: string };

type Denial = Extract<PeerMessage, { kind: 'permit.denied' }>['why'];

/** The number of the request of a new instance. */
export const FIRST_REQUEST = 1;
