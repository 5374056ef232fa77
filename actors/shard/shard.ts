/**
 * One shard: the turn that all of its actors share. Messages come in at any time; a turn handles
 * them in order, the engine's own before requests and requests of tenants in turns, then posts what
 * came out of it, once per destination. Nothing here waits: reads end in `schedule`.
 *
 *   front ─requests─► inbox ─┐                         ┌─units───► writer
 *   peers ─messages─► work ──┼─► turn: actors ─► flush ┼─replies─► front
 *   writer ─acks────► work ──┤                         └─hints───► peers
 *   timers, reads ──► work ──┘
 */

import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Ack } from '../../src/db/units.js';
import { OVERDUE_ROWS_MAX } from '../runtime/load-sql.js';
import type { PeerPost, Request, RequestPost } from '../runtime/protocol.js';
import type { Effects, Messages, Room } from '../runtime/room.js';
import type { DueTimer } from '../runtime/rows.js';
import type { Effect } from '../runtime/turn.js';
import { Dispatch, replyOf } from './dispatch.js';
import type { Timer } from './due-timers.js';
import { Fifo } from './fifo.js';
import { Hearing } from './hearing.js';
import { FairInbox } from './inbox.js';
import { createParts, type ShardDeps, type ShardParts } from './parts.js';
import { RunQueue } from './run-queue.js';
import { TenantHolds } from './tenant-holds.js';

/** How often a shard asks whether a sequence is still being deleted. */
const BLOCKED_AGAIN_MS = 5_000;

export class Shard {
  readonly #deps: ShardDeps;
  readonly #parts: ShardParts;
  readonly #inbox = new FairInbox();
  readonly #run = new RunQueue();
  readonly #dispatch: Dispatch;
  /** Tenants that leave this cell, and those that arrive. */
  readonly tenants: TenantHolds;
  /** Those that have something to do at the end of each turn. */
  readonly #ending: readonly Room[];
  /** The engine's own work, before requests. */
  #work: (() => void)[] = [];
  /** The part of it that many may want at once, and that takes long together. */
  readonly #spare = new Fifo<() => void>();
  #scheduled = false;
  readonly #hearing: Hearing;
  readonly #onWriterKnown: (() => void)[] = [];
  #stopped = false;

  constructor(deps: ShardDeps) {
    this.#deps = deps;
    const { clock, settings } = deps;
    this.#hearing = new Hearing(() => clock.now(), settings.workerStaleMs);
    this.#parts = createParts(deps, {
      release: (effects) => this.#dispatch.release(effects),
      schedule: (work) => this.#enqueue(work),
      scheduleSpare: (work) => {
        this.#spare.push(work);
        this.#scheduleTurn();
      },
      wakeShard: () => this.#scheduleTurn(),
      runSoon: (timer) => this.#runSoon(timer),
      isRunBehind: () => this.#run.size > OVERDUE_ROWS_MAX,
      hearing: this.#hearing,
      whenWriterKnown: (then) => this.#whenWriterKnown(then),
      isBehind: () => this.#isBehind(),
      takeHints: () => this.#takeHints(),
      again: (request) => this.#takeUp(request),
    });
    const { rooms, out } = this.#parts;
    this.#ending = rooms.filter((room) => room.endTurn !== undefined);
    this.#dispatch = new Dispatch([...rooms, this.#own()], out, deps.log);
    this.tenants = new TenantHolds(deps, this.#parts, {
      enqueue: (work) => this.#enqueue(work),
      whenWriterKnown: (then) => this.#whenWriterKnown(then),
      runSoon: (timer) => this.#runSoon(timer),
      watchClaims: (tenant) => {
        this.#hearing.admitted(tenant);
        this.#watchClaims(tenant);
      },
    });
  }

  /** What a shard does itself with messages and effects. */
  #own(): Room {
    const { settings } = this.#deps;
    const { ownRequests, out, timers, instances } = this.#parts;
    /** What is committed of one that is in memory. */
    const timerOf = (instance: string, rank: number): DueTimer => ({
      instance,
      rank,
      tenant: instances.tenantOf(instance),
    });
    const answer = (effect: Extract<Effect, { kind: 'reply' | 'error' }>) => {
      if (effect.request < 0) ownRequests.answered(effect.request, effect);
      else out.reply(replyOf(effect));
    };
    const messages: Messages = {
      // Behind the hints that are at hand, as if it had come from the front.
      request: ({ request }) => this.#takeUp(request),
      wake: ({ at, instance, rank, tenant }) => this.#wakeAt(at, { instance, rank, tenant }),
      'sequence.block': ({ sequence, isBlocked }) => this.#block(sequence, isBlocked),
      'sequence.evict': ({ sequence }) => {
        for (const room of this.#parts.rooms) room.sequenceEvicted?.(sequence);
      },
    };
    const effects: Effects = {
      reply: answer,
      error: answer,
      peer: ({ shard, message }) => {
        if (shard === settings.shard) this.#enqueue(() => this.#dispatch.receive(message));
        else out.hint(shard, message);
      },
      timer: ({ at, instance, rank }) => timers.committed(at, timerOf(instance, rank)),
      reap: ({ at, instance, task }) => timers.push(at, { kind: 'reap', instance, task }),
      continue: ({ instance, rank }) => {
        this.#runSoon(timerOf(instance, rank));
        this.#scheduleTurn();
      },
    };
    return { messages, effects };
  }

  // ---------------------------------------------------------------- life

  /**
   * Takes up what the tables say: due timers, work that a crash cut off, claims to watch.
   * Resolves when everything that was running before is under way again.
   */
  async start(): Promise<void> {
    const { loader } = this.#deps;
    this.#hearing.begin();
    // First: nothing may be created by routes that are not known, nor end unknown to subscribers.
    for (const room of this.#parts.rooms) await room.prepare?.();
    let recovered = 0;
    await loader.recoverable((timer) => {
      recovered += 1;
      // Loading it is enough: an actor whose row says `recover` is woken as recovered.
      this.#enqueue(() => this.#runSoon(timer));
    });
    for (const room of this.#parts.rooms) room.start?.();
    this.#parts.measures.recovered(recovered);
    if (recovered > 0) this.#deps.log.info({ recovered }, 'instances recovered');
    this.#watchClaims();
  }

  /**
   * Heartbeats of claims from before the start are watched from readiness on.
   *
   * @param only the tenant whose claims are not watched yet; absent: none are
   */
  #watchClaims(only?: string): void {
    const { loader, settings, log } = this.#deps;
    loader
      .claimedTasks((task, instance, heartbeatAt, tenant) => {
        if (only !== undefined && only !== tenant) return;
        const since = Math.max(heartbeatAt, this.#hearing.since(tenant));
        const at = since + settings.workerStaleMs;
        this.#enqueue(() => this.#parts.timers.push(at, { kind: 'reap', instance, task }));
      })
      .catch((error: unknown) => {
        log.warn({ err: error }, 'claims could not be read; trying again');
        this.#deps.clock.setTimeout(() => {
          if (!this.#stopped) this.#watchClaims(only);
        }, settings.workerReaperTickMs);
      });
  }

  /** Parked polls are answered; what is asked from now on is still served until `stop`. */
  drain(): void {
    this.#enqueue(() => {
      for (const room of this.#parts.rooms) room.drain?.();
    });
  }

  /** Nothing asked is unanswered and nothing decided is uncommitted. */
  get isIdle(): boolean {
    return (
      this.#inbox.size === 0 &&
      this.#parts.commits.unackedUnits === 0 &&
      this.#work.length === 0 &&
      this.#spare.size === 0
    );
  }

  stop(): void {
    this.#stopped = true;
    for (const room of this.#parts.rooms) room.stop?.();
  }

  // ---------------------------------------------------------------- what comes in

  receiveRequests(post: RequestPost): void {
    for (const request of post.requests) this.#inbox.push(request);
    for (const request of post.aborted) {
      this.#work.push(() => {
        this.#parts.exchanges.abort(request);
        this.#parts.queues.abort(request);
      });
    }
    this.#scheduleTurn();
  }

  #takeUp(request: Request): void {
    this.#inbox.push(request);
    this.#scheduleTurn();
  }

  receivePeer(post: PeerPost): void {
    for (const message of post.messages) this.#work.push(() => this.#dispatch.receive(message));
    this.#scheduleTurn();
  }

  receiveAcks(acks: readonly Ack[]): void {
    this.#enqueue(() => this.#parts.commits.settle(acks));
  }

  /** Audit entries get no earlier time; called before there is a writer to commit them. */
  stampFrom(at: UnixMs): void {
    this.#parts.feed.stampFrom(at);
  }

  /**
   * The clock shows another time than the turns before have slept by.
   * @param jumpMs how far it jumped, ahead or back; 0 when it only runs on
   */
  clockSet(jumpMs: number): void {
    this.#enqueue(() => {
      // Nobody was silent for as long as the clock now says.
      if (jumpMs !== 0) this.#hearing.begin();
      for (const room of this.#parts.rooms) room.clockSet?.(jumpMs);
    });
  }

  /** A peer is gone, and is replaced when this has been heard. */
  peerDied(shard: number): void {
    this.#parts.out.peerDied(shard);
    for (const room of this.#parts.rooms) room.peerLost?.(shard);
  }

  /** A peer was replaced: what it had been asked has an unknown outcome. */
  peerRestarted(shard: number): void {
    this.#parts.out.peerRestarted(shard);
    this.#enqueue(() => {
      for (const room of this.#parts.rooms) room.peerBack?.(shard);
    });
  }

  /** The writer died. Until `writerReady`, rows are unsettled and nothing is loaded. */
  writerLost(): void {
    this.#hearing.lost('writer');
    this.#enqueue(() => {
      this.#parts.out.isWriterAway = true;
      this.#parts.commits.lose();
    });
  }

  writerReady(): void {
    this.#enqueue(() => {
      this.#parts.out.isWriterAway = false;
      this.#hearing.back('writer');
      for (const then of this.#onWriterKnown.splice(0)) then();
      for (const room of this.#parts.rooms) room.writerReady?.();
    });
  }

  /** The database takes no writes, or does again. */
  databaseAway(isAway: boolean): void {
    // At once: timers that are due come before the work of a turn.
    if (isAway) this.#hearing.lost('database');
    else this.#hearing.back('database');
  }

  #whenWriterKnown(then: () => void): void {
    if (this.#parts.out.isWriterAway) this.#onWriterKnown.push(then);
    else then();
  }

  #block(sequence: string, blocked: boolean): void {
    const isRepeated = this.#parts.plans.isBlocked(sequence);
    if (!blocked) this.#parts.plans.unblock(sequence);
    else if (!isRepeated) {
      this.#parts.plans.block(sequence);
      this.#tellBlocked(sequence);
    }
  }

  /** Again and again while it is blocked: the word that ends it may be lost. */
  #tellBlocked(sequence: string): void {
    if (this.#stopped || !this.#parts.plans.isBlocked(sequence)) return;
    const { settings, clock } = this.#deps;
    this.#parts.commits.whenSettled(() =>
      this.#dispatch.release([
        {
          kind: 'peer',
          shard: 0,
          message: { kind: 'sequence.settled', sequence, shard: settings.shard },
        },
      ]),
    );
    clock.setTimeout(() => this.#enqueue(() => this.#tellBlocked(sequence)), BLOCKED_AGAIN_MS);
  }

  // ---------------------------------------------------------------- the turn

  #enqueue(work: () => void): void {
    this.#work.push(work);
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    this.#deps.setImmediate(() => this.#turn());
  }

  /** It counts as scheduled until its posts have left: what it finds to do is done in it, or is left. */
  #turn(): void {
    if (this.#stopped) return;
    const { clock } = this.#deps;
    const began = clock.monotonic();
    let isLate = this.#fireTimers();
    this.#doWork();
    if (this.#parts.pool.hasEnded && this.#handOver(began)) isLate = true;
    this.#goOn(clock.monotonic());
    if (this.#inbox.size > 0) this.#serveRequests(began);
    if (this.#loadAhead()) isLate = true;
    this.#endTurn();
    const { measures, pool } = this.#parts;
    const { active: running, waiting } = pool;
    measures.turnEnded(began, { running, waiting, due: this.#run.size });
    this.#parts.out.flush();
    this.#parts.instances.showNewborn();
    this.#scheduled = false;
    const isLeft =
      this.#inbox.size > 0 || this.#work.length > 0 || this.#spare.size > 0 || this.#mayRun;
    if (isLeft || isLate) this.#scheduleTurn();
    else this.#parts.timers.sleep();
  }

  #endTurn(): void {
    for (const part of this.#ending) {
      try {
        part.endTurn?.();
      } catch (error) {
        this.#defect(error);
      }
    }
  }

  /** What handlers gave, for a quarter of the turn. Returns whether some of it had to be left. */
  #handOver(began: number): boolean {
    const { clock } = this.#deps;
    const hasTime = () => clock.monotonic() - began < LIMITS.turnMs / 4;
    let isLate = true;
    this.#guard(() => {
      isLate = this.#parts.pool.handOver(hasTime);
    });
    this.#doWork();
    return isLate;
  }

  /**
   * To the end of the turn, and for half of one at least, whatever the actors took before. A large one is the
   * first of its turn: what was decided for others leaves before it.
   */
  #serveRequests(began: number): void {
    const { clock } = this.#deps;
    let now = clock.monotonic();
    const until = Math.max(began + LIMITS.turnMs, now + LIMITS.turnMs / 2);
    do {
      const request = this.#inbox.shift(now) as Request;
      this.#run.asked(request.tenant, now);
      const isLeft = this.#parts.requests.handle(request);
      this.#doWork();
      now = clock.monotonic();
      this.#inbox.charge(now, isLeft ? request : undefined);
    } while (this.#inbox.size > 0 && now < until && !this.#inbox.isLargeNext);
  }

  /**
   * Those that were loaded, then those that are due, by priority: for half of the turn at most, because
   * requests need the other half.
   */
  #goOn(began: number): void {
    if (this.#spare.size === 0 && this.#run.size === 0) return;
    const { clock } = this.#deps;
    const { commits } = this.#parts;
    const hasTime = () => clock.monotonic() - began < LIMITS.turnMs / 2;
    this.#run.look(began);
    commits.isUnasked = true;
    while (this.#spare.size > 0 && hasTime()) {
      this.#guard(this.#spare.shift() as () => void);
      this.#doWork();
    }
    while (this.#mayRun && hasTime()) {
      const instance = this.#run.shift() as string;
      this.#guard(() => this.#wake(instance));
      this.#doWork();
    }
    commits.isUnasked = false;
  }

  /** Instances that are due soon, while nobody waits who is due. Returns whether some of it had to be left. */
  #loadAhead(): boolean {
    if (this.#run.size > 0 || this.#spare.size > 0) return false;
    const { instances, timers } = this.#parts;
    for (let looked = 0; looked < AHEAD_PER_TURN; looked += 1) {
      if (instances.expected >= LIMITS.aheadLoadsMax) return false;
      const instance = timers.nextAhead(instances.aheadMax);
      if (instance === undefined) return false;
      if (instance !== '') instances.expect(instance);
    }
    return true;
  }

  /** Rows or acknowledgements that end it bring a turn of their own. */
  get #mayRun(): boolean {
    const { instances, commits } = this.#parts;
    return (
      this.#run.size > 0 &&
      instances.expected < LIMITS.dueLoadsMax &&
      commits.unaskedUnits < this.#run.unitsMax
    );
  }

  #doWork(): void {
    while (this.#work.length > 0) {
      const work = this.#work;
      this.#work = [];
      for (const item of work) this.#guard(item);
    }
  }

  /** A defect ends one piece of work, not the shard. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#defect(error);
    }
  }

  #defect(error: unknown): void {
    this.#deps.log.error({ err: error }, 'defect');
  }

  #isBehind(): boolean {
    const { unackedUnits, unackedBytes } = this.#parts.commits;
    const isBehind =
      unackedUnits > LIMITS.unitsPerShardMax || unackedBytes > LIMITS.unitBytesPerShardMax;
    // Whoever asks is turned away, and that may be a heartbeat.
    if (isBehind) this.#hearing.turnedAway();
    return isBehind;
  }

  /** Read-your-writes for workers: ports have no order among one another. */
  #takeHints(): void {
    for (const post of this.#deps.ports.drainPeers()) {
      for (const message of post.messages) this.#guard(() => this.#dispatch.receive(message));
    }
    this.#doWork();
  }

  // ---------------------------------------------------------------- timers

  #runSoon({ instance, rank, tenant }: DueTimer): void {
    const owner = tenant === '' ? this.#parts.instances.tenantOf(instance) : tenant;
    if (this.#parts.commits.held.has(owner)) return;
    this.#run.push({ instance, rank, tenant: owner });
  }

  #wake(instance: string): void {
    this.#parts.instances.tell(instance, { kind: 'wake', recovered: false });
  }

  #wakeAt(at: UnixMs, timer: DueTimer): void {
    if (at > this.#deps.clock.now()) this.#parts.timers.committed(at, timer);
    else this.#runSoon(timer);
  }

  /** Returns whether some may be left that are due. */
  #fireTimers(): boolean {
    for (let fired = 0; fired < TIMERS_PER_TURN; fired++) {
      const timer = this.#parts.timers.popDue();
      if (timer === undefined) return false;
      this.#guard(() => this.#fire(timer));
    }
    return true;
  }

  #fire(timer: Timer): void {
    switch (timer.kind) {
      case 'wake':
        this.#runSoon(timer);
        return;
      case 'reap':
        this.#parts.instances.tell(timer.instance, { kind: 'reap', task: timer.task });
        return;
      case 'expire':
        this.#parts.queues.expire(timer.request);
        return;
    }
  }
}

/** Timers handled in one turn; a herd of them takes several, with requests in between. */
const TIMERS_PER_TURN = 1_000;

/** Those looked at in one turn: most of a herd may be in memory, or have no place ahead. */
const AHEAD_PER_TURN = 256;
