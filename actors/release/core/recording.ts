/**
 * The record of a run as the script of its replay: for each visit of a step the calls, their results, and the times of
 * the results. A visit is one execution of a step: a step in a loop has one per iteration. A failure that a retry of the
 * instance replaced is not part of the record. Pure.
 */

import { CANCELLED, type DoneCode, type Execution, FAILED } from '../../../schema/execution.js';
import { isFailureCode } from '../../../schema/failure.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../../src/base/json.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { StepOutcome } from '../../../src/core/builtin.js';
import { isOfHooks } from '../../../src/core/hooks.js';
import type { Plan } from '../../../src/core/plan.js';
import { GATE_REF, NOTE_MARK } from '../../../src/core/progress.js';
import { nodeNamed, placeOf, type RecordedCall, sleepOf, stepNamed } from './calls.js';

/** Rows of `block_outputs` in the order of creation: results and answers, without notes on attempts. */
export interface RecordedOutput {
  readonly id: string;
  readonly block_id: string;
  readonly iteration: string;
  readonly try: number;
  readonly output: JsonValue;
  readonly output_ref: '__error__' | typeof GATE_REF | null;
  /** The hash of the in-process call that produced the output; null when there was none, or it is unknown. */
  readonly call: string | null;
  readonly created_at: string;
}

/** In-process calls without an output, in the order of dispatch. */
export interface RecordedReceipt {
  readonly block_id: string;
  /** Null when unknown. */
  readonly iteration: string | null;
  readonly attempt: number;
  readonly request_sha256: string;
}

/** Ended rows of `worker_tasks`, in the order of dispatch. */
export interface RecordedTask {
  readonly id: string;
  readonly block_id: string;
  readonly iteration: string;
  readonly attempt: number;
  readonly handler: string;
  readonly params: JsonValue;
  readonly state: 'completed' | 'failed';
  readonly withdrawn: boolean;
  /** Null when `block_outputs` has the output. */
  readonly output: JsonValue;
  readonly error_message: string | null;
  readonly error_retryable: boolean | null;
  readonly timed_out: boolean;
  readonly created_at: string;
  readonly completed_at: string | null;
}

export interface RecordedSignal {
  readonly signal_type: string;
  readonly payload: JsonValue;
  readonly created_at: string;
}

export interface RecordedRun {
  readonly id: string;
  readonly state: 'completed' | 'failed';
  readonly timezone: string;
  /** The data at creation. */
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly execution: Execution;
  /** Null or absent: no limit. */
  readonly timeout?: number | null;
  readonly created_at: string;
  readonly outputs: readonly RecordedOutput[];
  readonly tasks: readonly RecordedTask[];
  readonly receipts: readonly RecordedReceipt[];
  readonly signals: readonly RecordedSignal[];
}

/** The record so far of an instance that has not ended. */
export type RecordedLife = Omit<RecordedRun, 'state'>;

export interface RecordedTry {
  readonly outcome: StepOutcome;
  /** The time of the result; `id` breaks ties. */
  readonly at: UnixMs;
  readonly id: string;
  /** Without a retry policy a timeout is not retried. */
  readonly timedOut?: boolean;
  /** False when the failure is only inferred from the number of the next attempt. */
  readonly isKnown: boolean;
}

export interface Visit {
  readonly tries: readonly RecordedTry[];
  /** False when the visit was cut off, such as by a lost race. */
  readonly isEnded: boolean;
}

/** A person's answer at the gate of a step. */
export type RecordedAnswer = { readonly at: UnixMs; readonly id: string; readonly value: string };

export interface Recording {
  /** By `block/iteration`. */
  readonly answers: ReadonlyMap<string, RecordedAnswer>;
  /** Visits of steps whose gate expired without an answer. */
  readonly expired: ReadonlyMap<string, ReadonlySet<string>>;
  /** By block and by iteration, in the order of iterations. */
  readonly visits: ReadonlyMap<string, ReadonlyMap<string, Visit>>;
  /** The calls of all attempts, by place (see `placeOf`). */
  readonly calls: ReadonlyMap<string, RecordedCall>;
  /** Steps with an output. */
  readonly succeeded: ReadonlySet<string>;
  /** Steps with failures only. */
  readonly failed: ReadonlySet<string>;
  /** Steps that were cut off in the last iteration around them. */
  readonly cutOff: ReadonlySet<string>;
  /** Blocks of any kind that had failed at the end. */
  readonly failedBlocks: ReadonlySet<string>;
}

export class NotReplayable extends Error {}

/** Maximum attempts of one visit; more could not be replayed within the turn limit. */
const TRIES_MAX = 5_000;

/** @throws NotReplayable */
export function recordingOf(run: RecordedLife, baseline: Plan): Recording {
  const answers = answersIn(run);
  const visits = new Map<string, Map<string, Visit>>();
  for (const [block, rows] of rowsByStep(run, baseline)) {
    const ordered = [...rows].sort(([a], [b]) => comparePaths(a, b));
    visits.set(block, new Map(ordered.map(([path, own]) => [path, triesOf(own)])));
  }
  // Some failures, such as parameters that cannot be rendered, are recorded only in the execution.
  for (const block of stepsAtEnd(run, baseline, FAILED)) endInFailure(visits, block, run);
  const succeeded = new Set<string>();
  const failed = new Set<string>();
  for (const [block, own] of visits) {
    const ended = [...own.values()].filter(({ isEnded }) => isEnded);
    if (ended.some(({ tries }) => tries.at(-1)?.outcome.kind === 'success')) succeeded.add(block);
    else if (ended.length > 0) failed.add(block);
  }
  return {
    answers,
    expired: expiredIn(visits, answers, baseline),
    visits,
    calls: callsOf(run, baseline),
    succeeded,
    failed,
    cutOff: stepsAtEnd(run, baseline, CANCELLED),
    failedBlocks: blocksAtEnd(run, baseline, FAILED),
  };
}

/** If an attempt was repeated, its latest call counts. */
function callsOf({ receipts, outputs, tasks }: RecordedLife, baseline: Plan) {
  const calls = new Map<string, RecordedCall>();
  for (const { block_id, iteration, attempt, request_sha256: sha256 } of receipts) {
    const isOutside = nodeNamed(baseline, block_id)?.loops.length === 0;
    const path = iteration ?? (isOutside ? '' : undefined);
    if (path !== undefined) calls.set(placeOf(block_id, path, attempt), { sha256 });
  }
  for (const { block_id, iteration, try: attempt, output, output_ref, call } of outputs) {
    if (output_ref === GATE_REF) continue;
    const place = placeOf(block_id, iteration, attempt);
    const step = stepNamed(baseline, block_id);
    if (call !== null) calls.set(place, { sha256: call });
    else if (step?.mode === 'sleep' && output_ref === null) {
      const ms = isJsonObject(output) ? ownValue(output, 'slept_ms') : undefined;
      if (ms !== undefined) calls.set(place, { handler: step.handler, params: sleepOf(ms) });
    }
  }
  for (const { block_id, iteration, attempt, handler, params } of tasks) {
    calls.set(placeOf(block_id, iteration, attempt), { handler, params });
  }
  return calls;
}

function answersIn({ outputs }: RecordedLife): Map<string, RecordedAnswer> {
  const answers = new Map<string, RecordedAnswer>();
  for (const { block_id, iteration, output, output_ref, created_at, id } of outputs) {
    if (output_ref !== GATE_REF) continue;
    const value = String((output as JsonObject).value);
    const [path = ''] = iteration.split(NOTE_MARK);
    answers.set(`${block_id}/${path}`, { at: Date.parse(created_at), id, value });
  }
  return answers;
}

function expiredIn(
  visits: ReadonlyMap<string, ReadonlyMap<string, Visit>>,
  answers: Recording['answers'],
  baseline: Plan,
): Map<string, Set<string>> {
  const expired = new Map<string, Set<string>>();
  for (const [block, own] of visits) {
    if (stepNamed(baseline, block)?.gate === undefined) continue;
    const ended = [...own.keys()].filter((path) => own.get(path)?.isEnded);
    const unanswered = ended.filter((path) => !answers.has(`${block}/${path}`));
    if (unanswered.length > 0) expired.set(block, new Set(unanswered));
  }
  return expired;
}

interface VisitRows {
  end: RecordedOutput | undefined;
  /** The latest task of each attempt. */
  readonly tasks: Map<number, RecordedTask>;
  lastTask: RecordedTask | undefined;
}

/** Rows by leaf and iteration, without those of other blocks, which are notes of loops. */
function rowsByStep(run: RecordedLife, baseline: Plan): Map<string, Map<string, VisitRows>> {
  const byStep = new Map<string, Map<string, VisitRows>>();
  const runs = new SagaRuns(run, baseline);
  const rowsOf = ({ block_id }: Row, iteration: string): VisitRows => {
    const visits = byStep.get(block_id) ?? new Map<string, VisitRows>();
    const rows = visits.get(iteration) ?? { end: undefined, tasks: new Map(), lastTask: undefined };
    byStep.set(block_id, visits.set(iteration, rows));
    return rows;
  };
  for (const output of run.outputs) {
    if (output.output_ref === GATE_REF) continue;
    // Hooks are not part of the replay.
    if (isOfHooks(output.iteration) || isComposite(baseline, output.block_id)) continue;
    const iteration = runs.inLast(output);
    if (iteration !== undefined) rowsOf(output, iteration).end = output;
  }
  for (const task of run.tasks) {
    const iteration = runs.inLast(task);
    if (iteration === undefined) continue;
    const rows = rowsOf(task, iteration);
    rows.tasks.set(task.attempt, task);
    rows.lastTask = task;
  }
  return byStep;
}

type Row = Pick<RecordedOutput | RecordedTask, 'block_id' | 'iteration'>;

/** A retry of the instance runs a failed saga again. The replay has only the last run of a saga, with number 0. */
class SagaRuns {
  readonly #plan: Plan;
  /** The number of the last run, by saga and the iteration that contains it. */
  readonly #last = new Map<string, number>();

  constructor({ outputs, tasks }: RecordedLife, plan: Plan) {
    this.#plan = plan;
    for (const row of [...outputs, ...tasks]) {
      for (const { key, number } of this.#runsOf(row)) {
        this.#last.set(key, Math.max(number, this.#last.get(key) ?? 0));
      }
    }
  }

  /** The row's iteration in the replay; undefined for a superseded run. */
  inLast(row: Row): string | undefined {
    const runs = this.#runsOf(row);
    if (runs.length === 0) return row.iteration;
    if (runs.some(({ key, number }) => number !== this.#last.get(key))) return undefined;
    const path = row.iteration.split('.');
    for (const { place } of runs) path[place] = '0';
    return path.join('.');
  }

  /** The runs of the sagas that contain the block, outermost first. */
  #runsOf({ block_id, iteration }: Row) {
    const loops = nodeNamed(this.#plan, block_id)?.loops ?? [];
    return loops.flatMap((index, place) => {
      if (this.#plan.nodes[index]?.type !== 'saga') return [];
      const path = iteration.split('.');
      const key = `${index}/${path.slice(0, place).join('.')}`;
      return [{ key, place, number: Number(path[place]) }];
    });
  }
}

function isComposite(plan: Plan, block: string): boolean {
  const node = nodeNamed(plan, block);
  return node !== undefined && !node.kind.isLeaf;
}

function triesOf({ end, tasks, lastTask }: VisitRows): Visit {
  const failures = (count: number): RecordedTry[] => {
    if (count > TRIES_MAX) throw new NotReplayable(`a step was tried ${count} times`);
    return Array.from({ length: count }, (_, number) => failureOf(tasks.get(number)));
  };
  if (end !== undefined) return { tries: [...failures(end.try), tryOfOutput(end)], isEnded: true };
  const before = failures(lastTask?.attempt ?? 0);
  if (lastTask === undefined || wasCutOff(lastTask)) return { tries: before, isEnded: false };
  // A withdrawn task with a retryable error was cut off before its next attempt.
  return { tries: [...before, tryOfTask(lastTask)], isEnded: !lastTask.withdrawn };
}

/** An attempt before another one: a retryable failure. */
function failureOf(task: RecordedTask | undefined): RecordedTry {
  if (task?.state === 'failed' && !wasCutOff(task)) return tryOfTask(task);
  const outcome = { kind: 'failure', retryable: true, message: 'the try failed' } as const;
  return { outcome, at: 0, id: '', isKnown: false };
}

function tryOfOutput(row: RecordedOutput): RecordedTry {
  const base = { at: Date.parse(row.created_at), id: row.id, isKnown: true };
  if (row.output_ref === null) return { ...base, outcome: { kind: 'success', output: row.output } };
  const { retryable, message, details, code } = row.output as JsonObject;
  const failure = {
    kind: 'failure',
    retryable: retryable === true,
    message: String(message),
    ...(isFailureCode(code) ? { code } : {}),
  } as const;
  const outcome = details === undefined ? failure : { ...failure, details: details as JsonObject };
  return { ...base, outcome };
}

function tryOfTask(task: RecordedTask): RecordedTry {
  const at = Date.parse(task.completed_at ?? task.created_at);
  const outcome: StepOutcome =
    task.state === 'completed'
      ? { kind: 'success', output: task.output }
      : {
          kind: 'failure',
          retryable: task.error_retryable === true,
          message: task.error_message ?? '',
          ...(task.timed_out ? { code: 'timeout' } : {}),
        };
  return { outcome, at, id: task.id, isKnown: true, timedOut: task.timed_out };
}

/** The worker sent no result, because a race was lost or the instance was stopped. */
function wasCutOff(task: RecordedTask): boolean {
  return task.withdrawn && task.error_retryable !== true;
}

function stepsAtEnd(run: RecordedLife, baseline: Plan, code: DoneCode): Set<string> {
  const ended = blocksAtEnd(run, baseline, code);
  return new Set([...ended].filter((id) => !isComposite(baseline, id)));
}

function blocksAtEnd({ execution }: RecordedLife, baseline: Plan, code: DoneCode): Set<string> {
  const nodes = baseline.nodes.filter(({ index }) => execution.d[index]?.[0] === code);
  return new Set(nodes.map(({ id }) => id));
}

function endInFailure(visits: Map<string, Map<string, Visit>>, block: string, run: RecordedLife) {
  const own = visits.get(block) ?? new Map<string, Visit>();
  const [path, last] = [...own].at(-1) ?? ['', { tries: [], isEnded: false }];
  if (last.isEnded) return;
  const message = run.execution.y?.message ?? 'the step failed';
  const outcome = { kind: 'failure', retryable: false, message } as const;
  const end: RecordedTry = { outcome, at: 0, id: '', isKnown: true };
  visits.set(block, own.set(path, { tries: [...last.tries, end], isEnded: true }));
}

/** Orders paths of loop counters, such as '2.0', numerically. */
function comparePaths(a: string, b: string): number {
  const [left, right] = [a.split('.'), b.split('.')];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    const difference = Number(left[i]) - Number(right[i]);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
