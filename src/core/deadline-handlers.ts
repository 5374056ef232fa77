/**
 * Handlers that the server calls when a step misses its deadline. They are durable and run at least once, like steps,
 * but nothing waits for them, and failures are only audited. They are addressed as tries with a negative node.
 */

import type { Execution, OpenDeadlineHandler } from '../../schema/execution.js';
import { FAILURE_MESSAGE_MAX } from '../../schema/failure.js';
import { clip } from '../base/bounds.js';
import type { JsonValue } from '../base/json.js';
import type { StepOutcome } from './builtin.js';
import type { EffectOutcome } from './effects.js';
import type { Evaluation } from './evaluation.js';
import type { NodePlace } from './plan-nodes.js';
import type { StepTry, TryEvent } from './progress.js';
import { runsOf } from './runs-again.js';

export const DEADLINE_HANDLER_MS_MAX = 30_000;
export const isDeadlineHandler = ({ node }: Pick<StepTry, 'node'>): boolean => node < 0;

export function deadlineHandlerOf(execution: Execution, { node }: Pick<StepTry, 'node'>) {
  return execution.b?.[numberOf(node)];
}

/** Nodes count from 0 up, these handlers from -1 down. */
const numberOf = (node: number): number => -1 - node;

export function startDeadlineHandler(
  run: Evaluation,
  node: NodePlace,
  handler: string,
  params: JsonValue,
): void {
  run.execution.b ??= {};
  const number = Math.max(-1, ...Object.keys(run.execution.b).map(Number)) + 1;
  const runs = runsOf(run, node);
  const place = { n: run.iterationOf(node), ...(runs > 0 && { r: runs }) };
  const hook: OpenDeadlineHandler = { i: node.id, h: handler, p: params, ...place };
  run.execution.b[number] = hook;
  run.charge(params);
  dispatchDeadlineHandler(run, number, hook);
}

/** Repeats the calls of handlers whose process has ended. */
export function recoverDeadlineHandlers(run: Evaluation): void {
  const { b = {} } = run.execution;
  for (const number of Object.keys(b).map(Number)) dispatchDeadlineHandler(run, number, b[number]!);
}

function dispatchDeadlineHandler(
  run: Evaluation,
  number: number,
  { i, h, p, n = '', r = 0 }: OpenDeadlineHandler,
): void {
  run.progress.dispatches.push({
    node: -1 - number,
    // Distinguishes it from the tries of the step itself, in receipts and idempotency keys.
    iteration: `deadline.${n}`,
    attempt: 0,
    blockId: i,
    handler: h,
    external: false,
    queueName: null,
    params: p,
    timeoutMs: null,
    overlay: null,
    runs: r,
  });
}

/** Applies the outcome of a handler; false when the handler is not open. */
export function endDeadlineHandler(run: Evaluation, event: TryEvent): boolean {
  const { execution } = run;
  const hook = deadlineHandlerOf(execution, event);
  if (hook === undefined) return false;
  let error: string | undefined;
  if (event.kind === 'step.refused') error = event.message;
  else if (event.kind !== 'step.outcome') return false;
  else if (event.outcome.kind === 'failure') error = event.outcome.message;
  if (hook.u !== undefined) {
    const { node, iteration, attempt } = event;
    const outcome = event.kind === 'step.outcome' ? effectOf(event.outcome) : 'lost';
    run.progress.effects ??= [];
    run.progress.effects.push({ node, iteration, attempt, effect: hook.u, outcome });
  }
  if (error !== undefined) noteDeadlineHandlerFailure(run, hook.i, hook.h, error);
  delete execution.b![numberOf(event.node)];
  if (Object.keys(execution.b!).length === 0) delete execution.b;
  return true;
}

export function effectOf(outcome: StepOutcome): EffectOutcome {
  if (outcome.kind === 'success') return 'success';
  return outcome.isKnown === true ? 'failure' : 'lost';
}

export function noteDeadlineHandlerFailure(
  run: Evaluation,
  blockId: string,
  handler: string,
  message: string,
): void {
  const details = { handler, message: clip(message, FAILURE_MESSAGE_MAX) };
  run.audit('deadline_handler_failed', { id: blockId }, details);
}
