/**
 * Replays the life of an instance with two versions of its sequence, each up to its position: the open steps without a
 * recorded result. A migration is safe when both versions executed the same steps in the same order with the same calls
 * and have the same open steps; those are carried over (`carry-over.ts`). Decisions use the data of the checkpoint; if
 * the source does not reach the instance's position with them, the replay starts with the initial data, and callers'
 * updates come at their times. Pure.
 */

import type { EffectReceipt, MigrationFinding } from '../../../schema/continuity.js';
import { FAILED, type StepRecord } from '../../../schema/execution.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import type { JsonObject } from '../../../src/base/json.js';
import { type FindingCode, migrationFinding } from '../../../src/core/migration-findings.js';
import { iterationOf } from '../../../src/core/paths.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import { clashOf } from '../../../src/core/remap.js';
import { nodeNamed } from './calls.js';
import { brokenRule, type JudgedReceipt, type OtherCall, otherCallIn } from './position-checks.js';
import {
  NotReplayable,
  type RecordedLife,
  type RecordedSignal,
  type Recording,
  recordingOf,
} from './recording.js';
import { type OpenStep, Rerun, type RerunOptions } from './rerun.js';
import { Script } from './stand-ins.js';

export interface FrontierCase {
  readonly source: Plan;
  readonly target: Plan;
  /** The versions are equivalent, so the position of the instance cannot make a difference. */
  readonly isSame: boolean;
  readonly life: RecordedLife;
  /** context.data of the checkpoint, before and after the transforms. */
  readonly sourceData: JsonObject;
  readonly targetData: JsonObject;
  readonly hasTransforms: boolean;
  /** All of the execution. */
  readonly receipts: readonly EffectReceipt[];
}

export type PositionVerdict =
  | { readonly passed: true }
  | { readonly passed: false; readonly reason: string; readonly finding: MigrationFinding };

export function replayToPosition(asked: FrontierCase, options: RerunOptions): PositionVerdict {
  // An execution that has not begun starts in the target.
  if (asked.life.execution.t === null && asked.receipts.length === 0) return { passed: true };
  try {
    return verdictOn(asked, options);
  } catch (error) {
    if (error instanceof NotReplayable) return failure('REPLAY_IMPOSSIBLE', error.message);
    throw error;
  }
}

function verdictOn(asked: FrontierCase, options: RerunOptions): PositionVerdict {
  const { life, source, target } = asked;
  const recording = recordingOf(life, source);
  const run = (
    plan: Plan,
    data: JsonObject,
    signals: readonly RecordedSignal[],
    inputs?: ReadonlyMap<string, string>,
  ) => {
    const script = new Script(recording, source, inputs);
    const rerun = new Rerun('position', plan, script, { ...life, data, signals }, options);
    rerun.run();
    return rerun;
  };
  let verdict: PositionVerdict = failure('REPLAY_IMPOSSIBLE', {
    reason: 'it does not lead to where the instance stands',
    summary: 'what is recorded does not lead to where the instance stands',
  });
  for (const { before, after, signals } of inputsOf(asked)) {
    const old = run(source, before, signals);
    if (!asked.isSame && !reproduces(old, asked, recording)) continue;
    const next = run(target, after, signals, old.childInputs);
    const isOver = placesThatAreOver(old, asked);
    const other = asked.isSame ? undefined : otherCallIn(old, next, recording, isOver);
    verdict = compare(old, next, asked, recording, other);
    // With the initial data, both may make the same calls.
    const asksOtherwise = other !== undefined && !verdict.passed && verdict.reason === other.reason;
    if (verdict.passed || !(asked.isSame || asksOtherwise)) return verdict;
  }
  return verdict;
}

interface Input {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly signals: readonly RecordedSignal[];
}

/**
 * Transforms apply to the checkpoint and say nothing about earlier data, nor would their history help where the target
 * starts anew.
 */
function inputsOf({ sourceData, targetData, life, ...asked }: FrontierCase): Input[] {
  const present: Input = { before: sourceData, after: targetData, signals: [] };
  const beginsAnew = clashOf(life.execution, asked.source, asked.target) !== undefined;
  if (asked.hasTransforms || beginsAnew) return [present];
  return [present, { before: life.data, after: life.data, signals: life.signals }];
}

/** Whether the replay reaches the position of the instance through everything that is recorded. */
function reproduces(rerun: Rerun, { life, source }: FrontierCase, recording: Recording): boolean {
  const reached = new Set(rerun.openSteps().map(placeOf));
  const executed = new Set(executedIn(rerun));
  for (const index of Object.keys(life.execution.o).map(Number)) {
    const node = source.nodes[index];
    if (node?.kind.isLeaf !== true) continue;
    if (!reached.has(`${node.id}/${iterationOf(life.execution, node)}`)) return false;
  }
  for (const [block, visits] of recording.visits) {
    if (!source.indexOf.has(block)) continue;
    for (const [iteration, { tries, isEnded: hasEnded }] of visits) {
      const last = tries.at(-1);
      // A failure that the definition alone caused repeats itself, and may have no row.
      if (!hasEnded || last === undefined || last.id === '') continue;
      const isTaken = rerun.taken.has(`${block}/${iteration}/${tries.length - 1}`);
      if (!isTaken && !executed.has(`${block}/${iteration}`)) return false;
    }
  }
  return true;
}

function compare(
  before: Rerun,
  after: Rerun,
  asked: FrontierCase,
  recording: Recording,
  other: OtherCall | undefined,
): PositionVerdict {
  const difference = hasFailed(asked)
    ? differenceOfFailed(before, after, other)
    : differenceOf(before, after, other);
  if (difference !== undefined) {
    const about = difference === other ? other.block : undefined;
    return failure('REPLAY_DIFFERS', difference, about);
  }
  const receipts = ofNoOpenTry(asked);
  const sent = sentFrom(after.openSteps(), receipts, asked, recording);
  if (sent !== undefined) {
    return failure('EFFECT_IN_DOUBT', `step ${sent} was sent already`, sent);
  }
  const [broken] = [asked.source, asked.target].flatMap(
    (plan) => brokenRule(judgedReceipts(receipts, asked.life, plan)) ?? [],
  );
  return broken === undefined ? { passed: true } : failure('EFFECT_IN_DOUBT', broken);
}

function hasFailed({ life }: FrontierCase): boolean {
  return life.execution.e === FAILED;
}

function differenceOf(
  before: Rerun,
  after: Rerun,
  other: OtherCall | undefined,
): Reason | undefined {
  const states = [endOf(before), endOf(after)];
  if (states[0] !== states[1]) {
    const [old, now] = [states[0] ?? 'open', states[1] ?? 'open'];
    const summary = `with what is recorded the source is ${old}, the target ${now}`;
    return { reason: `one is ${old}, the other ${now}`, summary };
  }
  if (states[1] === 'failed' || states[1] === 'cancelled') return { reason: `it is ${states[1]}` };
  const [old, now] = [executedIn(before), executedIn(after)];
  if (!isSameList(old, now)) return differs('other steps are executed', old, now);
  if (other !== undefined) return other;
  const [next, nextThere] = [before, after].map((rerun) =>
    rerun.openSteps().map(nameOf).sort(),
  ) as [string[], string[]];
  return isSameList(next, nextThere)
    ? undefined
    : differs('other steps come next', next, nextThere);
}

/** A retry continues after the completed steps, which have to be those that the target starts with. */
function differenceOfFailed(
  before: Rerun,
  after: Rerun,
  other: OtherCall | undefined,
): Reason | undefined {
  if (endOf(after) === 'cancelled') return { reason: 'it is cancelled' };
  const [old, now] = [completedIn(before), completedIn(after)];
  const isKept = isSameList(old, now.slice(0, old.length));
  return isKept ? other : differs('other steps are executed', old, now);
}

/** Places whose calls count; open steps, and steps that a retry repeats, make their calls again. */
function placesThatAreOver(before: Rerun, asked: FrontierCase): (place: string) => boolean {
  if (hasFailed(asked)) {
    const completed = new Set(completedIn(before));
    return (place) => completed.has(place);
  }
  const open = new Set(before.openSteps().map(placeOf));
  return (place) => !open.has(place);
}

function completedIn({ executed }: Rerun): string[] {
  return executed.filter(({ hasFailed }) => !hasFailed).map(({ block, mark }) => block + mark);
}

function differs(reason: string, a: readonly string[], b: readonly string[]): Reason {
  const at = a.findIndex((name, i) => name !== b[i]);
  const place = at < 0 ? a.length : at;
  const shown = (names: readonly string[]) => names[place]?.replace(/\/(?= |$)/, '') ?? 'none';
  return { reason, summary: `${reason}: ${shown(a)} in the source, ${shown(b)} in the target` };
}

/**
 * The receipts without those of open steps that the engine handles itself: attempts before the open one, and the open
 * one, which is carried over with its step or blocks the migration. Manually reported effects stay.
 */
function ofNoOpenTry({ source, target, life, receipts }: FrontierCase): readonly EffectReceipt[] {
  const { execution } = life;
  const isMoved = clashOf(execution, source, target) !== undefined;
  const rows = new Map(life.tasks.map((task) => [task.id, task]));
  return receipts.filter(({ id, block_id, attempt, state }) => {
    const row = rows.get(id);
    const index = source.indexOf.get(block_id) ?? -1;
    const node = source.nodes[index];
    const open = execution.o[index] as StepRecord | undefined;
    if (node?.type !== 'step' || open === undefined) return true;
    const isOfThisPass = row === undefined || row.iteration === iterationOf(execution, node);
    if (!isOfThisPass || attempt > open.a) return true;
    if (attempt < open.a) return isMoved;
    return state !== 'dispatched';
  });
}

/** The first open step that was sent and has not come back with an output. A failed attempt has come back. */
function sentFrom(
  position: readonly OpenStep[],
  receipts: readonly EffectReceipt[],
  { life }: FrontierCase,
  { visits }: Recording,
): string | undefined {
  const settled = new Set(life.outputs.map(({ id }) => id));
  const ended = new Set<string>();
  for (const { id, block_id, iteration } of life.tasks) {
    ended.add(id);
    if (visits.get(block_id)?.get(iteration)?.isEnded === true) settled.add(id);
  }
  const sent = receipts.filter(({ id, state }) => {
    if (state === 'planned' || state === 'prepared' || state === 'failed') return false;
    // An attempt that is settled had no effect.
    return !settled.has(id) && !(state === 'abandoned' && ended.has(id));
  });
  const blocks = new Set(sent.map(({ block_id }) => block_id));
  return position.find(({ id }) => blocks.has(id))?.id;
}

function judgedReceipts(
  receipts: readonly EffectReceipt[],
  life: RecordedLife,
  plan: Plan,
): JudgedReceipt[] {
  const rows = [...life.outputs, ...life.tasks];
  const iterations = new Map(rows.map(({ id, iteration }) => [id, iteration]));
  return receipts.map((receipt) => {
    const isOutside = nodeNamed(plan, receipt.block_id)?.loops.length === 0;
    return { ...receipt, iteration: iterations.get(receipt.id) ?? (isOutside ? '' : null) };
  });
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

interface Reason {
  readonly reason: string;
  /** Absent: the same as the reason. */
  readonly summary?: string;
}

export function failure(
  code: FindingCode,
  cause: string | Reason,
  block_id?: string,
): PositionVerdict {
  const { reason, summary = reason } = typeof cause === 'string' ? { reason: cause } : cause;
  const about = block_id === undefined ? {} : { block_id };
  return { passed: false, reason, finding: migrationFinding(code, summary, about) };
}

function placeOf({ id, iteration }: OpenStep): string {
  return `${id}/${iteration}`;
}

function nameOf(step: OpenStep): string {
  return `${placeOf(step)} ${step.handler}`;
}

/** With the iterations of the loops around them. */
function executedIn({ executed }: Rerun): string[] {
  return executed.map(({ block, mark }) => block + mark);
}

/** Undefined at a position: what the instance waits for is not compared. */
function endOf({ snapshot: { state } }: Rerun): InstanceState | undefined {
  return isEnded(state) ? state : undefined;
}
