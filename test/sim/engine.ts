/**
 * One simulated process: real shards, a real writer and a real front, on threads that can die at any
 * event. Threads are started, joined and replaced in the order in which `actors/shard/supervisor.ts` does
 * it, step by step, so that anything else can happen between two steps.
 */

import type { MessagePort } from 'node:worker_threads';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import { Watermark } from '../../actors/feed/front/changes.js';
import type { ShardSettings } from '../../actors/runtime/kernel.js';
import type { Reply, RequestPost } from '../../actors/runtime/protocol.js';
import { ShardClient } from '../../actors/shard/client.js';
import { openLoads } from '../../actors/shard/loads.js';
import { Shard } from '../../actors/shard/shard.js';
import { STORE } from '../../actors/shard/store.js';
import { Writer } from '../../actors/writer/writer.js';
import type { Logger } from '../../src/base/log.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import type { PushSender } from '../../src/handlers/push-sender.js';
import type { EffectHandler } from '../../src/handlers/registry.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { Meter } from '../../src/metrics/meter.js';
import type { Faults } from './faults.js';
import { memoryClient } from './memory-connection.js';
import { memoryPool } from './memory-pool.js';
import type { MemoryServer } from './memory-server.js';
import { PeerPipe } from './peer-pipe.js';
import { Pipe } from './pipe.js';
import { Thread, type World } from './world.js';

export interface EngineDeps {
  readonly world: World;
  readonly server: MemoryServer;
  readonly faults: Faults;
  readonly settings: Omit<ShardSettings, 'shard'>;
  readonly lanes: number;
  readonly handlersOf: (thread: Thread) => ReadonlyMap<string, EffectHandler>;
  readonly webhookSenderOf: (thread: Thread) => WebhookSender;
  readonly pushSenderOf: (thread: Thread) => PushSender;
  /** A line that says that the code is wrong. */
  readonly onDefect: (text: string) => void;
}

interface ShardThread {
  readonly thread: Thread;
  readonly incarnation: number;
  readonly shard: Shard;
  toWriter: Pipe<readonly UnitEnvelope[]> | undefined;
  /** Requests are heard from then on. */
  readonly start: () => Promise<void>;
  readonly toPeers: Map<number, PeerPipe>;
  readonly fromPeers: Map<number, PeerPipe>;
}

interface WriterThread {
  readonly thread: Thread;
  writer: Writer | undefined;
  readonly shards: Map<
    number,
    { incarnation: number; units: Pipe<readonly UnitEnvelope[]>; acks: Pipe<Acks> }
  >;
}

type Acks = readonly Ack[];

/** See `actors/shard/supervisor.ts`. */
const DEATHS_WITHIN_MS = 60_000;
const DEATHS_MAX = 10;

/** Nobody reads it, and to make one takes as long as the rest of a shard. */
const METER_MEMORY = new Meter().memory;

/** Retrying the take-over after a commit in progress. */
const LOCK_RETRY_MS = 1;

export class SimEngine {
  readonly name: string;
  readonly front: Thread;
  readonly client: ShardClient;
  readonly watermark: Watermark;
  readonly writerName: string;
  isServing = false;
  epoch = 0;
  readonly #deps: EngineDeps;
  readonly #shards: (ShardThread | undefined)[];
  #writer: WriterThread | undefined;
  #deaths: number[] = [];
  #restarts: Promise<void> = Promise.resolve();

  constructor(name: string, deps: EngineDeps) {
    this.name = name;
    this.writerName = `${name} writer`;
    this.#deps = deps;
    const { world, settings } = deps;
    this.front = new Thread(`${name}/front`);
    this.#shards = Array.from({ length: settings.shards }, () => undefined);
    this.client = new ShardClient({
      shards: settings.shards,
      clock: world.clockOf(this.front),
      setImmediate: (fn) => world.soon(fn, this.front),
    });
    this.watermark = new Watermark({
      client: this.client,
      shards: settings.shards,
      clock: world.clockOf(this.front),
    });
  }

  get isAlive(): boolean {
    return this.front.isAlive;
  }

  get threads(): Thread[] {
    const shards = this.#shards.flatMap((running) => running?.thread ?? []);
    return [this.front, ...shards, ...(this.#writer === undefined ? [] : [this.#writer.thread])];
  }

  /** Resolves when it serves, or has died. */
  async start(predecessors: readonly SimEngine[]): Promise<void> {
    try {
      this.epoch = await this.#takeOver(predecessors);
      const mark = this.#deps.server.tables.row('change_mark', '1');
      if (mark !== undefined) this.watermark.raise(Date.parse(String(mark.stamps_from)));
      this.#startWriter();
      for (let shard = 0; shard < this.#shards.length; shard++) this.#startShard(shard, 0);
      await this.#joinWriter();
      for (let shard = 0; shard < this.#shards.length; shard++) this.#joinPeers(shard, shard);
      await Promise.all(
        this.#shards.map((running) => this.#control(running!.thread, running!.start)),
      );
      this.isServing = true;
      this.#deps.world.note(`${this.name} serves at epoch ${this.epoch}`);
    } catch (error) {
      this.exit(`could not start: ${String(error)}`);
    }
  }

  /** As `src/db/lease.ts` does it: the old writers are ended, then the epoch of every lane is raised. */
  async #takeOver(predecessors: readonly SimEngine[]): Promise<number> {
    const { world, server, lanes } = this.#deps;
    const old = new Set(predecessors.map(({ writerName }) => writerName));
    for (;;) {
      await world.sleep(world.latency(0.1, 5), this.front);
      for (const backend of [...server.backends.values()]) {
        if (old.has(backend.applicationName)) backend.terminate();
      }
      // Time enough for an old writer to be back, and to write once more.
      await world.sleep(world.latency(0.1, 60), this.front);
      const epoch = server.tryRaiseEpoch(lanes);
      if (epoch !== undefined) return epoch;
      await world.sleep(LOCK_RETRY_MS, this.front);
    }
  }

  /** The process ends. */
  exit(reason: string): void {
    if (!this.isAlive) return;
    this.#deps.world.note(`${this.name} ends: ${reason}`);
    this.isServing = false;
    for (const thread of this.threads) thread.die();
  }

  killShard(shard: number): void {
    const running = this.#shards[shard];
    if (running?.thread.isAlive !== true) return;
    this.#deps.world.note(`${running.thread.name} dies`);
    running.thread.die();
  }

  killWriter(): void {
    if (this.#writer?.thread.isAlive !== true) return;
    this.#deps.world.note(`${this.#writer.thread.name} dies`);
    this.#writer.thread.die();
  }

  /** Nothing asked is unanswered and nothing decided is uncommitted. */
  get isIdle(): boolean {
    return this.#shards.every((running) => running?.shard.isDrained === true);
  }

  // ---------------------------------------------------------------- starting threads

  #newThread(what: string): Thread {
    const thread = new Thread(`${this.name}/${what}`);
    const { world } = this.#deps;
    // The main thread is told of the end of a thread a little later.
    thread.whenDead(() => {
      world.at(world.now + world.latency(0.1, 20), () => this.#ended(thread), this.front);
    });
    return thread;
  }

  #ended(thread: Thread): void {
    if (this.#writer?.thread === thread) {
      this.#restart(() => this.#replaceWriter());
      return;
    }
    const shard = this.#shards.findIndex((running) => running?.thread === thread);
    const running = this.#shards[shard];
    if (running === undefined) return;
    this.client.detach(shard);
    this.#restart(() => this.#replaceShard(shard, running.incarnation));
  }

  #startWriter(): void {
    this.#writer = { thread: this.#newThread('writer'), writer: undefined, shards: new Map() };
  }

  #startShard(shard: number, incarnation: number): void {
    const { world, server, settings, handlersOf, webhookSenderOf, pushSenderOf } = this.#deps;
    const thread = this.#newThread(`shard ${shard}`);
    const toFront = new Pipe<readonly Reply[]>(world, thread, this.front);
    const fromFront = new Pipe<RequestPost>(world, this.front, thread);
    const random = world.newRandom();
    const running: ShardThread = {
      thread,
      incarnation,
      toWriter: undefined,
      start: () => {
        fromFront.listen((post) => {
          world.note(`${thread.name} hears ${requestText(post)}`);
          running.shard.receiveRequests(post);
        });
        return running.shard.start();
      },
      toPeers: new Map(),
      fromPeers: new Map(),
      shard: new Shard({
        settings: { ...settings, shard },
        clock: world.clockOf(thread),
        random: random.next,
        log: this.#logOf(thread),
        loader: openLoads(memoryPool(server, thread), { ...settings, shard }),
        handlers: handlersOf(thread),
        meter: new Meter(METER_MEMORY),
        versions: this.client.versions,
        continuityRows: new ContinuityRows(memoryPool(server, thread)),
        webhookSender: webhookSenderOf(thread),
        pushSender: pushSenderOf(thread),
        setImmediate: (fn) => world.soon(fn, thread),
        ports: {
          toFront: (post) => toFront.post(post),
          toWriter: (post) => running.toWriter?.post(post),
          toPeer: (peer, post) => running.toPeers.get(peer)?.post(post),
          drainPeers: () =>
            [...running.fromPeers.values()].flatMap((pipe) => pipe.takeAll().flat()),
        },
      }),
    };
    this.#shards[shard] = running;
    this.client.attach(shard, portOf(fromFront, toFront));
  }

  #logOf(thread: Thread): Logger {
    const { onDefect } = this.#deps;
    const log = (fields: { err?: unknown }, text: string) => {
      if (thread.isAlive && text.includes('defect')) onDefect(`${text}: ${stackOf(fields.err)}`);
    };
    const silent = () => undefined;
    return { debug: silent, info: silent, warn: silent, error: log } as unknown as Logger;
  }

  // ---------------------------------------------------------------- joining ports

  async #joinWriter(): Promise<void> {
    await Promise.all(this.#shards.map((_, shard) => this.#joinShardToWriter(shard)));
    const running = this.#writer!;
    await this.#control(running.thread, () => {
      running.writer = this.#newWriter(running);
      for (const [shard, { incarnation, units }] of running.shards) {
        units.listen((posted) => running.writer?.submit(shard, incarnation, posted));
      }
      return running.writer.start();
    });
  }

  #newWriter(running: WriterThread): Writer {
    const { world, server, lanes } = this.#deps;
    const { thread } = running;
    return new Writer({
      store: STORE,
      connect: () => memoryClient(server, thread, this.writerName),
      applicationName: this.writerName,
      epoch: this.epoch,
      lanes,
      clock: world.clockOf(thread),
      log: this.#logOf(thread),
      onAcks: (shard, incarnation, acks) => {
        const joined = running.shards.get(shard);
        if (joined?.incarnation === incarnation) joined.acks.post(acks);
      },
      onFenced: () => world.soon(() => this.exit('fenced'), this.front),
      onDatabase: () => undefined,
    });
  }

  async #joinShardToWriter(shard: number): Promise<void> {
    const running = this.#shards[shard]!;
    const writer = this.#writer!;
    const { world } = this.#deps;
    const units = new Pipe<readonly UnitEnvelope[]>(world, running.thread, writer.thread);
    const acks = new Pipe<Acks>(world, writer.thread, running.thread);
    const { incarnation } = running;
    await this.#control(writer.thread, () => {
      writer.shards.set(shard, { incarnation, units, acks });
      if (writer.writer !== undefined) {
        units.listen((posted) => writer.writer?.submit(shard, incarnation, posted));
      }
    });
    await this.#control(running.thread, () => {
      running.shard.stampFrom(this.watermark.highest);
      running.toWriter = units;
      acks.listen((post) => running.shard.receiveAcks(post));
    });
  }

  #joinPeers(shard: number, below: number): void {
    for (let peer = 0; peer < this.#shards.length; peer++) {
      if (peer === shard || peer >= below) continue;
      this.#joinPeer(shard, peer);
      this.#joinPeer(peer, shard);
    }
  }

  #joinPeer(from: number, to: number): void {
    const { world, faults } = this.#deps;
    const [sender, receiver] = [this.#shards[from]!, this.#shards[to]!];
    const pipe = new PeerPipe(world, faults, sender.thread, receiver.thread);
    receiver.fromPeers.get(from)?.close();
    sender.toPeers.set(to, pipe);
    receiver.fromPeers.set(from, pipe);
    pipe.listen((messages) => receiver.shard.receivePeer(messages));
  }

  // ---------------------------------------------------------------- replacing threads

  #restart(replace: () => Promise<void>): void {
    const { world } = this.#deps;
    this.#deaths = this.#deaths.filter((at) => world.now - at < DEATHS_WITHIN_MS);
    this.#deaths.push(world.now);
    if (this.#deaths.length > DEATHS_MAX) {
      this.exit('threads die again and again');
      return;
    }
    this.#restarts = this.#restarts
      .then(replace)
      .catch((error: unknown) => this.exit(`a thread could not be replaced: ${String(error)}`));
  }

  async #replaceShard(shard: number, died: number): Promise<void> {
    if (this.#shards[shard]?.incarnation !== died) return;
    const writer = this.#writer!;
    await this.#control(writer.thread, () => this.#started(writer).discard(shard, died));
    await Promise.all(
      this.#shards.map((other, peer) =>
        peer === shard
          ? undefined
          : this.#control(other!.thread, () => other!.shard.peerDied(shard)),
      ),
    );
    this.#startShard(shard, died + 1);
    const running = this.#shards[shard]!;
    await this.#joinShardToWriter(shard);
    this.#joinPeers(shard, this.#shards.length);
    await this.#control(running.thread, running.start);
    await Promise.all(
      this.#shards.map((other, peer) =>
        peer === shard
          ? undefined
          : this.#control(other!.thread, () => other!.shard.peerRestarted(shard)),
      ),
    );
    this.#deps.world.note(`${running.thread.name} serves again`);
  }

  async #replaceWriter(): Promise<void> {
    const all = (tell: (shard: Shard) => void) =>
      Promise.all(
        this.#shards.map((running) => this.#control(running!.thread, () => tell(running!.shard))),
      );
    await all((shard) => shard.writerLost());
    this.#startWriter();
    await this.#joinWriter();
    await all((shard) => shard.writerReady());
    this.#deps.world.note(`${this.name}/writer serves again`);
  }

  #started({ writer }: WriterThread): Writer {
    if (writer === undefined) throw new Error('the writer was not started');
    return writer;
  }

  /** A control call to a thread; rejects when the thread has died, or dies before it answers. */
  #control<T>(thread: Thread, work: () => T | Promise<T>): Promise<T> {
    const { world } = this.#deps;
    return new Promise((resolve, reject) => {
      const dead = () => world.soon(() => reject(new Error(`${thread.name} died`)), this.front);
      if (!thread.isAlive) {
        dead();
        return;
      }
      thread.whenDead(dead);
      world.soon(() => {
        Promise.resolve()
          .then(work)
          .then(
            (value) => world.soon(() => resolve(value), this.front),
            (error: unknown) => world.soon(() => reject(error), this.front),
          );
      }, thread);
    });
  }
}

/** What the real client needs of a port. */
function portOf(requests: Pipe<RequestPost>, replies: Pipe<readonly Reply[]>): MessagePort {
  return {
    on: (_event: 'message', listener: (replies: readonly Reply[]) => void) =>
      replies.listen(listener),
    postMessage: (post: RequestPost) => requests.post(post),
    close() {
      requests.close();
      replies.close();
    },
  } as unknown as MessagePort;
}

function requestText({ requests, aborted }: RequestPost): string {
  const names = requests.map(
    ({ id, operation, target, body }) => `${operation} #${id} ${target}${body.slice(0, 150)}`,
  );
  return [...names, ...aborted.map((id) => `abort #${id}`)].join(', ');
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
