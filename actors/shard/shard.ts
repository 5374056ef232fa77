/**
 * One shard: the turn that all of its actors share. Messages arrive at any time. A turn handles them in
 * order, the engine's own before requests and requests of tenants in turns, then posts its output, once per
 * destination. Nothing here waits: reads end in `schedule`.
 *
 *   front ─requests─► inbox ─┐                         ┌─units───► writer
 *   peers ─messages─► work ──┼─► turn: actors ─► flush ┼─replies─► front
 *   writer ─acks────► work ──┤                         └─hints───► peers
 *   timers, reads ──► work ──┘
 */

import { Fifo } from '../../src/base/fifo.js';
import { LIMITS } from '../../src/base/limits.js';
import { IN_PLACE } from '../../src/base/offload.js';
import { joined, withParts } from '../../src/base/rooms.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Ack } from '../../src/db/units.js';
import type { Instances } from '../instance/instances.js';
import { OVERDUE_ROWS_MAX } from '../instance/loads.js';
import type { PeerMessage, Request, RequestPost } from '../runtime/protocol.js';
import { Reachability } from '../runtime/reachability.js';
import type { Room } from '../runtime/room.js';
import type { DueTimer } from '../runtime/timer.js';
import { Dispatch } from './dispatch.js';
import type { HandlerPool } from './handler-pool.js';
import { FairInbox } from './inbox.js';
import { openKernel, type ShardDeps, type ShardHooks, type ShardKernel } from './kernel.js';
import { Outbox } from './outbox.js';
import { Requests } from './requests.js';
import { openRooms } from './rooms.js';
import { RunQueue } from './run-queue.js';
import { TenantSuspension } from './tenant-suspension.js';

export class Shard {
  readonly #deps: ShardDeps;
  readonly #kernel: ShardKernel;
  readonly #rooms: readonly Room[];
  readonly #instances: Instances;
  readonly #pool: HandlerPool;
  readonly #out: Outbox;
  readonly #requests: Requests;
  readonly #dispatch: Dispatch;
  readonly tenants: TenantSuspension;
  readonly #inbox = new FairInbox();
  readonly #run = new RunQueue();
  /** `endTurn` of the rooms that have it. */
  readonly #ends: readonly (() => void)[];
  /** Rooms that are notified of each change of an instance. */
  readonly #watching: readonly Room[];
  /** The engine's own work, before requests. */
  #work: (() => void)[] = [];
  /** Background work: many pieces may be due at once. */
  readonly #spare = new Fifo<() => void>();
  #scheduled = false;
  readonly #reachability: Reachability;
  readonly #onWriterKnown: (() => void)[] = [];
  #stopped = false;

  constructor(deps: ShardDeps) {
    this.#deps = deps;
    const { clock, settings, log, ports } = deps;
    this.#reachability = new Reachability(() => clock.now(), settings.workerStaleMs);
    const kernel = openKernel(deps, this.#hooks());
    this.#kernel = kernel;
    const { rooms, instances, pool, actions } = openRooms(kernel, deps);
    this.#rooms = withParts<Room>(rooms);
    this.#instances = instances;
    this.#pool = pool;
    const having = (member: keyof Room) => this.#rooms.filter((room) => room[member]);
    this.#ends = having('endTurn').map((room) => () => room.endTurn?.());
    this.#watching = having('instanceChanged');
    this.#out = new Outbox({ ...kernel, ports });
    this.#dispatch = new Dispatch(this.#rooms, this.#out, log);
    this.#requests = new Requests({
      ...kernel,
      offload: deps.offload ?? IN_PLACE,
      actions,
      operations: joined(this.#rooms.map(({ operations }) => operations)),
      callMsMax: settings.stepTimeoutMaxMs,
      isBehind: () => this.#isBehind(),
    });
    this.tenants = new TenantSuspension(kernel, this.#rooms);
  }

  #hooks(): ShardHooks {
    return {
      release: (effects) => this.#dispatch.release(effects),
      schedule: (work) => this.#enqueue(work),
      scheduleSpare: (work) => {
        this.#spare.push(work);
        this.#scheduleTurn();
      },
      wakeShard: () => this.#scheduleTurn(),
      runSoon: (timer) => this.#runSoon(timer),
      isRunBehind: () => this.#run.size > OVERDUE_ROWS_MAX,
      reachability: this.#reachability,
      whenWriterKnown: (then) => this.#whenWriterKnown(then),
      takeHints: () => this.#takeHints(),
      takeUp: (request) => this.receiveRequests({ requests: [request], aborted: [] }),
      receive: (message) => this.#dispatch.receive(message),
      reply: (reply) => this.#out.reply(reply),
      hint: (shard, message) => this.#out.hint(shard, message),
      eachRoom: (notify) => this.#each(notify),
      changed: (instance) => {
        for (const room of this.#watching) room.instanceChanged?.(instance);
      },
      taskDecided: (task) => this.#each((room) => room.taskDecided?.(task)),
    };
  }

  #each(notify: (room: Room) => void): void {
    for (const room of this.#rooms) notify(room);
  }

  /** Resumes due timers, interrupted work and claims; resolves when all of it is in progress. */
  async start(): Promise<void> {
    const { loader } = this.#deps;
    this.#reachability.begin();
    // First: no instance may be created with unknown routes, nor end without its subscribers.
    for (const room of this.#rooms) await room.prepare?.();
    let recovered = 0;
    await loader.recoverable((timer) => {
      recovered += 1;
      // Loading is enough: an actor whose row has `recover` resumes by itself.
      this.#enqueue(() => this.#runSoon(timer));
    });
    this.#each((room) => room.start?.());
    this.#kernel.meter.count('engine_recovery_stale_instances_total', recovered);
    if (recovered > 0) this.#deps.log.info({ recovered }, 'instances recovered');
  }

  /** Answers parked polls; new requests are still served until `stop`. */
  drain(): void {
    this.#enqueue(() => this.#each((room) => room.drain?.()));
  }

  get isIdle(): boolean {
    return (
      this.#inbox.size === 0 &&
      this.#kernel.commits.unackedUnits === 0 &&
      this.#work.length === 0 &&
      this.#spare.size === 0
    );
  }

  /** Nothing that the engine should await before it stops, such as the reply of a worker endpoint. */
  get isDrained(): boolean {
    return this.isIdle && !this.#rooms.some((room) => room.isBusy === true);
  }

  stop(): void {
    this.#stopped = true;
    this.#each((room) => room.stop?.());
  }

  receiveRequests(post: RequestPost): void {
    for (const request of post.requests) this.#inbox.push(request);
    for (const request of post.aborted) {
      this.#work.push(() => this.#each((room) => room.requestAborted?.(request)));
    }
    this.#scheduleTurn();
  }

  receivePeer(messages: readonly PeerMessage[]): void {
    for (const message of messages) this.#work.push(() => this.#dispatch.receive(message));
    this.#scheduleTurn();
  }

  receiveAcks(acks: readonly Ack[]): void {
    this.#enqueue(() => this.#kernel.commits.settle(acks));
  }

  /** Called before there is a writer. Audit entries get no earlier time. */
  stampFrom(at: UnixMs): void {
    this.#each((room) => room.stampFrom?.(at));
  }

  /** @param jumpMs how far the clock jumped, ahead or back; 0 when it only drifts */
  clockSet(jumpMs: number): void {
    this.#enqueue(() => {
      // The jump does not count as silence of workers.
      if (jumpMs !== 0) this.#reachability.begin();
      this.#each((room) => room.clockSet?.(jumpMs));
    });
  }

  /** The peer died; it is replaced only after this call. */
  peerDied(shard: number): void {
    this.#out.peerDied(shard);
    this.#each((room) => room.peerLost?.(shard));
  }

  /** The peer was replaced: the outcome of requests to it is unknown. */
  peerRestarted(shard: number): void {
    this.#out.peerRestarted(shard);
    this.#enqueue(() => this.#each((room) => room.peerBack?.(shard)));
  }

  /** The writer died. Until `writerReady`, rows are unsettled and nothing is loaded. */
  writerLost(): void {
    this.#reachability.lost('writer');
    this.#enqueue(() => {
      this.#out.isWriterAway = true;
      this.#kernel.commits.lose();
    });
  }

  writerReady(): void {
    this.#enqueue(() => {
      this.#out.isWriterAway = false;
      this.#reachability.back('writer');
      for (const then of this.#onWriterKnown.splice(0)) then();
      this.#each((room) => room.writerReady?.());
    });
  }

  databaseAway(isAway: boolean): void {
    // Not enqueued: due timers are handled before the work of a turn.
    if (isAway) this.#reachability.lost('database');
    else this.#reachability.back('database');
  }

  #whenWriterKnown(then: () => void): void {
    if (this.#out.isWriterAway) this.#onWriterKnown.push(then);
    else then();
  }

  #enqueue(work: () => void): void {
    this.#work.push(work);
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    this.#deps.setImmediate(() => this.#turn());
  }

  /** Stays scheduled until its posts have left: new work is done in this turn or in the next. */
  #turn(): void {
    if (this.#stopped) return;
    const { clock } = this.#deps;
    const began = clock.monotonic();
    let isLate = this.#fireTimers();
    this.#doWork();
    if (this.#pool.hasEnded && this.#handOver(began)) isLate = true;
    this.#runDue(clock.monotonic());
    if (this.#inbox.size > 0) this.#serveRequests(began);
    if (this.#loadAhead()) isLate = true;
    for (const end of this.#ends) this.#guard(end);
    this.#kernel.measures.turnEnded(began, this.#pool.active, this.#pool.waiting, this.#run.size);
    this.#out.flush();
    this.#instances.showCreated();
    this.#scheduled = false;
    const isLeft =
      this.#inbox.size > 0 || this.#work.length > 0 || this.#spare.size > 0 || this.#mayRun;
    if (isLeft || isLate) this.#scheduleTurn();
    else this.#kernel.timers.sleep();
  }

  /** Takes outcomes of handlers for a quarter of the turn. Returns whether some remain. */
  #handOver(began: number): boolean {
    const { clock } = this.#deps;
    const hasTime = () => clock.monotonic() - began < LIMITS.turnMs / 4;
    let isLate = true;
    this.#guard(() => {
      isLate = this.#pool.handOver(hasTime);
    });
    this.#doWork();
    return isLate;
  }

  /**
   * Serves until the end of the turn, and for at least half of one, however long the actors took. A large
   * request is the first of its turn, so that earlier replies are posted before it.
   */
  #serveRequests(began: number): void {
    const { clock } = this.#deps;
    let now = clock.monotonic();
    const until = Math.max(began + LIMITS.turnMs, now + LIMITS.turnMs / 2);
    do {
      const request = this.#inbox.shift(now) as Request;
      this.#run.served(request.tenant, now);
      const isLeft = this.#requests.handle(request);
      this.#doWork();
      now = clock.monotonic();
      this.#inbox.charge(now, isLeft ? request : undefined);
    } while (this.#inbox.size > 0 && now < until && !this.#inbox.isLargeNext);
  }

  /** Runs loaded actors, then due instances by priority, for at most half of the turn. */
  #runDue(began: number): void {
    if (this.#spare.size === 0 && this.#run.size === 0) return;
    const { clock } = this.#deps;
    const { commits } = this.#kernel;
    const hasTime = () => clock.monotonic() - began < LIMITS.turnMs / 2;
    this.#run.update(began);
    commits.isBackground = true;
    while (this.#spare.size > 0 && hasTime()) {
      this.#guard(this.#spare.shift() as () => void);
      this.#doWork();
    }
    while (this.#mayRun && hasTime()) {
      const instance = this.#run.shift() as string;
      this.#guard(() => this.#instances.send(instance, { kind: 'wake', recovered: false }));
      this.#doWork();
    }
    commits.isBackground = false;
  }

  /** Preloads instances while no due one waits. Returns whether some remain. */
  #loadAhead(): boolean {
    if (this.#run.size > 0 || this.#spare.size > 0) return false;
    const instances = this.#instances;
    const { timers } = this.#kernel;
    for (let looked = 0; looked < AHEAD_PER_TURN; looked += 1) {
      if (instances.expected >= LIMITS.aheadLoadsMax) return false;
      const instance = timers.nextAhead(instances.aheadMax);
      if (instance === undefined) return false;
      if (instance !== '') instances.expect(instance);
    }
    return true;
  }

  /** Rows and acknowledgements that change this schedule a turn themselves. */
  get #mayRun(): boolean {
    const { commits } = this.#kernel;
    return (
      this.#run.size > 0 &&
      this.#instances.expected < LIMITS.dueLoadsMax &&
      commits.backgroundUnits < this.#run.unitsMax
    );
  }

  #doWork(): void {
    while (this.#work.length > 0) {
      const work = this.#work;
      this.#work = [];
      for (const item of work) this.#guard(item);
    }
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#deps.log.error({ err: error }, 'defect');
    }
  }

  #isBehind(): boolean {
    const { unackedUnits, unackedBytes } = this.#kernel.commits;
    const isBehind =
      unackedUnits > LIMITS.unitsPerShardMax || unackedBytes > LIMITS.unitBytesPerShardMax;
    // Refused requests may include heartbeats.
    if (isBehind) this.#reachability.turnedAway();
    return isBehind;
  }

  /** Gives workers read-your-writes: ports have no order among one another. */
  #takeHints(): void {
    for (const message of this.#deps.ports.drainPeers()) {
      this.#guard(() => this.#dispatch.receive(message));
    }
    this.#doWork();
  }

  #runSoon({ instance, rank, tenant }: DueTimer): void {
    const owner = tenant === '' ? this.#instances.tenantOf(instance) : tenant;
    if (this.#kernel.commits.suspended.has(owner)) return;
    this.#run.push({ instance, rank, tenant: owner });
  }

  /** Returns whether due timers may remain. */
  #fireTimers(): boolean {
    for (let fired = 0; fired < TIMERS_PER_TURN; fired++) {
      const timer = this.#kernel.timers.popDue();
      if (timer === undefined) return false;
      this.#guard(() => this.#dispatch.fire(timer));
    }
    return true;
  }
}

/** A burst of timers takes several turns, with requests in between. */
const TIMERS_PER_TURN = 1_000;
/** Timers checked in one turn: many may be in memory already, or exceed the preload limits. */
const AHEAD_PER_TURN = 256;
