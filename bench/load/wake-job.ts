/**
 * The client's side of part `events`: events at a steady rate, one for each instance that waits, and workers
 * that wait for the step behind and for the one behind that. It is an open loop: an event is sent when it is
 * due, whatever became of those before it, and what it has to wait for a connection counts.
 */

import { performance } from 'node:perf_hooks';
import type { HttpConnection } from './http-connection.js';
import { ask } from './replies.js';
import { postRequest } from './requests.js';
import { type Latency, Samples } from './samples.js';

/** An event for each of `count` instances; each makes two tasks, one behind the other. */
export interface WakeJob {
  readonly kind: 'wake';
  readonly port: number;
  readonly eventName: string;
  /** The keys are whole numbers, from this one on. */
  readonly first: number;
  readonly count: number;
  readonly perSecond: number;
  /** Of the step behind the event, and of the step behind that. */
  readonly handlers: readonly [string, string];
}

/** Requests in flight at once: of events, of completions, and of polls of each handler. */
const SENDERS = 64;
const COMPLETERS = 64;
const POLLERS = 4;
export const WAKE_CONNECTIONS = SENDERS + COMPLETERS + 2 * POLLERS;

const POLL_LIMIT = 20;
const POLL_WAIT_MS = 10_000;
/** Nothing came for so long: something was lost, and numbers would mean nothing. */
const SILENCE_MS = 60_000;

interface Task {
  readonly id: string;
  readonly claim_epoch: number;
  readonly params: { readonly n: number };
}

/** Of each kind: `event`, `complete` are answers; `woken`, `next` are tasks that came to a worker. */
export async function wake(
  job: WakeJob,
  connections: readonly HttpConnection[],
): Promise<{ readonly ms: number; readonly latency: Readonly<Record<string, Latency>> }> {
  const senders = new Pool(connections.slice(0, SENDERS));
  const completers = new Pool(connections.slice(SENDERS, SENDERS + COMPLETERS));
  const pollers = connections.slice(SENDERS + COMPLETERS);
  const samples = {
    event: new Samples(),
    woken: new Samples(),
    complete: new Samples(),
    next: new Samples(),
  };
  const sentAt = new Float64Array(job.count);
  const completedAt = new Float64Array(job.count);
  const startedAt = performance.now();
  let done = 0;
  let lastAt = startedAt;

  await new Promise<void>((resolve, reject) => {
    const complete = async (task: Task, worker: string) => {
      const began = performance.now();
      await completers.ask(completion(task, worker), 200);
      samples.complete.add(performance.now() - began);
    };
    const take = async (task: Task, worker: string, isFirst: boolean) => {
      const now = performance.now();
      const n = task.params.n - job.first;
      lastAt = now;
      if (isFirst) {
        samples.woken.add(now - sentAt[n]!);
        completedAt[n] = now;
        await complete(task, worker);
        return;
      }
      samples.next.add(now - completedAt[n]!);
      await complete(task, worker);
      done += 1;
      if (done === job.count) resolve();
    };
    const poll = async (connection: HttpConnection, index: number) => {
      const worker = `worker-${index}`;
      const isFirst = index < POLLERS;
      const body = {
        handler_name: job.handlers[isFirst ? 0 : 1],
        worker_id: worker,
        limit: POLL_LIMIT,
        wait_ms: POLL_WAIT_MS,
      };
      const request = postRequest('/workers/tasks/poll', JSON.stringify(body));
      while (done < job.count) {
        const tasks = await ask<readonly Task[]>(connection, request, 200);
        for (const task of tasks) take(task, worker, isFirst).catch(reject);
      }
    };
    const send = async (index: number) => {
      const began = performance.now();
      sentAt[index] = began;
      await senders.ask(eventRequest(job, job.first + index), 201);
      samples.event.add(performance.now() - began);
    };
    let sent = 0;
    const tick = () => {
      const now = performance.now();
      const due = Math.min(job.count, Math.ceil(((now - startedAt) * job.perSecond) / 1_000));
      for (; sent < due; sent += 1) send(sent).catch(reject);
      if (now - lastAt > SILENCE_MS) reject(new Error(`${done} of ${job.count} were done`));
      else if (done < job.count) setTimeout(tick, 1);
    };
    pollers.forEach((connection, index) => {
      poll(connection, index).catch(reject);
    });
    tick();
  });

  const latency = Object.fromEntries(
    Object.entries(samples).map(([name, all]) => [name, all.summary()]),
  );
  return { ms: performance.now() - startedAt, latency };
}

/**
 * Connections of which any may carry a request; what comes when all are busy waits for one. The one that was used
 * longest ago is next, since the server closes those that say nothing.
 */
class Pool {
  readonly #free: HttpConnection[];
  readonly #waiting: ((connection: HttpConnection) => void)[] = [];

  constructor(connections: readonly HttpConnection[]) {
    this.#free = [...connections];
  }

  async ask(request: string, expected: number): Promise<void> {
    const connection =
      this.#free.shift() ??
      (await new Promise<HttpConnection>((resolve) => this.#waiting.push(resolve)));
    await ask(connection, request, expected);
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(connection);
    else next(connection);
  }
}

function eventRequest({ eventName }: WakeJob, key: number): string {
  const body = {
    event_name: eventName,
    producer_event_id: `producer-${key}`,
    correlation_key: String(key),
    payload: { amount: 129.85, currency: 'EUR' },
  };
  return postRequest('/events', JSON.stringify(body));
}

function completion({ id, claim_epoch }: Task, worker: string): string {
  const body = { worker_id: worker, claim_epoch, output: { parcel: 'P-4711' } };
  return postRequest(`/workers/tasks/${id}/complete`, JSON.stringify(body));
}
