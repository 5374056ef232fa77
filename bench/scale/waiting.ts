/**
 * Instances that wait, half of them for an event and half for a time that lies months ahead, on one server,
 * beside an empty server on the same Postgres: memory, the start after a SIGKILL, how long a new instance
 * takes, and how late a herd of timers fires.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { eventKeyId } from '../../src/base/ids.js';
import { createBody, NAMESPACE, NOOP_SEQUENCE, ORDER, TENANT } from '../fixtures.js';
import { herdBatches, latenessOf } from '../load/herd.js';
import { postRequest } from '../load/requests.js';
import type { LoadContext } from '../load/run.js';
import type { Latency } from '../load/samples.js';
import type { BenchOptions } from '../options.js';
import { median, round } from '../report.js';
import { stepsTo } from './growth.js';
import { RestartedServer } from './restarted.js';
import { RowPattern } from './row-pattern.js';

const EVENT_NAME = 'payment.settled';
/** The key in the pattern; copy `n` has its number in its place. */
const PATTERN_KEY = 'order-of-the-pattern';
const FAR_MS = 90 * 24 * 60 * 60 * 1_000;

const WAITING: Readonly<Record<'event' | 'timer', object>> = {
  event: {
    handler: 'wait_for_event',
    params: { name: EVENT_NAME, key: '{{ data.key }}' },
  },
  timer: { handler: 'sleep', params: { duration_ms: FAR_MS } },
};

/** Instances created and completed for each second of `--seconds`, per turn. */
const PER_SECOND = 200;
/** Creating those that fall due takes about this long each, on two busy cores. */
const HERD_LEAD_MS_EACH = 1.2;
const HERD_LEAD_MS_MIN = 2_000;
const HERD_TRIES = 3;
const BATCHES_AT_ONCE = 4;
const PATIENCE_MS = 60_000;

export interface WaitingRow {
  /** 0: the empty server. */
  readonly waiting: number;
  readonly readyMs: number;
  readonly residentMib: number;
  /** Beside the empty server. */
  readonly bytesEach: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly emptyP50Ms: number;
  readonly emptyP99Ms: number;
  /** The median of those of the turns. */
  readonly p99Ratio: number;
  readonly herd: number;
  readonly latenessP50Ms: number;
  readonly latenessP99Ms: number;
  readonly latenessMaxMs: number;
}

export async function growWaiting(
  { postgres, generator }: LoadContext,
  { scaleTo, herd, seconds, rounds, shards }: BenchOptions,
): Promise<readonly WaitingRow[]> {
  const empty = await RestartedServer.open(postgres, 'scale_empty', shards);
  const full = await RestartedServer.open(postgres, 'scale_waiting', shards);
  const count = Math.ceil(seconds * PER_SECOND);
  const create = new Map<RestartedServer, string>();
  const complete = (server: RestartedServer, instances: number) =>
    generator.run({
      kind: 'complete',
      port: server.port,
      create: create.get(server)!,
      count: instances,
    });
  const inTurns = async () => {
    for (const server of [empty, full]) await complete(server, Math.ceil(count / 2));
    await postgres.checkpoint();
    const turns: { p50: number; p99: number; emptyP50: number; emptyP99: number }[] = [];
    for (let turn = 0; turn < rounds; turn += 1) {
      const beside = (await complete(empty, count)).latency.total!;
      const { p50, p99 } = (await complete(full, count)).latency.total!;
      turns.push({ p50, p99, emptyP50: beside.p50, emptyP99: beside.p99 });
    }
    return {
      p50Ms: median(turns.map(({ p50 }) => p50)),
      p99Ms: median(turns.map(({ p99 }) => p99)),
      emptyP50Ms: median(turns.map(({ emptyP50 }) => emptyP50)),
      emptyP99Ms: median(turns.map(({ emptyP99 }) => emptyP99)),
      p99Ratio: median(turns.map(({ p99, emptyP99 }) => p99 / emptyP99)),
    };
  };
  const runHerd = async (server: RestartedServer, version: number) => {
    const run = (port: number, requests: readonly string[]) =>
      generator.run({
        kind: 'loop',
        port,
        connections: BATCHES_AT_ONCE,
        requests,
        status: 201,
        limit: { replies: requests.length },
      });
    const lateness = await herdLateness(server, herd, version, run);
    return {
      herd,
      latenessP50Ms: lateness.p50,
      latenessP99Ms: lateness.p99,
      latenessMaxMs: lateness.max,
    };
  };
  try {
    for (const server of [empty, full]) {
      const { id } = await server.ask<{ id: string }>(201, 'POST', '/sequences', NOOP_SEQUENCE);
      create.set(server, postRequest('/instances', JSON.stringify(createBody(id))));
    }
    const patterns = await waitingPatterns(full);
    const start = async (server: RestartedServer) => {
      await server.kill();
      await postgres.checkpoint();
      const readyMs = await server.start();
      return { readyMs, resident: await server.residentBytes() };
    };
    const alone = await start(empty);
    const rows: WaitingRow[] = [];
    /** Of each pattern. */
    let made = 0;
    for (const [step, waiting] of stepsTo(scaleTo).entries()) {
      for (const pattern of patterns) {
        await pattern.copy(full.db, made, Math.floor(waiting / patterns.length) - made);
      }
      made = Math.floor(waiting / patterns.length);
      await full.db.query('vacuum analyze');
      const { readyMs, resident } = await start(full);
      rows.push({
        waiting,
        readyMs,
        residentMib: resident / 2 ** 20,
        bytesEach: (resident - alone.resident) / waiting,
        ...(await inTurns()),
        ...(await runHerd(full, step + 1)),
      });
      await expectLive(full, step);
    }
    const [first] = rows;
    const beside = {
      waiting: 0,
      readyMs: alone.readyMs,
      residentMib: alone.resident / 2 ** 20,
      bytesEach: 0,
      p50Ms: first!.emptyP50Ms,
      p99Ms: first!.emptyP99Ms,
      emptyP50Ms: first!.emptyP50Ms,
      emptyP99Ms: first!.emptyP99Ms,
      p99Ratio: 1,
      ...(await runHerd(empty, 1)),
    };
    return [beside, ...rows].map(rounded);
  } finally {
    await full.stop();
    await empty.stop();
  }
}

/** One instance of each kind, created through the server, and waiting. */
async function waitingPatterns(server: RestartedServer): Promise<readonly RowPattern[]> {
  const patterns: RowPattern[] = [];
  for (const [kind, step] of Object.entries(WAITING)) {
    const id = await storeSequence(server, `scale-${kind}`, 1, {
      type: 'step',
      id: 'wait',
      ...step,
    });
    const instance = await server.ask<{ id: string }>(201, 'POST', '/instances', {
      ...createBody(id),
      context: { data: { ...ORDER, key: PATTERN_KEY } },
    });
    await untilRows(server, instance.id);
    const marks = {
      [PATTERN_KEY]: `'order-' || n`,
      [eventKeyId(TENANT, EVENT_NAME, PATTERN_KEY)]: KEY_OF_COPY,
    };
    patterns.push(await RowPattern.of(server.db, instance.id, marks));
  }
  return patterns;
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

/** @throws Error when a copy is none: an event does not complete it */
async function expectLive(server: RestartedServer, copy: number): Promise<void> {
  const key = `order-${copy}`;
  const { rows } = await server.db.query<{ instance_id: string }>(
    'select instance_id from event_waits where key_id = $1::uuid',
    [eventKeyId(TENANT, EVENT_NAME, key)],
  );
  const instance = rows[0]?.instance_id;
  if (instance === undefined) throw new Error(`nobody waits for the event of ${key}`);
  await server.ask(201, 'POST', '/events', {
    tenant_id: TENANT,
    event_name: EVENT_NAME,
    producer_event_id: `settled-${key}`,
    correlation_key: key,
    payload: {},
  });
  await until(server, instance, 'completed');
}

type Send = (port: number, requests: readonly string[]) => Promise<unknown>;

/** @throws Error when the herd could not be created before it was due */
async function herdLateness(
  server: RestartedServer,
  size: number,
  version: number,
  send: Send,
): Promise<Latency> {
  const step = { type: 'step', id: 'only', handler: 'noop' };
  for (let tried = 1; ; tried += 1) {
    const name = `scale-herd-${tried}`;
    const sequence = await storeSequence(server, name, version, step);
    const leadMs = tried * (HERD_LEAD_MS_MIN + size * HERD_LEAD_MS_EACH);
    const herd = { sequence, size, dueAt: Math.ceil(Date.now() + leadMs) };
    await send(server.port, herdBatches(herd));
    if (Date.now() < herd.dueAt) return await latenessOf(server.db, herd);
    if (tried === HERD_TRIES) throw new Error(`${size} timers take over ${leadMs} ms to create`);
  }
}

async function storeSequence(
  server: RestartedServer,
  name: string,
  version: number,
  block: object,
): Promise<string> {
  const body = { tenant_id: TENANT, namespace: NAMESPACE, name, version, blocks: [block] };
  return (await server.ask<{ id: string }>(201, 'POST', '/sequences', body)).id;
}

/** What it waits for is in its tables. */
async function untilRows({ db }: RestartedServer, instance: string): Promise<void> {
  for (const giveUpAt = performance.now() + PATIENCE_MS; ; ) {
    const { rowCount } = await db.query(
      `select from event_waits where instance_id = $1::uuid union all
       select from timers where instance_id = $1::uuid and fire_at is not null`,
      [instance],
    );
    if (rowCount !== 0) return;
    if (performance.now() > giveUpAt) throw new Error(`${instance} does not wait`);
    await pause(50);
  }
}

async function until(server: RestartedServer, instance: string, state: string): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const read = await server.ask<{ state: string }>(200, 'GET', `/instances/${instance}`);
    if (read.state === state) return;
    if (performance.now() > giveUpAt) throw new Error(`${instance} is ${read.state}, not ${state}`);
    await pause(50);
  }
}

function rounded(row: WaitingRow): WaitingRow {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    name === 'waiting' || name === 'herd' ? value : round(value as number),
  ]);
  return Object.fromEntries(entries) as WaitingRow;
}
