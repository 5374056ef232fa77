/**
 * The proof that an engine outlives the server of its database: three Postgres under Patroni with synchronous
 * replication, whose primary is killed under load. It takes minutes, and programs that not every machine has.
 * The seed is printed: CHAOS_SEED repeats its choices.
 */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { isDeep } from '../helpers/depth.js';
import { type Engine, startEngine } from '../helpers/engine.js';
import {
  lacksPatroni,
  type MemberName,
  type PatroniCluster,
  startPatroni,
} from '../helpers/patroni.js';
import type { World } from './clients.js';
import { LOADED_ENV, type LoadSummary, promised, underLoad } from './run.js';
import { type Sink, startSink } from './sink.js';

const FAILOVERS = 2;
/** Served before each of them. */
const PROMISES = 300;
const POLL_MS = 20;
/** Far beyond what Patroni and the engine need. */
const PATIENCE_MS = 600_000;

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

interface Failover {
  /** From the kill until a member says that it is the primary. */
  readonly promotedMs: number;
  /** From then until something is acknowledged. */
  readonly servesMs: number;
}

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

/** Kills the primary, and brings it back as a replica once another one serves. */
async function failOver(engine: Engine, world: World): Promise<Failover> {
  const { counts } = world.ledger;
  const killed = await cluster.untilWhole(2);
  await promised({ engine, sink, pool }, world, counts.acknowledged + PROMISES);
  const killedAt = performance.now();
  cluster.kill(killed);
  await until(() => primaryBeside(killed));
  const promotedAt = performance.now();
  const before = counts.acknowledged;
  await until(() => {
    if (!engine.isRunning()) throw new Error(`the engine has ended\n${engine.output()}`);
    return counts.acknowledged > before ? true : undefined;
  });
  const servesAt = performance.now();
  cluster.start(killed);
  return { promotedMs: promotedAt - killedAt, servesMs: servesAt - promotedAt };
}

const WAYS: readonly (readonly [way: string, urlOf: () => string])[] = [
  ['through HAProxy', () => cluster.proxyUrl],
  ['by the names of all hosts', () => cluster.hostsUrl],
];

function expectKept({ violations, requests }: LoadSummary): void {
  assert.deepEqual(violations, [], `seed ${seed}`);
  assert.ok(requests.unknown > 0, 'no answer was lost, which proves nothing');
}

for (const [way, urlOf] of WAYS) {
  test(`primaries that are killed under load, reached ${way}, lose nothing, and the engine goes on without a restart`, {
    skip,
  }, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const engine = await startEngine({ databaseUrl: urlOf(), env: LOADED_ENV });
    const standby = await engine.beside({ waitFor: 'listening' });
    try {
      const tenant = `failover-${way.replaceAll(' ', '-')}`;
      const summary = await underLoad({ engine, sink, pool }, tenant, seed, async (world) => {
        const failovers: Failover[] = [];
        for (let i = 0; i < FAILOVERS; i += 1) failovers.push(await failOver(engine, world));
        return { failovers };
      });
      for (const { promotedMs, servesMs } of summary.failovers) {
        t.diagnostic(
          `promoted after ${Math.round(promotedMs)} ms, served ${Math.round(servesMs)} ms later`,
        );
      }
      t.diagnostic(`requests: ${JSON.stringify(summary.requests)}`);
      t.diagnostic(
        engine
          .logs()
          .filter(({ msg }) => msg !== undefined)
          .map(({ level, msg }) => `${level} ${msg}`)
          .slice(-60)
          .join('\n'),
      );
      t.diagnostic(
        standby
          .logs()
          .filter(({ msg }) => msg !== undefined)
          .map(({ level, msg }) => `${level} ${msg}`)
          .slice(-60)
          .join('\n'),
      );
      expectKept(summary);
      assert.ok(engine.isRunning() && standby.isRunning());
      await engine.waitReady();
    } finally {
      await standby.stop();
      await engine.stop();
    }
  });
}
