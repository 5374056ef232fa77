/**
 * The worker's side of a run. Every worker has one connection and one request in flight; an operation is
 * all that one task takes, from the first request about it to the reply to its completion.
 */

import { performance } from 'node:perf_hooks';
import type { HttpConnection } from './http-connection.js';
import type { Measured } from './job-result.js';
import { ask } from './replies.js';
import { postRequest } from './requests.js';
import { Samples } from './samples.js';

/** Workers that poll tasks of a backlog and complete them one by one, until it ends or time does. */
export interface DrainJob {
  readonly kind: 'drain';
  readonly port: number;
  readonly workers: number;
  readonly handler: string;
  /** Of each poll. */
  readonly limit: number;
  readonly tasks: number;
  /** Default: two small members, which are merged into the context. */
  readonly output?: object;
  readonly ms: number;
}

/** Workers that each create an instance, poll a task and complete it, over and over. */
export interface RoundJob {
  readonly kind: 'round';
  readonly port: number;
  readonly workers: number;
  readonly handler: string;
  readonly create: string;
  readonly ms: number;
}

/** Workers that each create a batch, then hand in the results of their last tasks and take new ones by one request. */
export interface ExchangeJob {
  readonly kind: 'exchange';
  readonly port: number;
  readonly workers: number;
  readonly handler: string;
  readonly limit: number;
  /** Of as many instances as the limit. */
  readonly create: string;
  readonly ms: number;
}

export interface Task {
  readonly id: string;
  readonly claim_epoch: number;
}

interface Exchanged {
  readonly outcomes: readonly { readonly status: number }[];
  readonly tasks: readonly Task[];
}

export const EXCHANGE_ROUTE = '/workers/tasks/exchange';

/** Of every task, unless the job says otherwise. */
export const OUTPUT = { parcel: 'P-4711', packed: true };

/** Of a poll that finds nothing: the next tasks are being made. */
const NEXT_WAIT_MS = 100;

/** What a worker whose task another one took waits for the next; longer than any answer takes. */
const POLL_WAIT_MS = 10_000;

export async function drain(job: DrainJob, connections: readonly HttpConnection[]) {
  const run = new Run(job.ms);
  let claimed = 0;
  return run.all(connections, async (connection, worker) => {
    const poll = pollRequest({
      handler_name: job.handler,
      worker_id: worker,
      limit: job.limit,
      wait_ms: NEXT_WAIT_MS,
    });
    while (claimed < job.tasks && !run.isOver()) {
      const polledAt = performance.now();
      const tasks = await ask<readonly Task[]>(connection, poll, 200);
      // At the end others have the rest: such a poll says nothing about the time of a claim.
      if (tasks.length > 0) run.add('poll', polledAt);
      claimed += tasks.length;
      for (const task of tasks) {
        await complete(run, connection, worker, task, polledAt, job.output);
      }
    }
  });
}

export async function round(job: RoundJob, connections: readonly HttpConnection[]) {
  const run = new Run(job.ms);
  return run.all(connections, async (connection, worker) => {
    const poll = pollRequest({
      handler_name: job.handler,
      worker_id: worker,
      limit: 1,
      wait_ms: POLL_WAIT_MS,
    });
    while (!run.isOver()) {
      const createdAt = performance.now();
      await ask(connection, job.create, 201);
      run.add('create', createdAt);
      const polledAt = performance.now();
      const [task] = await ask<readonly Task[]>(connection, poll, 200);
      if (task === undefined) throw new Error(`no task came within ${POLL_WAIT_MS} ms`);
      run.add('poll', polledAt);
      await complete(run, connection, worker, task, createdAt);
    }
  });
}

export async function exchange(job: ExchangeJob, connections: readonly HttpConnection[]) {
  const run = new Run(job.ms);
  const poll = { handlers: [job.handler], limit: job.limit, wait_ms: POLL_WAIT_MS };
  return run.all(connections, async (connection, worker) => {
    let held: readonly Task[] = [];
    let takenAt = performance.now();
    for (let isLast = false; !isLast; ) {
      // What it holds in the end is handed in, and nothing taken any more.
      isLast = run.isOver();
      const createdAt = performance.now();
      if (!isLast) {
        await ask(connection, job.create, 201);
        run.add('create', createdAt);
      }
      const sentAt = performance.now();
      const results = held.map(resultOf);
      const body = { worker_id: worker, results, ...(isLast ? {} : { poll }) };
      const request = postRequest(EXCHANGE_ROUTE, JSON.stringify(body));
      const { outcomes, tasks } = await ask<Exchanged>(connection, request, 200);
      run.add('exchange', sentAt);
      const refused = outcomes.find(({ status }) => status !== 200);
      if (refused !== undefined)
        throw new Error(`a result was refused: ${JSON.stringify(refused)}`);
      for (const _ of outcomes) run.add('request', takenAt);
      held = tasks;
      takenAt = createdAt;
    }
  });
}

async function complete(
  run: Run,
  connection: HttpConnection,
  worker: string,
  task: Task,
  beganAt: number,
  output?: object,
): Promise<void> {
  const sentAt = performance.now();
  await ask(connection, completion(task, worker, output), 200);
  run.add('complete', sentAt);
  run.add('request', beganAt);
}

export function pollRequest(body: object): string {
  return postRequest('/workers/tasks/poll', JSON.stringify(body));
}

function resultOf({ id, claim_epoch }: Task) {
  return { kind: 'complete', task_id: id, claim_epoch, output: OUTPUT };
}

export function completion(task: Task, worker: string, output: object = OUTPUT): string {
  const body = { worker_id: worker, claim_epoch: task.claim_epoch, output };
  return postRequest(`/workers/tasks/${task.id}/complete`, JSON.stringify(body));
}

/** The clock and the samples of one run. What has begun when its time is over is done, and counts. */
class Run {
  readonly #startedAt = performance.now();
  readonly #endsAt: number;
  readonly #samples = new Map<string, Samples>([['request', new Samples()]]);

  constructor(ms: number) {
    this.#endsAt = this.#startedAt + ms;
  }

  isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  add(kind: string, beganAt: number): void {
    const samples = this.#samples.get(kind) ?? new Samples();
    this.#samples.set(kind, samples);
    samples.add(performance.now() - beganAt);
  }

  async all(
    connections: readonly HttpConnection[],
    work: (connection: HttpConnection, worker: string) => Promise<void>,
  ): Promise<Measured> {
    await Promise.all(connections.map((connection, at) => work(connection, `worker-${at}`)));
    const ms = performance.now() - this.#startedAt;
    const latency = Object.fromEntries(
      [...this.#samples].map(([kind, samples]) => [kind, samples.summary()]),
    );
    const { count } = latency.request!;
    return { replies: count, answered: count, ms, latency, bodies: [] };
  }
}
