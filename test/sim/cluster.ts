/**
 * The engines of a run, one after the other on one database, and sometimes beside each other: an
 * engine that ended is started anew, and a standby takes the database over from one that still runs.
 * Also decides when whole threads and processes fail.
 */

import { type EngineDeps, SimEngine } from './engine.js';
import type { Thread } from './world.js';

/** How often it is drawn whether something fails. */
const LOOK_MS = 500;

/** An owner asks for its lease so often, and learns then that it has lost it. */
const RENEW_MS = 1_500;

/** One that does not reach the database learns it later, or from the fence. */
const UNREACHABLE_MS = 10_000;

export class Cluster {
  readonly engines: SimEngine[] = [];
  readonly #deps: EngineDeps;
  #isStarting = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    this.#startNext();
    this.#lookLater();
  }

  /** The engine that owns the database, or is about to. */
  get newest(): SimEngine {
    return this.engines.at(-1)!;
  }

  /** Where a client's next request goes: sometimes to one that does not know that it was replaced. */
  pick(): SimEngine | undefined {
    const alive = this.engines.filter(({ isAlive, isServing }) => isAlive && isServing);
    if (alive.length > 1 && this.#deps.faults.random.chance(0.4)) return alive[0];
    return alive.at(-1);
  }

  byWriter(applicationName: string): SimEngine | undefined {
    return this.engines.find(({ writerName }) => writerName === applicationName);
  }

  /**
   * What was committed may stay unknown to those who wait for it.
   * @param weight how much more often than usual
   */
  committed(applicationName: string, weight = 1): void {
    const { faults, world, settings } = this.#deps;
    const engine = this.byWriter(applicationName);
    if (engine === undefined) return;
    if (faults.hits('writer.died at commit', weight))
      world.at(world.now, () => engine.killWriter());
    if (faults.hits('shard.died at commit', weight)) {
      const shard = faults.random.integer(0, settings.shards - 1);
      world.at(world.now, () => engine.killShard(shard));
    }
  }

  #startNext(): void {
    this.#isStarting = true;
    const engine = new SimEngine(`engine ${this.engines.length + 1}`, this.#deps);
    const predecessors = [...this.engines];
    this.engines.push(engine);
    engine.front.whenDead(() => {
      this.#isStarting = false;
    });
    void engine.start(predecessors).then(() => {
      this.#isStarting = false;
      for (const old of predecessors) this.#tellSoon(old);
    });
  }

  /** An engine that was replaced ends when it asks for its lease, unless the fence was quicker. */
  #tellSoon(old: SimEngine): void {
    const { world, faults } = this.#deps;
    if (!old.isAlive) return;
    const delay = world.latency(0, faults.random.chance(0.5) ? RENEW_MS : UNREACHABLE_MS);
    world.at(world.now + delay, () => old.exit('lost its lease'), old.front);
  }

  #lookLater(): void {
    const { world } = this.#deps;
    world.at(world.now + LOOK_MS, () => {
      this.#look();
      this.#lookLater();
    });
  }

  #look(): void {
    const { faults, world, server } = this.#deps;
    const { newest } = this;
    if (!newest.isAlive && !this.#isStarting) {
      this.#startNext();
      return;
    }
    if (faults.isOver) return;
    const hits = (fault: Parameters<typeof faults.hitsWithin>[0]) =>
      faults.hitsWithin(fault, LOOK_MS);
    const strike = (act: () => void) => world.at(world.now + world.latency(0, LOOK_MS), act);
    if (hits('shard.died')) {
      const shard = faults.random.integer(0, this.#deps.settings.shards - 1);
      strike(() => newest.killShard(shard));
    }
    if (hits('writer.died')) strike(() => newest.killWriter());
    if (hits('engine.crashed')) strike(() => newest.exit('crashed'));
    if (newest.isServing && hits('engine.replaced')) this.#startNext();
    if (hits('thread.busy')) this.#stall([faults.random.pick(newest.threads)], 800);
    if (hits('engine.stopped')) {
      this.#stall(newest.threads, 12_000);
      if (newest.isServing && faults.random.chance(0.5)) this.#startNext();
    }
    if (hits('database.away')) server.goAway(world.latency(50, 6_000));
  }

  #stall(threads: readonly Thread[], msMax: number): void {
    const { world } = this.#deps;
    const until = world.now + world.latency(5, msMax);
    for (const thread of threads) thread.busyUntil = until;
  }
}
