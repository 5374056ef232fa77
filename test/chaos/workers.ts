/**
 * The workers of a chaos run: the library, as its users run it, with a `fetch` in between that enters in the ledger
 * what polls returned and what the server accepted.
 */

import { setTimeout as wait } from 'node:timers/promises';
import {
  Client as EngineClient,
  FatalError,
  type HandlerFunction,
  RetryableError,
  Worker,
} from '../../client/src/index.js';
import type {
  ExchangeTasks,
  TaskOutcome,
  TaskResult,
  TasksExchanged,
} from '../../schema/worker.js';
import { type Client, NoReplyError, type Reply } from '../helpers/client.js';
import type { Gate } from './gate.js';
import type { Ledger, TaskEnd } from './ledger.js';
import type { Random } from './random.js';
import { WORK_HANDLER } from './shapes.js';

/** How often a task ends otherwise than by completing it, and how often it saves a checkpoint. */
const RETRYABLE_CHANCE = 0.15;
const PERMANENT_CHANCE = 0.02;
const CHECKPOINT_CHANCE = 0.3;
/** A policy that allows eight tries is then never exhausted. */
const FAILED_ATTEMPTS_MAX = 2;

/** How long a task takes at most: some are under way, and hold slots, at each kill. */
const WORK_MS_MAX = 60;

/** Short, because each restart of the server is met by the next poll. */
const POLL_WAIT_MS = 1_000;
/** The silence that the run's server allows. */
const LEASE_MS = 1_000;
const CONCURRENCY = 10;

export type WorkerWorld = { readonly ledger: Ledger; readonly client: Client; readonly gate: Gate };

export function startChaosWorker(
  world: WorkerWorld,
  workerId: string,
  random: Random,
): { stop(): Promise<void> } {
  const client = new EngineClient({ url: ORIGIN, fetch: throughLedger(world) });
  const worker = new Worker(client, {
    workerId,
    concurrency: CONCURRENCY,
    leaseMs: LEASE_MS,
    pollWaitMs: POLL_WAIT_MS,
    handlers: { [WORK_HANDLER]: moodyHandler(workerId, random) },
    complainAfterMs: 0,
    // Every fault of the run is told there.
    logger: { info: () => undefined, warn: () => undefined },
  });
  void worker.start();
  return worker;
}

/** Where the requests go is the client's of the run to know. */
const ORIGIN = 'http://server';
const PREFIX = `${ORIGIN}/api/v1`;

function throughLedger(world: WorkerWorld) {
  return async (url: string, { body, signal }: RequestInit): Promise<Response> => {
    await world.gate.passed();
    const exchange = JSON.parse(body as string) as ExchangeTasks;
    const enter = beforeSending(world.ledger, exchange);
    try {
      const path = url.slice(PREFIX.length);
      const reply = await world.client.post(path, exchange, signal ?? undefined);
      enter(reply);
      const headers = Object.entries(reply.headers).map(([name, value]) => [name, String(value)]);
      return new Response(reply.text, {
        status: reply.status,
        headers: headers as [string, string][],
      });
    } catch (error) {
      enter(error);
      throw error;
    }
  };
}

/** Completes, fails for now or fails for good; the mark tells who made an output, and when. */
function moodyHandler(workerId: string, random: Random): HandlerFunction {
  let count = 0;
  return async (task, ctx) => {
    count += 1;
    const mark = `${workerId}-${count}`;
    if (random.chance(CHECKPOINT_CHANCE)) await ctx.checkpoint({ mark });
    await wait(random.integer(0, WORK_MS_MAX));
    const mayFail = task.attempt < FAILED_ATTEMPTS_MAX;
    if (mayFail && random.chance(RETRYABLE_CHANCE)) throw new RetryableError('not today');
    if (random.chance(PERMANENT_CHANCE)) throw new FatalError('never');
    return { mark };
  };
}

/** Enters the results, and returns what to do with the reply or with the error instead of one. */
function beforeSending(ledger: Ledger, body: ExchangeTasks): (outcome: unknown) => void {
  const results: readonly TaskResult[] = body.results ?? [];
  const ends = results.map((result) => enterEnd(ledger, result));
  return (told) => {
    const refuse = (end: TaskEnd | undefined) => {
      if (end !== undefined) ledger.settle(end, 'refused');
    };
    if (told instanceof NoReplyError) {
      if (!told.isSent) ends.forEach(refuse);
      return;
    }
    const reply = told as Reply<unknown>;
    if (reply.status >= 500 && reply.status !== 503) {
      ledger.complain(`a worker got ${reply.status}: ${reply.text}`);
    }
    if (reply.status >= 400 && reply.status < 500) ends.forEach(refuse);
    if (reply.status !== 200) return;
    const { outcomes, tasks } = reply.body as TasksExchanged;
    for (const task of tasks) ledger.claimed(task);
    results.forEach(({ task_id }, at) => {
      const { status, error, checkpoint_seq } = outcomes[at] as TaskOutcome;
      const end = ends[at];
      if (status >= 500 && status !== 503) ledger.complain(`a result got ${status}: ${error}`);
      if (status >= 400 && status < 500) refuse(end);
      if (status !== 200) return;
      if (end !== undefined) ledger.ended(task_id, end);
      if (checkpoint_seq !== undefined) ledger.checkpointed(task_id, checkpoint_seq);
    });
  };
}

function enterEnd(ledger: Ledger, result: TaskResult): TaskEnd | undefined {
  const common = { epoch: result.claim_epoch as number };
  if (result.kind === 'heartbeat') return undefined;
  if (result.kind === 'fail') {
    const isRetryable = result.retryable === true;
    return ledger.end(result.task_id, { kind: 'fail', isRetryable, ...common });
  }
  const { mark } = result.output as { readonly mark: string };
  return ledger.end(result.task_id, { kind: 'complete', isRetryable: false, mark, ...common });
}
