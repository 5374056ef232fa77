/**
 * Part `events`: instances that wait for an event each. What they cost while nothing happens, and how
 * soon an event wakes one: from the request to the worker that receives the task of the step behind. Beside
 * it, in the same run and as often, from a worker's completion to the task of the next step.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { NAMESPACE, ORDER, TENANT } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { type PartResult, renderTable, round } from '../report.js';
import { readFamily, readQueued, readResidentMib, readThreads } from './process-cpu.js';
import { postRequest } from './requests.js';
import type { LoadContext } from './run.js';
import type { Latency } from './samples.js';
import { type BenchServer, startServer } from './server.js';

const EVENT_NAME = 'payment.settled';
const HANDLERS = ['pack', 'ship'] as const;
/** An idle server is looked at for this many measured runs. */
const RUNS_IDLE = 6;
/** Woken before those that are measured: the code of every kind of request has run then. */
const WARM_UP = 500;
const PER_BATCH = 1_000;
const BATCHES_AT_ONCE = 4;

const BLOCKS = [
  {
    type: 'step',
    id: 'settled',
    handler: 'wait_for_event',
    params: { name: EVENT_NAME, key: '{{ data.n }}' },
  },
  ...HANDLERS.map((handler) => ({
    type: 'step',
    id: handler,
    handler,
    params: { n: '{{ data.n }}' },
  })),
];

/** What the server takes when nothing is asked of it. */
interface Idle {
  /** Milliseconds of processor time in each second. */
  readonly serverCpu: number;
  readonly postgresCpu: number;
  readonly residentMib: number;
  readonly databaseMib: number;
}

export async function runEvents(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const { instances, rates, seconds } = options;
  const most = Math.floor(instances / rates.length);
  const count = Math.min(options.eventsPerRate ?? most, most);
  const server = await startServer(postgres, 'events', 'noop', options.shards);
  const idle = () => lookAtIdle(server, postgres.pid, seconds * RUNS_IDLE);
  const wake = (perSecond: number, first: number, events: number) =>
    generator.run({
      kind: 'wake',
      port: server.port,
      eventName: EVENT_NAME,
      handlers: HANDLERS,
      perSecond,
      first,
      count: events,
    });
  try {
    const sequence = await store(server);
    const create = (first: number, creations: number) =>
      generator.run({
        kind: 'loop',
        port: server.port,
        connections: BATCHES_AT_ONCE,
        requests: batches(sequence, first, creations),
        status: 201,
        limit: { replies: Math.ceil(creations / PER_BATCH) },
      });
    await create(0, WARM_UP);
    await untilWaiting(server, WARM_UP);
    await wake(Math.min(...rates), 0, WARM_UP);
    await postgres.checkpoint();
    const before = await idle();
    const created = await create(WARM_UP, instances);
    const createdMs = created.ms + (await untilWaiting(server, instances));
    await postgres.checkpoint();
    await pause(seconds * 1_000);
    const waiting = await idle();
    const cost: Cost = {
      instances,
      before,
      waiting,
      createdPerSecond: round((instances * 1_000) / createdMs),
      residentBytesEach: perInstance(waiting.residentMib - before.residentMib, instances),
      databaseBytesEach: perInstance(waiting.databaseMib - before.databaseMib, instances),
    };
    const rows: Row[] = [];
    for (const [stage, perSecond] of rates.entries()) {
      await postgres.checkpoint();
      const [serverMs, postgresMs] = [threadsMs(server), readFamily(postgres.pid)];
      const [flushes, queuedMs] = [await server.flushes(), readQueued(server.pid)];
      const woken = await wake(perSecond, WARM_UP + stage * count, count);
      const share = (ms: number) => round((100 * ms) / woken.ms);
      rows.push({
        perSecond,
        events: count,
        reachedPerSecond: round((count * 1_000) / woken.ms),
        ...latenciesOf(woken.latency),
        cpu: {
          server: share(threadsMs(server) - serverMs),
          serverQueued: share(readQueued(server.pid) - queuedMs),
          postgres: share(readFamily(postgres.pid) - postgresMs),
          generator: share(woken.cpuMs),
        },
        flushesPerSecond: round((((await server.flushes()) - flushes) * 1_000) / woken.ms),
      });
    }
    await untilWaiting(server, instances - count * rates.length);
    const part: PartResult = {
      question:
        'What do instances cost that wait for an event each, and how soon does an event wake one?',
      settings: { idleSeconds: seconds * RUNS_IDLE, shards: server.shards },
      results: { cost, rows },
      remarks: [],
    };
    return { part, table: `${costTable(cost)}\n\n${latencyTable(rows)}\n\n${cpuTable(rows)}` };
  } finally {
    await server.stop();
  }
}

async function store({ port }: BenchServer): Promise<string> {
  const url = `http://127.0.0.1:${port}`;
  const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
  const place = { tenant_id: TENANT, namespace: NAMESPACE };
  const body = { ...place, name: 'bench-events', version: 1, blocks: BLOCKS };
  try {
    return expectStatus(await client.post<{ id: string }>('/sequences', body), 201).id;
  } finally {
    await client.close();
  }
}

/** Requests of creations, which know their number: it is the key of their event. */
function batches(sequence_id: string, first: number, count: number): string[] {
  const one = (n: number) => ({
    sequence_id,
    tenant_id: TENANT,
    namespace: NAMESPACE,
    context: { data: { ...ORDER, n } },
  });
  const requests: string[] = [];
  for (let from = 0; from < count; from += PER_BATCH) {
    const length = Math.min(PER_BATCH, count - from);
    const instances = Array.from({ length }, (_, i) => one(first + from + i));
    requests.push(postRequest('/instances/batch', JSON.stringify({ instances })));
  }
  return requests;
}

/** @returns how long that took, in milliseconds */
async function untilWaiting({ db }: BenchServer, count: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const { rows } = await db.query<{ waits: number }>('select count(*) as waits from event_waits');
    if (rows[0]?.waits === count) return performance.now() - startedAt;
    await pause(200);
  }
}

async function lookAtIdle(
  { pid, db }: BenchServer,
  postgres: number,
  seconds: number,
): Promise<Idle> {
  const [before, database] = [threadsMs({ pid }), readFamily(postgres)];
  const startedAt = performance.now();
  await pause(seconds * 1_000);
  const elapsed = (performance.now() - startedAt) / 1_000;
  const serverCpu = (threadsMs({ pid }) - before) / elapsed;
  const postgresCpu = (readFamily(postgres) - database) / elapsed;
  const { rows } = await db.query<{ bytes: number }>(
    'select pg_database_size(current_database()) as bytes',
  );
  return {
    serverCpu: round(serverCpu),
    postgresCpu: round(postgresCpu),
    residentMib: readResidentMib(pid),
    databaseMib: rows[0]!.bytes / 2 ** 20,
  };
}

function threadsMs({ pid }: Pick<BenchServer, 'pid'>): number {
  return [...readThreads(pid).values()].reduce((sum, ms) => sum + ms, 0);
}

const perInstance = (mib: number, instances: number) => round((mib * 2 ** 20) / instances);

function latenciesOf(latency: Readonly<Record<string, Latency>>) {
  const { event, woken, complete, next } = latency;
  return { event: event!, woken: woken!, complete: complete!, next: next! };
}

interface Row extends ReturnType<typeof latenciesOf> {
  readonly perSecond: number;
  readonly events: number;
  readonly reachedPerSecond: number;
  /** In percent of one core; `serverQueued`: what the threads of the server had to wait for one. */
  readonly cpu: Readonly<Record<'server' | 'serverQueued' | 'postgres' | 'generator', number>>;
  readonly flushesPerSecond: number;
}

interface Cost {
  readonly instances: number;
  readonly before: Idle;
  readonly waiting: Idle;
  readonly createdPerSecond: number;
  readonly residentBytesEach: number;
  readonly databaseBytesEach: number;
}

function latencyTable(rows: readonly Row[]): string {
  return renderTable(
    [
      'events/s',
      'reached',
      'event to next task p50 ms',
      'p99 ms',
      'complete to next task p50 ms',
      'p99 ms',
      'event answered p50 ms',
      'p99 ms',
      'complete answered p50 ms',
      'p99 ms',
    ],
    rows.map(({ perSecond, reachedPerSecond, woken, next, event, complete }) => [
      perSecond,
      reachedPerSecond,
      ...[woken, next, event, complete].flatMap(({ p50, p99 }) => [round(p50), round(p99)]),
    ]),
  );
}

function cpuTable(rows: readonly Row[]): string {
  return renderTable(
    [
      'events/s',
      'server CPU %',
      'waited for a core %',
      'postgres CPU %',
      'generator CPU %',
      'flushes/s',
    ],
    rows.map(({ perSecond, cpu, flushesPerSecond }) => [
      perSecond,
      cpu.server,
      cpu.serverQueued,
      cpu.postgres,
      cpu.generator,
      flushesPerSecond,
    ]),
  );
}

function costTable({ instances, before, waiting, ...each }: Cost): string {
  const row = (count: number, idle: Idle, ...last: number[]) => [
    count,
    idle.serverCpu,
    idle.postgresCpu,
    round(idle.residentMib),
    ...last,
  ];
  return renderTable(
    [
      'waiting, idle server',
      'server CPU ms/s',
      'postgres CPU ms/s',
      'resident MiB',
      'bytes each in memory',
      'in the database',
    ],
    [row(0, before, 0, 0), row(instances, waiting, each.residentBytesEach, each.databaseBytesEach)],
  );
}
