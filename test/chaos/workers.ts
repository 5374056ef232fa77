/**
 * The workers of a chaos run: the program of `examples/worker.ts`, as its users run it, with a
 * sender in between that enters in the ledger what polls returned and what the server accepted.
 */

import {
  type Handler,
  type JsonObject,
  RetryableError,
  startWorker,
} from '../../examples/worker.js';
import type { HeartbeatAccepted, WorkerTask } from '../../schema/worker.js';
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

/** Short, because each restart of the server is met by the next poll. */
const POLL_WAIT_MS = 1_000;
const RETRY_MS = 20;
/** Below the silence of one second that the run's server allows. */
const HEARTBEAT_MS = 300;

export interface WorkerWorld {
  readonly ledger: Ledger;
  readonly client: Client;
  readonly gate: Gate;
}

export function startChaosWorker(
  world: WorkerWorld,
  workerId: string,
  random: Random,
): { stop(): Promise<void> } {
  return startWorker({
    workerId,
    heartbeatMs: HEARTBEAT_MS,
    pollWaitMs: POLL_WAIT_MS,
    retryMs: RETRY_MS,
    handlers: { [WORK_HANDLER]: moodyHandler(workerId, random) },
    async send(path, body, signal) {
      await world.gate.passed();
      const enter = beforeSending(world.ledger, path, body);
      try {
        const reply = await world.client.post(path, body, signal);
        enter(reply);
        return reply;
      } catch (error) {
        enter(error);
        throw error;
      }
    },
  });
}

/** Completes, fails for now or fails for good; the mark tells who made an output, and when. */
function moodyHandler(workerId: string, random: Random): Handler {
  let count = 0;
  return async (task, tools) => {
    count += 1;
    const mark = `${workerId}-${count}`;
    if (random.chance(CHECKPOINT_CHANCE)) await tools.checkpoint({ mark });
    const mayFail = task.attempt < FAILED_ATTEMPTS_MAX;
    if (mayFail && random.chance(RETRYABLE_CHANCE)) throw new RetryableError('not today');
    if (random.chance(PERMANENT_CHANCE)) throw new Error('never');
    return { mark };
  };
}

/** Enters the request, and returns what to do with its reply or with the error instead of one. */
function beforeSending(ledger: Ledger, path: string, body: JsonObject): (outcome: unknown) => void {
  const [taskId, action] = path.split('/').slice(3) as [string, string | undefined];
  const end =
    action === 'complete' || action === 'fail' ? enterEnd(ledger, taskId, body) : undefined;
  return (outcome) => {
    if (outcome instanceof NoReplyError) {
      if (end !== undefined && !outcome.isSent) ledger.settle(end, 'refused');
      return;
    }
    const reply = outcome as Reply<unknown>;
    if (reply.status >= 500 && reply.status !== 503) {
      ledger.complain(`a worker got ${reply.status}: ${reply.text}`);
    }
    if (end !== undefined && reply.status === 200) ledger.ended(taskId, end);
    if (end !== undefined && reply.status >= 400 && reply.status < 500) {
      ledger.settle(end, 'refused');
    }
    if (reply.status !== 200) return;
    if (taskId === 'poll') for (const task of reply.body as WorkerTask[]) ledger.claimed(task);
    if (action === 'heartbeat') {
      ledger.checkpointed(taskId, (reply.body as HeartbeatAccepted).checkpoint_seq);
    }
  };
}

function enterEnd(ledger: Ledger, taskId: string, body: JsonObject): TaskEnd {
  const output = body.output as { readonly mark: string } | undefined;
  const common = { epoch: body.claim_epoch as number };
  if (output === undefined) {
    return ledger.end(taskId, { kind: 'fail', isRetryable: body.retryable === true, ...common });
  }
  return ledger.end(taskId, { kind: 'complete', isRetryable: false, mark: output.mark, ...common });
}
