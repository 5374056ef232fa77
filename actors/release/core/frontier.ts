/**
 * Replays the life of an instance so far with two versions of its sequence, each up to its frontier:
 * the steps that wait for what nobody has recorded. A migration is
 * safe when both versions executed the same steps in the same order with the same calls, and stand
 * before the same ones. What those wait for now is carried over (`carry-over.ts`), and nothing else of
 * them may have been sent anywhere. Of an instance that failed, its retry begins there. Pure.
 *
 * The data that decisions are made by are those of the checkpoint. Where the source does not get to
 * where the instance really stands with them, such as with a loop that changed them, the replay
 * begins with the data of its first moment, and what callers merged since comes at its time.
 */

import type { EffectReceipt, MigrationFinding } from '../../../schema/continuity.js';
import { FAILED, type StepRecord } from '../../../schema/execution.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import type { JsonObject } from '../../../src/base/json.js';
import { type FindingCode, migrationFinding } from '../../../src/core/migration-findings.js';
import { iterationOf } from '../../../src/core/paths.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import { clashOf } from '../../../src/core/remap.js';
import { type OtherCall, otherCallIn } from './frontier-calls.js';
import { brokenRule, type JudgedReceipt } from './invariants.js';
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
  /** The versions mean the same: nothing is left that the real place of the instance could show. */
  readonly isSame: boolean;
  readonly life: RecordedLife;
  /** context.data as the checkpoint has it, and after the transforms. */
  readonly sourceData: JsonObject;
  readonly targetData: JsonObject;
  readonly hasTransforms: boolean;
  /** All of the execution. */
  readonly receipts: readonly EffectReceipt[];
}

export type FrontierVerdict =
  | { readonly passed: true }
  | { readonly passed: false; readonly reason: string; readonly finding: MigrationFinding };

export function replayToFrontier(asked: FrontierCase, options: RerunOptions): FrontierVerdict {
  // What has not begun begins there.
  if (asked.life.execution.t === null && asked.receipts.length === 0) return { passed: true };
  try {
    return verdictOn(asked, options);
  } catch (error) {
    if (error instanceof NotReplayable) return failure('REPLAY_IMPOSSIBLE', error.message);
    throw error;
  }
}

function verdictOn(asked: FrontierCase, options: RerunOptions): FrontierVerdict {
  const { life, source, target } = asked;
  const recording = recordingOf(life, source);
  const run = (
    plan: Plan,
    data: JsonObject,
    signals: readonly RecordedSignal[],
    inputs?: ReadonlyMap<string, string>,
  ) => {
    const script = new Script(recording, source, inputs);
    const rerun = new Rerun('frontier', plan, script, { ...life, data, signals }, options);
    rerun.run();
    return rerun;
  };
  let verdict: FrontierVerdict = failure('REPLAY_IMPOSSIBLE', {
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
    // With the data of then, both may ask for what was asked for.
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
 * Transforms are of the checkpoint, and say nothing about earlier data. Nor does it help to know what
 * they led to where the target begins anew: it decides by those of the checkpoint.
 */
function inputsOf({ sourceData, targetData, life, ...asked }: FrontierCase): Input[] {
  const present: Input = { before: sourceData, after: targetData, signals: [] };
  const beginsAnew = clashOf(life.execution, asked.source, asked.target) !== undefined;
  if (asked.hasTransforms || beginsAnew) return [present];
  return [present, { before: life.data, after: life.data, signals: life.signals }];
}

// ---------------------------------------------------------------- the verdict

/** Whether the run has come to where the instance stands, by way of all that is recorded. */
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
      // A failure that came of the definition alone happens again by itself, and may have no row.
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
): FrontierVerdict {
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

/** A retry goes on behind what has completed: that has to be what the target begins with. */
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

/** Those whose calls count: a step that is open, or that the retry of an instance does, will ask again. */
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

/** Names the first one that differs. */
function differs(reason: string, a: readonly string[], b: readonly string[]): Reason {
  const at = a.findIndex((name, i) => name !== b[i]);
  const place = at < 0 ? a.length : at;
  // Outside of loops there is no pass to be named.
  const shown = (names: readonly string[]) => names[place]?.replace(/\/(?= |$)/, '') ?? 'none';
  return { reason, summary: `${reason}: ${shown(a)} in the source, ${shown(b)} in the target` };
}

/**
 * Receipts of open steps are left out, as far as the engine knows what to do with them: tries that are
 * followed by the open one, and this itself, which is carried over with its step or not at all. What
 * somebody has found out about it is no part of that.
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

/**
 * The first step of the frontier that went out and has not come back with an output. A try that failed
 * did come back.
 */
function sentFrom(
  frontier: readonly OpenStep[],
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
    // Nothing was done in a try that is over.
    return !settled.has(id) && !(state === 'abandoned' && ended.has(id));
  });
  const blocks = new Set(sent.map(({ block_id }) => block_id));
  return frontier.find(({ id }) => blocks.has(id))?.id;
}

function judgedReceipts(
  receipts: readonly EffectReceipt[],
  life: RecordedLife,
  plan: Plan,
): JudgedReceipt[] {
  const rows = [...life.outputs, ...life.tasks];
  const iterations = new Map(rows.map(({ id, iteration }) => [id, iteration]));
  return receipts.map((receipt) => {
    const node = plan.nodes[plan.indexOf.get(receipt.block_id) ?? -1];
    const outside = node !== undefined && node.loops.length === 0 ? '' : null;
    return { ...receipt, iteration: iterations.get(receipt.id) ?? outside };
  });
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

/** For the log, and for people. */
interface Reason {
  readonly reason: string;
  /** Absent: the same. */
  readonly summary?: string;
}

/** @param block_id that it is about, if it is about one */
export function failure(
  code: FindingCode,
  told: string | Reason,
  block_id?: string,
): FrontierVerdict {
  const { reason, summary = reason } = typeof told === 'string' ? { reason: told } : told;
  const about = block_id === undefined ? {} : { block_id };
  return { passed: false, reason, finding: migrationFinding(code, summary, about) };
}

function placeOf({ id, iteration }: OpenStep): string {
  return `${id}/${iteration}`;
}

function nameOf(step: OpenStep): string {
  return `${placeOf(step)} ${step.handler}`;
}

/** With the pass of the loops around them. */
function executedIn({ executed }: Rerun): string[] {
  return executed.map(({ block, mark }) => block + mark);
}

/** Undefined at a frontier: what it waits for there is not compared. */
function endOf({ snapshot: { state } }: Rerun): InstanceState | undefined {
  return isEnded(state) ? state : undefined;
}
