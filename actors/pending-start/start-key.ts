/**
 * The creations of one key that a sequence collects, until they start instances. Each creation is one unit, answered
 * when it is durable with the id of the instance. The start is one unit, too: it inserts the instance and removes the
 * collected rows, so that each creation is in exactly one started instance. Contexts stay in the rows until then.
 *
 *   open ──wait_ms, max_wait_ms, size, or the next one does not fit──► due ──read──► started
 *                                                                       ▲               │
 *                                                                       └─ refused: later
 *
 * Events of `cancel_on` leave orders as rows, which are read before a start, and whenever an event sends a hint: the
 * creations that they name are taken out. When none is left, an instance is inserted that never runs: it has the orders
 * that cancel it, so that its id, its keys and its end are those of a cancelled instance.
 */

import type { PendingStart } from '../../schema/pending-start.js';
import { notFound, unavailable } from '../../src/base/errors.js';
import { type IdGenerator, routeOf } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { isForeign } from '../../src/base/tenancy.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { startOf } from '../../src/core/collecting.js';
import { idempotencyKeyOf } from '../../src/core/creation-key.js';
import type { Plan } from '../../src/core/plan.js';
import { COLLECTED_CANCEL, COLLECTED_WAIT, EVENT_CANCEL } from '../event/tables.js';
import { cancelKeys, putCancelWaits } from '../instance/cancel-waits.js';
import type { Collected } from '../instance/collected.js';
import { collectedText, putFirstTimer } from '../instance/creation.js';
import { givenContext, type NewInstance, newRecord, wholeLine } from '../instance/record.js';
import { putSearchTerms } from '../instance/search-terms.js';
import { INSTANCE, INSTANCE_KEY } from '../instance/tables.js';
import type { PendingUnit } from '../runtime/commit-log.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import type { Item, LoadedStart, PendingRow, StartOrder } from './loads.js';
import { COLLECTED_ITEM, PENDING_START, START_KEY } from './tables.js';

export interface StartKeyDeps {
  readonly now: () => UnixMs;
  readonly ids: IdGenerator;
  readonly shard: number;
  /** Maximum size of a context; 0: unlimited. */
  readonly maxContextBytes: number;
  readonly wakeAt: (key: string, at: UnixMs) => void;
  /** Reads the orders and the creation of a start; `withdraw`, `cancelled`, `started` or `later` follows. */
  readonly read: (key: string, start: Start) => void;
}

/** `start`: it is due, so that no creation joins it. `orders`: only its orders are wanted. */
type Reading = 'start' | 'orders';

/** A pending start in memory. */
export interface Start {
  row: PendingRow;
  /** Units in flight that change its rows. */
  unsettled: number;
  reading: Reading | undefined;
  /** Some of its creations name events of `cancel_on`. */
  isAwaiting: boolean;
  /** An event may have left orders that are not read yet. */
  isOrdered: boolean;
  /** It is not tried again before. */
  notBefore: UnixMs;
  /** The earliest timer that was set for it. */
  armedFor: UnixMs;
}

/** A unit in flight. */
interface Step {
  readonly starts: readonly Start[];
  /** It inserts the instance of this start. */
  readonly started?: string;
  readonly repeated?: { readonly request: number; readonly instance: NewInstance } | undefined;
}

/** `gated`: the unit is committed only if its idempotency key is new. */
type Certainty = 'gated' | 'certain';

const certaintyOf = ({ repeated }: Step): Certainty =>
  repeated === undefined ? 'certain' : 'gated';

const NEVER = Number.POSITIVE_INFINITY;
const NEW_START = {
  unsettled: 0,
  reading: undefined,
  isAwaiting: false,
  isOrdered: false,
  notBefore: 0,
  armedFor: NEVER,
};
/** What was refused is tried again after this time: a sequence may be stored again. */
const AGAIN_MS = 30_000;
/** The sequence is being deleted, or rows could not be read. */
export const LATER_MS = 1_000;
/** Only starts that cannot start pile up. */
const STARTS_MAX = 1_000;
/** Without a limit of contexts: a list of this size is still read at once. */
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** `{"data":{"items":[]},"config":}` */
const AROUND_BYTES = 40;

export class StartKey {
  readonly #id: string;
  readonly #deps: StartKeyDeps;
  tenant: string | undefined;
  readonly #starts = new Map<string, Start>();
  /** The step of the current turn. */
  #step: Step | undefined;
  readonly #steps = new Map<PendingUnit, Step>();

  constructor(id: string, deps: StartKeyDeps, rows: readonly LoadedStart[]) {
    this.#id = id;
    this.#deps = deps;
    this.tenant = rows[0]?.tenant_id;
    for (const { is_awaiting: isAwaiting, ...row } of rows) {
      const notBefore = row.error === null ? 0 : deps.now() + AGAIN_MS;
      this.#starts.set(row.id, { ...NEW_START, row, isAwaiting, notBefore });
    }
  }

  get isIdle(): boolean {
    return [...this.#starts.values()].every(({ reading }) => reading === undefined);
  }

  arm(): void {
    for (const start of this.#starts.values()) this.#arm(start);
  }

  /** A creation that puts the start off sets no other timer: the earlier one sets it. */
  #arm(start: Start): void {
    const at = Math.max(Date.parse(start.row.starts_at), start.notBefore);
    if (at >= start.armedFor) return;
    start.armedFor = at;
    this.#deps.wakeAt(this.#id, at);
  }

  decided(unit: PendingUnit): Certainty {
    const step = this.#step;
    this.#step = undefined;
    if (step === undefined) return 'certain';
    this.#steps.set(unit, step);
    for (const start of step.starts) start.unsettled += 1;
    return certaintyOf(step);
  }

  committed(unit: PendingUnit): Certainty {
    const step = this.#settled(unit);
    if (step === undefined) return 'certain';
    for (const start of step.starts) {
      start.unsettled -= 1;
      if (!this.#starts.has(start.row.id)) continue;
      this.#arm(start);
      if (start.isOrdered) this.#read(start, 'orders');
    }
    return certaintyOf(step);
  }

  /** A unit that was not committed. */
  failed(unit: PendingUnit): Pick<Step, 'started' | 'repeated'> | undefined {
    return this.#settled(unit);
  }

  #settled(unit: PendingUnit): Step | undefined {
    const step = this.#steps.get(unit);
    this.#steps.delete(unit);
    return step;
  }

  collect(turn: Turn, request: number, collected: Collected): void {
    const { instance, isKeyed, collecting } = collected;
    this.tenant ??= instance.body.tenant_id;
    const now = this.#deps.now();
    const { data, config } = givenContext(instance.body);
    const isBatch = collecting.kind === 'batch';
    const bytes = isBatch ? bytesOf(data) + 1 : 0;
    const latest = [...this.#starts.values()].at(-1);
    const open = latest !== undefined && isOpen(latest, now) ? latest : undefined;
    const fits = open !== undefined && (!isBatch || open.row.bytes + bytes <= this.#bytesMax);
    const start = fits ? open : this.#newStart(collected, now, bytesOf(config));
    if (isKeyed) this.#putKey(turn, instance, start, now);
    // A batch that has no room for the next creation starts at once.
    if (open !== undefined && !fits) this.#update(turn, open, { starts_at: isoTime(now) });
    this.#add(turn, start, collected, bytes, now);
    const starts = open === undefined || fits ? [start] : [start, open];
    this.#step = { starts, repeated: isKeyed ? { request, instance } : undefined };
    turn.count('engine_collected_creations_total');
    turn.reply(request, 202, collectedText(start.row.id, false, start.row.starts_at));
  }

  #putKey(turn: Turn, { id, body }: NewInstance, start: Start, now: UnixMs): void {
    const idempotency_key = idempotencyKeyOf(body) ?? '';
    const { id: instance_id, tenant_id } = start.row;
    turn.gate = 'exists';
    const row = { id, instance_id, tenant_id, idempotency_key, created_at: isoTime(now) };
    turn.put(INSTANCE_KEY.insert, id, row);
  }

  get #bytesMax(): number {
    return this.#deps.maxContextBytes || BATCH_BYTES_MAX;
  }

  /** @throws EngineError 503 */
  #newStart(collected: Collected, now: UnixMs, configBytes: number): Start {
    const { instance, sequence, key, collecting } = collected;
    if (this.#starts.size >= STARTS_MAX) {
      const what = `${STARTS_MAX} instances of sequence ${sequence} wait to start`;
      throw unavailable('ENG_OVERLOADED', what);
    }
    const at = isoTime(now);
    const row: PendingRow = {
      id: this.#deps.ids.next(routeOf(this.#id)),
      key_id: this.#id,
      tenant_id: instance.body.tenant_id,
      namespace: instance.body.namespace,
      sequence,
      kind: collecting.kind,
      key,
      count: 0,
      cancelled: 0,
      bytes: AROUND_BYTES + configBytes,
      created_at: at,
      starts_at: at,
      error: null,
    };
    const start = { ...NEW_START, row };
    this.#starts.set(row.id, start);
    return start;
  }

  #add(turn: Turn, start: Start, collected: Collected, bytes: number, now: UnixMs): void {
    const { row } = start;
    const { collecting, instance } = collected;
    const count = row.count + 1;
    const seq = lastSeq(row) + 1;
    this.#await(turn, start, collected, seq);
    const first = Date.parse(row.created_at);
    const at = count >= collecting.size ? now : startOf(collecting, first, now);
    const changed = { count, bytes: row.bytes + bytes, starts_at: isoTime(at) };
    if (collecting.kind === 'batch') {
      const { data } = givenContext(instance.body);
      const item = { pending_id: row.id, seq, tenant_id: row.tenant_id, data };
      turn.put(COLLECTED_ITEM.insert, `${row.id}:${seq}`, item);
      if (seq > 1) {
        this.#update(turn, start, changed);
        return;
      }
    }
    start.row = { ...row, ...changed };
    turn.put(PENDING_START.set, row.id, { ...start.row, creation: creationOf(collected) });
  }

  /** Puts the events that take the creation out, in place of those of the one that it replaces. */
  #await(turn: Turn, start: Start, { instance, collecting, cancelOn }: Collected, seq: number) {
    const { id, tenant_id } = start.row;
    if (start.isAwaiting && collecting.kind === 'debounce') this.#unawait(turn, id, seq - 1);
    if (cancelOn === undefined) return;
    start.isAwaiting = true;
    const ofStart = cancelOn.map((event) =>
      event.k === undefined ? event : { ...event, k: event.k.replaceAll(instance.id, id) },
    );
    for (const key_id of cancelKeys(tenant_id, ofStart)) {
      const row = { pending_id: id, seq, key_id, tenant_id };
      turn.put(COLLECTED_WAIT.insert, `${id}:${seq}:${key_id}`, row);
    }
  }

  #unawait(turn: Turn, id: string, to: number, from = 0): void {
    const row = { pending_id: id, from_seq: from, to_seq: to };
    turn.put(COLLECTED_WAIT.clear, `${id}:${from}`, row);
  }

  #update(turn: Turn, start: Start, changes: Partial<PendingRow>): void {
    start.row = { ...start.row, ...changes };
    const { id, count, cancelled, bytes, starts_at, error } = start.row;
    turn.put(PENDING_START.update, id, { id, count, cancelled, bytes, starts_at, error });
  }

  /** Reads the creations of starts that are due, once their units are durable. */
  due(): void {
    const now = this.#deps.now();
    for (const start of this.#starts.values()) {
      const { row, notBefore, armedFor } = start;
      if (armedFor <= now) start.armedFor = NEVER;
      if (Date.parse(row.starts_at) > now || notBefore > now) this.#arm(start);
      else this.#read(start, 'start');
    }
  }

  /** An event has left orders for the start, which may have started. */
  ordered(turn: Turn, id: string): void {
    const start = this.#starts.get(id);
    if (start === undefined) {
      this.#handOver(turn);
      return;
    }
    start.isOrdered = true;
    this.#read(start, 'orders');
  }

  /** Behind the unit that starts the instance, which then has the orders. */
  #handOver({ effects }: Turn): void {
    effects.push({ kind: 'peer', shard: this.#deps.shard, message: { kind: 'start.cancels' } });
  }

  /** Its units are durable, so that the rows are what this actor has. */
  #read(start: Start, reading: Reading): void {
    if (start.reading !== undefined || start.unsettled > 0) return;
    start.reading = reading;
    start.isOrdered = false;
    this.#deps.read(this.#id, start);
  }

  /** Whether what was read for the start is still wanted. */
  isReading(start: Start): boolean {
    return this.#starts.get(start.row.id) === start && start.reading !== undefined;
  }

  /** No orders were read. @returns whether it starts now */
  isStarting(start: Start): boolean {
    if (start.reading === 'start' && !start.isOrdered) return true;
    this.#readAgain(start);
    return false;
  }

  #readAgain(start: Start): void {
    start.reading = undefined;
    this.#arm(start);
    if (start.isOrdered) this.#read(start, 'orders');
  }

  /** Whether the orders leave no creation: newer ones than those that were read may have come. */
  isCancelledBy(
    { row: { kind, count, ...row } }: Start,
    orders: readonly StartOrder[],
    items: readonly Item[],
  ) {
    const ordered = new Set(orders.map(({ seq }) => seq));
    if (kind === 'debounce') return ordered.has(lastSeq({ ...row, count }));
    return items.filter(({ seq }) => ordered.has(seq)).length === count;
  }

  /** @param instance with the id of the start and its route, whose keys can be rendered */
  started(turn: Turn, start: Start, instance: NewInstance, plan: Plan): void {
    const record = newRecord(instance, this.#deps.now(), plan);
    turn.put(INSTANCE.insert, record.id, wholeLine(record));
    const wake = putFirstTimer(turn, record, plan);
    turn.count('engine_collected_starts_total');
    this.#inserted(turn, start, wake);
  }

  #inserted(turn: Turn, start: Start, message: PeerMessage): void {
    const { id, tenant_id: tenant } = start.row;
    this.#remove(turn, start);
    this.#step = { starts: [start], started: id };
    if (start.isOrdered) this.#handOver(turn);
    turn.effects.push({ kind: 'counted', tenant, change: 'created' });
    turn.effects.push({ kind: 'peer', shard: this.#deps.shard, message });
  }

  /**
   * No creation is left: inserts the instance with the orders that cancel it. It is paused, so that it does not run
   * before they are carried out.
   */
  cancelled(
    turn: Turn,
    start: Start,
    instance: NewInstance,
    plan: Plan,
    orders: readonly StartOrder[],
  ): void {
    const now = this.#deps.now();
    const record = newRecord(instance, now, plan);
    const { id, snapshot } = record;
    snapshot.state = 'paused';
    snapshot.nextFireAt = null;
    snapshot.execution.z = now;
    turn.put(INSTANCE.insert, id, wholeLine(record));
    putCancelWaits(record, turn);
    putSearchTerms(turn, record, plan.searchable);
    this.#carriedOut(turn, id, orders, null);
    this.#inserted(turn, start, { kind: 'event.cancels' });
  }

  /** Takes out the creations of a batch that events have cancelled. Orders of others come too late. */
  withdraw(turn: Turn, start: Start, orders: readonly StartOrder[], items: readonly Item[]): void {
    const { id, count, cancelled, bytes } = start.row;
    const ordered = new Set(orders.map(({ seq }) => seq));
    const withdrawn = items.filter(({ seq }) => ordered.has(seq));
    for (const { seq } of withdrawn) {
      turn.put(COLLECTED_ITEM.remove, `${id}:${seq}`, { pending_id: id, seq });
      this.#unawait(turn, id, seq, seq);
    }
    const isWithdrawn = withdrawn.length > 0;
    this.#carriedOut(turn, id, orders, isWithdrawn ? 'withdrawn' : 'ended');
    if (isWithdrawn) {
      const less = withdrawn.reduce((sum, { data }) => sum + Buffer.byteLength(data) + 1, 0);
      const left = { count: count - withdrawn.length, cancelled: cancelled + withdrawn.length };
      this.#update(turn, start, { ...left, bytes: bytes - less });
    }
    turn.count('engine_events_cancelled_total', withdrawn.length);
    this.#step = { starts: [start] };
    start.reading = undefined;
  }

  #carriedOut(
    turn: Turn,
    instance_id: string,
    orders: readonly StartOrder[],
    outcome: 'withdrawn' | 'ended' | null,
  ): void {
    const taken_at = outcome === null ? null : isoTime(this.#deps.now());
    for (const { event_id, seq } of orders) {
      const order = { pending_id: instance_id, event_id, seq };
      turn.put(COLLECTED_CANCEL.clear, `${instance_id}:${event_id}:${seq}`, order);
      const row = { instance_id, event_id, outcome, taken_at };
      turn.put(EVENT_CANCEL.insert, `${instance_id}:${event_id}`, row);
    }
  }

  /** The instance cannot start now. @param error stored with it; absent: only the time is bad */
  later(turn: Turn, start: Start, error?: string): void {
    start.reading = undefined;
    start.notBefore = this.#deps.now() + (error === undefined ? LATER_MS : AGAIN_MS);
    this.#arm(start);
    if (error !== undefined && error !== start.row.error) this.#change(turn, start, { error });
  }

  /** The database refused the unit that starts the instance, and the rows were read again. */
  refused(turn: Turn, id: string, reason: string): void {
    const start = this.#starts.get(id);
    if (start !== undefined) this.later(turn, start, `the database refused the data: ${reason}`);
  }

  startNow(turn: Turn, request: number, tenant: string, id: string): void {
    const start = this.#own(tenant, id);
    // What was refused before is tried again now.
    start.notBefore = 0;
    if (isOpen(start, this.#deps.now())) {
      this.#change(turn, start, { starts_at: isoTime(this.#deps.now()) });
    } else this.#arm(start);
    turn.reply(request, 200, wireText(start.row));
  }

  drop(turn: Turn, request: number, tenant: string, id: string): void {
    const start = this.#own(tenant, id);
    this.#remove(turn, start);
    turn.put(START_KEY.drop, id, { instance_id: id });
    if (start.row.cancelled > 0) turn.put(EVENT_CANCEL.drop, id, { instance_id: id });
    turn.reply(request, 204, '');
  }

  #change(turn: Turn, start: Start, changes: Partial<PendingRow>): void {
    this.#update(turn, start, changes);
    this.#step = { starts: [start] };
  }

  #remove(turn: Turn, { row, isAwaiting }: Start): void {
    const { id, kind } = row;
    this.#starts.delete(id);
    if (isAwaiting) this.#unawait(turn, id, lastSeq(row));
    turn.put(PENDING_START.clear, id, { id });
    if (kind === 'batch') turn.put(COLLECTED_ITEM.clear, id, { pending_id: id });
  }

  /** @throws EngineError 404 */
  #own(tenant: string, id: string): Start {
    const start = this.#starts.get(id);
    if (start === undefined || isForeign(start.row, tenant)) throw notFound(`pending start ${id}`);
    return start;
  }
}

/** Whether another creation may still join it. */
function isOpen({ row, reading }: Start, now: UnixMs): boolean {
  return reading !== 'start' && Date.parse(row.starts_at) > now;
}

/** The number of the latest creation. */
function lastSeq({ count, cancelled }: Pick<PendingRow, 'count' | 'cancelled'>): number {
  return count + cancelled;
}

function bytesOf(section: JsonObject): number {
  return Buffer.byteLength(JSON.stringify(section));
}

/** A stored creation: what `NewInstance` has besides its id and place. */
export type StoredCreation = Pick<NewInstance, 'body' | 'traceparent'>;

/** Keys have rows of their own, as has the data of a batch. */
function creationOf({ instance, collecting }: Collected): StoredCreation {
  const { body, traceparent } = instance;
  const { idempotency_key: _, ...kept } = body;
  if (collecting.kind === 'debounce') return { body: kept, traceparent };
  return { body: { ...kept, context: { config: body.context?.config ?? null } }, traceparent };
}

function wireText({ key_id: _key, bytes: _bytes, ...row }: PendingRow): string {
  return JSON.stringify({ ...row, kind: row.kind as PendingStart['kind'] } satisfies PendingStart);
}
