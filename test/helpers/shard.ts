/**
 * One real shard with the real writer on a real database, all in this thread, for tests that hand in
 * handlers of their own. It is asked as the front asks it. Timers of an hour or more wait for the
 * test, so that a deadline of a day can come at once.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { ContinuityRows } from '../../actors/continuity/rows.js';
import type { Reply } from '../../actors/runtime/protocol.js';
import { openLoads } from '../../actors/shard/loads.js';
import { Shard } from '../../actors/shard/shard.js';
import { STORE } from '../../actors/shard/store.js';
import { Writer, type WriterOptions } from '../../actors/writer/writer.js';
import type { Clock } from '../../src/base/clock.js';
import { realClock } from '../../src/base/real-clock.js';
import { createClient, createPool } from '../../src/db/pool.js';
import type { EffectHandler } from '../../src/handlers/registry.js';
import { Meter } from '../../src/metrics/meter.js';
import { eventually, type Json } from './api.js';
import { createTestDatabase } from './database.js';
import { NO_PUSHES, NO_WEBHOOKS, SHARD_SETTINGS } from './shard-settings.js';
import { prepareLanes } from './writer.js';

export interface LocalShard {
  readonly sql: pg.Client;
  /** Log lines at `warn` and above. */
  readonly lines: readonly Json[];
  /** In-process steps that hold a slot, as the shard counts them. */
  active(): number;
  /** @throws AssertionError when the shard answers with an error */
  ask(operation: string, target: string, body?: Json): Promise<Json>;
  /** Stores a sequence of these blocks; resolves with its id. */
  sequence(blocks: readonly Json[]): Promise<string>;
  create(sequenceId: string, more?: Json): Promise<string>;
  until(id: string, state: string): Promise<void>;
  /** Why the instance is in the dead letter queue; undefined when it is not. */
  reason(id: string): Promise<string | undefined>;
  /** As when the engine stops. */
  drain(): void;
  /** Lets all timers of an hour or more run out. */
  letHoursPass(): void;
  stop(): Promise<void>;
}

const TENANT = 'tenant';
const HOUR_MS = 3_600_000;
const APPLICATION = `test shard ${process.pid}`;

export async function startShard(
  handlers: ReadonlyMap<string, EffectHandler>,
): Promise<LocalShard> {
  const { sql, pool, newWriter, stop } = await startStorage(APPLICATION);
  const lines: Json[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line) as Json) });
  const { clock, letHoursPass } = stretchedClock();
  const replies = new Map<number, (reply: Reply) => void>();
  let requests = 0;
  const meter = new Meter();

  const writer = newWriter({
    lanes: 1,
    log,
    onAcks: (_shard, _incarnation, acks) => shard.receiveAcks(acks),
  });
  const shard = new Shard({
    settings: SHARD_SETTINGS,
    clock,
    random: Math.random,
    log,
    loader: openLoads(pool, SHARD_SETTINGS),
    handlers,
    continuityRows: new ContinuityRows(pool),
    pushSender: NO_PUSHES,
    webhookSender: NO_WEBHOOKS,
    meter,
    setImmediate: (fn) => void setImmediate(fn),
    ports: {
      toFront(posted) {
        for (const reply of posted) replies.get(reply.request)?.(reply);
      },
      toWriter: (units) => writer.submit(0, 0, units),
      toPeer: () => assert.fail('there is no peer'),
      drainPeers: () => [],
    },
  });
  await writer.start();
  await shard.start();

  const ask: LocalShard['ask'] = async (operation, target, body) => {
    requests += 1;
    const id = requests;
    const text = body === undefined ? '' : JSON.stringify(body);
    const request = { id, operation, tenant: TENANT, target, body: text };
    const reply = await new Promise<Reply>((resolve) => {
      replies.set(id, resolve);
      shard.receiveRequests({ requests: [request], aborted: [] });
    });
    replies.delete(id);
    if ('error' in reply) assert.fail(`${operation}: ${JSON.stringify(reply.error)}`);
    return (reply.body === '' ? {} : JSON.parse(reply.body)) as Json;
  };

  return {
    ...requestsOf(TENANT, ask),
    sql,
    lines,
    active: () => meter.gauge('engine_active_tasks'),
    ask,
    async reason(id) {
      const { rows } = await sql.query('select reason from dead_letters where instance_id = $1', [
        id,
      ]);
      return rows[0]?.reason as string | undefined;
    },
    drain: () => shard.drain(),
    letHoursPass,
    async stop() {
      shard.stop();
      await writer.stop();
      await stop();
    },
  };
}

/** What local shards are made on: a database of their own, a pool to read with, and its writers. */
export async function startStorage(applicationName: string) {
  const database = await createTestDatabase();
  const { connectionString } = database;
  const sql = new pg.Client({ connectionString });
  await sql.connect();
  await prepareLanes(sql);
  const pool = createPool({
    connectionString,
    applicationName: `${applicationName} reads`,
    connectionsMax: 3,
    onError: () => undefined,
  });
  return {
    sql,
    pool,
    newWriter: (own: Pick<WriterOptions, 'lanes' | 'log' | 'onAcks'>) =>
      new Writer({
        store: STORE,
        connect: () => createClient({ connectionString, applicationName, statementTimeoutMs: 0 }),
        applicationName,
        epoch: 1,
        clock: realClock,
        onFenced: () => assert.fail('fenced'),
        onDatabase: () => undefined,
        ...own,
      }),
    stop: async () => {
      await pool.end();
      await sql.end();
      await database.drop();
    },
  };
}

/** Requests that most tests of local shards make. */
export function requestsOf(tenant_id: string, ask: LocalShard['ask']) {
  const place = { tenant_id, namespace: 'test' };
  return {
    async sequence(blocks: readonly Json[]) {
      const body = { ...place, name: randomUUID(), version: 1, blocks };
      return String((await ask('sequences.create', '', body)).id);
    },
    /** @param target an id, to whose shard that of the instance will lead, too */
    async create(sequence_id: string, more: Json = {}, target = '') {
      return String((await ask('instances.create', target, { ...place, sequence_id, ...more })).id);
    },
    until: (id: string, state: string) =>
      eventually(async () => assert.equal((await ask('instances.get', id)).state, state)),
  };
}

function stretchedClock(): { readonly clock: Clock; readonly letHoursPass: () => void } {
  const waiting = new Map<object, () => void>();
  const clock: Clock = {
    ...realClock,
    setTimeout(fn, ms) {
      if (ms < HOUR_MS) return realClock.setTimeout(fn, ms);
      const handle = {};
      waiting.set(handle, fn);
      return handle;
    },
    clearTimeout(handle) {
      if (!waiting.delete(handle as object)) realClock.clearTimeout(handle);
    },
  };
  const letHoursPass = () => {
    for (const [handle, fn] of waiting) {
      waiting.delete(handle);
      fn();
    }
  };
  return { clock, letHoursPass };
}
