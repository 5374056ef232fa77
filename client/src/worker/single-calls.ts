/** An exchange for servers that have none: a request for each result, and polls of one handler each. */

import type { Client } from '../client/client.js';
import { EngineError } from '../client/errors.js';
import type { CallOptions } from '../client/operation.js';
import type {
  ExchangePoll,
  ExchangeTasks,
  TaskOutcome,
  TaskResult,
  TasksExchanged,
  WorkerTask,
} from '../generated/types.js';

/** Between two rounds of polls that found nothing, since one that waits would keep the others from theirs. */
const ROUND_MS = 500;

/** Rejects as the exchange would: when a poll does. */
export async function exchangeOneByOne(
  client: Client,
  { worker_id, version, results = [], poll }: ExchangeTasks,
  options: CallOptions,
): Promise<TasksExchanged> {
  const [outcomes, tasks] = await Promise.all([
    Promise.all(results.map((result) => say(client, worker_id, result, options))),
    poll === undefined ? [] : ask(client, { ...poll, worker_id, version }, options),
  ]);
  return { outcomes, tasks };
}

async function say(
  { workers }: Client,
  worker_id: string,
  { kind, task_id, ...result }: TaskResult,
  options: CallOptions,
): Promise<TaskOutcome> {
  try {
    const body = { worker_id, ...result };
    const accepted = await workers[kind](task_id, body as never, options);
    return kind === 'heartbeat'
      ? { task_id, status: 200, checkpoint_seq: accepted?.checkpoint_seq }
      : { task_id, status: 200 };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    // Whatever has no answer may have happened, as a 503 of the exchange.
    const status = error.status === 404 || error.status < 500 ? error.status || 503 : 503;
    return { task_id, status, error: error.message, code: error.code };
  }
}

interface Asked extends ExchangePoll {
  readonly worker_id: string;
  readonly version?: string | undefined;
}

async function ask(client: Client, asked: Asked, options: CallOptions): Promise<WorkerTask[]> {
  const { handlers, queues, limit = 1, wait_ms = 0, ...worker } = asked;
  const pairs = handlers.flatMap((handler_name) =>
    (queues ?? [undefined]).map((queue_name) => ({ handler_name, queue_name })),
  );
  const until = performance.now() + wait_ms;
  for (;;) {
    const tasks: WorkerTask[] = [];
    for (const { queue_name, ...pair } of pairs) {
      const waitMs = pairs.length === 1 ? Math.max(0, Math.round(until - performance.now())) : 0;
      const body = { ...worker, ...pair, limit: limit - tasks.length, wait_ms: waitMs };
      const found = await (queue_name === undefined
        ? client.workers.poll(body, options)
        : client.workers.pollQueue({ ...body, queue_name }, options));
      tasks.push(...found);
      if (tasks.length >= limit) break;
    }
    if (tasks.length > 0 || performance.now() >= until) return tasks;
    await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
    options.signal?.throwIfAborted();
  }
}
