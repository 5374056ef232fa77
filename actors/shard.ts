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

import { LIMITS } from '../src/config.js';
import type { Clock, TimerHandle } from '../src/core/clock.js';
import { createIdGenerator, routeForShard, routeOf, shardOf } from '../src/core/ids.js';
import type { UnixMs } from '../src/core/time.js';
import { EngineError, unavailable } from '../src/errors.js';
import type { EffectHandler } from '../src/handlers/registry.js';
import type { Logger } from '../src/log.js';
import { MetricBuffer } from '../src/metrics.js';
import { Catalog } from './catalog.js';
import { CommitLog } from './commit-log.js';
import { HandlerPool } from './handler-pool.js';
import { FairInbox } from './inbox.js';
import type { InstanceEnv } from './instance.js';
import type { NewInstance } from './instance-record.js';
import { Instances } from './instances.js';
import type { Loader } from './loader.js';
import { Plans } from './plans.js';
import type {
  Ack,
  PeerMessage,
  PeerPost,
  Reply,
  ReplyPost,
  Request,
  RequestPost,
  UnitPost,
} from './protocol.js';
import { Queues } from './queues.js';
import { Requests } from './requests.js';
import { ShardTimers, type Timer } from './shard-timers.js';
import { TaskIndex } from './task-index.js';
import type { Effect } from './turn.js';

/** The settings of a shard; plain data, so that they can cross to its thread. */
export interface ShardSettings {
  readonly shard: number;
  readonly shards: number;
  readonly tickIntervalMs: number;
  readonly workerStaleMs: number;
  readonly workerReaperTickMs: number;
  readonly requireClaimEpoch: boolean;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly maxContextBytes: number;
}

/** Where a shard's posts go. A destination that is away drops them: hints may be lost, and what is
 * not lost is settled when the destination is replaced. */
export interface ShardPorts {
  toFront(post: ReplyPost): void;
  toWriter(post: UnitPost): void;
  toPeer(shard: number, post: PeerPost): void;
  /** Messages of peers that were posted already but not delivered yet. */
  drainPeers(): PeerPost[];
}

export interface ShardDeps {
  readonly settings: ShardSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly loader: Loader;
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  readonly ports: ShardPorts;
  /** Runs the function when the events at hand have been seen. */
  readonly setImmediate: (fn: () => void) => void;
}

export class Shard {
  readonly #deps: ShardDeps;
  readonly #commits = new CommitLog();
  readonly #inbox = new FairInbox();
  readonly #metrics = new MetricBuffer();
  readonly #timers: ShardTimers;
  readonly #plans: Plans;
  readonly #instances: Instances;
  readonly #queues: Queues;
  readonly #catalog: Catalog | undefined;
  readonly #tasks: TaskIndex;
  readonly #pool: HandlerPool;
  readonly #requests: Requests;
  readonly #moves = new Map<number, { request: number; open: number; counted: number }>();
  /** The engine's own work, before requests. */
  #work: (() => void)[] = [];
  #replies: Reply[] = [];
  #hints = new Map<number, PeerMessage[]>();
  #scheduled = false;
  #moveCount = 0;
  #metricsAt = 0;
  #metricsHandle: TimerHandle | undefined;
  #readySince: UnixMs = 0;
  #writerAway = false;
  #draining = false;
  #stopped = false;
  #advanced = 0;

  constructor(deps: ShardDeps) {
    this.#deps = deps;
    const { settings, loader, log } = deps;
    const { shard, shards } = settings;
    const now = () => deps.clock.now();
    const random32 = () => Math.floor(deps.random() * 0x1_0000_0000);
    const ids = createIdGenerator(now, random32);
    const release = (effects: readonly Effect[]) => this.#release(effects);
    const schedule = (work: () => void) => this.#enqueue(work);
    const env: InstanceEnv = {
      now,
      random: deps.random,
      ids,
      shards,
      unpoliciedRetry: settings.unpoliciedRetry,
      requireClaimEpoch: settings.requireClaimEpoch,
      workerStaleMs: settings.workerStaleMs,
      maxContextBytes: settings.maxContextBytes,
      readySince: () => this.#readySince,
    };
    const commits = this.#commits;
    this.#plans = new Plans(loader);
    this.#tasks = new TaskIndex(loader, schedule);
    const shared = { commits, loader, log, now, shards, release, schedule };
    this.#timers = new ShardTimers({
      clock: deps.clock,
      loader,
      log,
      tickIntervalMs: settings.tickIntervalMs,
      owns: (instance) => this.#owns(instance),
      wakeShard: () => this.#scheduleTurn(),
      onOverdue: (instance) => schedule(() => this.#wake(instance)),
    });
    this.#instances = new Instances({ ...shared, env, plans: this.#plans });
    this.#queues = new Queues({
      ...shared,
      shard,
      expireAt: (handler, at) => this.#timers.push(at, { kind: 'expire', handler }),
    });
    const newId = () => ids.next(routeForShard(shard, shards, random32));
    this.#catalog = shard === 0 ? new Catalog({ ...shared, newId }) : undefined;
    this.#pool = new HandlerPool({
      handlers: deps.handlers,
      now,
      log,
      onOutcome: (instance, step, outcome) =>
        schedule(() => this.#instances.tell(instance, { kind: 'step.outcome', step, outcome })),
    });
    this.#requests = new Requests({
      ...shared,
      shard,
      maxContextBytes: settings.maxContextBytes,
      random32,
      ids,
      plans: this.#plans,
      instances: this.#instances,
      queues: this.#queues,
      catalog: this.#catalog,
      tasks: this.#tasks,
      moves: { open: (request, size) => this.#openMoves(request, size) },
    });
  }

  // ---------------------------------------------------------------- life

  /**
   * Takes up what the tables say: due timers, work that a crash cut off, claims to watch.
   * Resolves when everything that was running before is under way again.
   */
  async start(): Promise<void> {
    const { loader, clock } = this.#deps;
    this.#readySince = clock.now();
    await this.#timers.start();
    let recovered = 0;
    await loader.recoverable((instance) => {
      if (!this.#owns(instance)) return;
      recovered += 1;
      // Loading it is enough: an actor whose row says `recover` is woken as recovered.
      this.#enqueue(() => this.#wake(instance));
    });
    this.#metrics.count('engine_recovery_stale_instances_total', recovered);
    if (recovered > 0) this.#deps.log.info({ recovered }, 'instances recovered');
    this.#watchClaims();
  }

  /** Heartbeats of claims from before the start are watched from readiness on. */
  #watchClaims(): void {
    const { loader, settings, log } = this.#deps;
    loader
      .claimedTasks((task, instance, heartbeatAt) => {
        if (!this.#owns(instance)) return;
        const since = Math.max(heartbeatAt, this.#readySince);
        const at = since + settings.workerStaleMs;
        this.#enqueue(() => this.#timers.push(at, { kind: 'reap', instance, task }));
      })
      .catch((error: unknown) => {
        log.warn({ err: error }, 'claims could not be read; trying again');
        this.#deps.clock.setTimeout(() => {
          if (!this.#stopped) this.#watchClaims();
        }, settings.workerReaperTickMs);
      });
  }

  /** Parked polls are answered; what is asked from now on is still served until `stop`. */
  drain(): void {
    this.#enqueue(() => {
      this.#draining = true;
      this.#queues.answerParked();
    });
  }

  /** Nothing asked is unanswered and nothing decided is uncommitted. */
  get isIdle(): boolean {
    return this.#inbox.size === 0 && this.#commits.unackedUnits === 0 && this.#work.length === 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#timers.stop();
    this.#deps.clock.clearTimeout(this.#metricsHandle);
    this.#pool.abortAll();
  }

  // ---------------------------------------------------------------- what comes in

  receiveRequests(post: RequestPost): void {
    for (const request of post.requests) this.#inbox.push(request);
    for (const request of post.aborted) this.#work.push(() => this.#queues.abort(request));
    this.#scheduleTurn();
  }

  receivePeer(post: PeerPost): void {
    for (const message of post.messages) this.#work.push(() => this.#hear(message));
    this.#scheduleTurn();
  }

  receiveAcks(acks: readonly Ack[]): void {
    this.#enqueue(() => this.#commits.settle(acks));
  }

  /** A peer was replaced: what it had been asked has an unknown outcome. */
  peerRestarted(shard: number): void {
    this.#enqueue(() => this.#queues.shardDied(shard));
  }

  /** The writer died. Until `writerReady`, rows are unsettled and nothing is loaded. */
  writerLost(): void {
    this.#enqueue(() => {
      this.#writerAway = true;
      this.#instances.loadsPaused = true;
      this.#commits.lose();
    });
  }

  writerReady(): void {
    this.#enqueue(() => {
      this.#writerAway = false;
      this.#instances.loadsPaused = false;
    });
  }

  #hear(message: PeerMessage): void {
    switch (message[0]) {
      case 'create':
        this.#requests.createHandedOn(message[1], JSON.parse(message[2]) as NewInstance);
        return;
      case 'poll':
        // Behind the hints that are at hand, as if it had come from the front.
        this.#inbox.push([message[1], message[4], message[2], '', message[3]]);
        this.#scheduleTurn();
        return;
      case 'wake':
        this.#wakeAt(message[1], message[2]);
        return;
      case 'task.ready': {
        const [, handler, id, instance, tenant, queue, rank, createdAt] = message;
        this.#queues.ready(handler, { id, instance, tenant, queue, rank, createdAt });
        return;
      }
      case 'task.gone':
        this.#queues.gone(message[1], message[2]);
        return;
      case 'claim': {
        const [, handler, poll, task, instance, worker, queueShard] = message;
        this.#tasks.remember(task, instance);
        this.#instances.tell(instance, { kind: 'claim', handler, poll, task, worker, queueShard });
        return;
      }
      case 'claimed':
        this.#queues.claimed(message[1], message[2], message[3], message[4], message[5]);
        return;
      case 'unclaim':
        this.#requests.unclaim(message[1], message[2]);
        return;
      case 'sequence.block':
        this.#block(message[1], message[2]);
        return;
      case 'sequence.settled':
        this.#catalog?.blocked(message[1], message[2]);
        return;
      case 'sequence.evict':
        this.#plans.evict(message[1]);
        this.#instances.evictSequence(message[1]);
        return;
    }
  }

  #block(sequence: string, blocked: boolean): void {
    this.#plans.block(sequence, blocked);
    if (!blocked) return;
    const { shard } = this.#deps.settings;
    this.#commits.whenSettled(() =>
      this.#release([{ kind: 'peer', shard: 0, message: ['sequence.settled', sequence, shard] }]),
    );
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

  #turn(): void {
    this.#scheduled = false;
    if (this.#stopped) return;
    const { clock } = this.#deps;
    const began = clock.monotonic();
    this.#advanced = 0;
    this.#fireTimers();
    this.#doWork();
    while (this.#inbox.size > 0 && clock.monotonic() - began < LIMITS.turnMs) {
      const request = this.#inbox.shift() as Request;
      this.#hearPeersBefore(request);
      this.#request(request);
      this.#doWork();
    }
    this.#instances.endTurn();
    this.#tasks.endTurn();
    this.#metrics.set('engine_queue_depth', this.#advanced);
    this.#metrics.set('engine_active_tasks', this.#pool.active);
    this.#metrics.observe('engine_tick_duration_seconds', (clock.monotonic() - began) / 1_000);
    this.#flush();
    if (this.#inbox.size > 0 || this.#work.length > 0) this.#scheduleTurn();
    else this.#timers.sleep();
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
      this.#deps.log.error({ err: error }, 'defect');
    }
  }

  #request(request: Request): void {
    try {
      if (this.#isBehind() && !READS.has(request[1])) {
        const error = unavailable('ENG_OVERLOADED', 'the database is behind');
        this.#release([{ kind: 'error', request: request[0], error }]);
        return;
      }
      this.#requests.handle(request);
    } catch (error) {
      this.#deps.log.error({ err: error, operation: request[1] }, 'defect');
      const internal = new EngineError('ENG_INTERNAL', 'internal error');
      this.#release([{ kind: 'error', request: request[0], error: internal }]);
    }
  }

  #isBehind(): boolean {
    return (
      this.#commits.unackedUnits > LIMITS.unitsPerShardMax ||
      this.#commits.unackedBytes > LIMITS.unitBytesPerShardMax
    );
  }

  /**
   * Read-your-writes for workers (spec/06 row 55): hints that were posted before a poll came are
   * heard before it is answered, although ports have no order among one another.
   */
  #hearPeersBefore(request: Request): void {
    if (request[1] !== 'workers.poll' && request[1] !== 'workers.pollQueue') return;
    for (const post of this.#deps.ports.drainPeers()) {
      for (const message of post.messages) this.#guard(() => this.#hear(message));
    }
    this.#doWork();
  }

  /** Hints leave before replies: whoever is told of a change can rely on its hint being posted. */
  #flush(): void {
    const { ports, settings } = this.#deps;
    for (const [shard, messages] of this.#hints) {
      ports.toPeer(shard, { kind: 'peer', from: settings.shard, messages });
    }
    this.#hints.clear();
    if (!this.#writerAway) {
      const units = this.#commits.take();
      if (units.length > 0) ports.toWriter({ kind: 'units', units });
    }
    const metrics = this.#metricsDue() ? this.#metrics.take() : undefined;
    if (this.#replies.length > 0 || metrics !== undefined) {
      ports.toFront({ kind: 'replies', replies: this.#replies, metrics });
      this.#replies = [];
    }
  }

  /** Counts are sent a few times a second, so that a reply does not wait for their addition. */
  #metricsDue(): boolean {
    if (!this.#metrics.isDirty) return false;
    const { clock } = this.#deps;
    const now = clock.monotonic();
    if (now - this.#metricsAt >= METRICS_EVERY_MS) {
      this.#metricsAt = now;
      return true;
    }
    this.#metricsHandle ??= clock.setTimeout(() => {
      this.#metricsHandle = undefined;
      this.#scheduleTurn();
    }, METRICS_EVERY_MS);
    return false;
  }

  // ---------------------------------------------------------------- effects

  #release(effects: readonly Effect[]): void {
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'reply':
        this.#replies.push(
          effect.claims === undefined
            ? [effect.request, effect.status, effect.body]
            : [effect.request, effect.status, effect.body, effect.claims],
        );
        this.#scheduleTurn();
        return;
      case 'error':
        this.#replies.push([effect.request, 0, effect.error.toData()]);
        this.#scheduleTurn();
        return;
      case 'peer':
        this.#send(effect.shard, effect.message);
        return;
      case 'perform':
        if (!this.#draining) this.#pool.start(effect.instance, effect.step);
        return;
      case 'abort':
        this.#pool.abort(effect.instance, effect.step);
        return;
      case 'timer':
        this.#timers.committed(effect.at, effect.instance);
        return;
      case 'reap':
        this.#timers.push(effect.at, {
          kind: 'reap',
          instance: effect.instance,
          task: effect.task,
        });
        return;
      case 'continue':
        this.#enqueue(() => this.#wake(effect.instance));
        return;
      case 'moved':
        this.#moved(effect.group, effect.counted);
        return;
      case 'task.opened':
        this.#tasks.remember(effect.task, effect.instance);
        return;
      case 'log':
        this.#logStep(effect);
        return;
      case 'count':
        if (effect.counter === 'engine_instances_claimed_total') this.#advanced += effect.by;
        this.#metrics.count(effect.counter, effect.by);
        return;
    }
  }

  /** What the handler `log` writes is the user's own line; nothing else of a payload is logged. */
  #logStep(effect: Extract<Effect, { kind: 'log' }>): void {
    const { instance, blockId, level, message } = effect;
    this.#deps.log[level]({ instanceId: instance, blockId, message }, 'step log');
  }

  #send(shard: number, message: PeerMessage): void {
    if (shard === this.#deps.settings.shard) {
      this.#enqueue(() => this.#hear(message));
      return;
    }
    const messages = this.#hints.get(shard);
    if (messages === undefined) this.#hints.set(shard, [message]);
    else messages.push(message);
    this.#scheduleTurn();
  }

  #openMoves(request: number, size: number): number {
    this.#moveCount += 1;
    this.#moves.set(this.#moveCount, { request, open: size, counted: 0 });
    return this.#moveCount;
  }

  #moved(group: number, counted: boolean): void {
    const moves = this.#moves.get(group);
    if (moves === undefined) return;
    moves.open -= 1;
    if (counted) moves.counted += 1;
    if (moves.open > 0) return;
    this.#moves.delete(group);
    const body = String(moves.counted);
    this.#release([{ kind: 'reply', request: moves.request, status: 200, body }]);
  }

  // ---------------------------------------------------------------- timers

  #owns(instance: string): boolean {
    const { shard, shards } = this.#deps.settings;
    return shardOf(routeOf(instance), shards) === shard;
  }

  #wake(instance: string): void {
    this.#instances.tell(instance, { kind: 'wake', recovered: false });
  }

  #wakeAt(instance: string, at: UnixMs): void {
    if (at <= this.#deps.clock.now()) this.#wake(instance);
    else this.#timers.committed(at, instance);
  }

  #fireTimers(): void {
    for (let fired = 0; fired < TIMERS_PER_TURN; fired++) {
      const timer = this.#timers.popDue();
      if (timer === undefined) return;
      this.#guard(() => this.#fire(timer));
    }
    this.#enqueue(() => undefined);
  }

  #fire(timer: Timer): void {
    switch (timer.kind) {
      case 'wake':
        this.#wake(timer.instance);
        return;
      case 'reap':
        this.#instances.tell(timer.instance, { kind: 'reap', task: timer.task });
        return;
      case 'expire':
        this.#queues.expire(timer.handler);
        return;
    }
  }
}

const READS: ReadonlySet<string> = new Set(['instances.get', 'instances.tree']);

/** How often counts are sent to the front, where they are added up. */
const METRICS_EVERY_MS = 250;

/** Timers handled in one turn; a herd of them takes several, with requests in between. */
const TIMERS_PER_TURN = 1_000;
