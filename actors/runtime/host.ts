/**
 * The keyed actors of one kind on one shard: loads, changes, commits and evicts them.
 *
 *   absent ──message──► loading ──rows──► ready ──idle, over the bound──► absent
 *                          ▲               │  │ ▲
 *                          └─ refused, lost┘  ▼ │
 *                             or a defect    blocked: its kind admits no message
 *
 * - Messages wait in order while the actor is not ready or has too many units in flight.
 * - An actor is loaded only when none of its units is unacknowledged.
 * - When a message makes the actor throw, it is answered 500, commits nothing, and the actor is rebuilt from rows.
 * - Invalid rows are answered 500 too; while the database is unavailable, requests are answered 503.
 * - A kind that batches (`flush`) joins the turns of its messages into one unit, committed at the end of the shard's
 *   turn. When one of them throws, the others are decided again from rows.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import { DATABASE_AWAY, EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { failed, failureOf, INTERNAL, isDefect, TENANT_SUSPENDED } from './commit.js';
import type { PendingUnit, Settlement } from './commit-log.js';
import {
  aheadMaxOf,
  bytesOf,
  IDLE_SHARE,
  LARGE_SHARE,
  LINES,
  type LineName,
  type Lines,
  newLines,
  valuesOf,
} from './eviction.js';
import type { HostedMessage, Kind, Ready } from './kind.js';
import { ResidentActor } from './resident-actor.js';
import type { ServiceDeps } from './service.js';
import { Turn } from './turn.js';

export interface HostDeps extends ServiceDeps {
  /** Like `schedule`, in order, while requests leave time. */
  readonly scheduleSpare: (work: () => void) => void;
  /** Per kind; absent: the limit of the largest heap. */
  readonly residentBytesMax?: number | undefined;
}

/** Actors per query. */
const LOAD_BATCH = 500;
/** Busy actors that one turn skips before it stops looking for idle ones. */
const BUSY_TRIES = 64;

type Actor<State, Message> = ResidentActor<State, Message>;
type Decide = (turn: Turn) => void;

export class ActorHost<State, Message extends HostedMessage, Rows> {
  readonly #kind: Kind<State, Message, Rows>;
  readonly #deps: HostDeps;
  readonly #residents = new ChurningMap<string, Actor<State, Message>>();
  readonly #lines: Lines<Actor<State, Message>>;
  readonly #toLoad = new Set<Actor<State, Message>>();
  /** Settles when all rows requested so far are read. */
  #lastLoad: Promise<void> | undefined;
  #isLoadScheduled = false;
  /** Actors whose rows are being read or restored. */
  #loading = 0;
  /** Only for kinds that batch: actors with messages in this turn. */
  readonly #touched = new Set<Actor<State, Message>>();
  #bytes = 0;
  readonly #bytesMax: number;

  constructor(kind: Kind<State, Message, Rows>, deps: HostDeps) {
    this.#kind = kind;
    this.#deps = deps;
    this.#bytesMax = deps.residentBytesMax ?? LIMITS.residentBytesMax;
    this.#lines = newLines(this.#bytesMax);
  }

  get resident(): { readonly actors: number; readonly bytes: number } {
    return { actors: this.#residents.size, bytes: this.#bytes };
  }

  get aheadMax(): number {
    return aheadMaxOf(this.#bytesMax, this.#residents.size, this.#bytes);
  }

  get expected(): number {
    return this.#toLoad.size + this.#loading;
  }

  get residents(): IterableIterator<Actor<State, Message>> {
    return this.#residents.values();
  }

  peek(id: string): Actor<State, Message> | undefined {
    return this.#residents.get(id);
  }

  tell(id: string, message: Message): void {
    this.deliver(this.#residentOf(id), message);
  }

  /** A message will follow: loads an absent actor meanwhile, and delays the eviction of any other. */
  expect(id: string): void {
    const actor = this.#residentOf(id);
    if (actor.line !== undefined) this.#lineUp(actor);
  }

  deliver(actor: Actor<State, Message>, message: Message): void {
    if (actor.stash.length === 0 && this.#isOpen(actor)) {
      this.#handle(actor, message);
      // A message that changes nothing counts as a use too.
      if (actor.line !== undefined) this.#lineUp(actor);
    } else if (actor.stash.length >= LIMITS.stashPerActorMax && message.request !== undefined) {
      const busy = `${this.#kind.noun} ${actor.id} is busy`;
      this.refuse(actor, message, unavailable('ENG_OVERLOADED', busy));
    } else {
      actor.stash.push(message);
    }
  }

  canTake(id: string): boolean {
    const actor = this.#residents.get(id);
    return actor === undefined || (actor.stash.length === 0 && this.#isOpen(actor));
  }

  /** Adds a new actor, which has no rows to load. */
  add(id: string, state: State | undefined, phase: Actor<State, Message>['phase']) {
    const actor = this.#newResident(id);
    actor.state = state;
    actor.phase = phase;
    return actor;
  }

  /** Adds an actor whose rows the unit of another owner has inserted. @param characters of the rows */
  adopt(id: string, state: State, characters: number): void {
    if (this.#residents.has(id)) return;
    const actor = this.add(id, state, 'ready');
    this.#weighUnit(actor, characters);
    this.#lineUp(actor);
  }

  /** Only while none of its units is in flight. */
  drop(actor: Actor<State, Message>): void {
    actor.line?.remove(actor);
    this.#bytes -= actor.bytes;
    this.#residents.delete(actor.id);
    this.#touched.delete(actor);
  }

  isIdle({ phase, unacked, stash, draft, state }: Actor<State, Message>): boolean {
    if (phase !== 'ready' || unacked > 0 || stash.length > 0 || draft !== undefined) return false;
    return state !== undefined && this.#kind.isIdle(state);
  }

  /**
   * Runs a decision of the actor and commits it: immediately, or at the end of the shard's turn if the kind
   * batches. An EngineError is the reply to a request, so every check precedes the first change; any other
   * error is a defect of this actor.
   * @param message undefined for the actor's own decision
   */
  run(actor: Actor<State, Message>, message: Message | undefined, decide: Decide): void {
    let turn = new Turn();
    try {
      decide(turn);
    } catch (error) {
      if (!(error instanceof EngineError) || message?.request === undefined) {
        this.#defect(actor, message, error);
        return;
      }
      turn = new Turn();
      turn.fail(message.request, error);
    }
    // Only a change proves that the actor can continue.
    if (turn.mutations.length > 0) actor.defects = 0;
    if (this.#kind.flush === undefined) this.#commit(actor, turn);
    else this.#join(actor, turn, message);
  }

  /** Loads the actor once its last unit is settled; then `first` is its first message. */
  rebuild(actor: Actor<State, Message>, first?: Message): void {
    // First, so that requests made meanwhile wait for the rows instead of reading what may not be committed.
    actor.phase = 'loading';
    this.#kind.discarded?.(actor);
    actor.line?.remove(actor);
    actor.state = undefined;
    actor.incarnation = this.#deps.commits.nextIncarnation();
    actor.last = undefined;
    actor.draft = undefined;
    if (actor.drafted !== undefined) actor.stash.unshift(...actor.drafted);
    actor.drafted = undefined;
    if (first !== undefined) actor.stash.unshift(first);
    if (actor.unacked === 0) this.#toLoad.add(actor);
  }

  /** Reads its rows again, because hints may have been lost; commits its decisions first. */
  reload(id: string): void {
    const actor = this.#residentOf(id);
    if (actor.phase !== 'ready') return;
    this.#flush(actor);
    if (actor.phase === 'ready') this.rebuild(actor);
  }

  /** Reloads actors without a tenant, for which rows may have been added. */
  reloadOwnerless(): void {
    for (const { id, state } of [...this.#residents.values()]) {
      if (state !== undefined && this.#kind.tenantOf(state) === undefined) this.reload(id);
    }
  }

  /** Drops the actors of suspended tenants, and refuses their messages, once their units are settled. */
  dropSuspended(): void {
    for (const actor of [...this.#residents.values()]) this.#dropIfSuspended(actor);
  }

  #dropIfSuspended(actor: Actor<State, Message>): void {
    if (actor.phase !== 'ready' || !this.#isSuspended(actor.state)) return;
    if (actor.unacked > 0) this.rebuild(actor);
    else if (this.#residents.get(actor.id) === actor) {
      this.#kind.discarded?.(actor);
      this.#abandon(actor, TENANT_SUSPENDED);
    }
  }

  #isSuspended(state: State | undefined): boolean {
    return state !== undefined && this.#deps.commits.suspended.has(this.#kind.tenantOf(state));
  }

  proceed(actor: Actor<State, Message>): void {
    if (actor.phase === 'loading' && actor.unacked === 0) this.#toLoad.add(actor);
    else this.#unstash(actor);
  }

  /** Releases effects without a commit behind the actor's units in flight, on which they may depend. */
  tellBehind(actor: Actor<State, Message>, effects: Turn['effects']): void {
    if (actor.unacked > 0 && actor.last !== undefined) actor.last.effects.push(...effects);
    else this.#deps.release(effects);
  }

  refuse(actor: Actor<State, Message>, message: Message, error: EngineError): void {
    if (this.#kind.refuse !== undefined) this.#kind.refuse(actor, message, error);
    else if (message.request !== undefined) {
      this.#deps.release([{ kind: 'error', request: message.request, error }]);
    }
  }

  /** @param characters of JSON in memory */
  weigh(actor: Actor<State, Message>, characters: number): void {
    this.#setBytes(actor, bytesOf(characters));
  }

  endTurn(): void {
    // Most kinds have no actor in memory in most turns.
    if (this.#residents.size === 0 && this.#touched.size === 0) return;
    if (this.#touched.size > 0) {
      for (const actor of this.#touched) this.#flush(actor);
      this.#touched.clear();
    }
    this.#load();
    this.#evictExcess();
  }

  #residentOf(id: string): Actor<State, Message> {
    let actor = this.#residents.get(id);
    if (actor === undefined) {
      actor = this.#newResident(id);
      this.#toLoad.add(actor);
    }
    return actor;
  }

  #newResident(id: string): Actor<State, Message> {
    const incarnation = this.#deps.commits.nextIncarnation();
    const actor = new ResidentActor(id, this.#kind.keyOf(id), incarnation, this.#onSettled);
    this.#residents.set(id, actor);
    this.weigh(actor, 0);
    return actor;
  }

  #setBytes(actor: Actor<State, Message>, bytes: number): void {
    const more = bytes - actor.bytes;
    this.#bytes += more;
    if (actor.line !== undefined) actor.line.bytes += more;
    actor.bytes = bytes;
  }

  #isOpen({ phase, unacked, unackedBytes }: Actor<State, Message>): boolean {
    return (
      phase === 'ready' &&
      unacked < LIMITS.unitsPerActorMax &&
      unackedBytes < LIMITS.unitBytesPerActorMax
    );
  }

  #handle(actor: Actor<State, Message>, message: Message): void {
    try {
      this.#kind.handle(actor as Ready<State, Message>, message);
    } catch (error) {
      this.#defect(actor, message, error);
    }
  }

  #unstash(actor: Actor<State, Message>): void {
    while (actor.stash.length > 0 && this.#isOpen(actor)) {
      this.#handle(actor, actor.stash.shift() as Message);
    }
  }

  #defect(actor: Actor<State, Message>, message: Message | undefined, error: unknown): void {
    const name = this.#kind.nameOf(actor.id);
    this.#deps.log.error({ ...name, message: message?.kind, err: error }, 'defect');
    if (message !== undefined) {
      this.refuse(actor, message, INTERNAL);
      actor.defects += 1;
    }
    if (message === undefined || this.#kind.givesUp?.(actor, message) === true) {
      this.#abandon(actor, INTERNAL);
    } else this.rebuild(actor);
  }

  #abandon(actor: Actor<State, Message>, error: EngineError): void {
    const messages = [...(actor.drafted ?? []), ...actor.stash];
    actor.stash = [];
    actor.drafted = undefined;
    actor.draft = undefined;
    if (actor.unacked > 0) this.rebuild(actor);
    else this.drop(actor);
    for (const message of messages) this.refuse(actor, message, error);
    this.#kind.abandoned?.(actor.id, error);
  }

  #join(actor: Actor<State, Message>, turn: Turn, message: Message | undefined): void {
    if (actor.draft === undefined) actor.draft = turn;
    else actor.draft.join(turn);
    actor.drafted ??= [];
    if (message !== undefined) actor.drafted.push(message);
    this.#touched.add(actor);
  }

  #flush(actor: Actor<State, Message>): void {
    const { flush } = this.#kind;
    if (flush === undefined || actor.phase !== 'ready') return;
    const turn = actor.draft ?? new Turn();
    let next: 'done' | 'reload';
    try {
      next = flush(actor.state as State, turn);
    } catch (error) {
      this.#defect(actor, undefined, error);
      return;
    }
    actor.draft = undefined;
    actor.drafted = undefined;
    this.#commit(actor, turn);
    if (next === 'reload') this.rebuild(actor);
  }

  #commit(actor: Actor<State, Message>, turn: Turn): void {
    if (turn.mutations.length === 0) {
      const effects = turn.effectsAlone();
      if (effects.length > 0) this.tellBehind(actor, effects);
      return;
    }
    actor.line?.remove(actor);
    if (actor.state !== undefined) turn.tenant ??= this.#kind.tenantOf(actor.state);
    const unit = this.#deps.commits.append(actor, turn);
    actor.last = unit;
    actor.unacked += 1;
    actor.unackedBytes += unit.bytes;
    this.#weighUnit(actor, unit.bytes);
    this.#kind.decided?.(actor, unit);
  }

  /** Never reduces the estimate: the largest unit contained the context, later units may be small. */
  #weighUnit(actor: Actor<State, Message>, characters: number): void {
    const kept = actor.state === undefined ? 0 : (this.#kind.charactersOf?.(actor.state) ?? 0);
    const bytes = bytesOf(kept + valuesOf(characters));
    if (bytes > actor.bytes) this.#setBytes(actor, bytes);
  }

  readonly #onSettled = (
    actor: Actor<State, Message>,
    unit: PendingUnit,
    ack: Settlement,
  ): void => {
    const { release, log } = this.#deps;
    actor.unacked -= 1;
    actor.unackedBytes -= unit.bytes;
    if (actor.unacked === 0) actor.last = undefined;
    const error = failureOf(ack, this.#kind.noun);
    if (error === undefined) {
      release(unit.effects);
      this.#kind.committed?.(actor, unit);
      this.#dropIfSuspended(actor);
      this.proceed(actor);
      this.#lineUp(actor);
      return;
    }
    if (ack.outcome === 'exists' && this.#kind.existed !== undefined) {
      this.#kind.existed(actor, unit);
      this.rebuild(actor);
      return;
    }
    release(failed(unit.effects, error));
    if (ack.outcome === 'refused') {
      const name = this.#kind.nameOf(actor.id);
      log.warn({ ...name, sqlState: ack.sqlState }, 'unit refused by the database');
      this.rebuild(actor, this.#kind.refused?.(actor, unit, ack.reason));
    } else if (actor.state !== undefined && ack.outcome !== 'suffix') {
      this.rebuild(actor);
    } else {
      this.proceed(actor);
      this.#lineUp(actor);
    }
  };

  #load(): void {
    if (this.#toLoad.size === 0 || this.#isLoadScheduled) return;
    this.#isLoadScheduled = true;
    this.#deps.whenWriterKnown(() => {
      this.#isLoadScheduled = false;
      const residents = [...this.#toLoad].slice(0, LOAD_BATCH);
      for (const actor of residents) this.#toLoad.delete(actor);
      this.#loading += residents.length;
      if (residents.length > 0) void this.#read(residents);
      if (this.#toLoad.size > 0) this.#deps.schedule(() => undefined);
    });
  }

  async #read(residents: readonly Actor<State, Message>[]): Promise<void> {
    const { load, loadsInOrder } = this.#kind;
    try {
      const loading = load(residents.map(({ id }) => id));
      const before = this.#lastLoad;
      if (loadsInOrder)
        this.#lastLoad = Promise.allSettled([before, loading]).then(() => undefined);
      const found = await loading;
      await before;
      // Each by itself: one that cannot be restored must not fail the others.
      for (const actor of residents) {
        this.#deps.scheduleSpare(() => this.#restore(actor, found.get(actor.id)));
      }
    } catch (error) {
      this.#deps.schedule(() => this.#loadFailed(residents, error));
    }
  }

  #restore(actor: Actor<State, Message>, rows: Rows | undefined): void {
    const { restore, readsSince } = this.#kind;
    const since = readsSince?.();
    const { scheduleSpare } = this.#deps;
    let state: ReturnType<typeof restore>;
    try {
      state = restore(actor.id, rows);
    } catch (error) {
      this.#notRestored(actor, error);
      return;
    }
    if (!(state instanceof Promise)) this.#restored(actor, state, rows, since);
    else {
      state.then(
        (read) => scheduleSpare(() => this.#restored(actor, read, rows, since)),
        (error: unknown) => scheduleSpare(() => this.#notRestored(actor, error)),
      );
    }
  }

  #restored(
    actor: Actor<State, Message>,
    state: State | undefined,
    rows: Rows | undefined,
    since: number | undefined,
  ): void {
    this.#loading -= 1;
    if (this.#kind.readsSince?.() === since) this.#ready(actor, state, rows);
    else this.#toLoad.add(actor);
  }

  #notRestored(actor: Actor<State, Message>, error: unknown): void {
    if (!isDefect(error)) {
      this.#loadFailed([actor], error);
      return;
    }
    this.#loading -= 1;
    if (actor.phase !== 'loading') return;
    const name = this.#kind.nameOf(actor.id);
    this.#deps.log.error({ ...name, message: 'restore', err: error }, 'defect');
    this.#kind.unrestorable?.(actor.id);
    this.#abandon(actor, INTERNAL);
  }

  #ready(actor: Actor<State, Message>, state: State | undefined, rows: Rows | undefined): void {
    if (state === undefined) {
      this.drop(actor);
      this.#kind.missing?.(actor, actor.stash, rows);
      return;
    }
    if (this.#isSuspended(state)) {
      this.#abandon(actor, TENANT_SUSPENDED);
      return;
    }
    actor.state = state;
    actor.phase = 'ready';
    this.#touched.add(actor);
    try {
      this.#kind.awake?.(actor as Ready<State, Message>, rows);
    } catch (error) {
      this.#defect(actor, undefined, error);
    }
    this.#unstash(actor);
    this.#lineUp(actor);
  }

  #loadFailed(residents: readonly Actor<State, Message>[], error: unknown): void {
    this.#loading -= residents.length;
    this.#deps.log.warn({ err: error, actors: residents.length }, 'actors could not be loaded');
    for (const actor of residents)
      if (actor.phase === 'loading') this.#abandon(actor, DATABASE_AWAY);
  }

  #lineUp(actor: Actor<State, Message>): void {
    if (actor.unacked > 0 || actor.state === undefined || actor.phase === 'loading') return;
    // It may have been dropped with units in flight because its rows were deleted.
    if (this.#residents.get(actor.id) !== actor) return;
    const outlook = this.#kind.outlookOf?.(actor.state) ?? 'active';
    const isLarge = outlook !== 'ended' && actor.bytes > this.#bytesMax * LARGE_SHARE;
    const line = this.#lines[isLarge ? 'large' : outlook];
    // Reading an offered actor does not change its order.
    if (line !== actor.line || outlook !== 'offered') line.push(actor);
  }

  #evictExcess(): void {
    for (const name of LINES) {
      const line = this.#lines[name];
      if (line.isFull) this.#evict(name, () => line.isFull);
    }
    if (!this.#isFull()) return;
    for (const name of LINES) this.#evict(name, () => this.#isFull());
  }

  #evict(name: LineName, isFull: () => boolean): void {
    const line = this.#lines[name];
    let tries = BUSY_TRIES;
    while (tries > 0 && isFull()) {
      // The oldest offered tasks are claimed next, unless their queue has no workers.
      const actor = name === 'offered' ? line.surplus() : line.oldest;
      if (actor === undefined) return;
      if (this.isIdle(actor)) {
        this.drop(actor);
        continue;
      }
      // Otherwise the busy actors would be checked in every turn.
      line.push(actor);
      tries -= 1;
    }
  }

  #isFull(): boolean {
    const { residentMax } = this.#kind;
    if (residentMax !== undefined && this.#residents.size > residentMax) return true;
    if (this.#bytes <= this.#bytesMax) return false;
    const idle = LINES.reduce((bytes, name) => bytes + this.#lines[name].bytes, 0);
    return idle > this.#bytesMax * IDLE_SHARE;
  }
}
