/**
 * A worker: takes tasks of the handlers that it knows, says that it is alive while it works, and
 * reports what came of them. A claim is a lease: it names its epoch with every call, and when the
 * server answers 404 or 409 somebody else has the task by now. Copy this file to start your own.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

export type JsonObject = { [key: string]: unknown };

export interface Task {
  readonly id: string;
  readonly instance_id: string;
  readonly block_id: string;
  readonly handler_name: string;
  readonly params: JsonObject;
  readonly context: { readonly data: JsonObject; readonly config: JsonObject };
  /** 0 for the first try of the step. */
  readonly attempt: number;
  readonly claim_epoch: number;
  readonly checkpoint_seq: number;
  /** What an earlier claimer saved with `checkpoint`. */
  readonly resume_checkpoint?: unknown;
}

export interface Tools {
  /** Aborted when the lease is lost: stop working, nobody waits for the result. */
  readonly signal: AbortSignal;
  /** Saves how far the work got, for whoever has to take it over. */
  checkpoint(state: JsonObject): Promise<void>;
}

/** Returns the step's output. A `RetryableError` is tried again, any other error is final. */
export type Handler = (task: Task, tools: Tools) => Promise<JsonObject>;
export class RetryableError extends Error {}

/** Sends one request; rejects when there is no answer. */
export type Send = (
  path: string,
  body: JsonObject,
  signal?: AbortSignal,
) => Promise<{ readonly status: number; readonly body: unknown }>;

export interface WorkerOptions {
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly send: Send;
  /** Unique among the workers that run at the same time. */
  readonly workerId?: string;
  /** Well below the silence after which a claim is lost, 60 s. Default 15 s. */
  readonly heartbeatMs?: number;
  /** How long a poll waits for work. Default 20 s. */
  readonly pollWaitMs?: number;
  /** The pause after a call that failed. Default 1 s. */
  readonly retryMs?: number;
}

/** Reports are repeated this often: after a minute of silence the task has gone to another worker. */
const REPORTS_MAX = 60;
/** The output itself is wrong or too large: sending it again would not help. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);

/** Starts one loop per handler. `stop` finishes the tasks in hand and takes no more. */
export function startWorker(options: WorkerOptions): { stop(): Promise<void> } {
  const { handlers, send, workerId = `worker-${randomUUID()}` } = options;
  const { heartbeatMs = 15_000, pollWaitMs = 20_000, retryMs = 1_000 } = options;
  const stopping = new AbortController();

  async function poll(handlerName: string): Promise<readonly Task[]> {
    const body = { handler_name: handlerName, worker_id: workerId, limit: 1, wait_ms: pollWaitMs };
    try {
      const reply = await send('/workers/tasks/poll', body, stopping.signal);
      if (reply.status === 200) return reply.body as Task[];
    } catch {
      // Not reachable, or we are stopping; a task that was claimed for us will be offered again.
    }
    await wait(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    return [];
  }

  async function work(task: Task, handler: Handler): Promise<void> {
    const lease = { worker_id: workerId, claim_epoch: task.claim_epoch };
    const lost = new AbortController();
    let checkpointSeq = task.checkpoint_seq;
    const beat = async (more: JsonObject = {}): Promise<void> => {
      const reply = await send(`/workers/tasks/${task.id}/heartbeat`, { ...lease, ...more }).catch(
        (cause) => {
          throw new RetryableError('the heartbeat got no answer', { cause });
        },
      );
      if (reply.status === 404 || reply.status === 409) lost.abort();
      if (reply.status !== 200) throw new RetryableError(`heartbeat answered ${reply.status}`);
      checkpointSeq = (reply.body as { checkpoint_seq: number }).checkpoint_seq;
    };
    const checkpoint = (state: JsonObject) =>
      beat({ checkpoint_seq: checkpointSeq, checkpoint: state });
    // A heartbeat that is lost matters only when the next ones are lost too.
    const timer = setInterval(() => void beat().catch(() => undefined), heartbeatMs);
    try {
      const output = await handler(task, { signal: lost.signal, checkpoint });
      const path = `/workers/tasks/${task.id}/complete`;
      const status = await report(path, { ...lease, output }, lost.signal);
      if (REFUSED.has(status)) throw new Error(`the output was refused with status ${status}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const body = { ...lease, message, retryable: error instanceof RetryableError };
      await report(`/workers/tasks/${task.id}/fail`, body, lost.signal);
    } finally {
      clearInterval(timer);
    }
  }

  /** Repeats until the server has decided. The epoch makes a second delivery harmless. */
  async function report(path: string, body: JsonObject, lost: AbortSignal): Promise<number> {
    let status = 503;
    for (let tries = 0; tries < REPORTS_MAX && !lost.aborted; tries += 1) {
      status = await send(path, body).then(
        (reply) => reply.status,
        () => 503,
      );
      if (status < 500 && status !== 429) break;
      await wait(retryMs);
    }
    return status;
  }

  async function serve(handlerName: string, handler: Handler): Promise<void> {
    while (!stopping.signal.aborted) {
      for (const task of await poll(handlerName)) await work(task, handler);
    }
  }

  const loops = Object.entries(handlers).map(([name, handler]) => serve(name, handler));
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

/** @param url the server's address with the prefix, such as `http://127.0.0.1:8080/api/v1` */
export function httpSender(url: string, headers: Readonly<Record<string, string>>): Send {
  return async (path, body, signal) => {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: signal ?? null,
    });
    const text = await reply.text();
    return { status: reply.status, body: text === '' ? undefined : JSON.parse(text) };
  };
}

/** `node dist/examples/worker.js` serves the handler `greet` until it is interrupted. */
function main(): void {
  const {
    ENGINE_URL = 'http://127.0.0.1:8080/api/v1',
    ENGINE_API_KEY,
    TENANT = 'demo',
  } = process.env;
  const headers = {
    'x-tenant-id': TENANT,
    ...(ENGINE_API_KEY === undefined ? {} : { 'x-api-key': ENGINE_API_KEY }),
  };
  const worker = startWorker({
    send: httpSender(ENGINE_URL, headers),
    handlers: { greet: async (task) => ({ greeting: `Hello, ${task.params.name ?? 'world'}!` }) },
  });
  process.once('SIGINT', () => void worker.stop());
  process.once('SIGTERM', () => void worker.stop());
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main();
