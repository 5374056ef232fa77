/**
 * How long a poll of 50 takes when many tasks are pending, beside a server with 100 of them on the same
 * Postgres, in turns. What a poll claims is completed, and as many instances are created behind it, so
 * that the number of pending tasks stays as it is.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { createBody, EXTERNAL_HANDLER, EXTERNAL_SEQUENCE } from '../fixtures.js';
import { HttpConnection } from '../load/http-connection.js';
import { ask } from '../load/replies.js';
import { postRequest } from '../load/requests.js';
import type { LoadContext } from '../load/run.js';
import { Samples } from '../load/samples.js';
import type { BenchOptions } from '../options.js';
import { median, round } from '../report.js';
import { stepsTo } from './growth.js';
import { RestartedServer } from './restarted.js';
import { RowPattern } from './row-pattern.js';

const FEW = 100;
const POLL_LIMIT = 50;
/** Polls in a turn for each second of `--seconds`. */
const PER_SECOND = 8;
const COMPLETING_CONNECTIONS = 8;
const WORKER = 'worker-0';

/** Queues learn of new tasks by hints, which may still be under way when the creations are answered. */
const SETTLE_MS = 200;

export interface PendingRow {
  readonly pending: number;
  readonly readyMs: number;
  readonly residentMib: number;
  readonly pollP50Ms: number;
  readonly pollP99Ms: number;
  readonly fewP50Ms: number;
  readonly fewP99Ms: number;
  /** The median of those of the turns. */
  readonly p50Ratio: number;
}

export async function growPending(
  { postgres }: LoadContext,
  { scaleTo, seconds, rounds, shards }: BenchOptions,
): Promise<readonly PendingRow[]> {
  const polls = Math.ceil(seconds * PER_SECOND);
  const few = await RestartedServer.open(postgres, 'scale_few', shards);
  const many = await RestartedServer.open(postgres, 'scale_pending', shards);
  try {
    const batchOf = new Map<RestartedServer, (count: number) => string>();
    for (const server of [few, many]) {
      const stored = await server.ask<{ id: string }>(201, 'POST', '/sequences', EXTERNAL_SEQUENCE);
      batchOf.set(server, (count) => {
        const instances = Array.from({ length: count }, () => createBody(stored.id));
        return postRequest('/instances/batch', JSON.stringify({ instances }));
      });
    }
    const pattern = await pendingPattern(many, batchOf.get(many)!(1));
    const first = await Worker.open(few, batchOf.get(few)!(POLL_LIMIT));
    await first.send(batchOf.get(few)!(FEW), 201);
    first.close();
    const rows: PendingRow[] = [];
    let made = 0;
    for (const pending of stepsTo(scaleTo)) {
      await many.kill();
      await pattern.copy(many.db, made, pending - made);
      made = pending;
      await many.db.query('vacuum analyze');
      await postgres.checkpoint();
      const readyMs = await many.start();
      const residentMib = (await many.residentBytes()) / 2 ** 20;
      // A connection that is idle while rows are copied would be closed by the server.
      const fewWorker = await Worker.open(few, batchOf.get(few)!(POLL_LIMIT));
      const worker = await Worker.open(many, batchOf.get(many)!(POLL_LIMIT));
      // Not counted: the window on the table is read, and grows to its size.
      for (const one of [fewWorker, worker]) await one.poll(polls);
      const turns: { few: Samples; many: Samples }[] = [];
      for (let turn = 0; turn < rounds; turn += 1) {
        turns.push({ few: await fewWorker.poll(polls), many: await worker.poll(polls) });
      }
      for (const one of [fewWorker, worker]) one.close();
      const summaries = turns.map((turn) => ({
        few: turn.few.summary(),
        many: turn.many.summary(),
      }));
      rows.push({
        pending,
        readyMs: round(readyMs),
        residentMib: round(residentMib),
        pollP50Ms: round(median(summaries.map((turn) => turn.many.p50))),
        pollP99Ms: round(median(summaries.map((turn) => turn.many.p99))),
        fewP50Ms: round(median(summaries.map((turn) => turn.few.p50))),
        fewP99Ms: round(median(summaries.map((turn) => turn.few.p99))),
        p50Ratio: round(median(summaries.map((turn) => turn.many.p50 / turn.few.p50))),
      });
    }
    return rows;
  } finally {
    await many.stop();
    await few.stop();
  }
}

/** One created through the server; it is the first task that will be claimed. */
async function pendingPattern(server: RestartedServer, create: string): Promise<RowPattern> {
  const connection = await HttpConnection.open(server.port, lost);
  await ask(connection, create, 201);
  connection.close();
  await pause(SETTLE_MS);
  const { rows } = await server.db.query<{ instance_id: string }>(
    'select instance_id from open_tasks',
  );
  return RowPattern.of(server.db, rows[0]!.instance_id);
}

/** Nobody is answered any more: the bench is over. */
function lost(error: Error): never {
  throw error;
}

interface Task {
  readonly id: string;
  readonly claim_epoch: number;
}

/** A worker that polls, completes what it got at once, and sees to it that as much is there again. */
class Worker {
  readonly #first: HttpConnection;
  readonly #connections: readonly HttpConnection[];
  readonly #refill: string;

  private constructor(connections: readonly HttpConnection[], refill: string) {
    this.#first = connections[0]!;
    this.#connections = connections;
    this.#refill = refill;
  }

  static async open({ port }: RestartedServer, refill: string): Promise<Worker> {
    const opening = Array.from({ length: COMPLETING_CONNECTIONS }, () =>
      HttpConnection.open(port, lost),
    );
    return new Worker(await Promise.all(opening), refill);
  }

  async send<T>(request: string, status: number): Promise<T> {
    return ask<T>(this.#first, request, status);
  }

  /** @returns the times of that many polls, of which each got all that it asked for */
  async poll(polls: number): Promise<Samples> {
    const samples = new Samples();
    const body = { handler_name: EXTERNAL_HANDLER, worker_id: WORKER, limit: POLL_LIMIT };
    const request = postRequest('/workers/tasks/poll', JSON.stringify(body));
    for (let at = 0; at < polls; at += 1) {
      const sentAt = performance.now();
      const tasks = await this.send<readonly Task[]>(request, 200);
      samples.add(performance.now() - sentAt);
      if (tasks.length !== POLL_LIMIT) throw new Error(`a poll got ${tasks.length} tasks`);
      const left = [...tasks];
      await Promise.all(
        this.#connections.map(async (connection) => {
          for (let task = left.pop(); task !== undefined; task = left.pop()) {
            await ask(connection, completion(task), 200);
          }
        }),
      );
      await this.send(this.#refill, 201);
    }
    return samples;
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

function completion({ id, claim_epoch }: Task): string {
  const body = { worker_id: WORKER, claim_epoch, output: { parcel: 'P-4711', packed: true } };
  return postRequest(`/workers/tasks/${id}/complete`, JSON.stringify(body));
}
