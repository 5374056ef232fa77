/**
 * The events with one name and correlation key of a tenant, and the waits for them. An event that arrives while steps
 * wait is sent to all of them; otherwise it is kept for the first wait. Its targets are stored before any message is
 * sent, until all have answered. If no target takes the event, because the waits have ended, it is kept again.
 */

import { routeOf, shardOf } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Turn } from '../runtime/turn.js';
import {
  EVENT_WAITS_MAX,
  type EventRow,
  type EventTakeRow,
  type EventWaitRow,
  OPEN_EVENTS_MAX,
} from './loads.js';
import { EVENT } from './tables.js';

type EventKeyDeps = Pick<Kernel, 'now' | 'shards'>;

export interface EventKeyRows {
  readonly events: readonly EventRow[];
  readonly waits: readonly EventWaitRow[];
  readonly takes: readonly EventTakeRow[];
}

export type EventStatus = 'pending' | 'consumed' | 'expired';

export interface OpenEvent {
  readonly id: string;
  /** The order in which events of a key are taken. */
  readonly seq: number;
  /** JSON text. */
  readonly payload: string;
  readonly expiresAt: UnixMs;
  status: EventStatus;
  matched: number;
  /** Waits that have not answered, each with its instance. */
  readonly targets: Map<string, string>;
  /** Whether a wait has taken or refused the event. */
  isUsed: boolean;
  /** Targets without a message yet. */
  readonly unsent: string[];
}

/** Maximum payload characters in flight, because each wait gets a copy. The next wait follows when one has answered. */
const CHARACTERS_IN_FLIGHT_MAX = 16 * 1024 * 1024;
const SENT_AT_ONCE_MIN = 64;
export type Outcome = 'taken' | 'refused' | 'gone';

export class EventKey {
  readonly #id: string;
  readonly #deps: EventKeyDeps;
  tenant: string | undefined;
  /** Open waits, each with its instance. */
  readonly #waits: Map<string, string>;
  /** Waits without an event in flight, oldest first. */
  readonly #free: Set<string>;
  /** Open events in their order, both kept and in flight. */
  readonly #events = new Map<string, OpenEvent>();
  readonly #changed = new Set<OpenEvent>();
  /** Whether the table has no further open events. */
  #isComplete: boolean;
  #isInDoubt = false;
  #lastSeq = 0;

  constructor(id: string, deps: EventKeyDeps, { events, waits }: EventKeyRows) {
    this.#id = id;
    this.#deps = deps;
    this.tenant = events[0]?.tenant_id;
    this.#waits = new Map(waits.map((row) => [row.id, row.instance_id]));
    this.#free = new Set(this.#waits.keys());
    this.#isComplete = events.length <= OPEN_EVENTS_MAX;
    for (const row of events.slice(0, OPEN_EVENTS_MAX)) this.#events.set(row.id, openEvent(row));
    this.#lastSeq = events.at(-1)?.seq ?? 0;
  }

  /** Resumes from the rows, and repeats unanswered messages. */
  settle(turn: Turn, { takes }: EventKeyRows): void {
    const now = this.#deps.now();
    for (const { event_id, wait_id } of takes) {
      const event = this.#events.get(event_id);
      if (event === undefined) continue;
      event.isUsed = true;
      if (event.targets.delete(wait_id)) this.#changed.add(event);
    }
    for (const event of this.#events.values()) {
      if (event.status === 'consumed') this.#settleEvent(turn, event);
      if (event.status === 'pending' && event.expiresAt <= now) {
        this.#end(event, 'expired');
        turn.count('engine_events_expired_total');
      }
    }
    this.#match(turn);
  }

  /** Repeats the messages to waits that are still open. */
  #settleEvent(turn: Turn, event: OpenEvent): void {
    for (const wait of [...event.targets.keys()].reverse()) {
      if (this.#waits.has(wait)) {
        this.#free.delete(wait);
        event.unsent.push(wait);
      } else if (event.targets.delete(wait)) this.#changed.add(event);
    }
    this.#sendFirst(turn, event);
    this.#closeAnswered(event);
  }

  #sendFirst(turn: Turn, event: OpenEvent): void {
    const fitting = Math.floor(CHARACTERS_IN_FLIGHT_MAX / event.payload.length);
    const count = Math.min(Math.max(SENT_AT_ONCE_MIN, fitting), event.unsent.length);
    for (let sent = 0; sent < count; sent += 1) this.#sendNext(turn, event);
  }

  #sendNext(turn: Turn, event: OpenEvent): void {
    const wait = event.unsent.pop();
    if (wait !== undefined) this.#send(turn, event, wait);
  }

  get isIdle(): boolean {
    return this.#free.size === this.#waits.size;
  }

  /** After all earlier events of the key. */
  nextSeq(): number {
    this.#lastSeq = Math.max(this.#lastSeq + 1, Math.floor(this.#deps.now() * 1_000));
    return this.#lastSeq;
  }

  reserve(): Map<string, string> {
    const targets = new Map<string, string>();
    for (const wait of this.#free) {
      if (targets.size === EVENT_WAITS_MAX) break;
      targets.set(wait, this.#waits.get(wait)!);
    }
    for (const wait of targets.keys()) this.#free.delete(wait);
    return targets;
  }

  /** The event was not stored: its waits are free again. */
  free(turn: Turn, waits: Iterable<string>): void {
    for (const wait of waits) if (this.#waits.has(wait)) this.#free.add(wait);
    this.#match(turn);
  }

  /** An event was committed after the reload of its key, which may or may not include it: the rows are read again. */
  reread(): void {
    this.#isInDoubt = true;
  }

  /** Called when an event with a number of this actor is stored. */
  stored(turn: Turn, event: OpenEvent): void {
    if (this.#events.has(event.id)) return;
    const isKept = event.status === 'pending';
    // After unread rows, the event is read later in its order.
    if (isKept && (!this.#isComplete || this.#events.size >= OPEN_EVENTS_MAX)) {
      this.#isComplete = false;
      return;
    }
    this.#events.set(event.id, event);
    if (isKept) this.#match(turn);
    else {
      event.unsent.push(...[...event.targets.keys()].reverse());
      this.#sendFirst(turn, event);
    }
  }

  wanted(turn: Turn, wait: string, instance: string): void {
    if (this.#waits.has(wait)) return;
    this.#waits.set(wait, instance);
    this.#free.add(wait);
    this.#match(turn);
  }

  unwanted(wait: string): void {
    this.#waits.delete(wait);
    this.#free.delete(wait);
  }

  answered(turn: Turn, id: string, wait: string, outcome: Outcome): void {
    const event = this.#events.get(id);
    if (event === undefined || !event.targets.has(wait)) return;
    if (outcome === 'gone') {
      // The wait may have taken the event before, so the rows are read again.
      this.#isInDoubt = true;
      return;
    }
    event.targets.delete(wait);
    event.isUsed = true;
    if (outcome === 'taken') this.unwanted(wait);
    else if (this.#waits.has(wait)) this.#free.add(wait);
    this.#sendNext(turn, event);
    this.#closeAnswered(event);
    this.#match(turn);
  }

  flush(turn: Turn): 'done' | 'reload' {
    for (const { id, status, matched, targets } of this.#changed) {
      turn.put(EVENT.update, id, {
        id,
        status,
        matched,
        targets: targets.size === 0 ? null : [...targets],
        ended_at: status === 'pending' ? null : isoTime(this.#deps.now()),
      });
    }
    this.#changed.clear();
    const isShort = this.#events.size === 0 && !this.#isComplete;
    return this.#isInDoubt || isShort ? 'reload' : 'done';
  }

  /** When all targets have answered, closes the event, or keeps it again if none has used it. */
  #closeAnswered(event: OpenEvent): void {
    if (event.targets.size > 0) return;
    if (event.isUsed) {
      this.#end(event, 'consumed');
      return;
    }
    event.status = 'pending';
    event.matched = 0;
    this.#changed.add(event);
  }

  #end(event: OpenEvent, status: EventStatus): void {
    event.status = status;
    this.#changed.add(event);
    this.#events.delete(event.id);
  }

  /** Assigns kept events to free waits, both in order. */
  #match(turn: Turn): void {
    if (this.#free.size === 0) return;
    const now = this.#deps.now();
    for (const event of this.#events.values()) {
      if (event.status !== 'pending' || event.expiresAt <= now) continue;
      const [wait] = this.#free;
      if (wait === undefined) return;
      event.status = 'consumed';
      event.matched = 1;
      event.targets.set(wait, this.#waits.get(wait)!);
      this.#changed.add(event);
      this.#send(turn, event, wait);
    }
  }

  #send(turn: Turn, { id: event, targets, payload }: OpenEvent, wait: string): void {
    this.#free.delete(wait);
    const instance = targets.get(wait)!;
    const arrived = { key: this.#id, event, wait, instance, payload };
    const shard = shardOf(routeOf(instance), this.#deps.shards);
    turn.effects.push({ kind: 'peer', shard, message: { kind: 'event.arrived', ...arrived } });
  }
}

function openEvent(row: EventRow): OpenEvent {
  return {
    id: row.id,
    seq: row.seq,
    payload: row.payload ?? 'null',
    expiresAt: Date.parse(row.expires_at),
    status: row.status as EventStatus,
    matched: row.matched,
    targets: new Map(JSON.parse(row.targets ?? '[]') as [string, string][]),
    isUsed: false,
    unsent: [],
  };
}
