/**
 * Workers of a load. Every worker has one connection and one request in flight; an operation is all that one task
 * takes, from the first request about it to the reply to its completion.
 */

import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Clock, type LoadResult } from './clock.js';
import type { HttpConnection } from './http-connection.js';
import { ask, postRequest } from './requests.js';

interface WorkerLoad {
  readonly port: number;
  readonly workers: number;
  readonly handler: string;
  readonly ms: number;
}

/** Workers that poll tasks of a backlog and complete them one by one, until it ends or time does. */
export interface DrainLoad extends WorkerLoad {
  readonly kind: 'drain';
  /** Of each poll. */
  readonly limit: number;
  readonly tasks: number;
  readonly output?: object;
}

/** Workers that each create an instance, poll a task and complete it, over and over. */
export interface RoundLoad extends WorkerLoad {
  readonly kind: 'round';
  readonly create: string;
}

/** Workers that each create a batch, then report the results of their last tasks and claim new ones in one request. */
export interface ExchangeLoad extends WorkerLoad {
  readonly kind: 'exchange';
  readonly limit: number;
  /** Of as many instances as the limit. */
  readonly create: string;
}

/** Workers that each send the event of a waiting instance, poll a task and complete it. */
export interface EventLoad extends WorkerLoad {
  readonly kind: 'event';
  readonly eventName: string;
  /** The keys of the events are whole numbers, from this one on. */
  readonly first: number;
  readonly events: number;
}

/** One instance after the other whose steps are done by one worker, for which a poll waits already. */
export interface StepLoad extends Omit<WorkerLoad, 'workers'> {
  readonly kind: 'step';
  readonly create: string;
  /** Of each instance. */
  readonly steps: number;
}

export interface Task {
  readonly id: string;
  readonly claim_epoch: number;
}

/** Of every task, unless the load says otherwise: two small members, which are merged into the context. */
export const OUTPUT = { parcel: 'P-4711', packed: true };

/** Of a poll that finds nothing: the next tasks are being made. */
const NEXT_WAIT_MS = 100;
/** Longer than any answer takes. */
const POLL_WAIT_MS = 10_000;
/** Until a poll that was sent waits in its queue. */
const PARK_MS = 2;
/** One waits with a poll, the other sends what is answered at once. */
export const STEP_CONNECTIONS = 2;

export async function drain(load: DrainLoad, connections: readonly HttpConnection[]) {
  const clock = new Clock(load.ms);
  const { handler, limit, tasks: total, output } = load;
  let claimed = 0;
  return clock.work(connections, async (connection, worker) => {
    const poll = pollRequest(handler, worker, limit, NEXT_WAIT_MS);
    while (claimed < total && !clock.isOver()) {
      const polledAt = performance.now();
      const tasks = await ask<readonly Task[]>(connection, poll, 200);
      claimed += tasks.length;
      for (const task of tasks) {
        await ask(connection, completion(task, worker, output), ...COMPLETED);
        clock.add('request', polledAt);
      }
    }
  });
}

export function round(load: RoundLoad, connections: readonly HttpConnection[]) {
  return oneByOne(load, connections, () => load.create);
}

export function sendEvents(load: EventLoad, connections: readonly HttpConnection[]) {
  let sent = 0;
  return oneByOne(load, connections, () => {
    if (sent === load.events) return undefined;
    const key = String(load.first + sent);
    sent += 1;
    const event = { event_name: load.eventName, correlation_key: key, producer_event_id: key };
    return postRequest('/events', JSON.stringify({ ...event, payload: { amount: 129.85 } }));
  });
}

/** @param begin the request that makes a task; undefined: there are no more */
async function oneByOne(
  load: WorkerLoad,
  connections: readonly HttpConnection[],
  begin: () => string | undefined,
): Promise<LoadResult> {
  const clock = new Clock(load.ms);
  return clock.work(connections, async (connection, worker) => {
    const poll = pollRequest(load.handler, worker, 1, POLL_WAIT_MS);
    while (!clock.isOver()) {
      const beganAt = performance.now();
      const request = begin();
      if (request === undefined) return;
      await ask(connection, request, 201);
      const task = only(await ask<readonly Task[]>(connection, poll, 200));
      await ask(connection, completion(task, worker), ...COMPLETED);
      clock.add('request', beganAt);
    }
  });
}

export async function exchange(load: ExchangeLoad, connections: readonly HttpConnection[]) {
  const clock = new Clock(load.ms);
  const poll = { handlers: [load.handler], limit: load.limit, wait_ms: POLL_WAIT_MS };
  return clock.work(connections, async (connection, worker) => {
    let held: readonly Task[] = [];
    let takenAt = performance.now();
    for (let isLast = false; !isLast; ) {
      // At the end the results of the held tasks are reported and no more are claimed.
      isLast = clock.isOver();
      const createdAt = performance.now();
      if (!isLast) await ask(connection, load.create, 201);
      const tasks = await exchanged(connection, worker, held, isLast ? undefined : poll);
      for (const _ of held) clock.add('request', takenAt);
      held = tasks;
      takenAt = createdAt;
    }
  });
}

/** Samples are from sending a completion to receiving the task of the next step. */
export async function stepThrough(
  load: StepLoad,
  [waiting, acting]: readonly HttpConnection[],
): Promise<LoadResult> {
  const clock = new Clock(load.ms);
  const worker = 'worker';
  const poll = pollRequest(load.handler, worker, 1, POLL_WAIT_MS);
  const nextTask = async (request: string, statuses: readonly number[], isSample: boolean) => {
    const parked = ask<readonly Task[]>(waiting!, poll, 200);
    await wait(PARK_MS);
    const sentAt = performance.now();
    const taken = parked.then((tasks) => {
      if (isSample) clock.add('request', sentAt);
      return only(tasks);
    });
    return (await Promise.all([taken, ask(acting!, request, ...statuses)]))[0];
  };
  while (!clock.isOver()) {
    let task = await nextTask(load.create, [201], false);
    for (let step = 1; step < load.steps; step += 1) {
      task = await nextTask(completion(task, worker, {}), COMPLETED, true);
    }
    await ask(acting!, completion(task, worker, {}), ...COMPLETED);
  }
  return clock.result();
}

function only(tasks: readonly Task[]): Task {
  if (tasks[0] === undefined) throw new Error(`no task came within ${POLL_WAIT_MS} ms`);
  return tasks[0];
}

export function pollRequest(handler: string, worker: string, limit: number, waitMs: number) {
  const body = { handler_name: handler, worker_id: worker, limit, wait_ms: waitMs };
  return postRequest('/workers/tasks/poll', JSON.stringify(body));
}

const MINIMAL = 'prefer: return=minimal\r\n';
/** Older servers answer with the record. */
export const COMPLETED = [200, 204] as const;

export function completion(task: Task, worker: string, output: object = OUTPUT): string {
  const body = { worker_id: worker, claim_epoch: task.claim_epoch, output };
  return postRequest(`/workers/tasks/${task.id}/complete`, JSON.stringify(body), MINIMAL);
}

/**
 * Completes the held tasks and claims more in one request.
 * @param poll undefined: none are claimed
 * @throws Error when a result is refused
 */
export async function exchanged(
  connection: HttpConnection,
  worker: string,
  held: readonly Task[],
  poll?: object,
): Promise<readonly Task[]> {
  const results = held.map(({ id, claim_epoch }) => {
    return { kind: 'complete', task_id: id, claim_epoch, output: OUTPUT };
  });
  const body = JSON.stringify({
    worker_id: worker,
    results,
    ...(poll === undefined ? {} : { poll }),
  });
  const { outcomes, tasks } = await ask<{
    readonly outcomes: readonly { readonly status: number }[];
    readonly tasks: readonly Task[];
  }>(connection, postRequest('/workers/tasks/exchange', body), 200);
  const refused = outcomes.find(({ status }) => status !== 200);
  if (refused !== undefined) throw new Error(`a result was refused: ${JSON.stringify(refused)}`);
  return tasks;
}
