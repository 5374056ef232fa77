/**
 * Part c: workers that poll batches and complete every task of them, until nothing is left. Each
 * worker has one connection and completes one task after the other, so that the number of workers
 * is the number of requests in flight.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { EXTERNAL_HANDLER } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import type { JobResult } from './jobs.js';
import type { LoadContext } from './run.js';
import { type BenchServer, startServer } from './server.js';

const WORKERS = [16, 64] as const;
const POLL_LIMIT = 50;
const CREATING_CONNECTIONS = 64;

/** Queues learn of new tasks by hints, which may still be under way when the creations are answered. */
const SETTLE_MS = 200;

interface Turn {
  readonly tasksPerSecond: number;
  readonly pollP50Ms: number;
  readonly pollP99Ms: number;
  readonly completeP50Ms: number;
  readonly completeP99Ms: number;
  readonly requestsPerFlush: number;
  /** In percent of one core. */
  readonly generatorCpu: number;
}

interface WorkerRow extends Turn {
  readonly workers: number;
  readonly turns: readonly Turn[];
}

export async function runWorkerRounds(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const server = await startServer(context.postgres, 'workers', 'external', options.shards);
  const turns = new Map<number, Turn[]>(WORKERS.map((workers) => [workers, []]));
  try {
    // Not counted: the code of every kind of request has run once.
    await oneRound(context, server, WORKERS[0], Math.ceil(options.tasks / 10));
    for (let round = 0; round < options.rounds; round += 1) {
      for (const workers of WORKERS) {
        turns.get(workers)?.push(await oneRound(context, server, workers, options.tasks));
      }
    }
    await expectCompleted(server);
  } finally {
    await server.stop();
  }
  const rows = [...turns].map(
    ([workers, all]): WorkerRow => ({
      workers,
      ...medianTurn(all),
      turns: all,
    }),
  );
  const part: PartResult = {
    question: `How many tasks per second do workers get done that poll ${POLL_LIMIT} at a time?`,
    settings: { tasks: options.tasks, rounds: options.rounds, pollLimit: POLL_LIMIT },
    results: { rows },
    remarks: [],
  };
  return { part, table: table(rows) };
}

async function oneRound(
  { postgres, generator }: LoadContext,
  server: BenchServer,
  workers: number,
  tasks: number,
): Promise<Turn> {
  await generator.run({
    kind: 'loop',
    port: server.port,
    connections: CREATING_CONNECTIONS,
    requests: [server.createRequest],
    status: 201,
    limit: { replies: tasks },
  });
  await postgres.checkpoint();
  await wait(SETTLE_MS);
  const flushes = await server.flushes();
  const result = await generator.run({
    kind: 'drain',
    port: server.port,
    workers,
    handler: EXTERNAL_HANDLER,
    limit: POLL_LIMIT,
    tasks,
  });
  return turnOf(result, (await server.flushes()) - flushes);
}

function turnOf(result: JobResult, flushes: number): Turn {
  const poll = result.latency.poll!;
  const complete = result.latency.complete!;
  return {
    tasksPerSecond: (result.replies * 1_000) / result.ms,
    pollP50Ms: poll.p50,
    pollP99Ms: poll.p99,
    completeP50Ms: complete.p50,
    completeP99Ms: complete.p99,
    requestsPerFlush: (poll.count + complete.count) / Math.max(1, flushes),
    generatorCpu: (100 * result.cpuMs) / result.ms,
  };
}

/** @throws Error when an instance is not completed although its task was */
async function expectCompleted(server: BenchServer): Promise<void> {
  const { rows } = await server.db.query<{ open: number }>(
    `select count(*) as open from instances where state <> 'completed'`,
  );
  const open = rows[0]!.open;
  if (open > 0) throw new Error(`${open} instances are not completed after all tasks are`);
}

function medianTurn(turns: readonly Turn[]): Turn {
  const of = (read: (turn: Turn) => number) => round(median(turns.map(read)));
  return {
    tasksPerSecond: of((turn) => turn.tasksPerSecond),
    pollP50Ms: of((turn) => turn.pollP50Ms),
    pollP99Ms: of((turn) => turn.pollP99Ms),
    completeP50Ms: of((turn) => turn.completeP50Ms),
    completeP99Ms: of((turn) => turn.completeP99Ms),
    requestsPerFlush: of((turn) => turn.requestsPerFlush),
    generatorCpu: of((turn) => turn.generatorCpu),
  };
}

function table(rows: readonly WorkerRow[]): string {
  return renderTable(
    [
      'workers',
      'tasks/s',
      'poll p50 ms',
      'poll p99 ms',
      'complete p50 ms',
      'complete p99 ms',
      'requests/flush',
      'generator CPU %',
    ],
    rows.map((row) => [
      row.workers,
      row.tasksPerSecond,
      row.pollP50Ms,
      row.pollP99Ms,
      row.completeP50Ms,
      row.completeP99Ms,
      row.requestsPerFlush,
      row.generatorCpu,
    ]),
  );
}
