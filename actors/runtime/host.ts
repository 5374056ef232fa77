/**
 * The keyed actors of one kind on one shard, each loaded, changed, committed and evicted here and nowhere else.
 *
 *   absent ──message──► loading ──rows──► ready ──idle, over the bound──► absent
 *                          ▲               │  │ ▲
 *                          └─ refused, lost┘  ▼ │
 *                             or a defect    held: its kind lets nothing in
 *
 * - Messages of an actor that is not ready, or has too many units under way, wait in order.
 * - An actor is loaded only when none of its units is unacknowledged.
 * - A message that makes the actor throw is answered 500, commits nothing, and has the actor rebuilt from rows.
 * - Rows that make no sense are answered 500, too; while the database is away, callers are told to ask again.
 * - A kind that batches (`flush`) joins the turns of its messages to one unit, committed at the end of the shard's
 *   turn. When one of them throws, the others are decided again from rows.
 */

import { DATABASE_AWAY, EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Logger } from '../../src/base/log.js';
import { type CommitDeps, failed, failureOf, INTERNAL } from './commit.js';
import type { PendingUnit, Settlement } from './commit-log.js';
import { isOfCode } from './defects.js';
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
import { TENANT_SUSPENDED } from './suspended-tenants.js';
import { Turn } from './turn.js';

export interface HostDeps extends CommitDeps {
  readonly log: Logger;
  /** Runs `work` in a turn of the shard: what it commits and sends is posted at the turn's end. */
  readonly schedule: (work: () => void) => void;
  /** The same, in the order in which it was asked for, and for as long as requests leave it time. */
  readonly scheduleSpare: (work: () => void) => void;
  /** Runs the function when rows can be trusted: not while a dead writer's units are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
  /** What the actors of one kind may take in memory; absent: as much as in the largest heap. */
  readonly residentBytesMax?: number | undefined;
}

/** Actors whose rows are read by one query. */
const LOAD_BATCH = 500;

/** Actors that are busy and are looked at in one turn, for one that can be let go. */
const BUSY_TRIES = 64;

type Actor<State, Message> = ResidentActor<State, Message>;

export class ActorHost<State, Message extends HostedMessage, Rows> {
  readonly #kind: Kind<State, Message, Rows>;
  readonly #deps: HostDeps;
  readonly #residents = new Map<string, Actor<State, Message>>();
  /** Those of them for whom nothing is under way. */
  readonly #lines: Lines<Actor<State, Message>>;
  readonly #toLoad = new Set<Actor<State, Message>>();
  /** Resolves when all rows are there that were asked for; undefined: nobody waits for that. */
  #lastLoad: Promise<void> | undefined;
  #isLoadAsked = false;
  /** Actors whose rows are on their way, or wait to become their state. */
  #loading = 0;
  /** Of a kind that batches: those that were told something in this turn. */
  readonly #touched = new Set<Actor<State, Message>>();
  #bytes = 0;
  readonly #bytesMax: number;

  constructor(kind: Kind<State, Message, Rows>, deps: HostDeps) {
    this.#kind = kind;
    this.#deps = deps;
    const bytesMax = deps.residentBytesMax ?? LIMITS.residentBytesMax;
    this.#bytesMax = bytesMax;
    this.#lines = newLines(bytesMax);
  }

  /** Actors in memory, and what they take by estimate. */
  get resident(): { readonly actors: number; readonly bytes: number } {
    return { actors: this.#residents.size, bytes: this.#bytes };
  }

  /** How many may be loaded before they are needed. */
  get aheadMax(): number {
    return aheadMaxOf(this.#bytesMax, this.#residents.size, this.#bytes);
  }

  /** Actors that somebody asked for, and that are not here yet. */
  get expected(): number {
    return this.#toLoad.size + this.#loading;
  }

  get residents(): IterableIterator<Actor<State, Message>> {
    return this.#residents.values();
  }

  /** The actor if it is in memory. */
  peek(id: string): Actor<State, Message> | undefined {
    return this.#residents.get(id);
  }

  tell(id: string, message: Message): void {
    this.deliver(this.#residentOf(id), message);
  }

  /** It is about to be told something: one that is absent is loaded meanwhile, any other is not let go so soon. */
  expect(id: string): void {
    const actor = this.#residentOf(id);
    if (actor.line !== undefined) this.#lineUp(actor);
  }

  deliver(actor: Actor<State, Message>, message: Message): void {
    if (actor.stash.length === 0 && this.#isOpen(actor)) {
      this.#handle(actor, message);
      // Whoever changed nothing has used it all the same.
      if (actor.line !== undefined) this.#lineUp(actor);
    } else if (actor.stash.length >= LIMITS.stashPerActorMax && message.request !== undefined) {
      this.refuse(
        actor,
        message,
        unavailable('ENG_OVERLOADED', `${this.#kind.noun} ${actor.id} is busy`),
      );
    } else {
      actor.stash.push(message);
    }
  }

  /** Whether a message would be handled at once, or be the first that an absent actor is loaded for. */
  canTake(id: string): boolean {
    const actor = this.#residents.get(id);
    return actor === undefined || (actor.stash.length === 0 && this.#isOpen(actor));
  }

  /** An actor that is created here: there is nothing to load. */
  add(id: string, state: State | undefined, phase: Actor<State, Message>['phase']) {
    const actor = this.#newResident(id);
    actor.state = state;
    actor.phase = phase;
    return actor;
  }

  /** An actor whose rows, of so many characters, the unit of another owner has inserted. */
  adopt(id: string, state: State, characters: number): void {
    if (this.#residents.has(id)) return;
    const actor = this.add(id, state, 'ready');
    this.#weighUnit(actor, characters);
    this.#lineUp(actor);
  }

  /** Nothing of it is in memory any more. Only while none of its units is under way. */
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
   * Has the actor decide, and commits what it decided: at once, or at the end of the shard's turn if
   * the kind batches. An EngineError is the answer to a request: every check comes before the first
   * change. Anything else that is thrown is a defect of this one actor.
   *
   * @param message that it is about; undefined: it decides by itself
   */
  run(
    actor: Actor<State, Message>,
    message: Message | undefined,
    decide: (turn: Turn) => void,
  ): void {
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
    // Whoever only looks at it shows nothing of whether it can go on.
    if (turn.mutations.length > 0) actor.defects = 0;
    if (this.#kind.flush === undefined) this.#commit(actor, turn);
    else this.#join(actor, turn, message);
  }

  /** The actor is loaded when its last unit is settled; `first` is its first message then. */
  rebuild(actor: Actor<State, Message>, first?: Message): void {
    this.#kind.discarded?.(actor);
    actor.line?.remove(actor);
    actor.state = undefined;
    actor.phase = 'loading';
    actor.incarnation = this.#deps.commits.nextIncarnation();
    actor.last = undefined;
    actor.draft = undefined;
    if (actor.drafted !== undefined) actor.stash.unshift(...actor.drafted);
    actor.drafted = undefined;
    if (first !== undefined) actor.stash.unshift(first);
    if (actor.unacked === 0) this.#toLoad.add(actor);
  }

  /** Its rows are read again, because hints may have been lost; what was decided is kept. */
  reload(id: string): void {
    const actor = this.#residentOf(id);
    if (actor.phase !== 'ready') return;
    this.#flush(actor);
    if (actor.phase === 'ready') this.rebuild(actor);
  }

  /** Drops the actors of held tenants, and refuses what waits for them: after their units, by not letting them in. */
  dropSuspended(): void {
    for (const actor of [...this.#residents.values()]) this.#dropIfHeld(actor);
  }

  /** One that its kind holds ends by itself: what it comes to is not committed. */
  #dropIfHeld(actor: Actor<State, Message>): void {
    if (actor.phase !== 'ready' || !this.#isHeld(actor.state)) return;
    if (actor.unacked > 0) this.rebuild(actor);
    else if (this.#residents.get(actor.id) === actor) {
      this.#kind.discarded?.(actor);
      this.#abandon(actor, TENANT_SUSPENDED);
    }
  }

  #isHeld(state: State | undefined): boolean {
    return state !== undefined && this.#deps.commits.held.has(this.#kind.tenantOf(state));
  }

  /** One that was held is loaded. */
  letLoad(actor: Actor<State, Message>): void {
    actor.phase = 'loading';
    this.#toLoad.add(actor);
  }

  /** Takes in what has waited: for a unit, or behind what its kind held it for. */
  proceed(actor: Actor<State, Message>): void {
    if (actor.phase === 'loading' && actor.unacked === 0) this.#toLoad.add(actor);
    else this.#unstash(actor);
  }

  /** Effects that need no commit, behind what the actor has under way: they may rest on it. */
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

  /** It has so many characters of JSON in memory. */
  weigh(actor: Actor<State, Message>, characters: number): void {
    this.#setBytes(actor, bytesOf(characters));
  }

  /** Called at the end of each turn of the shard: commits batches, loads, and lets idle ones go. */
  endTurn(): void {
    // Most kinds have no actor in memory in most turns.
    if (this.#residents.size === 0 && this.#touched.size === 0) return;
    for (const actor of this.#touched) this.#flush(actor);
    this.#touched.clear();
    this.#load();
    this.#passivate();
  }

  // ---------------------------------------------------------------- messages

  /** One that is absent is loaded at the end of the turn. */
  #residentOf(id: string): Actor<State, Message> {
    let actor = this.#residents.get(id);
    if (actor === undefined) {
      actor = this.#newResident(id);
      this.#toLoad.add(actor);
    }
    return actor;
  }

  #newResident(id: string): Actor<State, Message> {
    const [key, incarnation] = [this.#kind.keyOf(id), this.#deps.commits.nextIncarnation()];
    const actor = new ResidentActor<State, Message>(id, key, incarnation, this.#onSettled);
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
    if (message === undefined) {
      this.#abandon(actor, INTERNAL);
      return;
    }
    this.refuse(actor, message, INTERNAL);
    actor.defects += 1;
    if (this.#kind.givesUp?.(actor, message) === true) this.#abandon(actor, INTERNAL);
    else this.rebuild(actor);
  }

  /** Nobody is served: the actor is not there until it is asked for again. */
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

  // ---------------------------------------------------------------- units

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

  /** Its largest unit had its context in it; what it commits later may be only that it goes on. */
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
      this.#dropIfHeld(actor);
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

  // ---------------------------------------------------------------- loading

  #load(): void {
    if (this.#toLoad.size === 0 || this.#isLoadAsked) return;
    this.#isLoadAsked = true;
    this.#deps.whenWriterKnown(() => {
      this.#isLoadAsked = false;
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
      // Each by itself: one that cannot be restored is no reason to fail the others.
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
    if (!isOfCode(error)) {
      this.#loadFailed([actor], error);
      return;
    }
    this.#loading -= 1;
    this.#unrestorable(actor, error);
  }

  #ready(actor: Actor<State, Message>, state: State | undefined, rows: Rows | undefined): void {
    if (state === undefined) {
      const { stash } = actor;
      this.drop(actor);
      if (this.#kind.missing !== undefined) this.#kind.missing(actor, stash, rows);
      return;
    }
    if (this.#isHeld(state)) {
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

  #unrestorable(actor: Actor<State, Message>, error: unknown): void {
    if (actor.phase !== 'loading') return;
    const name = this.#kind.nameOf(actor.id);
    this.#deps.log.error({ ...name, message: 'restore', err: error }, 'defect');
    this.#kind.unrestorable?.(actor.id);
    this.#abandon(actor, INTERNAL);
  }

  // ---------------------------------------------------------------- letting go

  /** Behind those that were used before, unless something is under way for it. */
  #lineUp(actor: Actor<State, Message>): void {
    if (actor.unacked > 0 || actor.state === undefined || actor.phase === 'loading') return;
    // It may have been dropped with units under way, when its rows were deleted.
    if (this.#residents.get(actor.id) !== actor) return;
    const outlook = this.#kind.outlookOf?.(actor.state) ?? 'active';
    const isLarge = outlook !== 'ended' && actor.bytes > this.#bytesMax * LARGE_SHARE;
    const line = this.#lines[isLarge ? 'large' : outlook];
    // A queue keeps its order, whoever looks at what is in it.
    if (line !== actor.line || outlook !== 'offered') line.push(actor);
  }

  /** As many as came: what is over a bound leaves in the turn in which it came. */
  #passivate(): void {
    for (const name of LINES) {
      const line = this.#lines[name];
      if (line.isOver) this.#letGo(name, () => line.isOver);
    }
    if (!this.#isOver()) return;
    for (const name of LINES) this.#letGo(name, () => this.#isOver());
  }

  #letGo(name: LineName, isOver: () => boolean): void {
    const line = this.#lines[name];
    let tries = BUSY_TRIES;
    while (tries > 0 && isOver()) {
      // The oldest in a queue are those that are taken next, unless nobody is there to take them.
      const actor = name === 'offered' ? line.midst() : line.oldest;
      if (actor === undefined) return;
      if (this.isIdle(actor)) {
        this.drop(actor);
        continue;
      }
      // Busy ones move behind the idle ones, or they would be looked at in every turn.
      line.push(actor);
      tries -= 1;
    }
  }

  #isOver(): boolean {
    const { residentMax } = this.#kind;
    if (residentMax !== undefined && this.#residents.size > residentMax) return true;
    if (this.#bytes <= this.#bytesMax) return false;
    const idle = LINES.reduce((bytes, name) => bytes + this.#lines[name].bytes, 0);
    return idle > this.#bytesMax * IDLE_SHARE;
  }
}
