/**
 * Runs a definition without a database: the real evaluator in virtual time, with functions in place of workers and of
 * calls to the outside. For unit tests of definitions (`src/server/trial.ts`) and dry runs of definitions that are not
 * stored (`dry-run.ts`).
 */

import { emptyExecution, type StepRecord } from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import { GATE_SIGNAL, type TreeNode } from '../../schema/instance.js';
import type { CreateSequence } from '../../schema/sequence.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { parseAnswer } from '../../src/core/blocks/gate.js';
import { permanentFailure, retryableFailure, type StepOutcome } from '../../src/core/builtin.js';
import { advance } from '../../src/core/evaluator.js';
import { hasHooks } from '../../src/core/hooks.js';
import { putData } from '../../src/core/loop-items.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Plan } from '../../src/core/plan.js';
import type { StepNode } from '../../src/core/plan-nodes.js';
import {
  type ChildEnd,
  type ChildStart,
  type Dispatch,
  type EngineEvent,
  GATE_REF,
  type Progress,
  type Snapshot,
  type StepTry,
} from '../../src/core/progress.js';
import { treeOf } from '../../src/core/tree.js';

/** What a function in place of a handler gets besides the parameters. */
export interface TrialCall {
  readonly blockId: string;
  /** From 0. */
  readonly attempt: number;
  /** Counters of the enclosing loops; '' outside of loops. */
  readonly iteration: string;
  readonly data: JsonObject;
  readonly config: JsonObject;
  /** The virtual time. */
  readonly now: Date;
}

export type TrialHandler = (params: JsonObject, call: TrialCall) => unknown;

/** A signal or event that arrives after a time. */
export type TrialArrival = { readonly afterMs: number } & (
  | { readonly signal_type: string; readonly payload?: unknown }
  | {
      readonly event_name: string;
      readonly correlation_key?: string | number | null;
      readonly payload?: unknown;
    }
);

export interface TrialOptions {
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly handlers: Readonly<Record<string, TrialHandler>>;
  /** By the block: what a person answers at once. */
  readonly answers: Readonly<Record<string, string | JsonObject>>;
  readonly arrivals: readonly TrialArrival[];
  /** By name: definitions of child sequences, or functions that return their outputs by block. */
  readonly children: Readonly<Record<string, CreateSequence | ((input: JsonObject) => unknown)>>;
  readonly now: UnixMs;
  readonly timezone: string;
  /** Default: a new id. */
  readonly id?: string;
  readonly runtime?: JsonObject;
}

export interface TrialStep {
  readonly blockId: string;
  readonly handler: string;
  readonly iteration: string;
  readonly attempt: number;
  readonly params: JsonObject;
  readonly at: Date;
}

export interface Trial {
  /** Of an ended instance, or that in which it waits for what does not come. */
  readonly state: InstanceState;
  /** The last output of each block. */
  readonly outputs: Readonly<Record<string, JsonValue>>;
  readonly failure: Failure | null;
  readonly data: JsonObject;
  /** The calls of handlers, in order. */
  readonly calls: readonly TrialStep[];
  /** The reply to each signal that a step with `reply` took, in order. */
  readonly replies: readonly JsonValue[];
  /** When it ended. */
  readonly now: Date;
}

const TURN = { stepBudget: 250, outputBytesBudget: 1024 * 1024 } as const;
/** A definition that never ends, such as one whose step fails and is repeated without limit, is given up. */
const TURNS_MAX = 20_000;

/** How definitions of child sequences are run. */
export type RunChild = (definition: CreateSequence, options: TrialOptions) => Promise<Trial>;

export class NeverEnds extends Error {}

interface Arrival {
  readonly at: UnixMs;
  readonly arrive: () => void;
}

interface KeptEvent {
  readonly name: string;
  readonly key: string | undefined;
  readonly payload: JsonValue;
}

export class TrialRun {
  readonly #plan: Plan;
  readonly #options: TrialOptions;
  readonly #runChild: RunChild | undefined;
  readonly #snapshot: Snapshot;
  readonly #outputs: Record<string, JsonValue> = {};
  readonly #calls: TrialStep[] = [];
  readonly #replies: JsonValue[] = [];
  readonly #dispatched: Dispatch[] = [];
  readonly #started: ChildStart[] = [];
  /** Outcomes, signals and events to come, by time and then in order. */
  readonly #arrivals: Arrival[] = [];
  readonly #events: KeptEvent[] = [];
  readonly #open = new Set<string>();
  #last: Progress | undefined;
  #signals = 0;
  #now: UnixMs;

  /** @param runChild absent: children are not started, and complete at once without outputs */
  constructor(plan: Plan, options: TrialOptions, runChild?: RunChild) {
    const { id = crypto.randomUUID(), data, config, runtime = {}, now, timezone } = options;
    this.#plan = plan;
    this.#options = options;
    this.#runChild = runChild;
    this.#now = now;
    this.#snapshot = {
      ...{ id, timezone, state: 'scheduled', nextFireAt: now, timeoutMs: null },
      ...{ data, config, runtime, execution: emptyExecution() },
      ...{ outputs: new Map(), snapshots: new Map() },
    };
    for (const arrival of options.arrivals) {
      this.#arrive(now + arrival.afterMs, () => this.#receive(arrival));
    }
  }

  async run(): Promise<Trial> {
    for (let turns = 0; ; turns += 1) {
      if (turns >= TURNS_MAX) {
        const last = this.#calls.at(-1);
        const at = last === undefined ? '' : `, last with step ${last.blockId}`;
        throw new NeverEnds(`the sequence has not ended after ${TURNS_MAX} turns${at}`);
      }
      for (const dispatch of this.#dispatched.splice(0)) await this.#call(dispatch);
      for (const start of this.#started.splice(0)) await this.#startChild(start);
      if (!this.#tick()) return this.#result();
    }
  }

  tree(): TreeNode[] {
    return treeOf(this.#plan, this.#snapshot.execution, this.#snapshot.id);
  }

  /** Returns whether anything was left to do. */
  #tick(): boolean {
    const { state, execution } = this.#snapshot;
    const isDone = isEnded(state) && !hasHooks(execution);
    if (this.#last === undefined || (this.#last.more && !isDone)) {
      this.#advance({ kind: 'wake' });
      return true;
    }
    if (isDone) return false;
    const wakeAt = this.#last.wakeAt ?? Number.POSITIVE_INFINITY;
    const next = this.#arrivals[0];
    if (next !== undefined && next.at <= wakeAt) {
      this.#arrivals.shift();
      this.#now = Math.max(this.#now, next.at);
      next.arrive();
      return true;
    }
    if (wakeAt === Number.POSITIVE_INFINITY) return false;
    this.#now = Math.max(this.#now, wakeAt);
    this.#advance({ kind: 'wake' });
    return true;
  }

  #result(): Trial {
    const { state, data, execution } = this.#snapshot;
    return {
      state,
      outputs: this.#outputs,
      failure: state === 'failed' ? (execution.y ?? null) : null,
      data,
      calls: this.#calls,
      replies: this.#replies,
      now: new Date(this.#now),
    };
  }

  #arrive(at: UnixMs, arrive: () => void): void {
    const place = this.#arrivals.findIndex((other) => other.at > at);
    this.#arrivals.splice(place < 0 ? this.#arrivals.length : place, 0, { at, arrive });
  }

  #advance(event: EngineEvent): void {
    const env = {
      ...TURN,
      now: this.#now,
      random: () => 0.5,
      unpoliciedRetry: 'redispatch',
    } as const;
    const progress = advance(this.#plan, this.#snapshot, event, env);
    this.#last = progress;
    for (const { blockId, output, outputRef } of progress.outputs) {
      if (outputRef !== GATE_REF) this.#outputs[blockId] = output;
    }
    for (const { reply } of progress.takenSignals ?? []) {
      if (reply !== undefined) this.#replies.push(reply);
    }
    if (progress.reply !== undefined) this.#replies.push(progress.reply);
    for (const withdrawal of progress.withdrawals) this.#open.delete(keyOf(withdrawal));
    for (const dispatch of progress.dispatches) {
      this.#open.add(keyOf(dispatch));
      this.#dispatched.push(dispatch);
    }
    for (const order of progress.children ?? []) {
      if (order.kind === 'cancel') this.#open.delete(keyOf(order));
      else if (order.kind === 'start') {
        this.#open.add(keyOf(order));
        this.#started.push(order);
      }
    }
    this.#answerGates();
    this.#deliverEvents();
  }

  async #call(dispatch: Dispatch): Promise<void> {
    const { node, iteration, attempt, blockId, handler, external } = dispatch;
    if (!this.#open.has(keyOf(dispatch))) return;
    const act = this.#options.handlers[handler];
    if (act === undefined) {
      throw new Error(`handlers has no ${JSON.stringify(handler)}, which step ${blockId} calls`);
    }
    const params = (dispatch.params ?? {}) as JsonObject;
    const now = new Date(this.#now);
    this.#calls.push({ blockId, handler, iteration, attempt, params, at: now });
    const { data, config } = this.#snapshot;
    const seen = dispatch.overlay === null ? data : { ...data, ...dispatch.overlay };
    const call = { blockId, attempt, iteration, data: seen, config, now };
    const outcome = await outcomeOf(() => act(params, call));
    const step = { node, iteration, attempt };
    this.#arrive(this.#now, () => {
      if (this.#open.delete(keyOf(step))) {
        this.#advance({ kind: 'step.outcome', ...step, external, outcome });
      }
    });
  }

  async #startChild({
    node,
    iteration,
    attempt,
    child,
    sequence,
    input,
    blockId,
  }: ChildStart): Promise<void> {
    const runChild = this.#runChild;
    const definition = runChild ? this.#options.children[sequence] : () => ({});
    if (definition === undefined) {
      throw new Error(`children has no ${JSON.stringify(sequence)}, which block ${blockId} runs`);
    }
    const step = { node, iteration, attempt };
    let end: ChildEnd;
    let at = this.#now;
    if (typeof definition === 'function') {
      const outcome = await outcomeOf(() => definition(input));
      end =
        outcome.kind === 'success'
          ? { kind: 'completed', output: this.#records(child, outcome.output as JsonObject) }
          : { kind: 'failed', code: 'child_failed', message: outcome.message };
    } else {
      const options = { ...this.#options, data: input, arrivals: [], now: this.#now };
      const trial = await runChild!(definition, options);
      this.#calls.push(...trial.calls);
      at = trial.now.getTime();
      const message = `child ${child} ${trial.state}: ${trial.failure?.message ?? ''}`;
      if (!isEnded(trial.state)) return;
      end =
        trial.state === 'completed'
          ? { kind: 'completed', output: this.#records(child, trial.outputs) }
          : { kind: 'failed', code: 'child_failed', message };
    }
    this.#arrive(at, () => {
      if (this.#open.delete(keyOf(step))) this.#advance({ kind: 'child.ended', ...step, end });
    });
  }

  /** As a parent gets them. */
  #records(child: string, outputs: Readonly<Record<string, JsonValue>>): JsonValue {
    return Object.entries(outputs).map(([block_id, output]) => ({
      ...{ id: crypto.randomUUID(), instance_id: child, block_id, output, output_ref: null },
      output_size: Buffer.byteLength(JSON.stringify(output)),
      attempt: 0,
      created_at: isoTime(this.#now),
    }));
  }

  #receive(arrival: TrialArrival): void {
    const payload = (arrival.payload ?? null) as JsonValue;
    if ('event_name' in arrival) {
      const { event_name: name, correlation_key: key } = arrival;
      this.#events.push({ name, key: key == null ? undefined : String(key), payload });
      this.#deliverEvents();
      return;
    }
    const { signal_type: type } = arrival;
    const { state, data } = this.#snapshot;
    if (type === 'pause' || type === 'cancel') this.#advance({ kind: type });
    else if (type === 'resume') {
      if (state === 'paused') this.#advance({ kind: 'resume' });
      this.#advance({ kind: 'wake' });
    } else if (type === 'update_context') {
      if (isJsonObject(payload))
        putData(this.#plan, this.#snapshot, { ...data, ...payload }, payload);
    } else if (type.startsWith(GATE_SIGNAL)) {
      this.#answer(type.slice(GATE_SIGNAL.length), payload);
    } else if (type.startsWith('custom:')) this.#signal(type.slice('custom:'.length), payload);
    else throw new Error(`${JSON.stringify(type)} is no type of a signal`);
  }

  #signal(name: string, payload: JsonValue): void {
    this.#signals += 1;
    const characters = JSON.stringify(payload).length;
    const kept = { id: crypto.randomUUID(), seq: this.#signals, name, payload, characters };
    this.#snapshot.signals = [...(this.#snapshot.signals ?? []), kept];
    const step = this.#openSteps('event').find(({ record }) => record.v?.n === name);
    if (step !== undefined) this.#advance({ kind: 'event.arrived', ...step.try });
  }

  /** An event goes to all waits for it, or to the first later one. */
  #deliverEvents(): void {
    for (const event of [...this.#events]) {
      const { name, key, payload } = event;
      const waits = this.#openSteps('event').filter(
        ({ record: { v } }) => v?.n === name && v.k === key,
      );
      if (waits.length === 0) continue;
      this.#events.splice(this.#events.indexOf(event), 1);
      const id = crypto.randomUUID();
      for (const wait of waits) {
        this.#advance({ kind: 'event.arrived', ...wait.try, event: { id, payload } });
      }
    }
  }

  #answerGates(): void {
    for (const { node } of this.#openSteps('gate')) {
      const given = this.#options.answers[node.id];
      if (given !== undefined)
        this.#answer(node.id, typeof given === 'string' ? { value: given } : given);
    }
  }

  #answer(block: string, payload: JsonValue): void {
    const open = this.#openSteps('gate').find(({ node }) => node.id === block);
    const gate = open?.node.gate;
    if (open === undefined || gate === undefined) {
      this.#signal(`${GATE_SIGNAL.slice('custom:'.length)}${block}`, payload);
      return;
    }
    const answer = parseAnswer(gate, payload, null);
    if (answer === undefined) {
      throw new Error(`${JSON.stringify(payload)} is no answer that step ${block} offers`);
    }
    this.#advance({ kind: 'gate.answered', ...open.try, answer });
  }

  #openSteps(phase: StepRecord['p']) {
    const { execution } = this.#snapshot;
    return Object.entries(execution.o).flatMap(([index, open]) => {
      const node = this.#plan.nodes[Number(index)];
      const record = open as StepRecord;
      if (node?.type !== 'step' || record.p !== phase) return [];
      const iteration = iterationOf(execution, node);
      const step: StepTry = { node: node.index, iteration, attempt: record.a };
      return [{ node: node as StepNode, record, try: step }];
    });
  }
}

const keyOf = ({ node, iteration, attempt }: StepTry) => `${node}/${iteration}/${attempt}`;

/** As a worker reports it: only the member `retryable` of an error counts. */
async function outcomeOf(act: () => unknown): Promise<StepOutcome> {
  try {
    const output = JSON.parse(JSON.stringify((await act()) ?? {})) as JsonValue;
    return { kind: 'success', output };
  } catch (error) {
    const { message, retryable, retryAfterMs } = error as Error & Record<string, unknown>;
    if (retryable === false) return permanentFailure(String(message));
    const failure = retryableFailure(String(message));
    return typeof retryAfterMs === 'number' ? { ...failure, retryAfterMs } : failure;
  }
}
