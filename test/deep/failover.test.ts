/**
 * The proof that an engine outlives the server of its database: three Postgres under Patroni with synchronous
 * replication, whose primary is lost under load. It takes minutes, and programs that not every machine has.
 * The seed is printed: CHAOS_SEED repeats its choices, CHAOS_FAILOVERS says how many there are of each kind.
 */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { World } from '../chaos/clients.js';
import { LOADED_ENV, promised, underLoad } from '../chaos/run.js';
import { type Sink, startSink } from '../chaos/sink.js';
import { createClient } from '../helpers/client.js';
import { isDeep } from '../helpers/depth.js';
import { type Engine, startEngine } from '../helpers/engine.js';
import type { MemberName, PatroniCluster } from '../helpers/patroni.js';
import { lacksPatroni, startPatroni } from '../helpers/patroni.js';

const FAILOVERS = Number(process.env.CHAOS_FAILOVERS ?? 2);
/** Served before each of them. */
const PROMISES = 300;
const POLL_MS = 20;
/** Far beyond what Patroni and the engine need. */
const PATIENCE_MS = 600_000;
/** The promise of the engine, after the database takes commits again. Only the deep form runs, with nothing beside it. */
const BEHIND_MS_MAX = 5_000;

const seed = Number(process.env.CHAOS_SEED ?? randomInt(0x1_0000_0000));
const skip = isDeep ? lacksPatroni() : 'npm run test:deep';

let cluster: PatroniCluster;
let sink: Sink;
let pool: pg.Pool;

before(async () => {
  if (skip !== false) return;
  cluster = await startPatroni();
  sink = await startSink();
  pool = new pg.Pool({ connectionString: cluster.proxyUrl, max: 2 });
  // They die with each primary.
  pool.on('error', () => undefined);
});

after(async () => {
  sink?.stop();
  await pool?.end();
  await cluster?.stop();
});

async function until<T>(look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`it did not come\n${cluster.output()}`);
    await wait(POLL_MS);
  }
}

async function primaryBeside(old: MemberName): Promise<MemberName | undefined> {
  for (const [name, { role }] of await cluster.roles()) {
    if (role === 'master' && name !== old) return name;
  }
  return undefined;
}

/** One commit, as any other client makes it; false: it could not. */
async function commits(connectionString: string, timeoutMs = 0): Promise<boolean> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: 1_000,
    query_timeout: timeoutMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('create schema if not exists probe');
    await client.query('create table if not exists probe.commits (at timestamptz)');
    await client.query('insert into probe.commits values (now())');
    return true;
  } catch {
    return false;
  } finally {
    client.connection.stream.destroy();
  }
}

/** Milliseconds from the loss of the primary. */
interface Failover {
  /** A member says that it is the primary. */
  readonly promotedMs: number;
  /** It takes the commit of somebody else: what Patroni and Postgres needed. */
  readonly committedMs: number;
  /** The engine acknowledges something. */
  readonly servedMs: number;
}

/** Loses the primary, and brings it back as a replica once another one serves. */
async function failOver(
  engine: Engine,
  world: World,
  lose: (primary: MemberName) => void,
): Promise<Failover> {
  const { counts } = world.ledger;
  const lost = await cluster.untilWhole(2);
  await promised({ engine, sink, pool }, world, counts.acknowledged + PROMISES);
  const startedAt = performance.now();
  const passedMs = () => performance.now() - startedAt;
  lose(lost);
  const primary = await until(() => primaryBeside(lost));
  const promotedMs = passedMs();
  const before = counts.acknowledged;
  const isWritten = async () => (await commits(cluster.urlOf(primary))) || undefined;
  const committed = until(isWritten).then(passedMs);
  await until(() => {
    if (!engine.isRunning()) throw new Error(`the engine has ended\n${engine.output()}`);
    return counts.acknowledged > before || undefined;
  });
  const servedMs = passedMs();
  const committedMs = await committed;
  // One that still runs believes that it is the primary, and has nobody to confirm a commit.
  assert.equal(await commits(cluster.urlOf(lost), 500), false);
  cluster.start(lost);
  return { promotedMs, committedMs, servedMs };
}

/** Owner and standby under load, while the primary is lost again and again. */
async function lose(
  t: TestContext,
  name: string,
  databaseUrl: string,
  how: (primary: MemberName) => void,
): Promise<void> {
  t.diagnostic(`seed ${seed}`);
  const engine = await startEngine({ databaseUrl, env: LOADED_ENV });
  const standby = await engine.beside({ waitFor: 'listening' });
  try {
    const summary = await underLoad({ engine, sink, pool }, name, seed, async (world) => {
      const failovers: Failover[] = [];
      while (failovers.length < FAILOVERS) failovers.push(await failOver(engine, world, how));
      return { failovers };
    });
    for (const { promotedMs, committedMs, servedMs } of summary.failovers) {
      const [promoted, committed, served] = [promotedMs, committedMs, servedMs].map(Math.round);
      t.diagnostic(`promoted ${promoted} ms, committed ${committed} ms, served ${served} ms after`);
      assert.ok(servedMs - committedMs < BEHIND_MS_MAX);
    }
    t.diagnostic(`requests: ${JSON.stringify(summary.requests)}`);
    assert.deepEqual(summary.violations, [], `seed ${seed}`);
    assert.ok(summary.requests.unknown > 0, 'no answer was lost, which proves nothing');
    assert.ok(engine.isRunning() && standby.isRunning());
    await engine.waitReady();
  } finally {
    await standby.stop();
    await engine.stop();
  }
}

for (const [title, name, how] of [
  [
    'primaries that are killed under load lose nothing, and the engine goes on without a restart',
    'killed',
    (primary) => cluster.kill(primary),
  ],
  [
    'the same where the engine finds the primary by itself',
    'hosts',
    (primary) => cluster.kill(primary),
  ],
  [
    'a primary that goes on when another one has been promoted acknowledges nothing',
    'split',
    (primary) => cluster.killPatroni(primary),
  ],
] as readonly [string, string, (primary: MemberName) => void][]) {
  test(title, { skip }, (t) =>
    lose(t, name, name === 'hosts' ? cluster.hostsUrl : cluster.proxyUrl, how),
  );
}

/** Why it is not ready; undefined when it is. */
async function reasonOf({ url }: Engine): Promise<string | undefined> {
  const reply = await fetch(`${url}/health/ready`);
  const { reason } = (await reply.json()) as { readonly reason?: { readonly kind: string } };
  return reply.ok ? undefined : (reason?.kind ?? 'none');
}

for (const [what, kind, begin, end] of [
  [
    'no replica is there to confirm a commit',
    'replica',
    (primary: MemberName) => {
      const replicas = cluster.members.filter((name) => name !== primary);
      for (const name of replicas) cluster.kill(name);
      return replicas;
    },
    (gone: readonly MemberName[]) => {
      for (const name of gone) cluster.start(name);
    },
  ],
  [
    'etcd is away, and nobody may be the primary',
    'unreachable',
    () => {
      cluster.signalEtcd('SIGSTOP');
      return [];
    },
    () => cluster.signalEtcd('SIGCONT'),
  ],
] as const) {
  test(`while ${what} the engine waits, says so, and goes on in the same process`, {
    skip,
  }, async () => {
    const primary = await cluster.untilWhole(2);
    const databaseUrl = cluster.proxyUrl;
    const env = { ...LOADED_ENV, ENGINE_DB_SYNCHRONOUS: 'required' };
    const engine = await startEngine({ databaseUrl, env });
    const { url, apiKey } = engine;
    const client = createClient({ url, apiKey, tenant: kind, timeoutMs: PATIENCE_MS });
    try {
      const names = { tenant_id: kind, namespace: 'n' };
      const blocks = [{ type: 'step', id: 'a', handler: 'noop' }];
      const sequence = { ...names, name: 'noop', version: 1, blocks };
      const made = await client.post<{ id: string }>('/sequences', sequence);
      const create = () => client.post('/instances', { ...names, sequence_id: made.body.id });
      assert.equal((await create()).status, 201);
      const gone = begin(primary);
      const asked = create();
      await until(async () => (await reasonOf(engine)) === kind || undefined);
      end(gone);
      await until(async () => (await reasonOf(engine)) === undefined || undefined);
      assert.ok([201, 503].includes((await asked).status));
      assert.equal((await create()).status, 201);
      assert.ok(engine.isRunning());
    } finally {
      await client.close();
      await engine.stop();
    }
  });
}
