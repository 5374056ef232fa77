/**
 * Part `worker`: how long one worker process takes for 10,000 tasks whose handler returns at once, by the library and
 * by a worker that was written by hand, in turns. Each turn has a process of its own.
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import { BATCH_CONNECTIONS, BATCH_INSTANCES, batchRequest } from './path-table.js';
import type { LoadContext } from './run.js';
import { type BenchServer, startServer } from './server.js';
import type { WorkerKind, WorkerTurn, WorkerTurnDone } from './worker.child.js';

const CHILD = fileURLToPath(new URL('./worker.child.js', import.meta.url));
const TASKS = 10_000;
/** The library does this many times what the worker by hand does, each as it comes. */
const TARGET_TIMES = 5;

interface Contender {
  readonly kind: WorkerKind;
  /** Undefined: its own default. */
  readonly concurrency?: number;
}

/** The first two are compared; the others say how much of it is the number of tasks at once. */
const CONTENDERS: readonly Contender[] = [
  { kind: 'plain' },
  { kind: 'library' },
  { kind: 'plain', concurrency: 100 },
  { kind: 'library', concurrency: 10 },
];

export async function runWorkerLibrary(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const tasks = Math.min(TASKS, options.backlog);
  const server = await startServer(context.postgres, 'worker', 'external', options.shards);
  const turns = CONTENDERS.map((): WorkerTurnDone[] => []);
  try {
    for (let turn = 0; turn < options.rounds; turn += 1) {
      for (const [at, { kind, concurrency }] of CONTENDERS.entries()) {
        await fill(context, server, tasks);
        turns[at]?.push(await runChild({ kind, port: server.port, tasks, concurrency }));
      }
    }
  } finally {
    await server.stop();
  }
  const rows = CONTENDERS.map(({ kind, concurrency }, at) => ({
    worker: kind,
    atOnce: concurrency ?? 'default',
    perSecond: (tasks * 1_000) / median(turns[at]!.map(({ ms }) => ms)),
    cpuUs: (median(turns[at]!.map(({ cpuMs }) => cpuMs)) * 1_000) / tasks,
    turns: turns[at]!,
  }));
  const [byHand, byLibrary] = rows;
  const times = byLibrary!.perSecond / byHand!.perSecond;
  const reached = times >= TARGET_TIMES ? 'reached' : 'missed';
  const part: PartResult = {
    question: 'How many tasks does one worker process do, by the library and without it?',
    settings: { tasks, rounds: options.rounds, shards: server.shards },
    results: { rows },
    remarks: [
      `by the library ${round(times)} times as many, each as it comes; target ${TARGET_TIMES}: ${reached}`,
    ],
  };
  const table = renderTable(
    ['worker', 'tasks at once', 'tasks/s', 'µs of its CPU a task'],
    rows.map(({ worker, atOnce, perSecond, cpuUs }) => [
      worker,
      String(atOnce),
      round(perSecond),
      round(cpuUs),
    ]),
  );
  return { part, table: `${table}\n\n${part.remarks.join('\n')}` };
}

async function fill({ generator }: LoadContext, server: BenchServer, tasks: number): Promise<void> {
  await generator.run({
    kind: 'loop',
    port: server.port,
    connections: BATCH_CONNECTIONS,
    requests: [batchRequest(server, Math.min(tasks, BATCH_INSTANCES))],
    status: 201,
    limit: { replies: Math.ceil(tasks / BATCH_INSTANCES) },
  });
}

async function runChild(turn: WorkerTurn): Promise<WorkerTurnDone> {
  const child = fork(CHILD);
  child.send(turn);
  const done = await Promise.race([
    once(child, 'message') as Promise<[WorkerTurnDone]>,
    once(child, 'exit').then(() => {
      throw new Error('the worker process ended before its tasks did');
    }),
  ]);
  return done[0];
}
