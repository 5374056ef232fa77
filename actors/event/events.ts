/**
 * The events of one shard, by the hash of tenant, name and correlation key. Each event is stored by its own unit, which
 * detects duplicates, and is then processed by the actor of its key, which an event or a wait loads. Messages may be
 * lost, so a periodic scan finds keys with pending work.
 */

import { EVENT_TTL_SECS_DEFAULT, type ReceivedEvent } from '../../schema/event.js';
import { DATABASE_AWAY, type EngineError, tooLarge } from '../../src/base/errors.js';
import { eventId, eventKeyId, eventNameId } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import { KeyActors } from '../runtime/key-actors.js';
import type { Messages, Room } from '../runtime/room.js';
import { type NowOptions, Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { EventKey, type EventKeyRows, type OpenEvent } from './key.js';
import type { EventListenerRow, EventLoads } from './loads.js';
import { COLLECTED_CANCEL, EVENT, EVENT_CANCEL } from './tables.js';

/** The remaining triggers of an event. */
export interface FiredEvent {
  readonly id: string;
  /** Slugs; null for none. */
  readonly fires: readonly string[] | null;
}

type StoredEventRow = Awaited<ReturnType<EventLoads['storedEvent']>>;

interface NewEvent {
  readonly request: number;
  readonly tenant: string;
  readonly received: ReceivedEvent;
  /** JSON text. */
  readonly payload: string;
  readonly listeners: Listeners;
}

interface Listeners {
  /** Slugs of triggers. */
  readonly fires: readonly string[];
  /** Whether instances or collected creations await the event to be cancelled. */
  readonly cancels: boolean;
}

export class Events implements Room {
  readonly #deps: Kernel<EventLoads>;
  readonly #keys: KeyActors<EventKey, EventKeyRows>;
  readonly #service: Service;
  /** By key, resolved after the last event was sent to it: lookups delay only later events of the same key. */
  readonly #lastSent = new Map<string, Promise<void>>();

  readonly messages = {
    'event.wanted': ({ key: id, wait, instance }) =>
      this.#keys.tell(id, 'wanted', (key, turn) => key.wanted(turn, wait, instance)),
    // A key that is not in memory reads the waits when it is loaded.
    'event.unwanted': ({ key: id, wait }) => {
      if (this.#keys.isResident(id)) this.#keys.tell(id, 'unwanted', (key) => key.unwanted(wait));
    },
    'event.taken': ({ key: id, event, wait, outcome }) =>
      this.#keys.tell(id, 'taken', (key, turn) => key.answered(turn, event, wait, outcome)),
  } satisfies Messages;

  constructor(deps: Kernel<EventLoads>) {
    this.#deps = deps;
    this.#service = new Service('events', deps);
    const { loader, now } = deps;
    this.#keys = new KeyActors<EventKey, EventKeyRows>(
      {
        noun: 'event key',
        prefix: 'events',
        residentMax: 1_000,
        everyMs: 30_000,
        read: async (id) => {
          // Waits are read after events, so that a wait that has taken one of the events is not open.
          const events = await loader.openEvents(id);
          const waits = await loader.eventWaits(id);
          const sent = events.filter(({ targets }) => targets !== null).map((row) => row.id);
          return { events, waits, takes: await loader.eventTakes(sent) };
        },
        restore: (id, rows) => new EventKey(id, deps, rows),
        page: (after, limit) => loader.dueEventKeys(after, now(), limit),
      },
      deps,
    );
  }

  get parts() {
    return [this.#keys];
  }

  /** Messages of a restarted shard may be lost. */
  peerBack(): void {
    this.#keys.reloadAll();
    this.#keys.start();
  }

  /** @param isQuiet it fires no triggers @throws EngineError 413 */
  receive(request: number, tenant: string, event: ReceivedEvent, isQuiet = false): void {
    const { event_name: name, correlation_key: key } = event;
    const payload = JSON.stringify(event.payload ?? null);
    const { schedule, settings } = this.#deps;
    const { maxOutputBytes: max } = settings;
    const bytes = Buffer.byteLength(payload);
    if (max > 0 && bytes > max) throw tooLarge(`payload is ${bytes} bytes, the limit is ${max}`);
    const id = eventKeyId(tenant, name, key ?? undefined);
    this.#keys.expect(id);
    const found = this.#listenersTo(tenant, event, isQuiet).catch(() => undefined);
    // Lookups may end in another order than that of arrival.
    const before = this.#lastSent.get(id);
    const sent = Promise.all([found, before]).then(([listeners]) => {
      if (this.#lastSent.get(id) === sent) this.#lastSent.delete(id);
      schedule(() => {
        if (listeners === undefined) this.#fail(request, DATABASE_AWAY);
        else {
          const made = { request, tenant, received: event, payload, listeners };
          this.#keys.tell(id, 'receive', (key) => this.#insert(id, key, made), request);
        }
      });
    });
    this.#lastSent.set(id, sent);
  }

  /** Needs no order with other units of the row, because only this one changes the column. */
  fired(request: number, { id, fires }: FiredEvent): void {
    const turn = new Turn();
    turn.put(EVENT.fired, id, { id, fires: fires && [...fires] });
    turn.reply(request, 200, '');
    this.#service.commitNow(turn, { key: `event:${id}` });
  }

  /** Read from committed rows, so that every instance whose creation was answered before is found. */
  async #listenersTo(tenant: string, event: ReceivedEvent, isQuiet: boolean): Promise<Listeners> {
    const { event_name: name, correlation_key } = event;
    const key = correlation_key ?? undefined;
    const rows = await this.#deps.loader.eventListeners({ tenant, name, key });
    const firedBy = ({ slug, config }: EventListenerRow) => {
      if (isQuiet || slug === null || config === null) return [];
      const { correlation_key: wanted } = JSON.parse(config) as JsonObject;
      return wanted == null || wanted === key ? [slug] : [];
    };
    return { fires: rows.flatMap(firedBy), cancels: rows.some(({ slug }) => slug === null) };
  }

  /** Committed on its own, so that a duplicate does not fail other events of its key. */
  #insert(keyId: string, key: EventKey, made: NewEvent): void {
    const { request, tenant, received, payload, listeners } = made;
    const { fires, cancels } = listeners;
    key.tenant ??= tenant;
    const now = this.#deps.now();
    const id = eventId(tenant, received.producer_event_id);
    const targets = key.reserve();
    const matched = targets.size;
    const status = matched > 0 ? 'consumed' : 'pending';
    const expiresAt = now + 1_000 * (received.ttl_seconds ?? EVENT_TTL_SECS_DEFAULT);
    const seq = key.nextSeq();
    const sending = { targets, isUsed: false, unsent: [] };
    const event: OpenEvent = { id, seq, payload, expiresAt, status, matched, ...sending };
    const turn = new Turn(tenant);
    turn.gate = 'exists';
    turn.put(EVENT.insert, id, {
      id,
      key_id: keyId,
      seq,
      tenant_id: tenant,
      event_name: received.event_name,
      producer_event_id: received.producer_event_id,
      correlation_key: received.correlation_key ?? null,
      payload: received.payload ?? null,
      status,
      matched,
      targets: matched === 0 ? null : [...targets],
      created_at: isoTime(now),
      expires_at: isoTime(expiresAt),
      ended_at: matched === 0 ? null : isoTime(now),
      fires: fires.length === 0 ? null : [...fires],
    });
    if (cancels) {
      for (const key of [keyId, eventNameId(tenant, received.event_name)]) {
        const order = { event_id: id, key_id: key };
        turn.put(EVENT_CANCEL.order, `${id}:${key}`, order);
        turn.put(COLLECTED_CANCEL.order, `${id}:${key}`, order);
      }
    }
    turn.count('engine_events_received_total');
    const waits = [...targets.keys()];
    const settled: NowOptions['settled'] = (error, ack) => {
      if (error === undefined) {
        this.#received(keyId, key, made, event, waits);
        return;
      }
      // After a lost outcome, the rows show whether the event was stored.
      if (ack.outcome === 'lost') this.#keys.reload(keyId);
      else this.#keys.tell(keyId, 'free', (state, own) => state.free(own, waits));
      if (ack.outcome === 'exists') this.#repeat(request, id);
      else this.#fail(request, error);
    };
    this.#service.commitNow(turn, { key: `event:${id}`, settled });
  }

  /** Answers the producer of a durable event and notifies the waits. */
  #received(
    keyId: string,
    by: EventKey,
    made: NewEvent,
    event: OpenEvent,
    waits: readonly string[],
  ): void {
    const { request, listeners } = made;
    const { fires, cancels } = listeners;
    const triggers = fires.length === 0 ? undefined : fires.length;
    const { id: event_id, matched } = event;
    const first = { matched_wait: waits[0], satisfied: matched > 0, matched, triggers };
    const reply = (cancelled?: number) => {
      const body = JSON.stringify({ event_id, duplicate: false, ...first, cancelled });
      const given = { kind: 'reply', request, status: 201, body } as const;
      this.#deps.release([triggers === undefined ? given : { ...given, fires: true }]);
    };
    if (cancels) this.#cancel(request, event_id, reply);
    else reply();
    this.#keys.tell(keyId, 'stored', (key, turn) =>
      key === by ? key.stored(turn, event) : key.reread(),
    );
  }

  /** The orders are carried out by the shards that have the instances. */
  #cancel(request: number, id: string, reply: (cancelled?: number) => void): void {
    const { release, shards } = this.#deps;
    for (let shard = 0; shard < shards; shard++) {
      release([
        { kind: 'peer', shard, message: { kind: 'event.cancels' } },
        { kind: 'peer', shard, message: { kind: 'start.cancels' } },
      ]);
    }
    this.#read(request, id, (row) => reply(row?.cancelled || undefined));
  }

  #repeat(request: number, id: string): void {
    this.#read(request, id, (row) => {
      const matched = row?.status === 'consumed' ? row.matched : 0;
      const cancelled = row?.cancelled || undefined;
      const now = { duplicate: true, satisfied: matched > 0, matched, cancelled };
      const body = JSON.stringify({ event_id: id, ...now });
      this.#deps.release([{ kind: 'reply', request, status: 200, body }]);
    });
  }

  #read(request: number, id: string, then: (row: StoredEventRow) => void): void {
    const { loader, schedule } = this.#deps;
    loader.storedEvent(id).then(
      (row) => schedule(() => then(row)),
      () => schedule(() => this.#fail(request, DATABASE_AWAY)),
    );
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }
}
