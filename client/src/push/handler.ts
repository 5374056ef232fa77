/**
 * Receives the tasks of a worker endpoint: a function from `Request` to `Response`, for Next.js, Lambda, Deno, Bun and
 * everything else with the Fetch API. Without dependencies, and without the rest of the package.
 */

import type { JsonObject, WorkerTask } from '../generated/types.js';
import { failureOf } from '../worker/failure.js';
import type { Handler, Handlers, Named, Task, TaskContext, TaskLog } from '../worker/handlers.js';
import { ACCEPTED, handlersOf, runHandler } from '../worker/run-handler.js';
import { importKey, type Key, refusalOf } from './signature.js';

export interface PushApi {
  /** URL of the engine, with or without `/api/v1`. */
  readonly url: string;
  /** Of a key with the capability `worker`. */
  readonly apiKey?: string | undefined;
  readonly tenant?: string | undefined;
}

export interface PushOptions<P extends Named, O> {
  readonly handlers: Handlers<P, O>;
  /** The secret of the endpoint; several while it is being replaced. */
  readonly secret: string | readonly string[];
  /**
   * How far the time of a signature may be from now. Default: 300,000. `Infinity` for tests with a manual clock, whose
   * server signs with its own time; a recorded request would be accepted forever.
   */
  readonly toleranceMs?: number | undefined;
  /** For `ctx.checkpoint`, which is a call to the engine. Absent: it rejects. */
  readonly api?: PushApi | undefined;
  /** Receives the log lines of handlers. Default: `console`. */
  readonly log?: TaskLog | undefined;
}

export type Receive = (request: Request) => Promise<Response>;

const TOLERANCE_MS = 5 * 60_000;

/** @throws TypeError for invalid handlers or an invalid tolerance; an invalid secret is answered with 500 */
export function createHandler<P extends Named = Record<string, unknown>, O = unknown>(
  options: PushOptions<P, O>,
): Receive {
  const handlers = handlersOf(options.handlers);
  const secrets = typeof options.secret === 'string' ? [options.secret] : options.secret;
  const { toleranceMs = TOLERANCE_MS } = options;
  // NaN would accept every time.
  if (!(toleranceMs >= 0)) throw new TypeError('toleranceMs must be a number from 0');
  let imported: Promise<Key[]> | undefined;
  return async (request) => {
    if (request.method !== 'POST') return answer(405, { message: 'send tasks by POST' });
    const text = await request.text();
    try {
      // Not at once: some platforms allow no asynchronous work before the first request.
      imported ??= Promise.all(secrets.map(importKey));
      const times = { now: Date.now(), toleranceMs };
      const refusal = await refusalOf(request.headers, text, await imported, times);
      if (refusal !== undefined) return answer(401, { message: refusal });
      const task = JSON.parse(text) as WorkerTask;
      const handler = handlers.get(task.handler_name);
      if (handler !== undefined) return await run(handler, task, request.signal, options);
      return answer(404, { message: `no handler named ${task.handler_name} is here` });
    } catch (error) {
      const { message, retryable } = failureOf(error);
      return retryable ? answer(500, { message }) : answer(422, { message, retryable });
    }
  };
}

async function run(
  handler: Handler,
  task: WorkerTask,
  signal: AbortSignal,
  { api, log = console }: Pick<PushOptions<Named, unknown>, 'api' | 'log'>,
): Promise<Response> {
  const given: Task = {
    ...task,
    params: task.params as JsonObject,
    checkpoint: task.resume_checkpoint,
  };
  let seq = task.checkpoint_seq;
  let saving: Promise<void> = Promise.resolve();
  const save = async (checkpoint: object) => {
    seq = await saveCheckpoint(api, task, seq, checkpoint);
  };
  const context: TaskContext = {
    signal,
    traceparent: task.traceparent,
    log,
    // One after the other, since each is numbered by the answer to the previous one.
    checkpoint: (value) => {
      const saved = saving.then(() => save(value));
      saving = saved.catch(() => undefined);
      return saved;
    },
  };
  const output = await runHandler(handler, given, context);
  return output === ACCEPTED ? new Response(null, { status: 202 }) : answer(200, output);
}

/** @returns the number of the next checkpoint */
async function saveCheckpoint(
  api: PushApi | undefined,
  task: WorkerTask,
  checkpoint_seq: number,
  checkpoint: object,
): Promise<number> {
  if (api === undefined) throw new Error('ctx.checkpoint needs the option api');
  const base = `${api.url.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
  const response = await fetch(`${base}/workers/tasks/${task.id}/heartbeat`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(api.tenant === undefined ? {} : { 'x-tenant-id': api.tenant }),
      ...(api.apiKey === undefined ? {} : { 'x-api-key': api.apiKey }),
    },
    body: JSON.stringify({
      worker_id: task.worker_id,
      claim_epoch: task.claim_epoch,
      checkpoint_seq,
      checkpoint,
    }),
  });
  const body = (await response.json()) as { checkpoint_seq?: number; error?: string };
  if (response.ok) return body.checkpoint_seq ?? checkpoint_seq + 1;
  throw new Error(`the checkpoint was rejected: ${response.status} ${body.error}`);
}

function answer(status: number, body: object): Response {
  const headers = { 'content-type': 'application/json' };
  return new Response(JSON.stringify(body), { status, headers });
}
