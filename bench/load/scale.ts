/**
 * Memory, the start after a SIGKILL and new instances of a server with a million instances in its database, beside an
 * empty one: a third each waits for an event, for a time months ahead, and for a worker.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { eventKeyId } from '../../src/base/ids.js';
import {
  createBody,
  EVENT_NAME,
  EXTERNAL_SEQUENCE,
  NOOP_SEQUENCE,
  ORDER,
  sequenceBody,
  TENANT,
} from '../base/fixtures.js';
import { readResidentMib } from '../base/process-cpu.js';
import { copyInstance, type Marks } from '../base/row-pattern.js';
import { BenchServer } from '../base/server.js';
import type { Bench, Contender, Job } from '../job.js';

const INSTANCES = 1_000_000;
/** The key in the pattern; copy `n` has its number in its place. */
const PATTERN_KEY = 'order-of-the-pattern';
const FAR_MS = 90 * 24 * 60 * 60 * 1_000;
/** Until what a pattern waits for is in its tables, and until memory of a new process has settled. */
const SETTLE_MS = 3_000;
const PATIENCE_MS = 60_000;
const LOOK_MS = 50;
const FULL = 'full';

const event = { name: EVENT_NAME, key: '{{ data.key }}' };
const WAITING: readonly object[] = [
  waits('scale-event', { handler: 'wait_for_event', params: event }),
  waits('scale-timer', { handler: 'sleep', params: { duration_ms: FAR_MS } }),
  EXTERNAL_SEQUENCE,
];

export const scaleJob: Job = {
  part: 'load',
  name: 'scale',
  asks: 'What do a million instances that wait cost a start, the memory and new instances?',
  isWarmedUp: false,
  targets: [
    { contender: FULL, column: 'ready ms', atMost: 10_000 },
    { contender: FULL, column: 'resident MiB', isRatio: true, atMost: 1.5 },
    { contender: FULL, column: 'new p99 ms', isRatio: true, atMost: 2 },
  ],
  prepare: async (bench) => {
    const count = bench.options.instances ?? INSTANCES;
    const empty = await BenchServer.open(bench, 'scale_empty');
    const full = await BenchServer.open(bench, 'scale_full');
    await fill(full, Math.floor(count / WAITING.length));
    return {
      contenders: [
        await contender(bench, 'empty', empty, 0),
        await contender(bench, FULL, full, count),
      ],
      check: () => expectLive(full),
      close: async () => {
        await full.stop();
        await empty.stop();
      },
    };
  },
};

async function contender(
  { generator }: Bench,
  name: string,
  server: BenchServer,
  instances: number,
): Promise<Contender> {
  const create = await server.createRequest(NOOP_SEQUENCE);
  const turn = async (ms: number) => {
    await server.kill();
    const readyMs = await server.start();
    await pause(SETTLE_MS);
    const resident = readResidentMib(server.pid);
    const load = { kind: 'complete', port: server.port, create } as const;
    await generator.run({ ...load, ms: ms / 2 });
    const { p50, p99 } = (await generator.run({ ...load, ms })).latency.request!;
    const figures = { 'ready ms': readyMs, 'resident MiB': resident };
    return { instances, ...figures, 'new p50 ms': p50, 'new p99 ms': p99 };
  };
  return { name, turn };
}

/** One instance of each kind is created through the server; its rows are copied while that is away. */
async function fill(server: BenchServer, each: number): Promise<void> {
  const ids: string[] = [];
  for (const sequence of WAITING) {
    const body = createBody(await server.store(sequence));
    const context = { data: { ...ORDER, key: PATTERN_KEY } };
    const created = await server.ask<{ id: string }>(201, 'POST', '/instances', {
      ...body,
      context,
    });
    ids.push(created.id);
  }
  await pause(SETTLE_MS);
  await server.kill();
  const marks: Marks = {
    [PATTERN_KEY]: `'order-' || n`,
    [eventKeyId(TENANT, EVENT_NAME, PATTERN_KEY)]: KEY_OF_COPY,
  };
  for (const id of ids) await copyInstance(server.db, id, marks, each);
  await server.db.query('vacuum analyze');
  await server.start();
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

/** @throws Error when an event does not complete a copy, which then is no real instance */
async function expectLive(server: BenchServer): Promise<void> {
  const correlation_key = 'order-0';
  const { rows } = await server.db.query<{ instance_id: string }>(
    'select instance_id from event_waits where key_id = $1::uuid',
    [eventKeyId(TENANT, EVENT_NAME, correlation_key)],
  );
  const sent = { tenant_id: TENANT, event_name: EVENT_NAME, correlation_key, payload: {} };
  await server.ask(201, 'POST', '/events', { ...sent, producer_event_id: 'settled' });
  const path = `/instances/${rows[0]?.instance_id}`;
  for (const giveUpAt = performance.now() + PATIENCE_MS; ; await pause(LOOK_MS)) {
    const { state } = await server.ask<{ state: string }>(200, 'GET', path);
    if (state === 'completed') return;
    if (performance.now() > giveUpAt) throw new Error(`a copy is ${state} behind its event`);
  }
}

function waits(name: string, step: object): object {
  return sequenceBody(name, [{ type: 'step', id: 'wait', ...step }]);
}
