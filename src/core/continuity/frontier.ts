/**
 * Replays the life of an instance so far with two versions of its sequence, each up to its frontier:
 * the steps that wait for what nobody has recorded. A migration is
 * safe when both versions executed the same steps in the same order and stand before the same ones,
 * none of which has been sent anywhere. Pure.
 *
 * The data that decisions are made by are those of the checkpoint. Where the source does not get to
 * where the instance really stands with them, such as with a loop that changed them, the replay
 * begins with the data of its first moment, and what callers merged since comes at its time.
 */

import type { EffectReceipt } from '../../../schema/continuity.js';
import type { JsonObject } from '../json.js';
import { iterationOf } from '../paths.js';
import type { Plan } from '../plan-nodes.js';
import {
  NotReplayable,
  type RecordedLife,
  type RecordedSignal,
  type Recording,
  recordingOf,
} from '../releases/recording.js';
import { type OpenStep, Rerun, type RerunOptions } from '../releases/rerun.js';
import { Script } from '../releases/stand-ins.js';
import { clashOf } from '../remap.js';
import { type InstanceState, isEnded } from '../states.js';
import { brokenRule, type JudgedReceipt } from './invariants.js';
import { strandedBy } from './stranded.js';

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
  | { readonly passed: false; readonly reason: string };

export function replayToFrontier(asked: FrontierCase, options: RerunOptions): FrontierVerdict {
  try {
    const verdict = verdictOn(asked, options);
    const stranded = strandedBy(asked.life.execution, asked.source, asked.target);
    return verdict.passed && stranded !== undefined ? failure(stranded) : verdict;
  } catch (error) {
    if (error instanceof NotReplayable) return failure(error.message);
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
  let verdict: FrontierVerdict = failure('it does not lead to where the instance stands');
  for (const { before, after, signals } of inputsOf(asked)) {
    const old = run(source, before, signals);
    if (!asked.isSame && !reproduces(old, asked, recording)) continue;
    const next = run(target, after, signals, old.childInputs);
    verdict = compare(old, next, asked, recording);
    if (verdict.passed || !asked.isSame) return verdict;
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
): FrontierVerdict {
  const states = [endOf(before), endOf(after)];
  if (states[0] !== states[1]) {
    return failure(`one is ${states[0] ?? 'open'}, the other ${states[1] ?? 'open'}`);
  }
  if (states[1] === 'failed' || states[1] === 'cancelled') return failure(`it is ${states[1]}`);
  if (!isSameList(executedIn(before), executedIn(after))) {
    return failure('other steps are executed');
  }
  const next = [before, after].map((rerun) => rerun.openSteps().map(nameOf).sort());
  if (!isSameList(next[0] ?? [], next[1] ?? [])) return failure('other steps come next');
  const sent = sentFrom(after.openSteps(), asked, recording);
  if (sent !== undefined) return failure(`step ${sent} was sent already`);
  const [broken] = [asked.source, asked.target].flatMap(
    (plan) => brokenRule(judgedReceipts(asked, plan)) ?? [],
  );
  return broken === undefined ? { passed: true } : failure(broken);
}

/** The first step of the frontier that went out and has not come back with an output. */
function sentFrom(
  frontier: readonly OpenStep[],
  { receipts, life }: FrontierCase,
  { visits }: Recording,
): string | undefined {
  const settled = new Set(life.outputs.map(({ id }) => id));
  for (const { id, block_id, iteration } of life.tasks) {
    if (visits.get(block_id)?.get(iteration)?.isEnded === true) settled.add(id);
  }
  const sent = receipts.filter(
    ({ id, state }) => state !== 'planned' && state !== 'prepared' && !settled.has(id),
  );
  const blocks = new Set(sent.map(({ block_id }) => block_id));
  return frontier.find(({ id }) => blocks.has(id))?.id;
}

function judgedReceipts({ receipts, life }: FrontierCase, plan: Plan): JudgedReceipt[] {
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

function failure(reason: string): FrontierVerdict {
  return { passed: false, reason };
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
