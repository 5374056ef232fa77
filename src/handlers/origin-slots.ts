/**
 * Bounds how many requests are under way, over all origins and for each of them, so that one slow
 * server can neither exhaust the sockets nor stop the requests to its neighbours. Requests beyond the
 * bounds wait, first come first served within an origin, and origins take turns.
 */

export interface SlotLimits {
  readonly activeMax: number;
  readonly activePerOriginMax: number;
  readonly waitingMax: number;
}

export type SlotRefusal = 'aborted' | 'full' | 'closed';

export type Slot =
  | { readonly ok: true; readonly release: () => void }
  | { readonly ok: false; readonly reason: SlotRefusal };

/** A lane exists while requests of its origin are active or waiting. Sets keep the order of arrival. */
interface Lane {
  readonly origin: string;
  active: number;
  readonly waiting: Set<Waiter>;
}

type Waiter = (slot: Slot) => void;

export class OriginSlots {
  readonly #limits: SlotLimits;
  /** In the order of turns: a lane that was served moves to the end. */
  readonly #lanes = new Map<string, Lane>();
  #active = 0;
  #waiting = 0;
  #isClosed = false;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Answers a slot, when there is one, or why there will be none. The holder must release it. */
  acquire(origin: string, signal: AbortSignal): Promise<Slot> {
    if (this.#isClosed) return refused('closed');
    if (signal.aborted) return refused('aborted');
    const lane = this.#lane(origin);
    if (this.#hasRoom(lane)) return Promise.resolve(this.#grant(lane));
    if (this.#waiting >= this.#limits.waitingMax) {
      this.#discardIfIdle(lane);
      return refused('full');
    }
    return this.#wait(lane, signal);
  }

  /** Refuses all who wait, and all who come. Who holds a slot keeps it. */
  close(): void {
    this.#isClosed = true;
    for (const lane of this.#lanes.values()) {
      for (const waiter of lane.waiting) waiter({ ok: false, reason: 'closed' });
    }
  }

  #wait(lane: Lane, signal: AbortSignal): Promise<Slot> {
    return new Promise((resolve) => {
      const onAbort = () => waiter({ ok: false, reason: 'aborted' });
      const waiter: Waiter = (slot) => {
        signal.removeEventListener('abort', onAbort);
        lane.waiting.delete(waiter);
        this.#waiting -= 1;
        this.#discardIfIdle(lane);
        resolve(slot);
      };
      signal.addEventListener('abort', onAbort);
      lane.waiting.add(waiter);
      this.#waiting += 1;
    });
  }

  #grant(lane: Lane): Slot {
    lane.active += 1;
    this.#active += 1;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      lane.active -= 1;
      this.#active -= 1;
      this.#serveNext();
      this.#discardIfIdle(lane);
    };
    return { ok: true, release };
  }

  /** One slot came free, so at most one waiter can go. */
  #serveNext(): void {
    if (this.#waiting === 0) return;
    for (const lane of this.#lanes.values()) {
      const [waiter] = lane.waiting;
      if (waiter === undefined || !this.#hasRoom(lane)) continue;
      this.#lanes.delete(lane.origin);
      this.#lanes.set(lane.origin, lane);
      waiter(this.#grant(lane));
      return;
    }
  }

  #hasRoom(lane: Lane): boolean {
    return this.#active < this.#limits.activeMax && lane.active < this.#limits.activePerOriginMax;
  }

  #lane(origin: string): Lane {
    const existing = this.#lanes.get(origin);
    if (existing !== undefined) return existing;
    const lane: Lane = { origin, active: 0, waiting: new Set() };
    this.#lanes.set(origin, lane);
    return lane;
  }

  #discardIfIdle(lane: Lane): void {
    if (lane.active === 0 && lane.waiting.size === 0) this.#lanes.delete(lane.origin);
  }
}

function refused(reason: SlotRefusal): Promise<Slot> {
  return Promise.resolve({ ok: false, reason });
}
