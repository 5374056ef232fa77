/**
 * One chaos run: a real server on a real Postgres under load, killed and crashed at random moments,
 * then left in peace until everything rests, then judged. Long runs are several rounds, each with a
 * tenant and a ledger of its own, so that what a round keeps in memory is bounded.
 */

import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { migrate } from '../../src/db/migrate.js';
import { type Client, createClient, expectStatus } from '../helpers/client.js';
import { shadowClock } from '../helpers/database-clock.js';
import { type Engine, startEngine } from '../helpers/engine.js';
import { FaultProxy } from '../helpers/proxy.js';
import { ChaosClient, type World } from './clients.js';
import { createGate } from './gate.js';
import { HARDSHIP_NAMES, type Surroundings, suffer } from './hardships.js';
import { findViolations } from './invariants.js';
import { isAcknowledged, Ledger } from './ledger.js';
import { startOutside } from './outside.js';
import { startCrashablePostgres } from './postgres.js';
import { createRandom, type Random } from './random.js';
import { readBack } from './read-back.js';
import { findMisrouted, startCanary } from './releases.js';
import { readOverbooked, readRows, readUnsettled } from './rows.js';
import { RATE_LIMIT, type Shape, type ShapeName, shapes } from './shapes.js';
import { type Sink, startSink } from './sink.js';
import { startChaosWorker } from './workers.js';

export interface RoundPlan {
  readonly seed: number;
  /** Kills of the server by SIGKILL. */
  readonly cycles: number;
  /** Crashes of Postgres while the server stays up. */
  readonly pgCycles: number;
  /** Of each fault that ends by itself; default: none. */
  readonly hardships?: number;
  /** Of owners that stand still until a standby has taken over, and go on behind it; default: none. */
  readonly takeOvers?: number;
  /** Called after each fault. */
  readonly onFault?: (done: number, all: number) => void;
}

export interface LoadSummary {
  readonly instances: number;
  readonly tasks: number;
  /** What was promised, by kind: creations by shape, and answers to those who waited or sent from outside. */
  readonly promised: Readonly<Record<string, number>>;
  readonly requests: Ledger['counts'];
  /** From the end of the faults until everything rested. */
  readonly settleMs: number;
  /** Empty: every promise was kept. */
  readonly violations: readonly string[];
}

export interface RoundSummary extends LoadSummary {
  readonly kills: number;
  readonly crashes: number;
  readonly hardships: number;
  readonly takeOvers: number;
  /** From the kill until the next process is ready. */
  readonly restartMs: readonly number[];
  /** From Postgres accepting connections, or the end of a fault that ends by itself, until the server acknowledges writes again. */
  readonly serveAgainMs: readonly number[];
}

export interface ChaosServer {
  round(plan: RoundPlan): Promise<RoundSummary>;
  /** Ends the server and the database and removes the data. */
  stop(): Promise<void>;
}

const CLIENTS = 24;
const WORKERS = 8;
/** Some 600 a cycle: enough that every kill meets work of every kind, few enough to check. */
const INSTANCES_PER_ROUND_MAX = 25_000;
/** How long the server serves between two faults: about 0.6 s a cycle with the restart. */
const UP_MS = { min: 40, max: 260 } as const;
/** At least so much is promised between two faults, however long a busy machine takes for it. */
const PROMISES_MIN = 150;
/** A server that promises nothing for so long serves nobody. */
const PROMISES_MS_MAX = 60_000;
const PG_DOWN_MS = { min: 20, max: 200 } as const;
/** The promise: everything rests this long after the faults stop. */
const SETTLE_MS_MAX = 30_000;
/** Longer than any lease. */
const TAKE_OVER_MS_MAX = 60_000;
/** The promise is 2 s on an idle machine; here clients and database share its two cores. */
const SERVE_AGAIN_MS_MAX = 10_000;
const POLL_MS = 20;
/** How often slots are counted under load: each count reads all instances of the round. */
const WATCH_EVERY_MS = 150;
/** Sentences that are quoted of each kind of finding. */
const VIOLATIONS_QUOTED = 50;

/** @param shards ENGINE_SHARDS */
export async function startChaosServer(shards: number): Promise<ChaosServer> {
  const postgres = await startCrashablePostgres();
  const sink = await startSink();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 2 });
  // Idle connections die with each crash, as they should.
  pool.on('error', () => undefined);
  // The tables go to the schema that the first sessions see, before the one of the clock.
  await migrate(postgres.url);
  const setClock = await shadowClock(pool);
  const stopAround = async () => {
    sink.stop();
    await pool.end();
    await postgres.remove();
  };
  const { proxy, url } = await FaultProxy.before(postgres.url);
  const target: Target = {
    engine: await startFor(url, shards, async () => {
      await proxy.stop();
      await stopAround();
    }),
    postgres,
    proxy,
    sink,
    pool,
    setClock,
  };
  let rounds = 0;
  return {
    round(plan) {
      rounds += 1;
      return runRound(target, `chaos-${rounds}`, plan);
    },
    async stop() {
      await target.engine.stop();
      await proxy.stop();
      await stopAround();
    },
  };
}

/** What every server that is loaded here is told. */
export const LOADED_ENV = {
  ENGINE_ALLOW_INTERNAL_URLS: 'true',
  // Claims whose reply was lost in a kill come back within the time that rest may take.
  ENGINE_WORKER_REAPER_STALE_SECS: '1',
  ENGINE_WORKER_REAPER_TICK_SECS: '1',
  // With claims that short a busy machine loses ten of one attempt without any fault of its worker.
  ENGINE_WORKER_LOST_CLAIMS_MAX: '0',
};

async function startFor(
  databaseUrl: string,
  shards: number,
  onFailure: () => Promise<void>,
): Promise<Engine> {
  const env = { ...LOADED_ENV, ENGINE_SHARDS: String(shards) };
  try {
    return await startEngine({ databaseUrl, env });
  } catch (error) {
    await onFailure();
    throw error;
  }
}

/** A server under load, and where its promises are looked after. */
export interface Loaded {
  /** The process of the moment. */
  engine: Engine;
  readonly sink: Sink;
  readonly pool: pg.Pool;
}

interface Target extends Surroundings, Loaded {
  engine: Engine;
}

async function runRound(target: Target, tenant: string, plan: RoundPlan): Promise<RoundSummary> {
  const faults = (world: World) => injectFaults(target, world, plan);
  return {
    kills: plan.cycles,
    crashes: plan.pgCycles,
    hardships: (plan.hardships ?? 0) * HARDSHIP_NAMES.length,
    takeOvers: plan.takeOvers ?? 0,
    ...(await underLoad(target, tenant, plan.seed, faults)),
  };
}

/** Loads the server while `inject` lasts, lets it come to rest, and judges it. */
export async function underLoad<Faults>(
  target: Loaded,
  tenant: string,
  seed: number,
  inject: (world: World) => Promise<Faults>,
): Promise<LoadSummary & Faults> {
  const ledger = new Ledger();
  const client = clientOf(target.engine, tenant);
  const shapesOfRound = shapes(target.sink.url);
  const outside = await startOutside(client, tenant, ledger, createRandom(seed, 3_000));
  let isOver = false;
  const world: World = {
    ledger,
    client,
    tenant,
    gate: createGate(),
    shapes: shapesOfRound,
    sequenceIds: await storeSequences(client, tenant, shapesOfRound),
    outside,
    instancesMax: INSTANCES_PER_ROUND_MAX,
    isOver: () => isOver,
  };
  const clients = Array.from({ length: CLIENTS }, (_, i) =>
    new ChaosClient(world, `${tenant}.c${i}`, createRandom(seed, i)).run(),
  );
  const workers = Array.from({ length: WORKERS }, (_, i) =>
    startChaosWorker(world, `w${i}`, createRandom(seed, 1_000 + i)),
  );
  const stopWorkers = () => Promise.all(workers.map((worker) => worker.stop()));
  const load = Promise.all(clients);
  const watcher = watchSlots(target, world);
  try {
    // A client that throws has met a defect of its own, which ends the round at once.
    const faults = await Promise.race([inject(world), load.then(fail)]);
    isOver = true;
    await load;
    const settleMs = await settle(target, world);
    await stopWorkers();
    const violations = [...(await judge(target, world)), ...(await readBack(world.client, ledger))];
    return {
      instances: ledger.instances.size,
      tasks: ledger.tasks.size,
      promised: countPromised(ledger),
      requests: { ...ledger.counts },
      ...faults,
      settleMs,
      violations: violations.slice(0, VIOLATIONS_QUOTED),
    };
  } finally {
    isOver = true;
    world.gate.open();
    await Promise.allSettled([load, stopWorkers(), watcher]);
    outside.stop();
    for (const used of new Set([client, world.client])) await used.close();
  }
}

function countPromised({ creations, instances }: Ledger): Record<string, number> {
  const counts: Record<string, number> = {};
  const add = (name: string, by = 1) => {
    counts[name] = (counts[name] ?? 0) + by;
  };
  for (const { shape, skippedFor, certainty } of creations.values()) {
    if (certainty === 'acknowledged') add(skippedFor === undefined ? shape : `${shape}, skipped`);
  }
  for (const { results, signals, deliveries, controls } of instances.values()) {
    add('results of creations that waited', results.length);
    add('replies to signals', signals.filter(({ answer }) => answer !== undefined).length);
    add('deliveries', deliveries.filter(({ eventId }) => eventId !== undefined).length);
    const repeats = deliveries.map(({ attempts }) => attempts.filter(isAcknowledged).length - 1);
    add(
      'deliveries repeated',
      repeats.reduce((sum, times) => sum + Math.max(0, times), 0),
    );
    const withdrawals = controls.filter(({ kind }) => kind === 'withdraw');
    add('withdrawals', withdrawals.filter(isAcknowledged).length);
  }
  return counts;
}

/** Those before are left as they are: who waits at one for an answer is told when its server goes on or ends. */
const clientOf = ({ url, apiKey }: Engine, tenant: string): Client =>
  createClient({ url, apiKey, tenant, connections: CLIENTS + WORKERS });

function fail(): never {
  throw new Error('the clients stopped before the faults did');
}

/** @returns the id of each, all of whose instances a canary divides */
export async function storeSequences(
  client: Client,
  tenant: string,
  all: ReturnType<typeof shapes>,
): Promise<Record<ShapeName, string>> {
  const ids: [ShapeName, string][] = [];
  for (const [name, { blocks, members }] of Object.entries<Shape>(all)) {
    const body = { tenant_id: tenant, namespace: 'chaos', name, blocks, ...members };
    const reply = await client.post<{ id: string }>('/sequences', { ...body, version: 1 });
    const { id } = expectStatus(reply, 201);
    await startCanary(client, id, { ...body, version: 2 });
    ids.push([name as ShapeName, id]);
  }
  const { key, ...limit } = RATE_LIMIT;
  expectStatus(await client.put(`/rate-limits/${key}`, limit), 200);
  return Object.fromEntries(ids) as Record<ShapeName, string>;
}

async function injectFaults(
  target: Target,
  world: World,
  plan: RoundPlan,
): Promise<Pick<RoundSummary, 'restartMs' | 'serveAgainMs'>> {
  const random = createRandom(plan.seed, 2_000);
  const restartMs: number[] = [];
  const serveAgainMs: number[] = [];
  const faults = shuffled(random, [
    ...Array.from({ length: plan.cycles }, () => 'kill' as const),
    ...Array.from({ length: plan.pgCycles }, () => 'crash' as const),
    ...Array.from({ length: plan.hardships ?? 0 }, () => HARDSHIP_NAMES).flat(),
    ...Array.from({ length: plan.takeOvers ?? 0 }, () => 'take-over' as const),
  ]);
  for (const [done, fault] of faults.entries()) {
    const { acknowledged } = world.ledger.counts;
    await wait(random.integer(UP_MS.min, UP_MS.max));
    await promised(target, world, acknowledged + PROMISES_MIN);
    if (!target.engine.isRunning()) {
      throw new Error(`the server ended by itself\n${target.engine.output()}`);
    }
    if (fault === 'kill') restartMs.push(await killServer(target, world));
    else if (fault === 'crash') serveAgainMs.push(await crashPostgres(target, world, random));
    else if (fault === 'take-over') {
      await replaceOwner(target, world, random);
      serveAgainMs.push(await servesAgain(target, world, fault));
    } else {
      await suffer(fault, target, random);
      serveAgainMs.push(await servesAgain(target, world, fault));
    }
    plan.onFault?.(done + 1, faults.length);
  }
  return { restartMs, serveAgainMs };
}

/** Returns when the clients have been promised so much, or the server has ended by itself. */
export async function promised(
  { engine }: Loaded,
  { ledger }: World,
  count: number,
): Promise<void> {
  let last = { acknowledged: -1, at: 0 };
  while (ledger.counts.acknowledged < count && engine.isRunning()) {
    const { acknowledged } = ledger.counts;
    if (acknowledged !== last.acknowledged) last = { acknowledged, at: performance.now() };
    if (performance.now() - last.at > PROMISES_MS_MAX) {
      throw new Error(`promises nothing any more\n${engine.output()}`);
    }
    await wait(POLL_MS);
  }
}

function shuffled<T>(random: Random, values: readonly T[]): T[] {
  const left = [...values];
  return values.map(() => left.splice(random.integer(0, left.length - 1), 1)[0]!);
}

async function killServer(target: Target, { gate }: World): Promise<number> {
  const startedAt = performance.now();
  const exited = target.engine.kill('SIGKILL');
  // What is in flight was met by the kill; only what would be sent from now on waits.
  gate.close();
  await exited;
  target.engine = await target.engine.restart();
  gate.open();
  return performance.now() - startedAt;
}

/** The owner goes on where it stood still, with units under way, when another one has long been at work. */
async function replaceOwner(target: Target, world: World, random: Random): Promise<void> {
  const { engine: owner } = target;
  const standby = await owner.beside({ waitFor: 'listening' });
  target.engine = standby;
  try {
    owner.signal('SIGSTOP');
    await standby.waitReady(TAKE_OVER_MS_MAX);
    world.client = clientOf(standby, world.tenant);
    await wait(random.integer(UP_MS.min, UP_MS.max));
  } finally {
    owner.signal('SIGCONT');
  }
  const { code } = await owner.exited;
  if (code !== 1) world.ledger.complain(`an owner that was replaced ended with ${code}`);
}

/** The server must stay up, and serve again on its own. */
async function crashPostgres(target: Target, world: World, random: Random): Promise<number> {
  await target.postgres.crash();
  await wait(random.integer(PG_DOWN_MS.min, PG_DOWN_MS.max));
  await target.postgres.start();
  return servesAgain(target, world, 'Postgres came back');
}

/** @returns how long that took, in milliseconds */
async function servesAgain(target: Target, world: World, after: string): Promise<number> {
  const startedAt = performance.now();
  await target.engine.waitReady(SERVE_AGAIN_MS_MAX);
  const before = world.ledger.counts.acknowledged;
  while (world.ledger.counts.acknowledged === before) {
    if (performance.now() - startedAt > SERVE_AGAIN_MS_MAX) {
      throw new Error(`no write after: ${after}\n${target.engine.output()}`);
    }
    await wait(POLL_MS);
  }
  return performance.now() - startedAt;
}

/** One statement sees the rows as of one moment, whatever the engine does meanwhile. */
async function checkSlots({ pool }: Loaded, { ledger, tenant }: World): Promise<void> {
  for (const what of await readOverbooked(pool, tenant)) ledger.complain(`overbooked: ${what}`);
}

/** While there are faults: when the database is away, there is nothing to see. `settle` takes no failure. */
async function watchSlots(target: Loaded, world: World): Promise<void> {
  while (!world.isOver()) {
    await checkSlots(target, world).catch(() => undefined);
    await wait(WATCH_EVERY_MS);
  }
}

/** Waits until every instance has ended or waits; what has not by then is a violation. */
async function settle(target: Loaded, world: World): Promise<number> {
  const { pool } = target;
  const { ledger, tenant } = world;
  const startedAt = performance.now();
  while (true) {
    await checkSlots(target, world);
    const unsettled = await readUnsettled(pool, tenant);
    const ms = performance.now() - startedAt;
    if (unsettled.length === 0) return ms;
    if (ms > SETTLE_MS_MAX) {
      for (const what of unsettled) ledger.complain(`still not at rest: ${what}`);
      return ms;
    }
    await wait(POLL_MS);
  }
}

async function judge({ pool, sink }: Loaded, world: World): Promise<readonly string[]> {
  const { ledger, tenant, shapes: all } = world;
  // The sink has also heard from the rounds before.
  const sinkTokens = new Set([...sink.tokens].filter((token) => ledger.creations.has(token)));
  return [
    ...findViolations({
      tenant,
      ledger,
      rows: await readRows(pool, tenant),
      shapes: all,
      sinkTokens,
    }),
    ...(await findMisrouted(pool, tenant)),
  ];
}
