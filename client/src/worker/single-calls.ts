/** Emulates the exchange for servers without one: a request for each result, and a poll for each handler. */

import type { Client } from '../client/client.js';
import { EngineError } from '../client/errors.js';
import type { CallOptions } from '../client/operation.js';
import type {
  ExchangeTasks,
  TaskOutcome,
  TaskResult,
  TasksExchanged,
  WorkerTask,
} from '../generated/types.js';
import { isLoss } from './claim.js';
import { REFUSED } from './exchanges.js';

/** Pause between rounds of polls that found nothing, since a poll that waits would delay the others. */
const ROUND_MS = 500;

type Poll = NonNullable<ExchangeTasks['poll']>;

/** @throws EngineError if a poll is rejected and there is nothing else to return */
export async function exchangeOneByOne(
  client: Client,
  { worker_id, version, results, poll }: ExchangeTasks,
  options: CallOptions,
): Promise<TasksExchanged> {
  const said = (results ?? []).map((result) => say(client, worker_id, result, options));
  const asked = poll ? ask(client, { worker_id, version }, poll, options) : [];
  const [polled, ...outcomes] = await Promise.all([settled(asked), ...said]);
  if (polled.tasks === undefined && outcomes.length === 0) throw polled.error;
  return { outcomes, tasks: polled.tasks ?? [] };
}

async function settled(asked: WorkerTask[] | Promise<WorkerTask[]>) {
  try {
    return { tasks: await asked };
  } catch (error) {
    return { error };
  }
}

async function say(
  { workers }: Client,
  worker_id: string,
  { kind, task_id, ...result }: TaskResult,
  options: CallOptions,
): Promise<TaskOutcome> {
  try {
    const body = { worker_id, ...result };
    const headers = { ...options.headers, prefer: 'return=minimal' };
    const accepted = await workers[kind](task_id, body as never, { ...options, headers });
    const { checkpoint_seq } = kind === 'heartbeat' ? accepted : {};
    return { task_id, status: 200, ...(checkpoint_seq === undefined ? {} : { checkpoint_seq }) };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { status, message, code } = error;
    // A failure unrelated to the result counts as a 503, to be retried; only the server knows that a task is gone.
    const isJudged = REFUSED.has(status) || (isLoss(status) && code.startsWith('ENG_'));
    return { task_id, status: isJudged ? status : 503, error: message, code };
  }
}

async function ask(
  client: Client,
  worker: Pick<ExchangeTasks, 'worker_id' | 'version'>,
  { handlers, queues, limit, wait_ms }: Poll,
  options: CallOptions,
): Promise<WorkerTask[]> {
  const pairs = handlers.flatMap((handler_name) =>
    (queues ?? [undefined]).map((queue_name) => ({ handler_name, queue_name })),
  );
  const wanted = limit ?? 1;
  const until = performance.now() + (wait_ms ?? 0);
  for (;;) {
    const tasks: WorkerTask[] = [];
    for (const { queue_name, ...pair } of pairs) {
      const leftMs = Math.max(0, Math.round(until - performance.now()));
      const waitMs = pairs.length === 1 ? leftMs : 0;
      const body = { ...worker, ...pair, limit: wanted - tasks.length, wait_ms: waitMs };
      const found =
        queue_name === undefined
          ? client.workers.poll(body, options)
          : client.workers.pollQueue({ ...body, queue_name }, options);
      tasks.push(...(await found.catch(unless(tasks.length > 0))));
      if (tasks.length >= wanted) break;
    }
    if (tasks.length > 0 || performance.now() >= until) return tasks;
    await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    options.signal?.throwIfAborted();
  }
}

/** Tasks that earlier polls have claimed are kept if a later poll fails. */
const unless = (hasTasks: boolean) => (error: unknown) => {
  if (hasTasks) return [];
  throw error;
};
