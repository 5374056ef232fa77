/**
 * Starts the threads of the engine as resident tasks of one Piscina pool, connects their ports, and replaces a thread
 * that dies.
 *
 * When a shard dies: 1. its callers are answered 503; 2. the writer drops its waiting units and settles those in
 * flight; 3. a new thread gets new ports and resumes from rows; 4. the other shards drop their requests to it.
 *
 * When the writer dies: 1. every shard discards the actors with unsettled units; 2. a new writer terminates the old
 * one's sessions, which then can commit nothing more; 3. the shards load from rows.
 */

import {
  MessageChannel,
  type MessagePort,
  type ResourceLimits,
  type Worker,
} from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { Logger } from '../../src/base/log.js';
import { OffloadPool } from '../../src/base/offload-pool.js';
import { threadEntry } from '../../src/base/package-files.js';
import type { UnixMs } from '../../src/base/time.js';
import type { ContinuityKeys } from '../../src/core/sealing/keys.js';
import type { DatabaseTrouble } from '../../src/db/trouble.js';
import { callRateMemory } from '../../src/handlers/call-rate.js';
import type { OutboundSettings } from '../../src/handlers/outbound-rules.js';
import { MetricMemory } from '../../src/metrics/exposition.js';
import type { Meter } from '../../src/metrics/meter.js';
import {
  type ControlLink,
  linkControl,
  type Remote,
  serveControl,
  type ThreadTask,
} from '../runtime/control.js';
import type { ShardSettings } from '../runtime/kernel.js';
import { BATCH_LANES, LANES_MAX } from '../writer/lane-count.js';
import type { ShardClient } from './client.js';
import type { ShardControl, ShardTask } from './shard.thread.js';
import {
  collectInThread,
  memoryMib,
  residentBytesMax,
  threadHeapMib,
  threadYoungMib,
} from './thread-memory.js';
import type { WriterControl, WriterEvent, WriterTask } from './writer.thread.js';

/** By their names in the configuration. */
export interface ThreadSettings
  extends Omit<ShardSettings, 'shard' | 'residentBytesMax'>,
    Pick<ShardTask, 'logLevel' | 'logFormat' | 'webhookSecret'> {
  readonly writerLanes: number;
  readonly dbSchema: string | undefined;
  readonly allowInternalUrls: OutboundSettings['allowInternalUrls'];
  readonly httpAllow: OutboundSettings['allow'];
  readonly httpDeny: OutboundSettings['deny'];
  readonly httpRatePerTenant: number;
  readonly httpProxy: string | undefined;
  readonly httpNoProxy: readonly string[];
  readonly manualClock: boolean;
}

export interface SupervisorDeps {
  readonly config: ThreadSettings;
  readonly client: ShardClient;
  readonly connectionString: string;
  readonly continuityKeys: ContinuityKeys;
  /** The owner's name in the lease, by which a take-over finds its sessions. */
  readonly owner: string;
  readonly log: Logger;
  /** Readers of the change feed may have seen everything below; absent: there are no readers. */
  readonly stampsFrom?: () => number;
  /** Why the database takes no writes; undefined: it takes them again. */
  readonly onDatabase: (trouble: DatabaseTrouble | undefined) => void;
  /** Another engine owns the database: nothing more can be committed. */
  readonly onFenced: () => void;
  readonly onComplete: (isComplete: boolean) => void;
  /** A thread dies repeatedly: the process should be restarted. */
  readonly onHopeless: (reason: string) => void;
}

export interface Ownership {
  readonly epoch: number;
  readonly lanes: number;
  /** Database time minus the monotonic clock, in ms; the time itself for a manual clock. */
  readonly clockOffsetMs: number;
}

type Running<Surface> = { readonly link: ControlLink<Surface>; readonly incarnation: number };

/** Loading a large backlog of timers at the start takes a while; other calls are quick. */
const CONTROL_DEADLINE_MS = 120_000;
/** Calls that end only when the database responds, or the thread ends. */
const WAIT_FOR_DATABASE = ['start', 'discard'] as const;
/** More deaths of threads within this time end the process. */
const DEATHS_WITHIN_MS = 60_000;
const DEATHS_MAX = 10;
const WRITER_THREAD = threadEntry('actors/shard/writer.thread.js');
const SHARD_THREAD = threadEntry('actors/shard/shard.thread.js');

export class Supervisor {
  /** The counters outlive the threads. */
  readonly metrics: MetricMemory;
  readonly offload = new OffloadPool();
  readonly #deps: SupervisorDeps;
  readonly #shardPool: Piscina;
  /** A pool of its own, because limits are those of a pool. */
  readonly #writerPool: Piscina;
  readonly #heapMib: number;
  /** Outlives the threads: a replacement continues the count of its predecessor. */
  readonly #callRate: ShardTask['outbound']['rate'];
  readonly #shards: (Running<ShardControl> | undefined)[];
  #writer: Running<WriterControl> | undefined;
  readonly #suspended = new Set<string>();
  #ownership: Ownership | undefined;
  #isDatabaseAway = false;
  #deaths: number[] = [];
  #stopping = false;
  #isServing = false;
  #restarting = 0;
  /** Restarts run one at a time: each connects ports that the next one needs. */
  #restarts: Promise<void> = Promise.resolve();

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    const { shards, writerLanes } = deps.config;
    this.metrics = new MetricMemory(shards, Math.max(writerLanes, LANES_MAX) + BATCH_LANES);
    const threads = shards + 1;
    const memory = memoryMib();
    const heapMib = threadHeapMib(memory, threads);
    this.#heapMib = heapMib;
    const { httpRatePerTenant: perSecond } = deps.config;
    this.#callRate = perSecond === 0 ? undefined : { perSecond, memory: callRateMemory() };
    deps.log.info({ threads, heapMib, memoryMib: memory }, 'starting threads');
    this.#shards = Array.from({ length: shards }, () => undefined);
    collectInThread();
    this.#shardPool = threadPool(SHARD_THREAD, shards, {
      maxOldGenerationSizeMb: heapMib,
      maxYoungGenerationSizeMb: threadYoungMib(memory, threads),
    });
    // What it receives is gone with the next flush.
    this.#writerPool = threadPool(WRITER_THREAD, 1, { maxOldGenerationSizeMb: heapMib });
    // Threads load while the engine connects to the database and acquires the lease.
    this.#startWriter();
    for (let shard = 0; shard < this.#shards.length; shard++) this.#startShard(shard, 0);
  }

  /** Resolves when every shard serves. Rejects when a thread does not start. */
  async start(ownership: Ownership): Promise<void> {
    this.#ownership = ownership;
    await this.#joinWriter(ownership);
    for (let shard = 0; shard < this.#shards.length; shard++) await this.#joinPeers(shard, shard);
    await Promise.all(
      this.#shards.map((running) =>
        running?.link.remote.start(this.#clockOffsetMs, [...this.#suspended]),
      ),
    );
    this.#isServing = true;
  }

  beginSuspended(tenants: readonly string[]): void {
    for (const tenant of tenants) this.#suspended.add(tenant);
  }

  /** Resolves when no unit of the tenant is in flight, and none can follow. */
  async suspend(tenant: string): Promise<void> {
    this.#suspended.add(tenant);
    await this.#callAll((shard) => shard.suspend(tenant));
  }

  /** Resolves when the work of the tenant is resumed. @param stampsFrom audit entries get no earlier time */
  async admit(tenant: string, stampsFrom: UnixMs): Promise<void> {
    this.#suspended.delete(tenant);
    await this.#callAll((shard) => shard.admit(tenant, stampsFrom));
    await this.#callAll((shard) => shard.takeUp(tenant));
  }

  /** Awaits restarts: a replaced shard gets the suspended tenants at its start. */
  async #callAll(call: (shard: Remote<ShardControl>) => Promise<unknown>): Promise<void> {
    for (let restarts: Promise<void> | undefined; restarts !== this.#restarts; ) {
      restarts = this.#restarts;
      await restarts;
      await this.#callShards(call);
    }
  }

  setClock(clockOffsetMs: number): void {
    if (this.#ownership === undefined) return;
    this.#ownership = { ...this.#ownership, clockOffsetMs };
    // A busy shard receives the call later.
    for (const running of this.#shards) {
      reach(running, (shard) => shard.setClock(clockOffsetMs)).catch(() => undefined);
    }
  }

  get #clockOffsetMs(): number {
    return this.#ownership?.clockOffsetMs ?? 0;
  }

  async threads(): Promise<{ readonly writer: Worker; readonly shards: readonly Worker[] }> {
    const find = async (
      running: Running<Pick<ShardControl, 'threadId'>> | undefined,
    ): Promise<Worker> => {
      const id = await running?.link.remote.threadId();
      const threads = [...this.#writerPool.threads, ...this.#shardPool.threads];
      const thread = threads.find(({ threadId }) => threadId === id);
      if (thread === undefined) throw new Error('a thread is being replaced');
      return thread;
    };
    return { writer: await find(this.#writer), shards: await Promise.all(this.#shards.map(find)) };
  }

  async drain(): Promise<void> {
    this.#stopping = true;
    await Promise.allSettled(this.#shards.map((running) => running?.link.remote.drain()));
  }

  isIdle(): Promise<boolean> {
    return this.#every('isIdle');
  }

  isDrained(): Promise<boolean> {
    return this.#every('isDrained');
  }

  async #every(state: 'isIdle' | 'isDrained'): Promise<boolean> {
    const found = await Promise.allSettled(
      this.#shards.map((running) => running?.link.remote[state]() ?? Promise.resolve(true)),
    );
    return found.every((result) => result.status === 'rejected' || result.value);
  }

  /**
   * Shards first, then the writer, which flushes their units. If they do not serve yet, no request was
   * answered, and threads are only awaited until they are loaded: Node.js aborts the process when a thread
   * is ended while it links its modules.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#isServing) {
      await Promise.allSettled(this.#shards.map((running) => running?.link.remote.stop()));
      await Promise.allSettled([this.#writer?.link.remote.stop()]);
    } else {
      const threads = [this.#writer, ...this.#shards];
      await Promise.allSettled(threads.map((running) => running?.link.remote.threadId()));
    }
    const pools = [this.#writerPool, this.#shardPool];
    await Promise.all([this.offload.stop(), ...pools.map((pool) => pool.destroy())]);
  }

  #startWriter(): void {
    const { owner, log } = this.#deps;
    const { writer: meter, ledger } = this.metrics;
    const incarnation = (this.#writer?.incarnation ?? 0) + 1;
    const control = new MessageChannel();
    const events = new MessageChannel();
    const task: WriterTask = {
      ...this.#threadTask(writerName(owner), control.port2, meter),
      events: events.port2,
      ledger: { lanes: ledger.lanes, memory: ledger.memory },
    };
    events.port1.on('message', (event: WriterEvent) => {
      if (event.kind === 'fenced') this.#deps.onFenced();
      else this.#databaseIs(event.trouble);
    });
    const link = linkControl<WriterControl>(control.port1, CONTROL_DEADLINE_MS, WAIT_FOR_DATABASE);
    this.#writer = { link, incarnation };
    const transferList = [control.port2, events.port2];
    this.#writerPool.run(task, { transferList }).catch((error: unknown) => {
      link.close('the writer died');
      events.port1.close();
      if (this.#stopping) return;
      meter.clearGauges();
      log.error({ err: error }, 'the writer died; starting another one');
      this.#restart('the writer', () => this.#replaceWriter());
    });
  }

  #startShard(shard: number, incarnation: number): void {
    const { config, client, owner, log, continuityKeys } = this.#deps;
    const { httpProxy } = config;
    const meter = this.metrics.shards[shard]!;
    const control = new MessageChannel();
    const front = new MessageChannel();
    const offload = new MessageChannel();
    serveControl(this.offload.control, offload.port1);
    const task: ShardTask = {
      ...this.#threadTask(`${owner} shard ${shard}`, control.port2, meter),
      settings: {
        shard,
        shards: config.shards,
        tickIntervalMs: config.tickIntervalMs,
        cronTickMs: config.cronTickMs,
        workerStaleMs: config.workerStaleMs,
        workerReaperTickMs: config.workerReaperTickMs,
        lostClaimsMax: config.lostClaimsMax,
        stepTimeoutMaxMs: config.stepTimeoutMaxMs,
        maxBodyBytes: config.maxBodyBytes,
        requireClaimEpoch: config.requireClaimEpoch,
        unpoliciedRetry: config.unpoliciedRetry,
        maxContextBytes: config.maxContextBytes,
        maxOutputBytes: config.maxOutputBytes,
        webhookUrls: config.webhookUrls,
        activityDays: config.activityDays,
        residentBytesMax: residentBytesMax(this.#heapMib),
      },
      outbound: {
        allowInternalUrls: config.allowInternalUrls,
        allow: config.httpAllow,
        deny: config.httpDeny,
        proxy:
          httpProxy === undefined
            ? undefined
            : { url: httpProxy, except: config.httpNoProxy.join() },
        rate: this.#callRate,
      },
      webhookSecret: config.webhookSecret,
      manualClock: config.manualClock,
      continuityKeys,
      front: front.port2,
      offload: offload.port2,
      versions: client.versions.memory,
    };
    const link = linkControl<ShardControl>(control.port1, CONTROL_DEADLINE_MS);
    this.#shards[shard] = { link, incarnation };
    client.attach(shard, front.port1);
    const transferList = [control.port2, front.port2, offload.port2];
    this.#shardPool.run(task, { transferList }).catch((error: unknown) => {
      link.close(`shard ${shard} died`);
      client.detach(shard);
      offload.port1.close();
      if (this.#stopping) return;
      meter.clearGauges();
      log.error({ shard, err: error }, 'a shard died; starting another one');
      this.#restart(`shard ${shard}`, () => this.#replaceShard(shard, incarnation));
    });
  }

  #threadTask(applicationName: string, control: MessagePort, meter: Meter): ThreadTask {
    const { config, connectionString } = this.#deps;
    const { logLevel, logFormat, dbSchema: cell } = config;
    return {
      connectionString,
      applicationName,
      logLevel,
      logFormat,
      cell,
      control,
      meter: meter.memory,
    };
  }

  /** Shards are notified too: a worker is not silent while they cannot receive its heartbeats. */
  #databaseIs(trouble: DatabaseTrouble | undefined): void {
    this.#isDatabaseAway = trouble !== undefined;
    if (this.#isServing) for (const running of this.#shards) this.#reportDatabase(running);
    this.#deps.onDatabase(trouble);
  }

  #reportDatabase(running: Running<ShardControl> | undefined): void {
    const isAway = this.#isDatabaseAway;
    reach(running, (shard) => shard.databaseAway(isAway)).catch(() => undefined);
  }

  async #joinWriter({ epoch, lanes }: Ownership): Promise<void> {
    const writer = this.#writer as Running<WriterControl>;
    await Promise.all(this.#shards.map((_, shard) => this.#joinShardToWriter(shard)));
    await reach(writer, (own) => own.start(epoch, lanes));
  }

  async #joinShardToWriter(shard: number): Promise<void> {
    const running = this.#shards[shard];
    if (running === undefined) return;
    const channel = new MessageChannel();
    const { incarnation } = running;
    await reach(this.#writer, (writer) => writer.attachShard(shard, incarnation, channel.port1));
    const stampsFrom = this.#deps.stampsFrom?.() ?? 0;
    await reach(running, (own) => own.attachWriter(channel.port2, stampsFrom));
  }

  /** @param below connects only peers with a smaller number, so that each pair is connected once at the start */
  async #joinPeers(shard: number, below: number): Promise<void> {
    for (let peer = 0; peer < this.#shards.length; peer++) {
      if (peer === shard || peer >= below) continue;
      const channel = new MessageChannel();
      await reach(this.#shards[shard], (own) => own.attachPeer(peer, channel.port1));
      await reach(this.#shards[peer], (other) => other.attachPeer(shard, channel.port2));
    }
  }

  #restart(what: string, replace: () => Promise<void>): void {
    const now = Date.now();
    this.#deaths = this.#deaths.filter((at) => now - at < DEATHS_WITHIN_MS);
    this.#deaths.push(now);
    if (this.#deaths.length > DEATHS_MAX) {
      this.#deps.onHopeless(`${what} died ${this.#deaths.length} times within a minute`);
      return;
    }
    this.#deps.onComplete(false);
    this.#restarting += 1;
    this.#restarts = this.#restarts.then(replace).then(
      () => {
        this.#restarting -= 1;
        if (this.#restarting === 0) this.#deps.onComplete(true);
      },
      (error: unknown) => {
        if (this.#stopping) return;
        this.#deps.onHopeless(`${what} could not be replaced: ${String(error)}`);
      },
    );
  }

  async #replaceShard(shard: number, died: number): Promise<void> {
    if (this.#stopping || this.#shards[shard]?.incarnation !== died) return;
    if (this.#ownership === undefined) throw new Error('it died before the database was owned');
    await reach(this.#writer, (writer) => writer.discard(shard, died));
    await this.#callShards((peer) => peer.peerDied(shard), shard);
    this.#startShard(shard, died + 1);
    await this.#joinShardToWriter(shard);
    await this.#joinPeers(shard, this.#shards.length);
    await reach(this.#shards[shard], (own) => own.start(this.#clockOffsetMs, [...this.#suspended]));
    this.#reportDatabase(this.#shards[shard]);
    await this.#callShards((peer) => peer.peerRestarted(shard), shard);
    this.#deps.log.info({ shard }, 'the shard serves again');
  }

  async #replaceWriter(): Promise<void> {
    const ownership = this.#ownership;
    if (this.#stopping) return;
    if (ownership === undefined) throw new Error('it died before the database was owned');
    await this.#callShards((shard) => shard.writerLost());
    this.#startWriter();
    await this.#joinWriter(ownership);
    await this.#callShards((shard) => shard.writerReady());
    this.#deps.log.info('the writer serves again');
  }

  async #callShards(
    call: (shard: Remote<ShardControl>) => Promise<unknown>,
    but?: number,
  ): Promise<void> {
    const called = this.#shards.filter((_, shard) => shard !== but);
    await Promise.all(called.map((running) => reach(running, call)));
  }
}

/** Calls a thread unless it is dead: its replacement makes up for missed calls. */
async function reach<Surface>(
  running: Running<Surface> | undefined,
  call: (remote: Remote<Surface>) => Promise<unknown>,
): Promise<void> {
  if (running?.link.isOpen !== true) return;
  try {
    await call(running.link.remote);
  } catch (error) {
    if (running.link.isOpen) throw error;
  }
}

/** At most 63 bytes, the limit of `pg_stat_activity`. */
export function writerName(owner: string): string {
  return `${owner} writer`;
}

/** Threads that each run one task for as long as they live. */
function threadPool(filename: string, threads: number, resourceLimits: ResourceLimits): Piscina {
  const pool = new Piscina({
    filename,
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: 1,
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
    resourceLimits,
    // The default parks an idle thread in Atomics.wait, where its ports and timers do not run.
    atomics: 'disabled',
  });
  // Failed tasks reject their promises; the pool also emits them as events.
  pool.on('error', () => undefined);
  return pool;
}
