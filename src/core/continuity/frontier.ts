/**
 * Replays the life of an instance so far with two versions of its sequence (05 §16): the real
 * evaluator in virtual time, from the first block, with every handler replaced by what is recorded.
 * Each run goes up to its frontier: the steps that wait for what nobody has recorded. A migration is
 * safe when both versions executed the same steps in the same order and stand before the same ones,
 * none of which has been sent anywhere. Pure.
 *
 * The data that decisions are made by are those of the checkpoint. Where the source does not get to
 * where the instance really stands with them, such as with a loop that changed them, the replay
 * begins with the data of its first moment, and what callers merged since comes at its time.
 */

import { advance, type EngineEvent, type Env, type Progress, type Snapshot } from '../evaluator.js';
import { emptyExecution, type LoopRecord } from '../execution.js';
import { isJsonObject, type JsonObject } from '../json.js';
import type { Plan, PlanNode, StepNode } from '../plan-nodes.js';
import type { Dispatch, StepTry } from '../progress.js';
import {
  NotReplayable,
  type RecordedLife,
  type RecordedSignal,
  type RecordedTry,
  type Recording,
  recordingOf,
} from '../releases/recording.js';
import { Script } from '../releases/stand-ins.js';
import { clashOf } from '../remap.js';
import { type InstanceState, isEnded } from '../states.js';
import type { UnixMs } from '../time.js';
import type { EffectReceipt } from './effects.js';
import { ALWAYS_ON, type Invariant, type JudgedReceipt } from './invariants.js';
import { strandedBy } from './passage.js';

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

export interface FrontierOptions {
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  readonly invariants?: readonly Invariant[];
  /** Turns of the evaluator in one run. */
  readonly ticksMax?: number;
}

export type FrontierVerdict =
  | { readonly passed: true }
  | { readonly passed: false; readonly reason: string };

/** 05 §16. */
const TICKS_MAX = 5_000;
/** How far time goes on behind the last recorded moment. */
const BEYOND_RECORD_MS = 24 * 60 * 60_000;
const TURN = { stepBudget: 250, outputBytesBudget: 1024 * 1024 } as const;

export function replayToFrontier(asked: FrontierCase, options: FrontierOptions): FrontierVerdict {
  try {
    const verdict = verdictOn(asked, options);
    const stranded = strandedBy(asked.life.execution, asked.source, asked.target);
    return verdict.passed && stranded !== undefined ? failure(stranded) : verdict;
  } catch (error) {
    if (error instanceof NotReplayable) return failure(error.message);
    throw error;
  }
}

function verdictOn(asked: FrontierCase, options: FrontierOptions): FrontierVerdict {
  const { life, source, target } = asked;
  const recording = recordingOf(life, source);
  const run = (plan: Plan, data: JsonObject, signals: readonly RecordedSignal[]) => {
    const rerun = new Rerun(
      plan,
      new Script(recording, source),
      { ...life, data, signals },
      options,
    );
    rerun.run();
    return rerun;
  };
  let verdict: FrontierVerdict = failure('it does not lead to where the instance stands');
  for (const { before, after, signals } of inputsOf(asked)) {
    const old = run(source, before, signals);
    if (!asked.isSame && !reproduces(old, asked, recording)) continue;
    verdict = compare(old, run(target, after, signals), asked, recording, options);
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
  const reached = new Set(rerun.frontier.map(placeOf));
  const executed = new Set(rerun.executed);
  for (const index of Object.keys(life.execution.o).map(Number)) {
    const node = source.nodes[index];
    if (node?.type !== 'step') continue;
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
  { invariants = ALWAYS_ON }: FrontierOptions,
): FrontierVerdict {
  const states = [before.end, after.end];
  if (states[0] !== states[1]) {
    return failure(`one is ${states[0] ?? 'open'}, the other ${states[1] ?? 'open'}`);
  }
  if (states[1] === 'failed' || states[1] === 'cancelled') return failure(`it is ${states[1]}`);
  if (!isSameList(before.executed, after.executed)) return failure('other steps are executed');
  const next = [before.frontier, after.frontier].map((steps) => steps.map(nameOf).sort());
  if (!isSameList(next[0] ?? [], next[1] ?? [])) return failure('other steps come next');
  const sent = sentFrom(after.frontier, asked, recording);
  if (sent !== undefined) return failure(`step ${sent} was sent already`);
  for (const [plan, { snapshot }] of [
    [asked.source, before],
    [asked.target, after],
  ] as const) {
    const receipts = judgedReceipts(asked, plan);
    for (const { rule, judge } of invariants) {
      const judgement = judge({ state: snapshot.state, receipts });
      if (judgement !== 'pass') return failure(`${rule}: ${judgement}`);
    }
  }
  return { passed: true };
}

/** The first step of the frontier that went out and has not come back with an output. */
function sentFrom(
  frontier: readonly FrontierStep[],
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

// ---------------------------------------------------------------- one run

/** A step that nothing is recorded of. */
interface FrontierStep {
  readonly id: string;
  readonly iteration: string;
  readonly handler: string;
}

function placeOf({ id, iteration }: FrontierStep): string {
  return `${id}/${iteration}`;
}

function nameOf(step: FrontierStep): string {
  return `${placeOf(step)} ${step.handler}`;
}

/** A try whose outcome is recorded. */
interface OpenTry extends StepTry {
  readonly external: boolean;
  readonly taken: RecordedTry;
  readonly dueAt: UnixMs;
}

class Rerun {
  readonly snapshot: Snapshot;
  /** Steps that came to an end, in order, with the pass of the loops around them. */
  readonly executed: string[] = [];
  /** The tries whose outcomes were used. */
  readonly taken = new Set<string>();
  frontier: readonly FrontierStep[] = [];
  readonly #plan: Plan;
  readonly #script: Script;
  readonly #signals: RecordedSignal[];
  readonly #open = new Map<string, OpenTry>();
  readonly #env: Omit<Env, 'now'>;
  readonly #ticksMax: number;
  readonly #until: UnixMs;
  #now: UnixMs;
  #last: Progress | undefined;

  constructor(plan: Plan, script: Script, life: RecordedLife, options: FrontierOptions) {
    const { unpoliciedRetry, ticksMax = TICKS_MAX } = options;
    this.#plan = withoutHandlers(plan);
    this.#script = script;
    this.#env = { ...TURN, unpoliciedRetry, random: () => 0.5 };
    this.#ticksMax = ticksMax;
    this.#now = life.execution.t ?? Date.parse(life.created_at);
    this.#until = lastMoment(life, this.#now) + BEYOND_RECORD_MS;
    this.#signals = life.signals.filter(({ signal_type: type }) => type === 'update_context');
    this.snapshot = {
      id: life.id,
      timezone: life.timezone,
      state: 'scheduled',
      nextFireAt: this.#now,
      data: life.data,
      config: life.config,
      runtime: {},
      execution: emptyExecution(),
      outputs: new Map(),
      snapshots: new Map(),
    };
  }

  /** Undefined at a frontier: what it waits for there is not compared. */
  get end(): InstanceState | undefined {
    const { state } = this.snapshot;
    return isEnded(state) ? state : undefined;
  }

  /** @throws NotReplayable */
  run(): void {
    for (let ticks = 0; !isEnded(this.snapshot.state) && this.#tick(); ticks += 1) {
      if (ticks >= this.#ticksMax) throw new NotReplayable(`it takes more than ${ticks} turns`);
    }
    this.frontier = isEnded(this.snapshot.state) ? [] : this.#openSteps();
  }

  /** The next thing to happen; false when nothing does without what is not recorded. */
  #tick(): boolean {
    if (this.#last === undefined || this.#last.more) {
      this.#advance(this.#now, { kind: 'wake' });
      return true;
    }
    const wakeAt = this.#last.wakeAt ?? Number.POSITIVE_INFINITY;
    const first = this.#firstOpen();
    if (first !== undefined && first.dueAt <= wakeAt) this.#answer(first);
    else if (wakeAt <= this.#until) this.#advance(wakeAt, { kind: 'wake' });
    else return false;
    return true;
  }

  #firstOpen(): OpenTry | undefined {
    let first: OpenTry | undefined;
    for (const open of this.#open.values()) {
      if (first === undefined || comesBefore(open, first)) first = open;
    }
    return first;
  }

  #answer(open: OpenTry): void {
    this.#open.delete(keyOf(open));
    const { node, iteration, attempt, external, taken, dueAt } = open;
    const { outcome } = taken;
    this.#advance(dueAt, { kind: 'step.outcome', node, iteration, attempt, external, outcome });
  }

  #advance(at: UnixMs, event: EngineEvent): void {
    this.#now = Math.max(this.#now, at);
    this.#takeSignals();
    const progress = advance(this.#plan, this.snapshot, event, { ...this.#env, now: this.#now });
    this.#last = progress;
    for (const { blockId, iteration } of progress.outputs) this.#note(blockId, `/${iteration}`);
    for (const { eventType, blockId } of progress.audit) {
      if (eventType === 'step_failed' && blockId !== undefined) this.#note(blockId, ' failed');
    }
    for (const withdrawal of progress.withdrawals) this.#open.delete(keyOf(withdrawal));
    for (const dispatch of progress.dispatches) this.#dispatch(dispatch);
  }

  #note(block: string, what: string): void {
    const node = this.#plan.nodes[this.#plan.indexOf.get(block) ?? -1];
    if (node?.type === 'step') this.executed.push(block + what);
  }

  /** What callers merged by now. */
  #takeSignals(): void {
    const { snapshot } = this;
    for (;;) {
      const [next] = this.#signals;
      if (next === undefined || Date.parse(next.created_at) > this.#now) return;
      this.#signals.shift();
      if (isJsonObject(next.payload)) snapshot.data = { ...snapshot.data, ...next.payload };
    }
  }

  /** A try that is not recorded is never answered: there the run stands still. */
  #dispatch({ node: index, iteration, attempt, external }: Dispatch): void {
    const node = this.#plan.nodes[index];
    if (node?.type !== 'step') throw new Error(`block ${index} is dispatched and is no step`);
    const taken = this.#script.take(node, iteration, attempt);
    if (taken === undefined) return;
    this.taken.add(`${node.id}/${iteration}/${attempt}`);
    const dueAt = Math.max(this.#now, taken.at);
    const open = { node: index, iteration, attempt, external, taken, dueAt };
    this.#open.set(keyOf(open), open);
  }

  #openSteps(): FrontierStep[] {
    const { execution } = this.snapshot;
    const open = Object.keys(execution.o).map((index) => this.#plan.nodes[Number(index)]);
    return open.flatMap((node) =>
      node?.type === 'step'
        ? [
            {
              id: node.id,
              iteration: iterationOf(execution, node),
              handler: node.handler,
            },
          ]
        : [],
    );
  }
}

/** As the evaluator has it: the counters of the loops around the step. */
function iterationOf({ o }: Snapshot['execution'], node: PlanNode): string {
  return node.loops.map((index) => (o[index] as LoopRecord | undefined)?.i ?? 0).join('.');
}

function keyOf({ node, iteration, attempt }: StepTry): string {
  return `${node}/${iteration}/${attempt}`;
}

/** In the order of the recording. */
function comesBefore(a: OpenTry, b: OpenTry): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt;
  return a.taken.at === b.taken.at ? a.taken.id < b.taken.id : a.taken.at < b.taken.at;
}

function lastMoment({ outputs, tasks, signals }: RecordedLife, start: UnixMs): UnixMs {
  let last = start;
  for (const { created_at } of [...outputs, ...tasks, ...signals]) {
    last = Math.max(last, Date.parse(created_at));
  }
  return last;
}

/** The same plan, whose steps all wait for an answer; what took too long is recorded as a failure. */
function withoutHandlers(plan: Plan): Plan {
  const nodes = plan.nodes.map(
    (node): PlanNode => (node.type === 'step' ? withoutHandler(node) : node),
  );
  return { ...plan, nodes };
}

function withoutHandler(node: StepNode): StepNode {
  const mode = node.mode === 'external' ? 'external' : 'in_process';
  return { ...node, mode, pure: undefined, timeoutMs: null };
}
