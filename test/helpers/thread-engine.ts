/**
 * The real supervisor with real threads on a real database, in the process of the test, so that its
 * threads can be ended from outside, as an out-of-memory error would end them. There is no HTTP: shards
 * are asked as the front asks them.
 */

import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { ShardClient } from '../../actors/shard/client.js';
import { Supervisor, writerName } from '../../actors/shard/supervisor.js';
import { EngineError } from '../../src/base/errors.js';
import { createLogger } from '../../src/base/log.js';
import { realClock } from '../../src/base/real-clock.js';
import { acquireLease } from '../../src/db/lease.js';
import { createPool } from '../../src/db/pool.js';
import { createReads, READ_POOL_OPTIONS } from '../../src/db/reads.js';
import type { FrontDeps } from '../../src/http/operation.js';
import { readConfig } from '../../src/server/config.js';
import type { Json } from './api.js';
import { createTestDatabase } from './database.js';
import { leaseOptions } from './writer.js';

export interface ThreadEngine {
  readonly connectionString: string;
  readonly sql: pg.Client;
  readonly client: ShardClient;
  readonly supervisor: Supervisor;
  readonly clockOffsetMs: number;
  /** As the tenant of the options; `target` is the id in the path. Rejects with the EngineError. */
  ask<T>(operation: string, target: string, body?: unknown): Promise<T>;
  /** Stores version 1 of a sequence; resolves with its id. */
  store(name: string, blocks: readonly unknown[]): Promise<string>;
  /** The body of a creation that is complete. */
  creation(sequence: string, idempotencyKey?: string): Json;
  /** What operations of the front read with, over a pool that ends with the engine. */
  front(): FrontDeps;
  stop(): Promise<void>;
}

export interface ThreadEngineOptions {
  readonly shards: number;
  readonly lanes: number;
  /** Whom `ask` asks for; names the engine, too. */
  readonly tenant: string;
}

export async function startThreadEngine(options: ThreadEngineOptions): Promise<ThreadEngine> {
  const { shards, lanes, tenant } = options;
  const owner = `${tenant}-test`;
  const log = createLogger('silent', 'test');
  const database = await createTestDatabase();
  const { connectionString } = database;
  const sql = new pg.Client({ connectionString });
  await sql.connect();
  const more = { applicationName: writerName(owner), laneCount: 4 };
  const lease = await acquireLease(leaseOptions(connectionString, owner, more));
  const client = new ShardClient({
    shards,
    clock: realClock,
    setImmediate: (fn) => setImmediate(fn),
  });
  const supervisor = new Supervisor({
    config: readConfig({ ENGINE_SHARDS: String(shards) }, ['--insecure-auth']),
    client,
    connectionString,
    continuityKeys: { master: undefined, former: undefined, trusted: '' },
    owner,
    log,
    onDatabase: () => undefined,
    onFenced: () => assert.fail('nobody else owns the database'),
    onComplete: () => undefined,
    onHopeless: (reason) => assert.fail(reason),
  });
  const { epoch, clockOffsetMs } = lease;
  await supervisor.start({ epoch, lanes, clockOffsetMs });
  const ask = async <T>(operation: string, target: string, body?: unknown) => {
    const anyShard = operation.startsWith('sequences') ? 0 : client.anyShard();
    const shard = target === '' ? anyShard : client.shardOf(target);
    const text = body === undefined ? '' : JSON.stringify(body);
    const reply = await client.ask(shard, operation, tenant, target, text);
    return (reply.body === '' ? undefined : JSON.parse(reply.body)) as T;
  };
  const place = { tenant_id: tenant, namespace: 'n' };
  const pools: pg.Pool[] = [];
  return {
    connectionString,
    sql,
    client,
    supervisor,
    clockOffsetMs,
    ask,
    async store(name, blocks) {
      const body = { ...place, name, version: 1, blocks };
      return (await ask<{ id: string }>('sequences.create', '', body)).id;
    },
    creation: (sequence_id, idempotency_key) => ({
      ...place,
      sequence_id,
      ...(idempotency_key === undefined ? {} : { idempotency_key }),
    }),
    front() {
      const pool = createPool({
        connectionString,
        applicationName: `${owner} reads`,
        ...READ_POOL_OPTIONS,
        onError: () => undefined,
      });
      pools.push(pool);
      return {
        reads: createReads(pool),
        now: Date.now,
        keyring: undefined,
        changeMany: () => assert.fail('nothing is changed'),
        repeating: () => assert.fail('nothing is counted'),
        orphans: () => assert.fail('nothing is retried'),
        admitTenant: () => undefined,
      };
    },
    async stop() {
      await Promise.all(pools.map((pool) => pool.end()));
      await supervisor.stop();
      client.stop();
      await lease.release();
      await sql.end();
      await database.drop();
    },
  };
}

const PATIENCE_MS = 300_000;
const PAUSE_MS = 10;

/** Asks again for as long as the answer is 503: what is repeated changes nothing twice. */
export async function persist<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const mayRetry = error instanceof EngineError && error.status === 503;
      if (!mayRetry || performance.now() > deadline) throw error;
      await wait(PAUSE_MS);
    }
  }
}
