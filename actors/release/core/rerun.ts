/**
 * Replays a recorded run with the real evaluator in virtual time. The recording replaces each handler that waits or has
 * external effects; a result arrives at its recorded time, or at once if that has passed, and delays are skipped. A
 * validation runs to the end, where unrecorded calls get an empty output; a migration plan runs to the current position,
 * where they stay open. Pure.
 */

import { emptyExecution, type StepRecord } from '../../../schema/execution.js';
import { isEnded } from '../../../schema/states.js';
import { canonicalText } from '../../../src/base/bounds.js';
import { isJsonObject, type JsonObject } from '../../../src/base/json.js';
import type { UnixMs } from '../../../src/base/time.js';
import { parseAnswer } from '../../../src/core/blocks/gate.js';
import type { PureContext, StepOutcome } from '../../../src/core/builtin.js';
import { isDeadlineHandler } from '../../../src/core/deadline-handlers.js';
import { advance } from '../../../src/core/evaluator.js';
import { putData } from '../../../src/core/loop-items.js';
import { iterationOf } from '../../../src/core/paths.js';
import type { Plan, PlanNode, StepNode } from '../../../src/core/plan-nodes.js';
import {
  type ChildEnd,
  type ChildStart,
  type Dispatch,
  type EngineEvent,
  type Env,
  GATE_REF,
  type Progress,
  type Snapshot,
  type StepTry,
} from '../../../src/core/progress.js';
import { scopeIn } from '../../../src/core/scopes.js';
import { type Call, callOf, nodeNamed, placeOf } from './calls.js';
import {
  NotReplayable,
  type RecordedLife,
  type RecordedSignal,
  type RecordedTry,
} from './recording.js';
import { type Script, withoutHandlers, withStandIns } from './stand-ins.js';

export interface RerunOptions {
  readonly unpoliciedRetry: Env['unpoliciedRetry'];
  /** The replay is given up after this many turns of the evaluator. */
  readonly ticksMax?: number;
}

/** An ended step; each iteration has its own mark. */
export interface ExecutedStep {
  readonly block: string;
  readonly mark: string;
  readonly hasFailed: boolean;
}

export interface OpenStep {
  readonly id: string;
  readonly iteration: string;
  readonly handler: string;
}

const TICKS_MAX = 5_000;
/** The turn of a shard, so that a replay visits at most a million blocks. */
const TURN = { stepBudget: 250, outputBytesBudget: 1024 * 1024 } as const;
/** How far time advances after the last recorded time. */
const BEYOND_RECORD_MS = 24 * 60 * 60_000;

/** A dispatched attempt. */
interface OpenTry extends StepTry {
  /** The source of the result. */
  readonly of: 'handler' | 'worker' | 'child';
  readonly taken: RecordedTry | undefined;
  readonly dueAt: UnixMs;
}

export class Rerun {
  readonly snapshot: Snapshot;
  readonly script: Script;
  /** Completed and failed steps, in order. */
  readonly executed: ExecutedStep[] = [];
  /** The latest inputs of children as text, by `block/iteration`. */
  readonly childInputs = new Map<string, string>();
  /** The places of attempts whose results were used. */
  readonly taken = new Set<string>();
  /** By place: the calls of steps that are not evaluated in place. */
  readonly calls = new Map<string, Call>();
  readonly #target: 'end' | 'position';
  readonly plan: Plan;
  /** The plan with stand-ins. */
  readonly #plan: Plan;
  readonly #signals: RecordedSignal[];
  readonly #open = new Map<string, OpenTry>();
  readonly #env: Omit<Env, 'now'>;
  readonly #ticksMax: number;
  readonly #until: UnixMs;
  #now: UnixMs;
  #last: Progress | undefined;

  constructor(
    target: 'end' | 'position',
    plan: Plan,
    script: Script,
    life: RecordedLife,
    { unpoliciedRetry, ticksMax = TICKS_MAX }: RerunOptions,
  ) {
    this.#target = target;
    this.script = script;
    this.plan = plan;
    this.#plan = target === 'end' ? withStandIns(plan, script) : withoutHandlers(plan, script);
    this.#env = { ...TURN, unpoliciedRetry, random: () => 0.5 };
    this.#ticksMax = ticksMax;
    this.#now = life.execution.t ?? Date.parse(life.created_at);
    this.#until =
      target === 'end' ? Number.MAX_VALUE : lastMoment(life, this.#now) + BEYOND_RECORD_MS;
    // The effects of other signals, such as pauses, are not recorded.
    this.#signals = life.signals.filter(({ signal_type: type }) => type === 'update_context');
    this.snapshot = {
      id: life.id,
      timezone: life.timezone,
      state: 'scheduled',
      nextFireAt: this.#now,
      timeoutMs: life.timeout ?? null,
      data: life.data,
      config: life.config,
      runtime: {},
      execution: emptyExecution(),
      outputs: new Map(),
      snapshots: new Map(),
    };
  }

  /** @throws NotReplayable */
  run(): void {
    for (let ticks = 0; !isEnded(this.snapshot.state); ticks += 1) {
      if (ticks >= this.#ticksMax) throw new NotReplayable(`it takes more than ${ticks} turns`);
      if (this.#tick()) continue;
      if (this.#target === 'position') return;
      throw new NotReplayable('it waits for what is not recorded');
    }
  }

  /** Empty after the end. */
  openSteps(): OpenStep[] {
    const { execution, state } = this.snapshot;
    if (isEnded(state)) return [];
    return Object.keys(execution.o).flatMap((index) => {
      const node = this.#plan.nodes[Number(index)];
      if (node?.kind.isLeaf !== true) return [];
      const iteration = iterationOf(execution, node);
      const handler = node.type === 'step' ? node.handler : node.type;
      return [{ id: node.id, iteration, handler }];
    });
  }

  /** Processes the next event; false when no recorded event is left. */
  #tick(): boolean {
    if (this.#last === undefined || this.#last.more) {
      this.#advance(this.#now, { kind: 'wake' });
      return true;
    }
    const wakeAt = this.#last.wakeAt ?? Number.POSITIVE_INFINITY;
    const first = this.#firstOpen();
    const gate = this.#firstAnswer();
    if (gate !== undefined && gate.at <= Math.min(wakeAt, first?.dueAt ?? wakeAt)) {
      this.#advance(gate.at, gate.event);
    } else if (first !== undefined && first.dueAt <= wakeAt) this.#answer(first);
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

  /** The first recorded answer to a gate that is open now. */
  #firstAnswer() {
    if (!this.#plan.hasGates) return undefined;
    const { execution } = this.snapshot;
    let first: { readonly at: UnixMs; readonly event: EngineEvent } | undefined;
    for (const key of Object.keys(execution.o)) {
      const node = this.#plan.nodes[Number(key)];
      const { p, a: attempt } = execution.o[Number(key)] as StepRecord;
      if (node?.type !== 'step' || node.gate === undefined || p !== 'gate') continue;
      const iteration = iterationOf(execution, node);
      const recorded = this.script.answerAt(node.id, iteration);
      if (recorded === undefined) continue;
      const answer = parseAnswer(node.gate, { value: recorded.value }, null);
      if (answer === undefined) {
        throw new NotReplayable(`step ${node.id} does not offer the answer ${recorded.value}`);
      }
      const at = Math.max(this.#now, recorded.at);
      const step = { node: node.index, iteration, attempt };
      if (first === undefined || at < first.at) {
        first = { at, event: { kind: 'gate.answered', ...step, answer } };
      }
    }
    return first;
  }

  #answer(open: OpenTry): void {
    this.#open.delete(keyOf(open));
    const { node, iteration, attempt, taken } = open;
    const step = { node, iteration, attempt };
    const outcome = this.script.outcomeOf(this.#plan.nodes[node]!.id, taken);
    const at = Number.isFinite(open.dueAt) ? open.dueAt : this.#now;
    if (open.of === 'child') {
      this.#advance(at, { kind: 'child.ended', ...step, end: endOf(outcome) });
      return;
    }
    const external = open.of === 'worker';
    this.#advance(at, { kind: 'step.outcome', ...step, external, outcome });
  }

  #advance(at: UnixMs, event: EngineEvent): void {
    this.#now = Math.max(this.#now, at);
    this.#takeSignals();
    const progress = advance(this.#plan, this.snapshot, event, { ...this.#env, now: this.#now });
    this.#last = progress;
    for (const { blockId, iteration, outputRef } of progress.outputs) {
      if (outputRef !== GATE_REF) this.#note(blockId, `/${iteration}`, outputRef !== null);
    }
    for (const { eventType, blockId } of progress.audit) {
      if (eventType === 'step_failed' && blockId !== undefined) {
        this.#note(blockId, ' failed', true);
      }
    }
    for (const withdrawal of progress.withdrawals) this.#open.delete(keyOf(withdrawal));
    for (const dispatch of progress.dispatches) this.#dispatch(dispatch);
    for (const order of progress.children ?? []) {
      if (order.kind === 'cancel') this.#open.delete(keyOf(order));
      else if (order.kind === 'start') this.#startChild(order);
    }
  }

  #note(block: string, mark: string, hasFailed: boolean): void {
    const isLeaf = nodeNamed(this.#plan, block)?.kind.isLeaf;
    if (isLeaf === true) this.executed.push({ block, mark, hasFailed });
  }

  /** Applies the context updates of callers up to the current time. */
  #takeSignals(): void {
    const { snapshot } = this;
    for (let [next] = this.#signals; next !== undefined; [next] = this.#signals) {
      if (Date.parse(next.created_at) > this.#now) return;
      this.#signals.shift();
      if (isJsonObject(next.payload)) {
        putData(this.#plan, snapshot, { ...snapshot.data, ...next.payload }, next.payload);
      }
    }
  }

  #dispatch(dispatch: Dispatch): void {
    // The result of a deadline handler is not used.
    if (isDeadlineHandler(dispatch)) return;
    const { node: index, iteration, attempt, external } = dispatch;
    const node = this.plan.nodes[index];
    if (node?.type !== 'step') throw new Error(`block ${index} is dispatched and is no step`);
    const taken = this.#outcomeFor(node, dispatch);
    const step = { node: index, iteration, attempt };
    this.#expect(step, external ? 'worker' : 'handler', taken, attempt);
  }

  #startChild({ node: index, iteration, attempt, input }: ChildStart): void {
    const node = this.#plan.nodes[index];
    if (node?.type !== 'sub_sequence') throw new Error(`block ${index} starts a child`);
    const text = canonicalText(input);
    this.childInputs.set(`${node.id}/${iteration}`, text);
    const taken = this.script.takeChild(node, iteration, text);
    this.#expect({ node: index, iteration, attempt }, 'child', taken, 0);
  }

  #expect(step: StepTry, of: OpenTry['of'], taken: RecordedTry | undefined, number: number): void {
    const { id } = this.#plan.nodes[step.node] as PlanNode;
    if (taken !== undefined) this.taken.add(placeOf(id, step.iteration, number));
    else if (this.#target === 'position') return;
    const dueAt = taken === undefined ? Number.POSITIVE_INFINITY : Math.max(this.#now, taken.at);
    this.#open.set(keyOf(step), { ...step, of, taken, dueAt });
  }

  #outcomeFor(node: StepNode, { iteration, attempt, params, overlay }: Dispatch) {
    const { script } = this;
    if (node.pure === undefined) {
      const call = callOf(node, params);
      this.calls.set(placeOf(node.id, iteration, attempt), call);
      return this.#target === 'end'
        ? script.takeFor(node, iteration, attempt, call)
        : script.take(node, iteration, attempt);
    }
    const taken = script.take(node, iteration, attempt);
    const outcome = taken && node.pure(params, this.#contextOf(overlay));
    return taken && outcome && { ...taken, outcome };
  }

  #contextOf(items: JsonObject | null): PureContext {
    const scope = scopeIn(this.snapshot, { ...this.#env, now: this.#now });
    const data = items === null ? scope.data : { ...scope.data, ...items };
    return { scope: { ...scope, data }, log: () => undefined };
  }
}

function endOf(outcome: StepOutcome): ChildEnd {
  if (outcome.kind === 'success') return { kind: 'completed', output: outcome.output };
  const { code = 'child_failed', message, details } = outcome;
  return { kind: 'failed', code, message, ...(details === undefined ? {} : { details }) };
}

function keyOf({ node, iteration, attempt }: StepTry): string {
  return `${node}/${iteration}/${attempt}`;
}

/** The order of the recording; unrecorded attempts come last, in the order of dispatch. */
function comesBefore(a: OpenTry, b: OpenTry): boolean {
  if (a.dueAt !== b.dueAt) return a.dueAt < b.dueAt;
  if (a.taken === undefined || b.taken === undefined) return false;
  return a.taken.at === b.taken.at ? a.taken.id < b.taken.id : a.taken.at < b.taken.at;
}

function lastMoment({ outputs, tasks, signals }: RecordedLife, start: UnixMs): UnixMs {
  let last = start;
  for (const { created_at } of [...outputs, ...tasks, ...signals]) {
    last = Math.max(last, Date.parse(created_at));
  }
  return last;
}
