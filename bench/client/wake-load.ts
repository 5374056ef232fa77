/**
 * Events at a steady rate, one for each instance that waits, and workers that wait for the step behind and for the
 * next one. It is an open loop: an event is sent when it is due, and waiting for a connection counts.
 */

import { performance } from 'node:perf_hooks';
import { Clock, deferred, type LoadResult } from './clock.js';
import type { HttpConnection } from './http-connection.js';
import { ask, postRequest } from './requests.js';
import { completion, pollRequest, type Task } from './worker-loads.js';

/** An event for each of `count` instances; each makes two tasks, one behind the other. */
export interface WakeLoad {
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
/** When nothing comes for so long, something was lost. */
const SILENCE_MS = 60_000;

interface WokenTask extends Task {
  readonly params: { readonly n: number };
}

/** Kinds: `request`, from the event to a worker with the first task; `next`, from its completion to the second. */
export async function wake(
  load: WakeLoad,
  connections: readonly HttpConnection[],
): Promise<LoadResult> {
  const clock = new Clock();
  const senders = new Pool(connections.slice(0, SENDERS));
  const completers = new Pool(connections.slice(SENDERS, SENDERS + COMPLETERS));
  const pollers = connections.slice(SENDERS + COMPLETERS);
  const sentAt = new Float64Array(load.count);
  const completedAt = new Float64Array(load.count);
  const { promise: finished, resolve, reject } = deferred<void>();
  let done = 0;
  let lastAt = performance.now();

  const take = async (task: WokenTask, worker: string, isFirst: boolean) => {
    const n = task.params.n - load.first;
    lastAt = performance.now();
    if (isFirst) {
      clock.add('request', sentAt[n]!);
      completedAt[n] = lastAt;
    } else {
      clock.add('next', completedAt[n]!);
    }
    await completers.ask(completion(task, worker), 200);
    if (!isFirst) done += 1;
    if (done === load.count) resolve();
  };
  const poll = async (connection: HttpConnection, index: number) => {
    const worker = `worker-${index}`;
    const isFirst = index < POLLERS;
    const handler = load.handlers[isFirst ? 0 : 1];
    const request = pollRequest(handler, worker, POLL_LIMIT, POLL_WAIT_MS);
    while (done < load.count) {
      const tasks = await ask<readonly WokenTask[]>(connection, request, 200);
      for (const task of tasks) take(task, worker, isFirst).catch(reject);
    }
  };
  let sent = 0;
  const tick = () => {
    const now = performance.now();
    const due = Math.ceil(((now - clock.startedAt) * load.perSecond) / 1_000);
    for (; sent < Math.min(load.count, due); sent += 1) {
      sentAt[sent] = now;
      senders.ask(eventRequest(load, load.first + sent), 201).catch(reject);
    }
    if (now - lastAt > SILENCE_MS) reject(new Error(`${done} of ${load.count} were done`));
    else if (done < load.count) setTimeout(tick, 1);
  };
  pollers.forEach((connection, index) => {
    poll(connection, index).catch(reject);
  });
  tick();
  await finished;
  return clock.result();
}

/**
 * Connections of which any may carry a request; a request waits when all are busy. The one that was used longest ago
 * is next, since the server closes idle ones.
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

function eventRequest({ eventName }: WakeLoad, key: number): string {
  const body = {
    event_name: eventName,
    producer_event_id: `producer-${key}`,
    correlation_key: String(key),
    payload: { amount: 129.85, currency: 'EUR' },
  };
  return postRequest('/events', JSON.stringify(body));
}
