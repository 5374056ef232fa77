/**
 * How long a poll of 50 takes when very many tasks are pending, beside a server with 100 of them. Claimed tasks are
 * completed and as many instances are created, so that the number of pending tasks stays the same.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { EXTERNAL_HANDLER, EXTERNAL_SEQUENCE } from '../base/fixtures.js';
import { RowPattern } from '../base/row-pattern.js';
import { BenchServer } from '../base/server.js';
import { Clock } from '../client/clock.js';
import { HttpConnection } from '../client/http-connection.js';
import { ask } from '../client/requests.js';
import { completion, pollRequest, type Task } from '../client/worker-loads.js';
import type { Bench, Job } from '../job.js';
import { batchesOf } from '../paths/path-table.js';
import { restarted } from './restarted.js';

const TASKS = 1_000_000;
const FEW = 100;
const POLL_LIMIT = 50;
const CONNECTIONS = 8;
const WORKER = 'worker-0';
const MANY = 'many that are pending';
const POLL = 'poll of 50 p50 ms';

/** Hints about new tasks may still be under way when the creations are answered. */
const SETTLE_MS = 200;

export const pendingJob: Job = {
  part: 'scale',
  name: 'pending',
  asks: 'What do a million pending tasks cost a start, the memory and a poll?',
  isWarmedUp: false,
  targets: [{ contender: MANY, column: POLL, isRatio: true, atMost: 1.2 }],
  prepare: async (bench) => {
    const few = await pendingServer(bench, 'pending_few', FEW);
    const many = await pendingServer(bench, 'pending_many', bench.options.instances ?? TASKS);
    return {
      contenders: [
        { name: `${FEW} pending`, turn: (ms) => polls(few, ms) },
        { name: MANY, turn: (ms) => polls(many, ms) },
      ],
      close: async () => {
        await many.server.stop();
        await few.server.stop();
      },
    };
  },
};

interface PendingServer {
  readonly server: BenchServer;
  readonly pending: number;
  /** Creates as many instances as a poll claims. */
  readonly refill: string;
}

/** The first task is created through the server, and its rows are copied. */
async function pendingServer(bench: Bench, name: string, pending: number): Promise<PendingServer> {
  const server = await BenchServer.open(bench, name);
  const sequence = await server.store(EXTERNAL_SEQUENCE);
  await sent(server, batchesOf(sequence, 1)[0]!);
  const { rows } = await server.db.query<{ instance_id: string }>(
    'select instance_id from open_tasks',
  );
  const pattern = await RowPattern.of(server.db, rows[0]!.instance_id);
  await server.kill();
  await pattern.copy(server.db, 0, pending - 1);
  await server.db.query('vacuum analyze');
  await server.start();
  return { server, pending, refill: batchesOf(sequence, POLL_LIMIT, POLL_LIMIT)[0]! };
}

async function sent({ port }: BenchServer, request: string): Promise<void> {
  const connection = await HttpConnection.open(port, lost);
  await ask(connection, request, 201);
  connection.close();
  await pause(SETTLE_MS);
}

/** A lost connection ends the bench. */
function lost(error: Error): never {
  throw error;
}

async function polls({ server, pending, refill }: PendingServer, ms: number) {
  const figures = await restarted(server);
  const opening = Array.from({ length: CONNECTIONS }, () => HttpConnection.open(server.port, lost));
  const connections = await Promise.all(opening);
  // Not counted: the window on the table is read, and grows to its size.
  await pollFor(connections, refill, ms / 2);
  const { latency } = await pollFor(connections, refill, ms);
  for (const connection of connections) connection.close();
  const { p50, p99 } = latency.request!;
  return { pending, ...figures, [POLL]: p50, 'poll of 50 p99 ms': p99 };
}

/** @throws Error when a poll gets less than it asks for */
async function pollFor(connections: readonly HttpConnection[], refill: string, ms: number) {
  const clock = new Clock(ms);
  const poll = pollRequest(EXTERNAL_HANDLER, WORKER, POLL_LIMIT, 0);
  const [first] = connections;
  while (!clock.isOver()) {
    const polledAt = performance.now();
    const tasks = await ask<readonly Task[]>(first!, poll, 200);
    clock.add('request', polledAt);
    if (tasks.length !== POLL_LIMIT) throw new Error(`a poll got ${tasks.length} tasks`);
    const open = [...tasks];
    await Promise.all(
      connections.map(async (connection) => {
        for (let task = open.pop(); task !== undefined; task = open.pop()) {
          await ask(connection, completion(task, WORKER), 200);
        }
      }),
    );
    await ask(first!, refill, 201);
  }
  return clock.result();
}
