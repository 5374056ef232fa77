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
import type { Clock } from '../src/core/clock.js';
import { createIdGenerator, routeForShard, routeOf, shardOf } from '../src/core/ids.js';
import type { UnixMs } from '../src/core/time.js';
import { EngineError, unavailable } from '../src/errors.js';
import type { EffectHandler } from '../src/handlers/registry.js';
import type { Logger } from '../src/log.js';
import { Catalog } from './catalog.js';
import { ChangeGroups } from './change-many.js';
import { CommitLog } from './commit-log.js';
import { HandlerPool } from './handler-pool.js';
import { type Hearers, hear } from './hearing.js';
import { FairInbox } from './inbox.js';
import type { InstanceEnv } from './instance.js';
import { Instances } from './instances.js';
import { Keys } from './keys.js';
import type { Rows } from './loader.js';
import { Outbox, type ShardPorts } from './outbox.js';
import { Plans } from './plans.js';
import type { Ack, PeerPost, Request, RequestPost } from './protocol.js';
import { Queues } from './queues.js';
import { Rates } from './rates.js';
import { Requests } from './requests.js';
import { RunQueue } from './run-queue.js';
import { ShardTimers, type Timer } from './shard-timers.js';
import { TaskIndex } from './task-index.js';
import type { Effect } from './turn.js';
import { Watchers } from './watchers.js';

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

export interface ShardDeps {
  readonly settings: ShardSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly loader: Rows;
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  readonly ports: ShardPorts;
  /** Runs the function when the events at hand have been seen. */
  readonly setImmediate: (fn: () => void) => void;
}

/** How often a shard asks whether a sequence is still being deleted. */
const BLOCKED_AGAIN_MS = 5_000;

export class Shard {
  readonly #deps: ShardDeps;
  readonly #commits = new CommitLog();
  readonly #inbox = new FairInbox();
  readonly #out: Outbox;
  readonly #timers: ShardTimers;
  readonly #plans: Plans;
  readonly #instances: Instances;
  readonly #queues: Queues;
  readonly #catalog: Catalog | undefined;
  readonly #tasks: TaskIndex;
  readonly #pool: HandlerPool;
  readonly #requests: Requests;
  readonly #keys: Keys;
  readonly #rates: Rates;
  readonly #run = new RunQueue();
  readonly #watchers: Watchers;
  readonly #changes: ChangeGroups;
  readonly #hearers: Hearers;
  /** The engine's own work, before requests. */
  #work: (() => void)[] = [];
  #scheduled = false;
  #readySince: UnixMs = 0;
  readonly #onWriterKnown: (() => void)[] = [];
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
      monotonic: () => deps.clock.monotonic(),
    };
    const commits = this.#commits;
    this.#out = new Outbox({
      shard,
      clock: deps.clock,
      ports: deps.ports,
      commits,
      wakeShard: () => this.#scheduleTurn(),
    });
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
      onOverdue: (instance, rank) => schedule(() => this.#run.push(instance, rank)),
    });
    this.#instances = new Instances({
      ...shared,
      env,
      plans: this.#plans,
      changed: (instance) => this.#watchers.changed(instance),
    });
    this.#watchers = new Watchers({
      ...shared,
      clock: deps.clock,
      random: deps.random,
      look: (instance, watch, version) =>
        this.#instances.tell(instance, { kind: 'look', ...watch, version }),
    });
    this.#changes = new ChangeGroups(release);
    this.#queues = new Queues({
      ...shared,
      shard,
      expireAt: (handler, at) => this.#timers.push(at, { kind: 'expire', handler }),
    });
    const newId = () => ids.next(routeForShard(shard, shards, random32));
    const rowActors = {
      ...shared,
      clock: deps.clock,
      whenWriterKnown: (then: () => void) => this.#whenWriterKnown(then),
    };
    this.#keys = new Keys({ ...rowActors, shard });
    this.#rates = new Rates({ ...rowActors, newId, random: deps.random });
    this.#catalog = shard === 0 ? new Catalog({ ...shared, newId }) : undefined;
    this.#pool = new HandlerPool({
      handlers: deps.handlers,
      clock: deps.clock,
      log,
      wakeShard: () => this.#scheduleTurn(),
      canTake: (instance) =>
        commits.unackedBytes < LIMITS.unitBytesForOutcomesMax && this.#instances.canTake(instance),
      onOutcome: (instance, step, outcome) =>
        this.#instances.tell(instance, { kind: 'step.outcome', step, outcome }),
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
      rates: this.#rates,
      catalog: this.#catalog,
      tasks: this.#tasks,
      changes: this.#changes,
      watchers: this.#watchers,
    });
    this.#hearers = {
      requests: this.#requests,
      instances: this.#instances,
      queues: this.#queues,
      keys: this.#keys,
      rates: this.#rates,
      tasks: this.#tasks,
      plans: this.#plans,
      watchers: this.#watchers,
      catalog: this.#catalog,
      request: (request) => {
        this.#inbox.push(request);
        this.#scheduleTurn();
      },
      wakeAt: (instance, at, rank) => this.#wakeAt(instance, at, rank),
      block: (sequence, blocked) => this.#block(sequence, blocked),
    };
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
    await loader.recoverable((instance, rank) => {
      if (!this.#owns(instance)) return;
      recovered += 1;
      // Loading it is enough: an actor whose row says `recover` is woken as recovered.
      this.#enqueue(() => this.#run.push(instance, rank));
    });
    this.#keys.start();
    this.#out.metrics.count('engine_recovery_stale_instances_total', recovered);
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
      this.#watchers.drain();
    });
  }

  /** Nothing asked is unanswered and nothing decided is uncommitted. */
  get isIdle(): boolean {
    return this.#inbox.size === 0 && this.#commits.unackedUnits === 0 && this.#work.length === 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#timers.stop();
    this.#watchers.stop();
    this.#keys.stop();
    this.#out.stop();
    this.#pool.abortAll();
  }

  // ---------------------------------------------------------------- what comes in

  receiveRequests(post: RequestPost): void {
    for (const request of post.requests) this.#inbox.push(request);
    for (const request of post.aborted) this.#work.push(() => this.#queues.abort(request));
    this.#scheduleTurn();
  }

  receivePeer(post: PeerPost): void {
    for (const message of post.messages) this.#work.push(() => hear(this.#hearers, message));
    this.#scheduleTurn();
  }

  receiveAcks(acks: readonly Ack[]): void {
    this.#enqueue(() => this.#commits.settle(acks));
  }

  /** A peer was replaced: what it had been asked has an unknown outcome. */
  peerRestarted(shard: number): void {
    this.#enqueue(() => {
      this.#queues.shardDied(shard);
      this.#keys.shardDied();
      this.#catalog?.shardDied(shard);
    });
  }

  /** The writer died. Until `writerReady`, rows are unsettled and nothing is loaded. */
  writerLost(): void {
    this.#enqueue(() => {
      this.#out.isWriterAway = true;
      this.#instances.loadsPaused = true;
      this.#commits.lose();
    });
  }

  writerReady(): void {
    this.#enqueue(() => {
      this.#out.isWriterAway = false;
      this.#instances.loadsPaused = false;
      for (const then of this.#onWriterKnown.splice(0)) then();
    });
  }

  #whenWriterKnown(then: () => void): void {
    if (this.#out.isWriterAway) this.#onWriterKnown.push(then);
    else then();
  }

  #block(sequence: string, blocked: boolean): void {
    const isRepeated = this.#plans.isBlocked(sequence);
    if (!blocked) this.#plans.unblock(sequence);
    else if (!isRepeated) {
      this.#plans.block(sequence);
      this.#tellBlocked(sequence);
    }
  }

  /** Again and again while it is blocked: the word that ends it may be lost. */
  #tellBlocked(sequence: string): void {
    if (this.#stopped || !this.#plans.isBlocked(sequence)) return;
    const { settings, clock } = this.#deps;
    this.#commits.whenSettled(() =>
      this.#release([
        { kind: 'peer', shard: 0, message: ['sequence.settled', sequence, settings.shard] },
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

  #turn(): void {
    this.#scheduled = false;
    if (this.#stopped) return;
    const { clock } = this.#deps;
    const began = clock.monotonic();
    this.#advanced = 0;
    this.#fireTimers();
    this.#doWork();
    const isLate = this.#handOver(began);
    this.#runInstances(clock.monotonic());
    this.#serveRequests(began);
    this.#instances.endTurn();
    this.#keys.endTurn();
    this.#rates.endTurn();
    this.#tasks.endTurn();
    this.#out.metrics.set('engine_queue_depth', this.#advanced);
    this.#out.metrics.set('engine_active_tasks', this.#pool.active);
    this.#out.metrics.observe('engine_tick_duration_seconds', (clock.monotonic() - began) / 1_000);
    this.#out.flush();
    const isLeft = this.#inbox.size > 0 || this.#work.length > 0 || this.#run.size > 0;
    if (isLeft || isLate) this.#scheduleTurn();
    else this.#timers.sleep();
  }

  /** What handlers gave, for a quarter of the turn. Returns whether some of it had to be left. */
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

  /** To the end of the turn, and for half of one at least, whatever the actors took before. */
  #serveRequests(began: number): void {
    const { clock } = this.#deps;
    const until = Math.max(began + LIMITS.turnMs, clock.monotonic() + LIMITS.turnMs / 2);
    while (this.#inbox.size > 0 && clock.monotonic() < until) {
      const request = this.#inbox.shift() as Request;
      this.#hearPeersBefore(request);
      this.#request(request);
      this.#doWork();
    }
  }

  /** What is due goes on by priority, for half of the turn at most: requests need the other half. */
  #runInstances(began: number): void {
    const { clock } = this.#deps;
    while (this.#run.size > 0 && clock.monotonic() - began < LIMITS.turnMs / 2) {
      const instance = this.#run.shift() as string;
      this.#guard(() => this.#wake(instance));
      this.#doWork();
    }
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
      for (const message of post.messages) this.#guard(() => hear(this.#hearers, message));
    }
    this.#doWork();
  }

  // ---------------------------------------------------------------- effects

  #release(effects: readonly Effect[]): void {
    for (const effect of effects) this.#perform(effect);
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case 'reply':
        this.#out.reply(
          effect.claims === undefined
            ? [effect.request, effect.status, effect.body]
            : [effect.request, effect.status, effect.body, effect.claims],
        );
        return;
      case 'error':
        this.#out.reply([effect.request, 0, effect.error.toData()]);
        return;
      case 'peer':
        if (effect.shard !== this.#deps.settings.shard)
          this.#out.hint(effect.shard, effect.message);
        else this.#enqueue(() => hear(this.#hearers, effect.message));
        return;
      case 'perform':
        if (!this.#draining) this.#pool.start(effect.instance, effect.step);
        return;
      case 'abort':
        this.#pool.abort(effect.instance, effect.step);
        return;
      case 'timer':
        this.#timers.committed(effect.at, effect.instance, effect.rank);
        return;
      case 'reap':
        this.#timers.push(effect.at, {
          kind: 'reap',
          instance: effect.instance,
          task: effect.task,
        });
        return;
      case 'continue':
        this.#run.push(effect.instance, effect.rank);
        this.#scheduleTurn();
        return;
      case 'changed':
        this.#changes.count(effect.group, effect.result);
        return;
      case 'task.opened':
        this.#tasks.remember(effect.task, effect.instance);
        return;
      case 'log':
        this.#logStep(effect);
        return;
      case 'count':
        if (effect.counter === 'engine_instances_claimed_total') this.#advanced += effect.by;
        this.#out.metrics.count(effect.counter, effect.by);
        return;
    }
  }

  /** What the handler `log` writes is the user's own line; nothing else of a payload is logged. */
  #logStep(effect: Extract<Effect, { kind: 'log' }>): void {
    const { instance, blockId, level, message } = effect;
    this.#deps.log[level]({ instanceId: instance, blockId, message }, 'step log');
  }

  // ---------------------------------------------------------------- timers

  #owns(instance: string): boolean {
    const { shard, shards } = this.#deps.settings;
    return shardOf(routeOf(instance), shards) === shard;
  }

  #wake(instance: string): void {
    this.#instances.tell(instance, { kind: 'wake', recovered: false });
  }

  #wakeAt(instance: string, at: UnixMs, rank: number): void {
    if (at > this.#deps.clock.now()) this.#timers.committed(at, instance, rank);
    else this.#run.push(instance, rank);
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
        this.#run.push(timer.instance, timer.rank);
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

const READS: ReadonlySet<string> = new Set([
  'instances.get',
  'instances.tree',
  'instances.watch',
  'instances.unwatch',
]);

/** Timers handled in one turn; a herd of them takes several, with requests in between. */
const TIMERS_PER_TURN = 1_000;
