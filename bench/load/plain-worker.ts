/**
 * A worker without the library, as one writes it: ten tasks at once, results beside the poll. What the library is
 * measured against.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

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
  /** How many tasks it does at once. Default 10. */
  readonly concurrency?: number;
}

/** What became of one result. */
interface Outcome {
  readonly status: number;
  /** Of a heartbeat. */
  readonly checkpoint_seq?: number;
}

/** A result that waits to be sent. */
interface Report {
  readonly result: JsonObject;
  readonly settle: (outcome: Outcome) => void;
}

/** Reports are repeated this often: after a minute of silence the task has gone to another worker. */
const REPORTS_MAX = 60;
/** Of one exchange. */
const RESULTS_MAX = 1_000;
/** The output itself is wrong or too large: sending it again would not help. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 422]);

/** `stop` finishes the tasks in hand and takes no more. */
export function startWorker(options: WorkerOptions): { stop(): Promise<void> } {
  const { handlers, send, workerId = `worker-${randomUUID()}`, concurrency = 10 } = options;
  const { heartbeatMs = 15_000, pollWaitMs = 20_000, retryMs = 1_000 } = options;
  const stopping = new AbortController();
  const inHand = new Set<Promise<void>>();
  const outbox: Report[] = [];
  let isSending = false;

  const exchange = (more: JsonObject, signal?: AbortSignal) =>
    send('/workers/tasks/exchange', { worker_id: workerId, ...more }, signal);

  async function serve(): Promise<void> {
    while (!stopping.signal.aborted) {
      for (const task of await poll(concurrency - inHand.size)) {
        const work = doTask(task).finally(() => inHand.delete(work));
        inHand.add(work);
      }
      if (inHand.size >= concurrency) await Promise.race(inHand);
    }
    await Promise.all(inHand);
  }

  /** Without results, so that it may wait: what is to be said meanwhile goes beside it. */
  async function poll(limit: number): Promise<readonly Task[]> {
    const asked = { handlers: Object.keys(handlers), limit, wait_ms: pollWaitMs };
    try {
      const reply = await exchange({ poll: asked }, stopping.signal);
      if (reply.status === 200) return (reply.body as { tasks: Task[] }).tasks;
    } catch {
      // Not reachable, or we are stopping; a task that was claimed for us will be offered again.
    }
    await wait(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    return [];
  }

  async function doTask(task: Task): Promise<void> {
    const lost = new AbortController();
    let checkpointSeq = task.checkpoint_seq;
    const beat = async (more: JsonObject = {}): Promise<void> => {
      const { status, checkpoint_seq } = await say(task, { kind: 'heartbeat', ...more });
      if (status === 404 || status === 409) lost.abort();
      if (status !== 200) throw new RetryableError(`heartbeat answered ${status}`);
      checkpointSeq = checkpoint_seq ?? checkpointSeq;
    };
    const checkpoint = (state: JsonObject) =>
      beat({ checkpoint_seq: checkpointSeq, checkpoint: state });
    // A heartbeat that is lost matters only when the next ones are lost too.
    const timer = setInterval(() => void beat().catch(() => undefined), heartbeatMs);
    try {
      const handler = handlers[task.handler_name] as Handler;
      const output = await handler(task, { signal: lost.signal, checkpoint });
      const status = await report(task, { kind: 'complete', output }, lost.signal);
      if (REFUSED.has(status)) throw new Error(`the output was refused with status ${status}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const retryable = error instanceof RetryableError;
      await report(task, { kind: 'fail', message, retryable }, lost.signal);
    } finally {
      clearInterval(timer);
    }
  }

  /** Repeats until the server has decided. The epoch makes a second delivery harmless. */
  async function report(task: Task, result: JsonObject, lost: AbortSignal): Promise<number> {
    let status = 503;
    for (let tries = 0; tries < REPORTS_MAX && !lost.aborted; tries += 1) {
      ({ status } = await say(task, result));
      if (status < 500 && status !== 429) break;
      await wait(retryMs);
    }
    return status;
  }

  /** Resolves with 503 when there is no answer. */
  function say({ id, claim_epoch }: Task, result: JsonObject): Promise<Outcome> {
    return new Promise((settle) => {
      outbox.push({ result: { task_id: id, claim_epoch, ...result }, settle });
      if (!isSending) void sendAll();
    });
  }

  /** What comes while a request is on its way goes with the next one. */
  async function sendAll(): Promise<void> {
    isSending = true;
    while (outbox.length > 0) await deliver(outbox.splice(0, RESULTS_MAX));
    isSending = false;
  }

  async function deliver(reports: readonly Report[]): Promise<void> {
    const results = reports.map(({ result }) => result);
    const reply = await exchange({ results }).catch(() => ({ status: 503, body: undefined }));
    const { outcomes } = (reply.status === 200 ? reply.body : {}) as { outcomes?: Outcome[] };
    if (outcomes === undefined && REFUSED.has(reply.status) && reports.length > 1) {
      // The request as a whole is too large or not to be kept: one of them is to blame.
      for (const one of reports) await deliver([one]);
      return;
    }
    reports.forEach(({ settle }, at) => {
      settle(outcomes?.[at] ?? { status: reply.status });
    });
  }

  const serving = serve();
  return {
    async stop() {
      stopping.abort();
      await serving;
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
