/**
 * The limits of time that stand still while an instance is paused (docs/reference/steps.md): of tries, of
 * blocks, of steps over all of their tries, and of the instance as a whole. Sleeps, delays and back-offs
 * are none of them: they end at the times that they name.
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

/**
 * The time of a composite is over: everything inside is cut off as in the losers of a race, and when what is
 * protected there has ended, the block has failed.
 */
export function timeOutBlock(run: Evaluation, node: NodePlace, record: OpenRecord): void {
  run.counts.timeouts += 1;
  run.noteFailure(node, 'timeout', `${node.type} ${node.id} timed out after ${node.timeoutMs} ms`);
  delete record.d;
  record.o = 1;
  record.y = run.cause!;
  const goesOn = cut(run, node, 'race');
  if (!goesOn && run.execution.o[node.index] === undefined) run.tellParent(node, FAILED);
}

/** Counts the time of the instance from now on. */
export function startTimeLimit({ snapshot, execution, env }: Evaluation): void {
  if (snapshot.timeoutMs != null) execution.u = env.now + snapshot.timeoutMs;
}

/** Why an instance whose time is over will be failed. */
export function noteTimeOut({ execution, snapshot, env, counts }: Evaluation): void {
  counts.timeouts += 1;
  const code: FailureCode = 'instance_timeout';
  const message = `the instance timed out after ${snapshot.timeoutMs} ms`;
  execution.y = failureOfWhole(code, message, env.now);
}

/**
 * Until when the node may be at what it is at, whatever else holds the instance back; undefined: for ever.
 * How long a step may sleep, or wait for a person, is of interest only when it may go on.
 */
export function limitOf(record: OpenRecord): UnixMs | undefined {
  if (record.x === 1) return undefined;
  const { p, d, h } = record as Partial<StepRecord>;
  return earlier(p === 'sleep' || p === 'gate' ? undefined : d, h);
}

/** The first limit of all; null when there is none. */
export function firstLimit({ execution }: Evaluation): UnixMs | null {
  let first = execution.u;
  for (const key in execution.o) first = earlier(first, limitOf(execution.o[key]!));
  return first ?? null;
}

/** The time by which limits are counted: it stands still in a pause. */
export function limitClock({ execution, env }: Evaluation): UnixMs {
  return execution.z ?? env.now;
}

/** Puts all limits off. Changes the records in place: an index over them is no longer right. */
export function shiftLimits(execution: Execution, byMs: number): void {
  if (execution.u !== undefined) execution.u += byMs;
  for (const key in execution.o) {
    const record = execution.o[key] as StepRecord;
    if (record.d !== undefined) record.d += byMs;
    if (record.h !== undefined) record.h += byMs;
  }
}
