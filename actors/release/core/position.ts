/**
 * Replays the record of an instance with two versions of its sequence, each up to its position: the open steps without a
 * recorded result. A migration is safe when both versions executed the same steps in the same order with the same calls
 * and have the same open steps, which are carried over (`carry-over.ts`). The replay uses the data of the checkpoint; if
 * the source does not reach the position with it, the replay starts with the initial data and applies callers' updates
 * at their times. Pure.
 */

import type { EffectReceipt, MigrationFinding } from '../../../schema/continuity.js';
import type { EffectState } from '../../../schema/continuity-words.js';
import { FAILED, type StepRecord } from '../../../schema/execution.js';
import { type InstanceState, isEnded } from '../../../schema/states.js';
import type { JsonObject } from '../../../src/base/json.js';
import { type FindingCode, migrationFinding } from '../../../src/core/migration-findings.js';
import { iterationOf } from '../../../src/core/paths.js';
import type { Plan } from '../../../src/core/plan-nodes.js';
import { clashOf } from '../../../src/core/remap.js';
import {
  differingMembers,
  isSameCall,
  isSameRequest,
  nodeNamed,
  type RecordedCall,
  stepNamed,
} from './calls.js';
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
  /** The versions are equivalent at any position. */
  readonly isSame: boolean;
  readonly life: RecordedLife;
  /** context.data of the checkpoint, before and after the transforms. */
  readonly sourceData: JsonObject;
  readonly targetData: JsonObject;
  readonly hasTransforms: boolean;
  /** All receipts of the execution. */
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
    // With the initial data, both versions may make the same calls.
    const callsDiffer = other !== undefined && !verdict.passed && verdict.reason === other.reason;
    if (verdict.passed || !(asked.isSame || callsDiffer)) return verdict;
  }
  return verdict;
}

interface Input {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly signals: readonly RecordedSignal[];
}

/** The initial data are no alternative with transforms, which apply to the checkpoint only, or if the target restarts. */
function inputsOf({ sourceData, targetData, life, ...asked }: FrontierCase): Input[] {
  const present: Input = { before: sourceData, after: targetData, signals: [] };
  const beginsAnew = clashOf(life.execution, asked.source, asked.target) !== undefined;
  if (asked.hasTransforms || beginsAnew) return [present];
  return [present, { before: life.data, after: life.data, signals: life.signals }];
}

/** Whether the replay reaches the position of the instance and uses all recorded results. */
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
      // A failure caused by the definition alone recurs in the replay, and may have no row.
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
  const difference =
    asked.life.execution.e === FAILED
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

function differenceOf(before: Rerun, after: Rerun, other: OtherCall | undefined) {
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
    rerun
      .openSteps()
      .map((step) => `${placeOf(step)} ${step.handler}`)
      .sort(),
  ) as [string[], string[]];
  return isSameList(next, nextThere)
    ? undefined
    : differs('other steps come next', next, nextThere);
}

/** A retry continues after the completed steps, so the target must start with the same steps. */
function differenceOfFailed(before: Rerun, after: Rerun, other: OtherCall | undefined) {
  if (endOf(after) === 'cancelled') return { reason: 'it is cancelled' };
  const [old, now] = [completedIn(before), completedIn(after)];
  const isKept = isSameList(old, now.slice(0, old.length));
  return isKept ? other : differs('other steps are executed', old, now);
}

/** Places whose calls are compared. Open steps, and steps that a retry repeats, make their calls again. */
function placesThatAreOver(before: Rerun, asked: FrontierCase): (place: string) => boolean {
  if (asked.life.execution.e === FAILED) {
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
 * The receipts to judge. Attempts of open steps are left out: earlier attempts are settled, and the open attempt is
 * carried over with its step or blocks the migration. Manually reported effects stay.
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

/** The first open step that was sent and has no result. A failure is a result. */
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
    // A settled attempt has no effect in doubt.
    return !settled.has(id) && !(state === 'abandoned' && ended.has(id));
  });
  const blocks = new Set(sent.map(({ block_id }) => block_id));
  return position.find(({ id }) => blocks.has(id))?.id;
}

function judgedReceipts(receipts: readonly EffectReceipt[], life: RecordedLife, plan: Plan) {
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
  /** Default: the reason. */
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

/** Executed steps, each with its iteration. */
function executedIn({ executed }: Rerun): string[] {
  return executed.map(({ block, mark }) => block + mark);
}

/** Undefined before the end: waiting states are not compared. */
function endOf({ snapshot: { state } }: Rerun): InstanceState | undefined {
  return isEnded(state) ? state : undefined;
}

type OtherCall = { readonly block: string; readonly reason: string };

/**
 * The first recorded call that the target would have made differently; undefined when all agree.
 * @param before the replay with the source
 * @param after the replay with the target, which executed the same steps
 * @param isOver whether the step makes no further attempt in this iteration
 */
function otherCallIn(
  before: Rerun,
  after: Rerun,
  { calls }: Recording,
  isOver: (place: string) => boolean,
): OtherCall | undefined {
  for (const place of new Set([...before.taken, ...after.taken])) {
    const pass = place.slice(0, place.lastIndexOf('/'));
    // Later attempts of an open step use the target's call.
    if (!isOver(pass)) continue;
    const block = pass.slice(0, pass.lastIndexOf('/'));
    const reason = problemAt(block, place, before, after, calls.get(place));
    if (reason !== undefined) return { block, reason };
  }
  return undefined;
}

/** A call agrees when it equals the recorded one, or when both versions have the same request and render it equally. */
function problemAt(
  block: string,
  place: string,
  { plan: source, calls: made }: Rerun,
  { plan: target, calls: wanted }: Rerun,
  recorded: RecordedCall | undefined,
): string | undefined {
  const [old, now] = [made.get(place), wanted.get(place)];
  if (old === undefined && now === undefined) return undefined;
  if (recorded !== undefined && now !== undefined && isSameCall(recorded, now)) return undefined;
  // One version of the step is evaluated in place and makes no call.
  if (old === undefined || now === undefined) return another(block, ['handler']);
  if (!isSameCall(old, now)) return another(block, differingMembers(old, now));
  if (isSameRequest(stepNamed(source, block), stepNamed(target, block))) return undefined;
  return recorded === undefined
    ? `step ${block} says otherwise what it asks for, and nobody recorded what it asked`
    : another(block, differingMembers(recorded, now));
}

function another(block: string, members: readonly string[]): string {
  return `step ${block} makes another call: ${members.join(', ')}`;
}

export interface JudgedReceipt
  extends Pick<
    EffectReceipt,
    'block_id' | 'state' | 'destination_fingerprint' | 'idempotency_key'
  > {
  /** '' outside of loops; null when unknown. */
  readonly iteration: string | null;
}

/** The first rule that is violated or cannot be decided. */
export function brokenRule(receipts: readonly JudgedReceipt[]): string | undefined {
  const names = receipts.filter(({ state }) => DONE.has(state)).flatMap(namesOf);
  if (new Set(names).size < names.length) return 'effect_at_most_once: fail';
  const states = new Set(receipts.map(({ state }) => state));
  if (states.has('unknown')) return 'no_unknown_effects: fail';
  return states.has('dispatched') ? 'no_unknown_effects: unknown' : undefined;
}

/** Compensated effects are not listed: they may be repeated. */
const DONE: ReadonlySet<EffectState> = new Set<EffectState>(['committed', 'verified']);

/** Identities with at most one effect: a step in an iteration, and an idempotency key at a destination. */
function namesOf(receipt: JudgedReceipt): string[] {
  const { block_id, iteration, idempotency_key, destination_fingerprint } = receipt;
  const names: string[] = [];
  if (iteration !== null) names.push(JSON.stringify(['step', block_id, iteration]));
  if (idempotency_key !== null) {
    names.push(JSON.stringify(['key', destination_fingerprint, idempotency_key]));
  }
  return names;
}
