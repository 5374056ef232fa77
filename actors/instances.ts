/**
 * The instance actors of one shard: brings them to life from rows, hands them their messages one at
 * a time, commits what they decide, and lets them go when they are idle.
 *
 *   absent ──message──► loading ──rows──► ready ──idle, over the cap──► absent
 *      │                   ▲               │  │ ▲
 *      └─keyed creation─► creating ─exists─┘  └─┴─ reading: a message needs rows first
 *                          a refused unit or a defect: discarded and loaded, too
 *
 * While an actor is loading, creating, reading, or has too many units under way, its messages are
 * stashed in order. Invariant: an actor is loaded only when none of its units is unacknowledged.
 */

import { LIMITS } from '../src/config.js';
import {
  conflict,
  DATABASE_AWAY,
  EngineError,
  notFound,
  refusedUnit,
  UNKNOWN_OUTCOME,
  unavailable,
} from '../src/errors.js';
import type { Logger } from '../src/log.js';
import type { ChangeResult } from './change-many.js';
import type { CommitLog, PendingUnit, Settlement } from './commit-log.js';
import { EndedTasks } from './ended-tasks.js';
import { InstanceActor, type InstanceEnv } from './instance.js';
import { Cell, type Creation, type Held, type Message, type Repeat } from './instance-cell.js';
import { type InstanceMessage, type InstanceRequest, taskOf } from './instance-messages.js';
import { fenced } from './instance-ownership.js';
import { newRecord } from './instance-record.js';
import { heartbeatWatches, readyHints } from './instance-tasks.js';
import type { LoadedInstance, Rows } from './loader.js';
import type { Plans } from './plans.js';
import { preparationOf } from './preparation.js';
import { restoreActor, textOf } from './restore.js';
import type { Effect, StepRef, Turn } from './turn.js';

export interface InstancesDeps {
  readonly env: InstanceEnv;
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly plans: Plans;
  readonly log: Logger;
  /** A unit of the instance was committed, or its actor was lost with units under way. */
  readonly changed: (instance: string) => void;
  /** Performs effects whose unit, if any, is committed. */
  readonly release: (effects: readonly Effect[]) => void;
  /** Runs `work` in a turn of the shard: what it commits and sends is posted at the turn's end. */
  readonly schedule: (work: () => void) => void;
  /** A creation whose instance is not there any more: where it goes is decided anew. */
  readonly createAgain: (creation: Creation) => void;
}

/** What an actor costs beside its JSON text. */
const ACTOR_BYTES = 2_048;

/** Actors of which passivation looks at most at this many in one turn. */
const PASSIVATION_TRIES = 64;

export class Instances {
  readonly #deps: InstancesDeps;
  /** Set while a dead writer's units are unsettled: rows are not to be trusted until then. */
  loadsPaused = false;
  /** In order of last use: a Map keeps the order in which keys were set. */
  readonly #cells = new Map<string, Cell>();
  #toLoad: Cell[] = [];
  /** Instances that the engine itself leaves alone, see `#quarantine`. */
  readonly #quarantined = new Set<string>();
  readonly #endedTasks: EndedTasks;
  #bytes = 0;

  constructor(deps: InstancesDeps) {
    this.#deps = deps;
    this.#endedTasks = new EndedTasks({
      ...deps,
      fail: (request, error) => this.#fail(request, error),
      tell: (instance, message) => this.tell(instance, message),
    });
  }

  /** A creation whose id is new for certain. */
  create(creation: Creation): void {
    this.#birth(this.#newCell(creation.instance.id), creation, false);
  }

  /** A creation whose id follows from its key: the first commit decides whether it is new. */
  createKeyed(creation: Creation): void {
    const { id } = creation.instance;
    const cell = this.#cells.get(id);
    if (cell !== undefined) this.#deliver(cell, creation);
    else this.#birth(this.#newCell(id), creation, true);
  }

  tell(id: string, message: InstanceMessage | Repeat): void {
    if (message.kind === 'wake' && this.#quarantined.has(id)) return;
    let cell = this.#cells.get(id);
    if (cell === undefined) {
      cell = this.#newCell(id);
      this.#toLoad.push(cell);
    } else {
      this.#cells.delete(id);
      this.#cells.set(id, cell);
    }
    this.#deliver(cell, message);
  }

  /** Whether a message would be handled at once, or be the first that an absent actor is loaded for. */
  canTake(id: string): boolean {
    const cell = this.#cells.get(id);
    if (cell === undefined) return true;
    return cell.phase === 'ready' && cell.stash.length === 0 && this.#mayRun(cell);
  }

  /** Takes an instance out of memory because its rows were deleted. */
  evictSequence(sequenceId: string): void {
    for (const cell of this.#cells.values()) {
      if (cell.actor?.record.sequenceId === sequenceId) this.#drop(cell);
    }
  }

  /**
   * Holds an instance whose rows may be about to be deleted: its messages wait until `letGo`.
   *
   * @returns false when something is about to happen to it
   */
  hold(id: string): boolean {
    const resident = this.#cells.get(id);
    if (resident !== undefined && !this.#isIdle(resident)) return false;
    const cell = resident ?? this.#newCell(id);
    this.#weigh(cell, ACTOR_BYTES);
    cell.actor = undefined;
    cell.phase = 'purging';
    return true;
  }

  /** @param isGone its rows were deleted; otherwise it is loaded when somebody asked for it */
  letGo(id: string, isGone: boolean): void {
    const cell = this.#cells.get(id);
    if (cell?.phase !== 'purging') return;
    cell.phase = 'loading';
    if (isGone) {
      this.#missing(cell);
      this.#deps.changed(id);
    } else if (cell.stash.length > 0) this.#toLoad.push(cell);
    else this.#drop(cell);
  }

  /** Reads the rows of actors that were asked for in this turn, and lets idle ones go. */
  endTurn(): void {
    this.#load();
    this.#passivate();
  }

  // ---------------------------------------------------------------- life of a cell

  #newCell(id: string): Cell {
    const incarnation = this.#deps.commits.nextIncarnation();
    const cell = new Cell(id, incarnation, (owner, unit, ack) => this.#settled(owner, unit, ack));
    this.#cells.set(id, cell);
    this.#weigh(cell, ACTOR_BYTES);
    return cell;
  }

  #weigh(cell: Cell, bytes: number): void {
    this.#bytes += bytes - cell.bytes;
    cell.bytes = bytes;
  }

  #drop(cell: Cell): void {
    this.#bytes -= cell.bytes;
    this.#cells.delete(cell.key);
  }

  #birth(cell: Cell, creation: Creation, gated: boolean): void {
    const record = newRecord(creation.instance, this.#deps.env.now());
    const actor = new InstanceActor(record, creation.sequence.plan, this.#deps.env);
    cell.actor = actor;
    cell.phase = gated ? 'creating' : 'ready';
    if (gated) cell.creation = creation;
    this.#run(cell, creation, () => actor.create(creation.request, gated));
  }

  #deliver(cell: Cell, message: Message): void {
    if (cell.phase === 'ready' && cell.stash.length === 0 && this.#mayRun(cell)) {
      this.#handle(cell, message);
      return;
    }
    if (cell.stash.length >= LIMITS.stashPerActorMax && 'request' in message) {
      this.#fail(message.request, unavailable('ENG_OVERLOADED', `instance ${cell.key} is busy`));
      return;
    }
    cell.stash.push(message);
  }

  #mayRun(cell: Cell): boolean {
    return (
      cell.unacked < LIMITS.unitsPerActorMax && cell.unackedBytes < LIMITS.unitBytesPerActorMax
    );
  }

  #handle(cell: Cell, message: Message): void {
    const actor = cell.actor as InstanceActor;
    if (message.kind === 'create' || message.kind === 'repeat') {
      this.#deduplicate(cell, actor, message);
      return;
    }
    const fence = fenced(actor, message);
    if (fence !== undefined) {
      this.#turnAway(message, fence, 'skipped');
      return;
    }
    const task = taskOf(message);
    if (task !== undefined && 'request' in message && !actor.tasks.has(task)) {
      this.#endedTasks.read(cell, task, message);
      return;
    }
    if (this.#isDoomed(actor, message)) {
      this.#refuseDoomed(actor, message);
      return;
    }
    const prepare = preparationOf(message);
    if (prepare !== undefined && 'tenant' in message && actor.isSeenBy(message.tenant)) {
      cell.phase = 'reading';
      cell.held = { message, prepare };
      this.#unstash(cell);
      return;
    }
    this.#run(cell, message, () => actor.handle(message));
  }

  /** Whoever asked is told that nothing of it happened; hints are moot. */
  #turnAway(message: Message, error: EngineError, change: ChangeResult, claim: 0 | -1 = 0): void {
    if (message.kind === 'change') this.#countChange(message.group, change);
    else if (message.kind === 'claim') this.#answerClaim(message, claim);
    else if ('request' in message) this.#fail(message.request, error);
  }

  /** A failed instance must not come to life while its sequence is deleted: nobody counts it again. */
  #isDoomed({ record }: InstanceActor, { kind }: Message): boolean {
    return (
      record.snapshot.state === 'failed' &&
      REVIVING.has(kind) &&
      this.#deps.plans.isBlocked(record.sequenceId)
    );
  }

  #refuseDoomed({ record }: InstanceActor, message: Message): void {
    const what = `sequence ${record.sequenceId} is being deleted`;
    if (message.kind === 'change') this.#countChange(message.group, 'failed');
    else if ('request' in message) this.#fail(message.request, unavailable('ENG_OVERLOADED', what));
  }

  /** Nothing else happens to the instance meanwhile, so what is read stays true. */
  #prepare(cell: Cell, { message, prepare }: Held): void {
    const { loader: rows, plans, schedule } = this.#deps;
    const actor = cell.actor as InstanceActor;
    cell.held = undefined;
    const bear = (child: InstanceActor, begin: () => Turn) => {
      const newborn = this.#newCell(child.record.id);
      newborn.actor = child;
      newborn.phase = 'ready';
      this.#run(newborn, message, begin);
    };
    prepare(actor, { rows, plans, bear }).then(
      (operation) =>
        schedule(() =>
          this.#prepared(cell, message, () =>
            this.#run(cell, message, () => actor.handle(message, operation)),
          ),
        ),
      (error: unknown) =>
        schedule(() => this.#prepared(cell, message, () => this.#refuse(message, error))),
    );
  }

  #prepared(cell: Cell, message: InstanceRequest, proceed: () => void): void {
    if (this.#cells.get(cell.key) === cell) {
      cell.phase = 'ready';
      proceed();
      this.#unstash(cell);
      return;
    }
    // The instance was deleted with its sequence: whoever asks is told so by a new actor.
    for (const left of [message, ...cell.stash]) {
      if (left.kind === 'create') this.#deps.createAgain(left);
      else this.tell(cell.key, left);
    }
  }

  #refuse({ request }: InstanceRequest, error: unknown): void {
    if (!(error instanceof EngineError)) {
      this.#deps.log.warn({ err: error }, 'rows for a request could not be read');
    }
    this.#fail(request, error instanceof EngineError ? error : DATABASE_AWAY);
  }

  /** Runs the actor and commits its turn; a throw is a defect of this one actor. */
  #run(cell: Cell, message: Message, run: () => Turn): void {
    let turn: Turn;
    try {
      turn = run();
    } catch (error) {
      this.#deps.log.error({ instanceId: cell.key, message: message.kind, err: error }, 'defect');
      this.#turnAway(message, new EngineError('ENG_INTERNAL', 'internal error'), 'failed');
      cell.defects += 1;
      if (cell.defects > DEFECTS_MAX && !('request' in message)) this.#quarantine(cell);
      else this.#rebuild(cell, undefined);
      return;
    }
    cell.defects = 0;
    this.#commit(cell, turn);
  }

  /**
   * Not even its failure could be recorded: the engine lets the instance be, instead of trying for
   * ever. Requests still reach it.
   */
  #quarantine(cell: Cell): void {
    this.#deps.log.error({ instanceId: cell.key }, 'instance quarantined');
    this.#quarantined.add(cell.key);
    this.#drop(cell);
    for (const message of cell.stash) this.#undelivered(cell, message);
  }

  #commit(cell: Cell, turn: Turn): void {
    if (turn.mutations.length > 0) {
      cell.last = this.#deps.commits.append(cell, turn);
      cell.unacked += 1;
      cell.unackedBytes += cell.last.bytes;
      const kept = cell.actor?.kept.characters ?? 0;
      this.#weigh(cell, Math.max(cell.bytes, ACTOR_BYTES + kept + 2 * cell.last.bytes));
    } else if (cell.unacked > 0 && cell.last !== undefined) {
      // What it tells may rest on units under way: it leaves after them.
      cell.last.effects.push(...turn.effects);
    } else {
      this.#deps.release(turn.effects);
    }
  }

  #settled(cell: Cell, unit: PendingUnit, ack: Settlement): void {
    cell.unacked -= 1;
    cell.unackedBytes -= unit.bytes;
    if (cell.unacked === 0) cell.last = undefined;
    switch (ack[1]) {
      case 'committed':
      case 'born':
        if (cell.phase === 'creating') cell.phase = 'ready';
        cell.creation = undefined;
        this.#deps.release(unit.effects);
        this.#deps.changed(cell.key);
        this.#unstash(cell);
        return;
      case 'exists':
        this.#existed(cell);
        return;
      case 'refused':
        this.#refused(cell, unit, ack[2], ack[3]);
        return;
      case 'suffix':
        this.#answerAll(unit.effects, SUFFIX);
        if (cell.unacked === 0 && cell.phase === 'loading') this.#toLoad.push(cell);
        return;
      case 'lost':
        this.#answerAll(unit.effects, UNKNOWN_OUTCOME);
        if (cell.actor !== undefined) this.#rebuild(cell, undefined);
        else if (cell.unacked === 0) this.#toLoad.push(cell);
        return;
    }
  }

  #unstash(cell: Cell): void {
    if (cell.held !== undefined && cell.unacked === 0) this.#prepare(cell, cell.held);
    while (cell.phase === 'ready' && cell.stash.length > 0 && this.#mayRun(cell)) {
      this.#handle(cell, cell.stash.shift() as Message);
    }
  }

  // ---------------------------------------------------------------- idempotency keys

  /** The row was there: the instance is loaded, and the creation is answered by it. */
  #existed(cell: Cell): void {
    if (cell.creation !== undefined) cell.stash.unshift(cell.creation);
    this.#rebuild(cell, undefined);
  }

  #deduplicate(cell: Cell, actor: InstanceActor, creation: Creation | Repeat): void {
    const { record } = actor;
    const { instance, request } = creation;
    const same =
      record.idempotencyKey === instance.idempotencyKey &&
      record.tenantId === instance.tenantId &&
      (record.snapshot.runtime.dry_run === true) === instance.dryRun;
    const effect: Effect = same
      ? { kind: 'reply', request, status: 201, body: `{"id":"${record.id}","deduplicated":true}` }
      : { kind: 'error', request, error: conflict('idempotency_key collides with another key') };
    if (cell.unacked > 0 && cell.last !== undefined) cell.last.effects.push(effect);
    else this.#deps.release([effect]);
  }

  // ---------------------------------------------------------------- refusals and rebuilding

  #refused(cell: Cell, unit: PendingUnit, sqlState: string, reason: string): void {
    this.#deps.log.warn({ instanceId: cell.key, sqlState }, 'unit refused by the database');
    const asked = unit.effects.some(({ kind }) => kind === 'reply' || kind === 'changed');
    this.#answerAll(unit.effects, refusedUnit(sqlState, reason));
    const step: StepRef | undefined = unit.origin;
    const message = `the database refused the data: ${reason}`;
    this.#rebuild(cell, asked ? undefined : { kind: 'unit.refused', step, reason: message });
  }

  /** Discards the actor; it is loaded when its last unit is settled. `first` is its first message. */
  #rebuild(cell: Cell, first: InstanceMessage | undefined): void {
    const orphans = [...(cell.actor?.running.values() ?? [])];
    this.#deps.release(orphans.map((step) => ({ kind: 'abort', instance: cell.key, step })));
    cell.actor = undefined;
    cell.phase = 'loading';
    cell.creation = undefined;
    cell.incarnation = this.#deps.commits.nextIncarnation();
    cell.last = undefined;
    if (cell.held !== undefined) cell.stash.unshift(cell.held.message);
    cell.held = undefined;
    if (first !== undefined) cell.stash.unshift(first);
    this.#deps.changed(cell.key);
    if (cell.unacked === 0) this.#toLoad.push(cell);
  }

  #answerAll(effects: readonly Effect[], error: EngineError): void {
    for (const effect of effects) {
      if (effect.kind === 'reply' || effect.kind === 'error') this.#fail(effect.request, error);
      if (effect.kind === 'changed') this.#countChange(effect.group, 'failed');
      if (effect.kind === 'peer' && effect.message[0] === 'claimed') {
        // A claim that was not committed: the queue offers the task again.
        const [kind, handler, poll, task] = effect.message;
        const message = [kind, handler, poll, task, -1, ''] as const;
        this.#deps.release([{ kind: 'peer', shard: effect.shard, message }]);
      }
    }
  }

  #fail(request: number, error: EngineError): void {
    this.#deps.release([{ kind: 'error', request, error }]);
  }

  // ---------------------------------------------------------------- loading

  #load(): void {
    if (this.#toLoad.length === 0 || this.loadsPaused) return;
    const cells = this.#toLoad.splice(0, LOAD_BATCH);
    this.#deps.loader
      .instances(cells.map((cell) => cell.key))
      .then((loaded) => {
        for (const cell of cells) {
          // One that cannot be restored is no reason to fail the others.
          this.#restore(cell, loaded.get(cell.key)).catch((error: unknown) =>
            this.#deps.schedule(() => this.#loadFailed([cell], error)),
          );
        }
      })
      .catch((error: unknown) => this.#deps.schedule(() => this.#loadFailed(cells, error)));
    if (this.#toLoad.length > 0) this.#deps.schedule(() => undefined);
  }

  async #restore(cell: Cell, loaded: LoadedInstance | undefined): Promise<void> {
    if (loaded === undefined) {
      this.#deps.schedule(() => this.#missing(cell));
      return;
    }
    const actor = await restoreActor(this.#deps, loaded);
    this.#deps.schedule(() => {
      if (actor === undefined) this.#missing(cell);
      else this.#ready(cell, actor, loaded);
    });
  }

  #ready(cell: Cell, actor: InstanceActor, loaded: LoadedInstance): void {
    cell.actor = actor;
    cell.phase = 'ready';
    this.#weigh(cell, ACTOR_BYTES + actor.kept.characters + 2 * textOf(loaded));
    this.#deps.release(
      [...actor.tasks.keys()].map((task) => ({ kind: 'task.opened', instance: cell.key, task })),
    );
    this.#deps.release(heartbeatWatches(actor));
    this.#deps.release(readyHints(actor));
    if (cell.defects >= DEFECTS_MAX) {
      // It throws whenever it goes on: it fails, with this as the reason, and the others never notice.
      this.#run(cell, POISON, () => actor.handle(POISON));
    } else if (loaded.timer?.recover === true) {
      // Steps that ran inside a process or an actor that is gone have no one to report them.
      this.#run(cell, WAKE_RECOVERED, () => actor.handle(WAKE_RECOVERED));
    }
    this.#unstash(cell);
  }

  /** No such row: requests are told so, creations go on, hints are moot. */
  #missing(cell: Cell): void {
    const messages = cell.stash;
    this.#drop(cell);
    for (const message of messages) {
      if (message.kind === 'create') this.#deps.createAgain(message);
      else if (message.kind === 'repeat') this.#fail(message.request, message.otherwise);
      else {
        const task = taskOf(message);
        const what = task === undefined ? `instance ${cell.key}` : `worker task ${task}`;
        this.#turnAway(message, notFound(what), 'skipped');
      }
    }
  }

  #loadFailed(cells: readonly Cell[], error: unknown): void {
    this.#deps.log.warn({ err: error, actors: cells.length }, 'actors could not be loaded');
    for (const cell of cells) {
      if (cell.phase !== 'loading') continue;
      const messages = cell.stash;
      this.#drop(cell);
      for (const message of messages) this.#undelivered(cell, message);
      // Its row may say `recover`, which nobody reads again before the shard starts anew.
      const at = this.#deps.env.now() + RELOAD_MS;
      this.#deps.release([{ kind: 'timer', instance: cell.key, at, rank: RELOAD_RANK }]);
    }
  }

  /** Requests are refused. Hints are dropped where a row finds them again, and kept where none does. */
  #undelivered(cell: Cell, message: Message): void {
    if (message.kind === 'reap') {
      const at = this.#deps.env.now() + RELOAD_MS;
      this.#deps.release([{ kind: 'reap', instance: cell.key, task: message.task, at }]);
    } else this.#turnAway(message, DATABASE_AWAY, 'failed', -1);
  }

  #countChange(group: number, result: ChangeResult): void {
    this.#deps.release([{ kind: 'changed', group, result }]);
  }

  #answerClaim(message: Extract<InstanceMessage, { kind: 'claim' }>, epoch: number): void {
    const { handler, poll, task, queueShard } = message;
    this.#deps.release([
      { kind: 'peer', shard: queueShard, message: ['claimed', handler, poll, task, epoch, ''] },
    ]);
  }

  // ---------------------------------------------------------------- passivation

  #isIdle({ phase, unacked, stash, actor }: Cell): boolean {
    return phase === 'ready' && unacked === 0 && stash.length === 0 && actor?.isPassive === true;
  }

  #passivate(): void {
    if (this.#cells.size <= LIMITS.residentActorsMax && this.#bytes <= LIMITS.residentBytesMax) {
      return;
    }
    let tries = PASSIVATION_TRIES;
    for (const cell of this.#cells.values()) {
      if (tries-- === 0) return;
      if (this.#isIdle(cell)) this.#drop(cell);
      else {
        // Busy ones move behind the idle ones, or they would be looked at in every turn.
        this.#cells.delete(cell.key);
        this.#cells.set(cell.key, cell);
      }
    }
  }
}

const LOAD_BATCH = 500;

/** How soon a hint that no row finds again is repeated after its actor could not be loaded. */
const RELOAD_MS = 1_000;
/** As that of normal priority: the one of an actor that is not there is not known. */
const RELOAD_RANK = 2;

const WAKE_RECOVERED = { kind: 'wake', recovered: true } as const;

/** What can make a failed instance live again. */
const REVIVING: ReadonlySet<Message['kind']> = new Set<Message['kind']>([
  'retry',
  'patchState',
  'signal',
  'change',
]);

/** After so many defects in a row an instance is failed. */
const DEFECTS_MAX = 3;

const POISON = {
  kind: 'unit.refused',
  step: undefined,
  reason: 'internal error while the instance was advanced; see the log',
} as const;

const SUFFIX = unavailable(
  'ENG_SHARD_RESTARTING',
  'an earlier change of the same instance was refused; nothing of this one happened',
);
