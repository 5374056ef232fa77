/**
 * Time limits, which stand still while an instance is paused (docs/reference/steps.md): of tries, blocks, steps and the
 * instance. Sleeps, delays and back-offs are not limits and end at their own times.
 */

import {
  type Execution,
  FAILED,
  type OpenRecord,
  type StepRecord,
} from '../../schema/execution.js';
import type { FailureCode } from '../../schema/failure.js';
import type { UnixMs } from '../base/time.js';
import { cut } from './cutting.js';
import type { Evaluation } from './evaluation.js';
import { failureOfWhole } from './failures.js';
import { earlier } from './open-leaves.js';
import type { NodePlace } from './plan-nodes.js';

/** A composite has timed out: it fails once what is protected inside has ended. */
export function timeOutBlock(run: Evaluation, node: NodePlace, record: OpenRecord): void {
  run.progress.counts.timeouts += 1;
  run.noteFailure(node, 'timeout', `${node.type} ${node.id} timed out after ${node.timeoutMs} ms`);
  delete record.d;
  record.o = 1;
  record.y = run.cause!;
  const isProtected = cut(run, node, 'race');
  if (!isProtected && run.execution.o[node.index] === undefined) run.notifyParent(node, FAILED);
}

export function startTimeLimit({ snapshot, execution, env }: Evaluation): void {
  if (snapshot.timeoutMs != null) execution.u = env.now + snapshot.timeoutMs;
}

export function noteTimeOut({ execution, snapshot, env, progress }: Evaluation): void {
  progress.counts.timeouts += 1;
  const code: FailureCode = 'instance_timeout';
  const message = `the instance timed out after ${snapshot.timeoutMs} ms`;
  execution.y = failureOfWhole(code, message, env.now);
}

/** The time limit of a node that applies even while nothing may start: not that of a sleep or a gate. */
export function limitOf(record: OpenRecord): UnixMs | undefined {
  if (record.x === 1) return undefined;
  const { p, d, h } = record as Partial<StepRecord>;
  return earlier(p === 'sleep' || p === 'gate' ? undefined : d, h);
}

export function firstLimit({ execution }: Evaluation): UnixMs | null {
  let first = execution.u;
  for (const key in execution.o) first = earlier(first, limitOf(execution.o[key]!));
  return first ?? null;
}

/** The clock of limits, which stands still in a pause. */
export function limitClock({ execution, env }: Evaluation): UnixMs {
  return execution.z ?? env.now;
}

/** Postpones all limits in place: call `dropLeaves` afterwards. */
export function shiftLimits(execution: Execution, byMs: number): void {
  if (execution.u !== undefined) execution.u += byMs;
  for (const key in execution.o) {
    const record = execution.o[key] as StepRecord;
    if (record.d !== undefined) record.d += byMs;
    if (record.h !== undefined) record.h += byMs;
  }
}
