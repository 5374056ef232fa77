/**
 * What the actors of concurrency keys and of rate limits have in common: they come to life from rows,
 * answer messages in memory, and commit what they decided in a turn as one unit at its end. After
 * anything that makes memory doubtful they are read again; messages wait meanwhile, in order.
 *
 *   loading ──rows──► ready ──a unit refused or lost, or a rescan──► loading
 */

import type { Clock } from '../src/core/clock.js';
import type { UnixMs } from '../src/core/time.js';
import { DATABASE_AWAY, type EngineError, refusedData, UNKNOWN_OUTCOME } from '../src/errors.js';
import type { Logger } from '../src/log.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Rows } from './loader.js';
import { type Effect, Turn } from './turn.js';

export interface RowActorDeps {
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly log: Logger;
  readonly clock: Clock;
  readonly now: () => UnixMs;
  readonly shards: number;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
  /** Runs the function when rows can be trusted: not while a dead writer's units are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
}

interface Stashed {
  readonly work: () => void;
  /** Answered with an error if the rows cannot be read. */
  readonly request: number | undefined;
}

export abstract class RowActor<State> implements UnitOwner {
  readonly key: string;
  incarnation: number;
  protected readonly deps: RowActorDeps;
  #phase: 'loading' | 'ready' = 'loading';
  #isReading = false;
  #stash: Stashed[] = [];
  #turn: Turn | undefined;
  #unacked = 0;
  /** The last unit under way. */
  #last: PendingUnit | undefined;

  /** @param key unique among all actors */
  constructor(key: string, deps: RowActorDeps) {
    this.key = key;
    this.deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
  }

  /** Reads the rows; called while none of the actor's units is under way. */
  protected abstract read(): Promise<State>;
  /** Takes the rows over; may decide something, such as to repeat what was not heard. */
  protected abstract restore(state: State): void;
  /** The last chance to decide in a turn, before its unit is committed; `reload` asks for more rows. */
  protected abstract decide(): 'done' | 'reload';
  /** Memory says nothing that the rows do not, and nobody waits. */
  protected abstract get isIdle(): boolean;

  get isPassive(): boolean {
    const isSettled = this.#unacked === 0 && this.#turn === undefined;
    return isSettled && this.#phase === 'ready' && this.isIdle;
  }

  /** Handles a message now, or when the rows are here. */
  protected tell(work: () => void, request?: number): void {
    if (this.#phase === 'ready') work();
    else this.#stash.push({ work, request });
  }

  /** What this turn commits. */
  protected get turn(): Turn {
    this.#turn ??= new Turn();
    return this.#turn;
  }

  /** At the end of each turn of the shard in which the actor was told something. */
  flush(): void {
    if (this.#phase === 'loading') {
      this.#load();
      return;
    }
    const next = this.decide();
    this.#commit();
    if (next === 'reload') this.#reload();
  }

  /** The rows are read again, because hints may have been lost; what was decided is kept. */
  rescan(): void {
    if (this.#phase === 'loading') return;
    this.flush();
    this.#reload();
  }

  settled(unit: PendingUnit, ack: Settlement): void {
    this.#unacked -= 1;
    if (this.#unacked === 0) this.#last = undefined;
    if (ack[1] === 'committed') {
      this.deps.release(unit.effects);
      if (this.#phase === 'loading') this.#load();
      return;
    }
    if (ack[1] === 'refused') {
      this.incarnation = this.deps.commits.nextIncarnation();
      this.deps.log.warn({ actor: this.key, sqlState: ack[2] }, 'unit refused by the database');
    }
    const error = ack[1] === 'refused' ? refusedData(ack[3]) : UNKNOWN_OUTCOME;
    this.#refuse(unit.effects, error);
    // What was decided since rests on what was refused.
    if (this.#turn !== undefined) this.#refuse(this.#turn.effects, error);
    this.#turn = undefined;
    this.#reload();
  }

  #commit(): void {
    const turn = this.#turn;
    if (turn === undefined) return;
    this.#turn = undefined;
    if (turn.mutations.length === 0 && this.#last === undefined) {
      this.deps.release(turn.effects);
    } else if (turn.mutations.length === 0) {
      // What it tells may rest on units under way: it leaves after them.
      this.#last?.effects.push(...turn.effects);
    } else {
      this.#unacked += 1;
      this.#last = this.deps.commits.append(this, turn);
    }
  }

  #reload(): void {
    this.#phase = 'loading';
    this.#load();
  }

  #refuse(effects: readonly Effect[], error: EngineError): void {
    for (const effect of effects) {
      if (effect.kind === 'reply') this.fail(effect.request, error);
    }
  }

  protected fail(request: number, error: EngineError): void {
    this.deps.release([{ kind: 'error', request, error }]);
  }

  #load(): void {
    if (this.#isReading || this.#unacked > 0) return;
    this.#isReading = true;
    this.deps.whenWriterKnown(() => this.#read());
  }

  #read(): void {
    const { schedule, clock, log } = this.deps;
    this.read().then(
      (state) => schedule(() => this.#ready(state)),
      (error: unknown) =>
        schedule(() => {
          log.warn({ actor: this.key, err: error }, 'actor could not be loaded');
          this.#refuseRequests();
          clock.setTimeout(() => schedule(() => this.#again()), RELOAD_MS);
        }),
    );
  }

  #again(): void {
    this.#isReading = false;
    this.#load();
  }

  #ready(state: State): void {
    this.#isReading = false;
    this.#phase = 'ready';
    this.restore(state);
    const stash = this.#stash;
    this.#stash = [];
    for (const { work } of stash) work();
    this.flush();
  }

  #refuseRequests(): void {
    for (const { request } of this.#stash) {
      if (request !== undefined) this.fail(request, DATABASE_AWAY);
    }
    this.#stash = this.#stash.filter(({ request }) => request === undefined);
  }
}

/** How soon rows that could not be read are asked for again. */
const RELOAD_MS = 1_000;
