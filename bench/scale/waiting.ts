/**
 * Memory, the start after a SIGKILL and new instances of a server with very many that wait, half of them for an event
 * and half for a time months ahead, beside an empty server on the same Postgres.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { eventKeyId } from '../../src/base/ids.js';
import { createBody, NAMESPACE, NOOP_SEQUENCE, ORDER, TENANT } from '../base/fixtures.js';
import { type Marks, RowPattern } from '../base/row-pattern.js';
import { BenchServer } from '../base/server.js';
import type { Bench, Job } from '../job.js';
import { restarted } from './restarted.js';

const INSTANCES = 1_000_000;
const EVENT_NAME = 'payment.settled';
/** The key in the pattern; copy `n` has its number in its place. */
const PATTERN_KEY = 'order-of-the-pattern';
const FAR_MS = 90 * 24 * 60 * 60 * 1_000;
const PATIENCE_MS = 60_000;
const LOOK_MS = 50;
const FULL = 'many that wait';

const STEPS: Readonly<Record<string, object>> = {
  event: { handler: 'wait_for_event', params: { name: EVENT_NAME, key: '{{ data.key }}' } },
  timer: { handler: 'sleep', params: { duration_ms: FAR_MS } },
};

export const waitingJob: Job = {
  part: 'scale',
  name: 'waiting',
  asks: 'What do a million waiting instances cost a start, the memory and new instances?',
  isWarmedUp: false,
  targets: [
    { contender: FULL, column: 'ready ms', atMost: 10_000 },
    { contender: FULL, column: 'resident MiB', isRatio: true, atMost: 1.5 },
    { contender: FULL, column: 'new p99 ms', isRatio: true, atMost: 2 },
  ],
  prepare: async (bench) => {
    const count = bench.options.instances ?? INSTANCES;
    const empty = await BenchServer.open(bench, 'waiting_empty');
    const full = await BenchServer.open(bench, 'waiting_full');
    const patterns: RowPattern[] = [];
    for (const [name, step] of Object.entries(STEPS))
      patterns.push(await patternOf(full, name, step));
    await full.kill();
    for (const pattern of patterns) {
      await pattern.copy(full.db, 0, Math.floor(count / patterns.length));
    }
    await full.db.query('vacuum analyze');
    await full.start();
    return {
      contenders: [
        { name: 'empty', turn: await newInstances(bench, empty, 0) },
        { name: FULL, turn: await newInstances(bench, full, count) },
      ],
      check: () => expectLive(full),
      close: async () => {
        await full.stop();
        await empty.stop();
      },
    };
  },
};

async function newInstances({ generator }: Bench, server: BenchServer, waiting: number) {
  const create = await server.createRequest(NOOP_SEQUENCE);
  return async (ms: number) => {
    const figures = await restarted(server);
    const { port } = server;
    await generator.run({ kind: 'complete', port, create, ms: ms / 2 });
    const { latency } = await generator.run({ kind: 'complete', port, create, ms });
    const { p50, p99 } = latency.request!;
    return { waiting, ...figures, 'new p50 ms': p50, 'new p99 ms': p99 };
  };
}

/** One instance that was created through the server, and waits. */
async function patternOf(server: BenchServer, name: string, step: object): Promise<RowPattern> {
  const blocks = [{ type: 'step', id: 'wait', ...step }];
  const sequence = { namespace: NAMESPACE, name: `waiting-${name}`, version: 1, blocks };
  const body = createBody(await server.store(sequence));
  const context = { data: { ...ORDER, key: PATTERN_KEY } };
  const { id } = await server.ask<{ id: string }>(201, 'POST', '/instances', { ...body, context });
  await until(async () => {
    const { rowCount } = await server.db.query(
      `select from event_waits where instance_id = $1::uuid union all
       select from timers where instance_id = $1::uuid and fire_at is not null`,
      [id],
    );
    return rowCount !== 0;
  });
  const marks: Marks = {
    [PATTERN_KEY]: `'order-' || n`,
    [eventKeyId(TENANT, EVENT_NAME, PATTERN_KEY)]: KEY_OF_COPY,
  };
  return RowPattern.of(server.db, id, marks);
}

/** What `eventKeyId` gives for the key of copy `n`, in SQL. */
const KEY_OF_COPY = (() => {
  const named = `${Buffer.byteLength(EVENT_NAME)}:${EVENT_NAME}`;
  const text = `events:${Buffer.byteLength(TENANT)}:${TENANT}${named}=order-`;
  const hex = `encode(sha256(convert_to('${text}' || n, 'UTF8')), 'hex')`;
  const variant = `translate(substr(h, 17, 1), '0123456789abcdef', '89ab89ab89ab89ab')`;
  return (
    `(select (substr(h, 1, 12) || '8' || substr(h, 14, 3) || ${variant} || ` +
    `substr(h, 18, 15))::uuid::text from (select ${hex} as h) s)`
  );
})();

/** An event completes a copy: the copies are real instances. */
async function expectLive(server: BenchServer): Promise<void> {
  const correlation_key = 'order-0';
  const { rows } = await server.db.query<{ instance_id: string }>(
    'select instance_id from event_waits where key_id = $1::uuid',
    [eventKeyId(TENANT, EVENT_NAME, correlation_key)],
  );
  const event = { tenant_id: TENANT, event_name: EVENT_NAME, correlation_key, payload: {} };
  await server.ask(201, 'POST', '/events', { ...event, producer_event_id: 'settled' });
  await until(async () => {
    const path = `/instances/${rows[0]?.instance_id}`;
    return (await server.ask<{ state: string }>(200, 'GET', path)).state === 'completed';
  });
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (!(await isDone())) {
    if (performance.now() > giveUpAt) throw new Error('an instance did not become what it must be');
    await pause(LOOK_MS);
  }
}
