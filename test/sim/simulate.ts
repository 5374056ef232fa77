/**
 * One run: an engine, its database, clients and workers, and what goes wrong, all from one seed.
 * While things go wrong, every commit and every answer is checked; then the faults end, and within a
 * bounded time every instance must have come to rest.
 */

import { type InstanceState, isEnded } from '../../schema/states.js';
import { concurrencyKeyId } from '../../src/base/ids.js';
import { createRandom, type Random } from '../chaos/random.js';
import { Api } from './api.js';
import { CONCURRENCY, RATE_KEY, RATE_LIMITS, SimClient, type SimSequence } from './clients.js';
import { Cluster } from './cluster.js';
import { COLLECTED, Collector } from './collectors.js';
import { Endpoints } from './endpoints.js';
import type { EngineDeps } from './engine.js';
import { Counts, Faults } from './faults.js';
import { FeedReader } from './feed-reader.js';
import { checkEnd } from './final-checks.js';
import { simulatedHandlers } from './handlers.js';
import { KEPT_SEEDS } from './kept-seeds.js';
import { MemoryServer } from './memory-server.js';
import { MemoryTables } from './memory-tables.js';
import { Observer } from './observer.js';
import { isParked, Outsiders } from './outsiders.js';
import type { Parts } from './parts.js';
import { Promises } from './promises.js';
import { purge, removeOrphans } from './purger.js';
import { Receivers } from './receivers.js';
import { ReleaseScenario, versionsOf } from './release-scenario.js';
import { randomBlocks, randomHooks, randomLimits } from './shapes.js';
import { Violation } from './violation.js';
import { ASKED_BLOCKS, QUICK, Waiter } from './waiters.js';
import { SimWorker } from './workers.js';
import { STREAMS, Trace, World } from './world.js';

export interface Outcome {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly hash: string;
  readonly trace: Trace;
  readonly counts: Counts;
  readonly events: number;
  /** Virtual. */
  readonly ms: number;
}

export interface SimulationOptions {
  /** Keeps the lines of the trace, for people. */
  readonly isTraced?: boolean;
  /** Fewer take part, and they do less: many more runs for the same time. */
  readonly isBrief?: boolean;
}

const TENANTS = ['north', 'south'] as const;

/** Everything must be at rest so long after the last fault, in virtual time. */
const REST_MS_MAX = 30 * 60_000;

/** In the brief form the faults end by then, and with them what clients do. */
const BRIEF_MS = 12_000;

/** How soon it is asked once more for a slot that is not free yet. */
const ASK_AGAIN_MS = 10_000;

/** Of so many seeds, in one instances are removed meanwhile. */
const PURGED_EVERY = 5;

/** Of so many seeds, in one the change feed is read meanwhile. */
const FEED_READ_EVERY = 4;

/** Of so many seeds, in one there are releases. */
const RELEASED_EVERY = 3;
/** Sequences of these seeds have limits. Kept seeds draw the numbers that they drew before. */
const LIMITED_EVERY = 4;

/** Of eleven seeds, in those with these remainders creations are collected. */
const COLLECTED_OF = { every: 11, remainders: [4, 8] };

/** Of eleven seeds, in those with these remainders clients wait for answers. */
const AWAITED_OF = { every: 11, remainders: [1, 9] };

/** Of so many seeds, two are about failures: clients retry, and in the end all that failed is retried. */
const RETRIED_EVERY = 5;

/** How often. */
const RETRIES = 2;

/** Threads die so much more often when a release has just been moved. */
const MOVE_WEIGHT = 8;

export const simulate = async (seed: number, options: SimulationOptions = {}): Promise<Outcome> =>
  new Simulation(seed, options).run();

class Simulation {
  readonly #isBrief: boolean;
  readonly #random: Random;
  readonly #world: World;
  readonly #counts = new Counts();
  readonly #faults: Faults;
  readonly #db = new MemoryTables();
  readonly #server: MemoryServer;
  readonly #observer: Observer;
  readonly #promises: Promises;
  readonly #receivers: Receivers;
  readonly #endpoints: Endpoints;
  readonly #shards: number;
  readonly #cluster: Cluster;
  readonly #api: Api;
  readonly #sequences: SimSequence[];
  #violation: Violation | undefined;
  #calmSince = Number.POSITIVE_INFINITY;

  constructor(seed: number, { isTraced = false, isBrief = false }: SimulationOptions) {
    this.#isBrief = isBrief;
    this.#random = createRandom(seed);
    const world = new World(seed, { trace: new Trace(isTraced) });
    const faults = new Faults(createRandom(seed, STREAMS.faults), this.#counts);
    this.#world = world;
    this.#faults = faults;
    this.#observer = new Observer({
      tables: this.#db,
      cluster: () => this.#cluster,
      counts: this.#counts,
      now: () => world.now,
    });
    this.#promises = new Promises(
      this.#db,
      this.#observer,
      this.#counts,
      () => this.#cluster.newest,
    );
    this.#server = new MemoryServer({
      world,
      tables: this.#db,
      faults,
      onBroken: (text) => this.#fail(new Violation(text)),
      onCommit: (changes, applicationName) => {
        this.#check(() => this.#observer.committed(changes, applicationName));
        const engine = this.#cluster.byWriter(applicationName);
        if (engine !== undefined) this.#check(() => this.#promises.committed(changes, engine));
        const isMove = changes.some(({ table }) => table === 'releases');
        this.#cluster.committed(applicationName, isMove ? MOVE_WEIGHT : 1);
      },
    });
    this.#receivers = new Receivers(
      world,
      faults,
      this.#db,
      (thread) => !this.#cluster.newest.threads.includes(thread),
      (text, instance) => this.#fail(new Violation(text, instance)),
    );
    this.#endpoints = new Endpoints({
      world,
      faults,
      random: createRandom(seed, STREAMS.endpoints),
      tables: this.#db,
      api: () => this.#api,
      observer: this.#observer,
      complain: (text, instance) => this.#fail(new Violation(text, instance)),
      count: (name) => this.#counts.add(name),
    });
    const deps = this.#engineDeps();
    this.#shards = deps.settings.shards;
    this.#cluster = new Cluster(deps);
    this.#api = new Api({
      world,
      faults,
      cluster: this.#cluster,
      onRequest: (call) => this.#promises.before(call, world.now),
      onAnswer: (...answer) => this.#check(() => this.#promises.answered(...answer)),
    });
    this.#sequences = this.#isReleased
      ? versionsOf(this.#random, this.#random.pick(TENANTS), sequenceId)
      : this.#anySequences();
  }

  async run(): Promise<Outcome> {
    const world = this.#world;
    const isFound = () => this.#violation !== undefined;
    let isDone = false;
    const scenario = this.#scenario().then(() => {
      isDone = true;
    });
    scenario.catch((error: unknown) =>
      this.#fail(error instanceof Violation ? error : new Violation(stackOf(error))),
    );
    // In a real thread nobody would be there to take it: it would end the thread.
    const onRejection = (error: unknown) =>
      this.#fail(new Violation(`unhandled rejection: ${stackOf(error)}`));
    process.on('unhandledRejection', onRejection);
    try {
      const ending = await world.run(() => isFound() || isDone);
      if (ending !== 'over') this.#fail(new Violation(`the run ended ${ending}`));
    } catch (error) {
      this.#fail(error instanceof Violation ? error : new Violation(stackOf(error)));
    } finally {
      process.off('unhandledRejection', onRejection);
    }
    if (!isFound()) this.#check(() => checkEnd(this.#db, this.#observer, this.#promises));
    if (!isFound()) this.#check(() => this.#receivers.checkEnd());
    return {
      seed: world.seed,
      violation: this.#violation,
      hash: world.trace.hash,
      trace: world.trace,
      counts: this.#counts,
      events: world.eventCount,
      ms: world.now,
    };
  }

  #engineDeps(): EngineDeps {
    const random = this.#random;
    return {
      world: this.#world,
      server: this.#server,
      faults: this.#faults,
      settings: {
        shards: random.integer(1, 3),
        tickIntervalMs: random.pick(this.#isBrief ? [1_000, 2_000] : [400, 2_000]),
        cronTickMs: 10_000,
        workerStaleMs: random.pick([2_000, 8_000]),
        workerReaperTickMs: 1_000,
        lostClaimsMax: 0,
        requireClaimEpoch: false,
        stepTimeoutMaxMs: 300_000,
        unpoliciedRetry: random.pick(['redispatch', 'fail']),
        maxContextBytes: 262_144,
        maxOutputBytes: 1_048_576,
        maxBodyBytes: 10_485_760,
        webhookUrls: this.#receivers.urls,
        activityDays: 90,
      },
      lanes: random.integer(1, 3),
      handlersOf: simulatedHandlers(
        this.#world,
        this.#faults,
        this.#db,
        (text, instance) => this.#fail(new Violation(text, instance)),
        (...call) => this.#check(() => this.#observer.keys.called(...call)),
      ),
      webhookSenderOf: (thread) => this.#receivers.senderOf(thread),
      pushSenderOf: (thread) => this.#endpoints.senderOf(thread),
      onDefect: (text) => this.#fail(new Violation(text)),
    };
  }

  get #isReleased(): boolean {
    return this.#world.seed % RELEASED_EVERY === 0;
  }

  get #isLimited(): boolean {
    const { seed } = this.#world;
    return seed % LIMITED_EVERY === 1 && !KEPT_SEEDS.some((kept) => kept.seed === seed);
  }

  get #isRetried(): boolean {
    return !this.#isReleased && [0, 2].includes(this.#world.seed % RETRIED_EVERY);
  }

  #anySequences(): SimSequence[] {
    const count = this.#random.integer(2, 4);
    // Children are of the tenant of their parents.
    const tenants = Array.from({ length: count }, () =>
      this.#random.weighted({ north: 4, south: 1 }),
    );
    return tenants.map((_, i) => this.#sequence(i, tenants));
  }

  /** The last of several may be one that clients try to delete. */
  #sequence(number: number, tenants: readonly string[]): SimSequence {
    const random = this.#random;
    const tenant = tenants[number]!;
    const id = sequenceId(number);
    const children = tenants.flatMap((of, i) => (i > number && of === tenant ? nameOf(i) : []));
    if (children.length > 0 && random.chance(0.1)) children.push('nothing');
    const rateKey = random.chance(0.6) ? RATE_KEY : undefined;
    const blocks = randomBlocks(random, { rateKey, children, isRetried: this.#isRetried });
    const isSpare = number === tenants.length - 1 && random.chance(0.5);
    const place = { id, tenant_id: tenant, namespace: 'simulated', version: 1 };
    const limits = this.#isLimited ? randomLimits(random) : {};
    const body = { ...place, name: nameOf(number), blocks, ...randomHooks(random), ...limits };
    return { id, tenant, isSpare, body };
  }

  // ---------------------------------------------------------------- what happens

  async #scenario(): Promise<void> {
    const world = this.#world;
    const random = this.#random;
    // What takes longest in wild runs is to get an engine, and then sequences, at all.
    this.#faults.isOver = this.#isBrief;
    for (const { tenant, body } of this.#sequences) {
      await this.#insist([201, 409], 'sequences.create', tenant, '', body);
    }
    if (random.chance(0.5)) {
      for (const tenant of TENANTS) {
        const limit = random.pick(RATE_LIMITS);
        await this.#insist([200], 'rateLimits.put', tenant, RATE_KEY, limit);
      }
    }
    const settings = () => this.#endpoints.settings();
    for (const tenant of this.#endpoints.isOn ? TENANTS : []) {
      // Shards that die keep the answer from coming.
      while (!this.#endpoints.isSet(tenant)) {
        await this.#api.call('workerEndpoints.put', tenant, ...settings());
        await world.sleep(world.latency(10, 500));
      }
    }
    this.#faults.isOver = false;
    const deps = { world, api: this.#api, faults: this.#faults };
    const most = this.#isBrief ? 2 : 3;
    for (let i = random.integer(1, most); i > 0; i--) {
      const own = { random: world.newRandom(), tenants: TENANTS };
      void new SimWorker(`worker ${i}`, { ...deps, ...own }).work();
    }
    const shared = {
      sequences: this.#sequences,
      isKeyed: random.chance(0.4) && !this.#isLimited,
      isLimited: this.#isLimited,
      isReleased: this.#isReleased,
      isRetried: this.#isRetried,
      tables: this.#db,
      instances: [] as { id: string; tenant: string }[],
    };
    if (world.seed % PURGED_EVERY === 1) {
      const own = { random: world.newRandom(), tables: this.#db, shards: this.#shards };
      void purge({ ...deps, ...own, onAsked: (id) => this.#observer.doomed.add(id) });
    }
    const removal = removeOrphans({ ...deps, tables: this.#db, shards: this.#shards });
    const readers = this.#feedReaders();
    const releases = this.#isReleased ? this.#releaseScenario() : undefined;
    const pauseMs = random.pick(this.#isBrief ? [100, 300, 1_000] : [200, 1_000, 3_000]);
    const clients = Array.from({ length: random.integer(1, most) }, (_, i) => {
      const client = new SimClient(`client${i}`, { ...deps, ...shared, random: world.newRandom() });
      const operations = this.#isReleased ? random.integer(6, 20) : random.integer(3, 10);
      return client.run(this.#isBrief ? Math.ceil(operations / 2) : operations, pauseMs);
    });
    const collectors = await this.#collectors(deps);
    const waiters = await this.#waiters(deps);
    const operators = (await releases?.begin(pauseMs)) ?? [];
    if (this.#endpoints.isOn) {
      // A change that may not get through.
      void this.#api.call('workerEndpoints.put', random.pick(TENANTS), ...settings());
    }
    const done = Promise.all([...clients, ...collectors, ...waiters]);
    await Promise.all([
      this.#isBrief ? Promise.race([done, world.sleep(BRIEF_MS)]) : done,
      ...operators,
    ]);
    await world.sleep(random.integer(0, 5_000));
    this.#faults.isOver = true;
    this.#calmSince = world.now;
    world.note('the faults are over');
    await releases?.settle(this.#calmSince);
    await this.#mend();
    await removal;
    await releases?.moveOn();
    await this.#rest();
    for (let i = this.#isRetried ? RETRIES : 0; i > 0; i--) await this.#retryAll();
    for (const reader of readers) await reader.finish();
  }

  /** Beside the other clients, with whose sequences they create instances, too. */
  async #waiters(deps: Pick<Parts, 'world' | 'api' | 'faults'>): Promise<Promise<void>[]> {
    const world = this.#world;
    const { every, remainders } = AWAITED_OF;
    if (!remainders.includes(world.seed % every)) return [];
    const [tenant] = TENANTS;
    const [asked, quick] = [{ blocks: ASKED_BLOCKS }, QUICK].map((members, i): SimSequence => {
      const place = { id: sequenceId(80 + i), tenant_id: tenant, namespace: 'simulated' };
      const body = { ...place, name: nameOf(80 + i), version: 1, ...members };
      return { id: place.id, tenant, isSpare: false, body };
    }) as [SimSequence, SimSequence];
    // In wild runs it might take for ever.
    this.#faults.isOver = true;
    for (const { body } of [asked, quick]) {
      await this.#insist([201, 409], 'sequences.create', tenant, '', body);
    }
    this.#faults.isOver = false;
    const random = world.newRandom();
    return Array.from({ length: random.integer(1, 3) }, (_, i) => {
      const shared = { tables: this.#db, sequences: this.#sequences, asked, quick };
      const own = { ...shared, random: world.newRandom() };
      return new Waiter(`waiter${i}`, { ...deps, ...own }).run(random.integer(5, 25));
    });
  }

  /** Of the first tenant, beside the other clients. */
  async #collectors(deps: Pick<Parts, 'world' | 'api' | 'faults'>): Promise<Promise<void>[]> {
    const world = this.#world;
    const { every, remainders } = COLLECTED_OF;
    if (!remainders.includes(world.seed % every)) return [];
    const [tenant] = TENANTS;
    const blocks = [{ type: 'step', id: 'a', handler: 'sleep', params: { duration_ms: 300 } }];
    const [plain, ...sequences] = [{}, ...COLLECTED].map((members, i) => {
      const place = { id: sequenceId(90 + i), tenant_id: tenant, namespace: 'simulated' };
      return { ...place, name: nameOf(90 + i), version: 1, blocks, ...members };
    });
    // In wild runs it might take for ever.
    this.#faults.isOver = true;
    for (const body of [plain!, ...sequences]) {
      await this.#insist([201, 409], 'sequences.create', tenant, '', body);
    }
    this.#faults.isOver = false;
    const random = world.newRandom();
    return Array.from({ length: random.integer(1, 3) }, (_, i) => {
      const shared = { tables: this.#db, tenant, sequences, plain: plain! };
      const own = { ...shared, random: world.newRandom() };
      return new Collector(`collector${i}`, { ...deps, ...own }).run(random.integer(5, 25));
    });
  }

  #releaseScenario(): ReleaseScenario {
    return new ReleaseScenario({
      world: this.#world,
      api: this.#api,
      tables: this.#db,
      observer: this.#observer.releases,
      cluster: this.#cluster,
      versions: this.#sequences,
      insist: (...call) => this.#insist(...call),
    });
  }

  #feedReaders(): FeedReader[] {
    const world = this.#world;
    if (world.seed % FEED_READ_EVERY !== 2) return [];
    const deps = { world, cluster: this.#cluster, tables: this.#db };
    return TENANTS.map((tenant) => {
      const reader = new FeedReader({ ...deps, tenant, random: world.newRandom() });
      reader.follow().catch((error: unknown) => this.#fail(new Violation(stackOf(error))));
      return reader;
    });
  }

  /** Asks until it is answered with one of these. */
  async #insist(
    wanted: readonly number[],
    ...[operation, tenant, target, body, shard]: Parameters<Api['call']>
  ): Promise<void> {
    const until = this.#world.now + REST_MS_MAX;
    for (;;) {
      const { status } = await this.#api.call(operation, tenant, target, body, shard);
      if (wanted.includes(status)) return;
      // The database may have refused it, for no fault of its own.
      if (![0, 400, 503].includes(status) || this.#world.now > until) {
        throw new Violation(`${operation} was answered ${status}`, target);
      }
      await this.#world.sleep(this.#world.latency(10, 500));
    }
  }

  /** Everything works again, and what was stopped by request goes on. */
  async #mend(): Promise<void> {
    for (const { id, tenant } of this.#sequences) {
      for (let shard = 0; shard < this.#shards; shard++) await this.#tryOut(id, tenant, shard);
    }
    for (const [id, row] of [...this.#db.rows('cron_schedules')]) {
      await this.#insist([204, 404], 'cron.delete', String(row.tenant_id), id);
    }
    const isResumed = this.#random.chance(0.5);
    for (const [id, row] of [...this.#db.rows('instances')]) {
      const isStopped = isParked(row) || (isResumed && row.state === 'paused');
      if (!isStopped) continue;
      const body = { state: 'scheduled' };
      await this.#insist([200, 400, 404], 'instances.patchState', String(row.tenant_id), id, body);
    }
  }

  async #retryAll(): Promise<void> {
    for (const [id, { state, tenant_id }] of [...this.#db.rows('instances')]) {
      if (state !== 'failed') continue;
      await this.#insist([200, 400, 404], 'instances.retry', String(tenant_id), id);
    }
    await this.#rest();
  }

  /** Every shard takes instances of a sequence that is there, and of no other. */
  async #tryOut(id: string, tenant: string, shard: number): Promise<void> {
    const named = { sequence_id: id, tenant_id: tenant, namespace: 'simulated' };
    const body = { ...named, metadata: { asked: id }, context: { data: { lane: 'slow' } } };
    // 200: its sequence skips creations while its slots are taken.
    const wanted = this.#db.row('sequences', id) === undefined ? [404] : [200, 201, 404];
    await this.#insist(wanted, 'instances.create', tenant, '', body, shard);
  }

  async #rest(): Promise<void> {
    const world = this.#world;
    const until = world.now + REST_MS_MAX;
    const asked = new Map<string, number>();
    const outsiders = new Outsiders({
      world,
      tables: this.#db,
      insist: (...call) => this.#insist(...call),
    });
    for (;;) {
      const restless = this.#restless();
      if (restless === undefined) return;
      if (world.now > until) throw restless;
      await this.#askForSlots(asked);
      await outsiders.attend();
      await world.sleep(500);
    }
  }

  /** A slot that its instance could not give back is free as soon as another one asks for it. */
  async #askForSlots(asked: Map<string, number>): Promise<void> {
    for (const [id, { key_id }] of this.#db.rows('permits')) {
      const row = this.#db.row('instances', id);
      // One that is put off between its tries keeps its slot, and goes on by itself.
      if (['waiting', 'running', 'scheduled'].includes(String(row?.state))) continue;
      const key = String(key_id);
      // Once more when nothing came of it: the engine of the first time may be gone.
      if ((asked.get(key) ?? 0) > this.#world.now) continue;
      asked.set(key, this.#world.now + ASK_AGAIN_MS);
      const wish = this.#wishOf(key);
      if (wish !== undefined)
        await this.#insist([201], 'instances.create', wish.tenant_id, '', wish);
    }
  }

  /** An instance that asks for a slot of the key; who has it now may be gone. */
  #wishOf(key: string) {
    for (const { id, tenant } of this.#sequences) {
      const limit = CONCURRENCY.find(
        (one) => concurrencyKeyId(tenant, one.concurrency_key) === key,
      );
      if (limit === undefined || this.#db.row('sequences', id) === undefined) continue;
      return { sequence_id: id, tenant_id: tenant, namespace: 'simulated', ...limit };
    }
    return undefined;
  }

  /** An instance that is not over, and that nobody stopped; a timer or a slot that nobody needs. */
  #restless(): Violation | undefined {
    for (const [id, row] of this.#db.rows('instances')) {
      const state = row.state as InstanceState;
      if (isEnded(state)) {
        const isOver = this.#db.row('timers', id) === undefined;
        if (!isOver) return new Violation(`the ${state} instance keeps its timer`, id);
      } else if (state !== 'paused' && !isParked(row)) {
        return new Violation(`the ${state} instance does not come to rest`, id);
      }
    }
    for (const { event_id, instance_id, outcome } of this.#db.rows('event_cancels').values()) {
      const instance = String(instance_id);
      if (outcome === null && this.#db.row('instances', instance) !== undefined) {
        return new Violation(`${event_id} does not cancel it`, instance);
      }
    }
    for (const { event_id, pending_id } of this.#db.rows('collected_cancels').values()) {
      return new Violation(`${event_id} does not take a creation out`, String(pending_id));
    }
    const failing = this.#observer.releases.failing(this.#calmSince);
    if (failing !== undefined) return failing;
    const [note] = this.#db.rows('kin_notes').values();
    if (note !== undefined) {
      return new Violation(
        `nobody has heard that ${note.from_id} is ${note.word}`,
        String(note.to_id),
      );
    }
    for (const id of this.#db.rows('pending_starts').keys()) {
      return new Violation('collected creations do not start', id);
    }
    for (const [id, { targets }] of this.#db.rows('events')) {
      if (targets !== null) return new Violation(`nobody answers for the event ${id}`);
    }
    if (this.#receivers.isBusy) return new Violation('a webhook stays in the outbox');
    for (const id of this.#db.rows('permits').keys()) {
      const state = this.#db.row('instances', id)?.state;
      if (state !== 'waiting') return new Violation(`the ${state} instance keeps its slot`, id);
    }
    return undefined;
  }

  // ---------------------------------------------------------------- what is wrong

  #check(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#fail(error instanceof Violation ? error : new Violation(stackOf(error)));
    }
  }

  #fail(violation: Violation): void {
    if (this.#violation !== undefined) return;
    this.#violation = violation;
    this.#world.note(`VIOLATION ${violation.message} ${violation.instance ?? ''}`);
  }
}

function nameOf(number: number): string {
  return `sequence ${number}`;
}

function sequenceId(number: number): string {
  return `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
