/**
 * The keyed actors of one kind on one shard, each loaded, changed, committed and let go here and
 * nowhere else. What a kind decides is in its functions; they are handed a turn that is made for one
 * message and is gone with it.
 *
 *   absent ──message──► loading ──rows──► ready ──idle, over the bound──► absent
 *                          ▲               │  │ ▲
 *                          └─ refused, lost┘  ▼ │
 *                             or a defect    held: its kind lets nothing in
 *
 * - Messages of an actor that is not ready, or has too many units under way, wait in order.
 * - An actor is loaded only when none of its units is unacknowledged.
 * - A message that makes the actor throw is answered 500, and nothing of it is committed: the state
 *   is discarded and built from rows anew.
 * - One whose rows make no sense is answered 500, too. That a database is away says nothing of its rows:
 *   whoever asks is told to ask again.
 * - A kind that batches (`flush`) has the turns of its messages joined to one unit, which is committed
 *   when the shard's turn ends. When one of them throws, the others are decided anew from rows: what
 *   they had decided rests on the state that is gone.
 */

import { DATABASE_AWAY, EngineError, unavailable } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Logger } from '../../src/base/log.js';
import { Cell } from './cell.js';
import { type CommitDeps, failed, failureOf, INTERNAL } from './commit.js';
import type { PendingUnit, Settlement } from './commit-log.js';
import { isOfCode } from './defects.js';
import { TENANT_HELD } from './held-tenants.js';
import type { HostedMessage, Kind, Ready } from './kind.js';
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
} from './residence.js';
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

export class ActorHost<State, Message extends HostedMessage, Rows> {
  readonly #kind: Kind<State, Message, Rows>;
  readonly #deps: HostDeps;
  readonly #cells = new Map<string, Cell<State, Message>>();
  /** Those of them for whom nothing is under way. */
  readonly #lines: Lines<Cell<State, Message>>;
  readonly #toLoad = new Set<Cell<State, Message>>();
  /** Resolves when all rows are there that were asked for; undefined: nobody waits for that. */
  #lastLoad: Promise<void> | undefined;
  #isLoadAsked = false;
  /** Actors whose rows are on their way, or wait to become their state. */
  #loading = 0;
  /** Of a kind that batches: those that were told something in this turn. */
  readonly #touched = new Set<Cell<State, Message>>();
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
    return { actors: this.#cells.size, bytes: this.#bytes };
  }

  /** How many may be loaded before they are needed. */
  get aheadMax(): number {
    return aheadMaxOf(this.#bytesMax, this.#cells.size, this.#bytes);
  }

  /** Actors that somebody asked for, and that are not here yet. */
  get expected(): number {
    return this.#toLoad.size + this.#loading;
  }

  get cells(): IterableIterator<Cell<State, Message>> {
    return this.#cells.values();
  }

  /** The cell if the actor is in memory. */
  peek(id: string): Cell<State, Message> | undefined {
    return this.#cells.get(id);
  }

  tell(id: string, message: Message): void {
    this.deliver(this.#cellOf(id), message);
  }

  /** It is about to be told something: one that is absent is loaded meanwhile, any other is not let go so soon. */
  expect(id: string): void {
    const cell = this.#cellOf(id);
    if (cell.line !== undefined) this.#lineUp(cell);
  }

  deliver(cell: Cell<State, Message>, message: Message): void {
    if (cell.stash.length === 0 && this.#isOpen(cell)) {
      this.#handle(cell, message);
      // Whoever changed nothing has used it all the same.
      if (cell.line !== undefined) this.#lineUp(cell);
    } else if (cell.stash.length >= LIMITS.stashPerActorMax && message.request !== undefined) {
      this.refuse(
        cell,
        message,
        unavailable('ENG_OVERLOADED', `${this.#kind.noun} ${cell.id} is busy`),
      );
    } else {
      cell.stash.push(message);
    }
  }

  /** Whether a message would be handled at once, or be the first that an absent actor is loaded for. */
  canTake(id: string): boolean {
    const cell = this.#cells.get(id);
    return cell === undefined || (cell.stash.length === 0 && this.#isOpen(cell));
  }

  /** An actor that is created here: there is nothing to load. */
  add(id: string, state: State | undefined, phase: Cell<State, Message>['phase']) {
    const cell = this.#newCell(id);
    cell.state = state;
    cell.phase = phase;
    return cell;
  }

  /**
   * An actor whose rows the unit of another owner has inserted.
   * @param characters of these rows
   */
  adopt(id: string, state: State, characters: number): void {
    if (this.#cells.has(id)) return;
    const cell = this.add(id, state, 'ready');
    this.#weighUnit(cell, characters);
    this.#lineUp(cell);
  }

  /** Nothing of it is in memory any more. Only while none of its units is under way. */
  drop(cell: Cell<State, Message>): void {
    cell.line?.remove(cell);
    this.#bytes -= cell.bytes;
    this.#cells.delete(cell.id);
    this.#touched.delete(cell);
  }

  isIdle({ phase, unacked, stash, draft, state }: Cell<State, Message>): boolean {
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
    cell: Cell<State, Message>,
    message: Message | undefined,
    decide: (turn: Turn) => void,
  ): void {
    let turn = new Turn();
    try {
      decide(turn);
    } catch (error) {
      if (!(error instanceof EngineError) || message?.request === undefined) {
        this.#defect(cell, message, error);
        return;
      }
      turn = new Turn();
      turn.fail(message.request, error);
    }
    // Whoever only looks at it shows nothing of whether it can go on.
    if (turn.mutations.length > 0) cell.defects = 0;
    if (this.#kind.flush === undefined) this.#commit(cell, turn);
    else this.#join(cell, turn, message);
  }

  /** The actor is loaded when its last unit is settled; `first` is its first message then. */
  rebuild(cell: Cell<State, Message>, first?: Message): void {
    this.#kind.discarded?.(cell);
    cell.line?.remove(cell);
    cell.state = undefined;
    cell.phase = 'loading';
    cell.incarnation = this.#deps.commits.nextIncarnation();
    cell.last = undefined;
    cell.draft = undefined;
    if (cell.drafted !== undefined) cell.stash.unshift(...cell.drafted);
    cell.drafted = undefined;
    if (first !== undefined) cell.stash.unshift(first);
    if (cell.unacked === 0) this.#toLoad.add(cell);
  }

  /** Its rows are read again, because hints may have been lost; what was decided is kept. */
  reload(id: string): void {
    const cell = this.#cellOf(id);
    if (cell.phase !== 'ready') return;
    this.#flush(cell);
    if (cell.phase === 'ready') this.rebuild(cell);
  }

  /** Drops the actors of held tenants, and refuses what waits for them: after their units, by not letting them in. */
  dropHeld(): void {
    for (const cell of [...this.#cells.values()]) this.#dropIfHeld(cell);
  }

  /** One that its kind holds ends by itself: what it comes to is not committed. */
  #dropIfHeld(cell: Cell<State, Message>): void {
    if (cell.phase !== 'ready' || !this.#isHeld(cell.state)) return;
    if (cell.unacked > 0) this.rebuild(cell);
    else if (this.#cells.get(cell.id) === cell) {
      this.#kind.discarded?.(cell);
      this.#abandon(cell, TENANT_HELD);
    }
  }

  #isHeld(state: State | undefined): boolean {
    return state !== undefined && this.#deps.commits.held.has(this.#kind.tenantOf(state));
  }

  /** One that was held is loaded. */
  letLoad(cell: Cell<State, Message>): void {
    cell.phase = 'loading';
    this.#toLoad.add(cell);
  }

  /** Takes in what has waited: for a unit, or behind what its kind held it for. */
  proceed(cell: Cell<State, Message>): void {
    if (cell.phase === 'loading' && cell.unacked === 0) this.#toLoad.add(cell);
    else this.#unstash(cell);
  }

  /** Effects that need no commit, behind what the actor has under way: they may rest on it. */
  tellBehind(cell: Cell<State, Message>, effects: Turn['effects']): void {
    if (cell.unacked > 0 && cell.last !== undefined) cell.last.effects.push(...effects);
    else this.#deps.release(effects);
  }

  refuse(cell: Cell<State, Message>, message: Message, error: EngineError): void {
    if (this.#kind.refuse !== undefined) this.#kind.refuse(cell, message, error);
    else if (message.request !== undefined) {
      this.#deps.release([{ kind: 'error', request: message.request, error }]);
    }
  }

  /** It has so many characters of JSON in memory. */
  weigh(cell: Cell<State, Message>, characters: number): void {
    this.#setBytes(cell, bytesOf(characters));
  }

  /** Called at the end of each turn of the shard: commits batches, loads, and lets idle ones go. */
  endTurn(): void {
    // Most kinds have no actor in memory in most turns.
    if (this.#cells.size === 0 && this.#touched.size === 0) return;
    for (const cell of this.#touched) this.#flush(cell);
    this.#touched.clear();
    this.#load();
    this.#passivate();
  }

  // ---------------------------------------------------------------- messages

  /** One that is absent is loaded at the end of the turn. */
  #cellOf(id: string): Cell<State, Message> {
    let cell = this.#cells.get(id);
    if (cell === undefined) {
      cell = this.#newCell(id);
      this.#toLoad.add(cell);
    }
    return cell;
  }

  #newCell(id: string): Cell<State, Message> {
    const incarnation = this.#deps.commits.nextIncarnation();
    const cell = new Cell<State, Message>(id, this.#kind.keyOf(id), incarnation, this.#onSettled);
    this.#cells.set(id, cell);
    this.weigh(cell, 0);
    return cell;
  }

  #setBytes(cell: Cell<State, Message>, bytes: number): void {
    const more = bytes - cell.bytes;
    this.#bytes += more;
    if (cell.line !== undefined) cell.line.bytes += more;
    cell.bytes = bytes;
  }

  #isOpen({ phase, unacked, unackedBytes }: Cell<State, Message>): boolean {
    return (
      phase === 'ready' &&
      unacked < LIMITS.unitsPerActorMax &&
      unackedBytes < LIMITS.unitBytesPerActorMax
    );
  }

  #handle(cell: Cell<State, Message>, message: Message): void {
    try {
      this.#kind.handle(cell as Ready<State, Message>, message);
    } catch (error) {
      this.#defect(cell, message, error);
    }
  }

  #unstash(cell: Cell<State, Message>): void {
    while (cell.stash.length > 0 && this.#isOpen(cell)) {
      this.#handle(cell, cell.stash.shift() as Message);
    }
  }

  #defect(cell: Cell<State, Message>, message: Message | undefined, error: unknown): void {
    const name = this.#kind.nameOf(cell.id);
    this.#deps.log.error({ ...name, message: message?.kind, err: error }, 'defect');
    if (message === undefined) {
      this.#abandon(cell, INTERNAL);
      return;
    }
    this.refuse(cell, message, INTERNAL);
    cell.defects += 1;
    if (this.#kind.givesUp?.(cell, message) === true) this.#abandon(cell, INTERNAL);
    else this.rebuild(cell);
  }

  /** Nobody is served: the actor is not there until it is asked for again. */
  #abandon(cell: Cell<State, Message>, error: EngineError): void {
    const messages = [...(cell.drafted ?? []), ...cell.stash];
    cell.stash = [];
    cell.drafted = undefined;
    cell.draft = undefined;
    if (cell.unacked > 0) this.rebuild(cell);
    else this.drop(cell);
    for (const message of messages) this.refuse(cell, message, error);
    this.#kind.abandoned?.(cell.id, error);
  }

  // ---------------------------------------------------------------- units

  #join(cell: Cell<State, Message>, turn: Turn, message: Message | undefined): void {
    if (cell.draft === undefined) cell.draft = turn;
    else cell.draft.join(turn);
    cell.drafted ??= [];
    if (message !== undefined) cell.drafted.push(message);
    this.#touched.add(cell);
  }

  #flush(cell: Cell<State, Message>): void {
    const { flush } = this.#kind;
    if (flush === undefined || cell.phase !== 'ready') return;
    const turn = cell.draft ?? new Turn();
    let next: 'done' | 'reload';
    try {
      next = flush(cell.state as State, turn);
    } catch (error) {
      this.#defect(cell, undefined, error);
      return;
    }
    cell.draft = undefined;
    cell.drafted = undefined;
    this.#commit(cell, turn);
    if (next === 'reload') this.rebuild(cell);
  }

  #commit(cell: Cell<State, Message>, turn: Turn): void {
    if (turn.mutations.length === 0) {
      const effects = turn.effectsAlone();
      if (effects.length > 0) this.tellBehind(cell, effects);
      return;
    }
    cell.line?.remove(cell);
    if (cell.state !== undefined) turn.tenant ??= this.#kind.tenantOf(cell.state);
    const unit = this.#deps.commits.append(cell, turn);
    cell.last = unit;
    cell.unacked += 1;
    cell.unackedBytes += unit.bytes;
    this.#weighUnit(cell, unit.bytes);
    this.#kind.decided?.(cell, unit);
  }

  /** Its largest unit had its context in it; what it commits later may be only that it goes on. */
  #weighUnit(cell: Cell<State, Message>, characters: number): void {
    const kept = cell.state === undefined ? 0 : (this.#kind.charactersOf?.(cell.state) ?? 0);
    const bytes = bytesOf(kept + valuesOf(characters));
    if (bytes > cell.bytes) this.#setBytes(cell, bytes);
  }

  readonly #onSettled = (cell: Cell<State, Message>, unit: PendingUnit, ack: Settlement): void => {
    const { release, log } = this.#deps;
    cell.unacked -= 1;
    cell.unackedBytes -= unit.bytes;
    if (cell.unacked === 0) cell.last = undefined;
    const error = failureOf(ack, this.#kind.noun);
    if (error === undefined) {
      release(unit.effects);
      this.#kind.committed?.(cell, unit);
      this.#dropIfHeld(cell);
      this.proceed(cell);
      this.#lineUp(cell);
      return;
    }
    if (ack.outcome === 'exists' && this.#kind.existed !== undefined) {
      this.#kind.existed(cell, unit);
      this.rebuild(cell);
      return;
    }
    release(failed(unit.effects, error));
    if (ack.outcome === 'refused') {
      const name = this.#kind.nameOf(cell.id);
      log.warn({ ...name, sqlState: ack.sqlState }, 'unit refused by the database');
      this.rebuild(cell, this.#kind.refused?.(cell, unit, ack.reason));
    } else if (cell.state !== undefined && ack.outcome !== 'suffix') {
      this.rebuild(cell);
    } else {
      this.proceed(cell);
      this.#lineUp(cell);
    }
  };

  // ---------------------------------------------------------------- loading

  #load(): void {
    if (this.#toLoad.size === 0 || this.#isLoadAsked) return;
    this.#isLoadAsked = true;
    this.#deps.whenWriterKnown(() => {
      this.#isLoadAsked = false;
      const cells = [...this.#toLoad].slice(0, LOAD_BATCH);
      for (const cell of cells) this.#toLoad.delete(cell);
      this.#loading += cells.length;
      if (cells.length > 0) void this.#read(cells);
      if (this.#toLoad.size > 0) this.#deps.schedule(() => undefined);
    });
  }

  async #read(cells: readonly Cell<State, Message>[]): Promise<void> {
    const { load, loadsInOrder } = this.#kind;
    try {
      const loading = load(cells.map(({ id }) => id));
      const before = this.#lastLoad;
      if (loadsInOrder)
        this.#lastLoad = Promise.allSettled([before, loading]).then(() => undefined);
      const found = await loading;
      await before;
      // Each by itself: one that cannot be restored is no reason to fail the others.
      for (const cell of cells) {
        this.#deps.scheduleSpare(() => this.#restore(cell, found.get(cell.id)));
      }
    } catch (error) {
      this.#deps.schedule(() => this.#loadFailed(cells, error));
    }
  }

  #restore(cell: Cell<State, Message>, rows: Rows | undefined): void {
    const { restore, readsSince } = this.#kind;
    const since = readsSince?.();
    const { scheduleSpare } = this.#deps;
    let state: ReturnType<typeof restore>;
    try {
      state = restore(cell.id, rows);
    } catch (error) {
      this.#notRestored(cell, error);
      return;
    }
    if (!(state instanceof Promise)) this.#restored(cell, state, rows, since);
    else {
      state.then(
        (read) => scheduleSpare(() => this.#restored(cell, read, rows, since)),
        (error: unknown) => scheduleSpare(() => this.#notRestored(cell, error)),
      );
    }
  }

  #restored(
    cell: Cell<State, Message>,
    state: State | undefined,
    rows: Rows | undefined,
    since: number | undefined,
  ): void {
    this.#loading -= 1;
    if (this.#kind.readsSince?.() === since) this.#ready(cell, state, rows);
    else this.#toLoad.add(cell);
  }

  #notRestored(cell: Cell<State, Message>, error: unknown): void {
    if (!isOfCode(error)) {
      this.#loadFailed([cell], error);
      return;
    }
    this.#loading -= 1;
    this.#unrestorable(cell, error);
  }

  #ready(cell: Cell<State, Message>, state: State | undefined, rows: Rows | undefined): void {
    if (state === undefined) {
      const { stash } = cell;
      this.drop(cell);
      if (this.#kind.missing !== undefined) this.#kind.missing(cell, stash, rows);
      return;
    }
    if (this.#isHeld(state)) {
      this.#abandon(cell, TENANT_HELD);
      return;
    }
    cell.state = state;
    cell.phase = 'ready';
    this.#touched.add(cell);
    try {
      this.#kind.awake?.(cell as Ready<State, Message>, rows);
    } catch (error) {
      this.#defect(cell, undefined, error);
    }
    this.#unstash(cell);
    this.#lineUp(cell);
  }

  #loadFailed(cells: readonly Cell<State, Message>[], error: unknown): void {
    this.#loading -= cells.length;
    this.#deps.log.warn({ err: error, actors: cells.length }, 'actors could not be loaded');
    for (const cell of cells) if (cell.phase === 'loading') this.#abandon(cell, DATABASE_AWAY);
  }

  #unrestorable(cell: Cell<State, Message>, error: unknown): void {
    if (cell.phase !== 'loading') return;
    const name = this.#kind.nameOf(cell.id);
    this.#deps.log.error({ ...name, message: 'restore', err: error }, 'defect');
    this.#kind.unrestorable?.(cell.id);
    this.#abandon(cell, INTERNAL);
  }

  // ---------------------------------------------------------------- letting go

  /** Behind those that were used before, unless something is under way for it. */
  #lineUp(cell: Cell<State, Message>): void {
    if (cell.unacked > 0 || cell.state === undefined || cell.phase === 'loading') return;
    // It may have been dropped with units under way, when its rows were deleted.
    if (this.#cells.get(cell.id) !== cell) return;
    const outlook = this.#kind.outlookOf?.(cell.state) ?? 'active';
    const isLarge = outlook !== 'ended' && cell.bytes > this.#bytesMax * LARGE_SHARE;
    const line = this.#lines[isLarge ? 'large' : outlook];
    // A queue keeps its order, whoever looks at what is in it.
    if (line !== cell.line || outlook !== 'offered') line.push(cell);
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
      const cell = name === 'offered' ? line.midst() : line.oldest;
      if (cell === undefined) return;
      if (this.isIdle(cell)) {
        this.drop(cell);
        continue;
      }
      // Busy ones move behind the idle ones, or they would be looked at in every turn.
      line.push(cell);
      tries -= 1;
    }
  }

  #isOver(): boolean {
    const { residentMax } = this.#kind;
    if (residentMax !== undefined && this.#cells.size > residentMax) return true;
    if (this.#bytes <= this.#bytesMax) return false;
    const idle = LINES.reduce((bytes, name) => bytes + this.#lines[name].bytes, 0);
    return idle > this.#bytesMax * IDLE_SHARE;
  }
}
