/**
 * Lives an instance in the real evaluator, in virtual time, and keeps the rows that actors would have
 * stored of it: what a replay is given.
 */

import assert from 'node:assert/strict';
import type {
  RecordedLife,
  RecordedOutput,
  RecordedReceipt,
  RecordedRun,
  RecordedSignal,
  RecordedTask,
} from '../../actors/release/core/recording.js';
import type { Block } from '../../schema/blocks.js';
import type { StepRecord } from '../../schema/execution.js';
import { isEnded } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { parseAnswer } from '../../src/core/blocks/gate.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import { effectRequest } from '../../src/core/effects.js';
import { advance } from '../../src/core/evaluator.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Plan } from '../../src/core/plan.js';
import type {
  ChildEnd,
  ChildStart,
  Dispatch,
  EngineEvent,
  OutputRow,
  Progress,
  StepTry,
} from '../../src/core/progress.js';
import type { Answer } from './block-trees.js';
import { freshSnapshot, planOf, START } from './player.js';

export interface RecorderOptions {
  readonly data?: JsonObject;
  /** How a child ends, 1 ms after it was asked for; default: well, without an output. */
  readonly child?: (start: ChildStart) => ChildEnd;
  /** What a try is answered; default: success with `{}` after 1 ms. */
  readonly answer?: (dispatch: Dispatch, life: number) => Partial<Answer>;
  readonly unpoliciedRetry?: 'redispatch' | 'fail';
  /** What callers merge, in ms after the start, ascending. */
  readonly merges?: readonly { readonly after: number; readonly values: JsonObject }[];
  /** What people say, by block, a second after they were asked. */
  readonly says?: Readonly<Record<string, string>>;
  /** How often an instance that fails is retried. */
  readonly retries?: number;
  /**
   * After so many turns it is left as it is, or when it waits for what never comes; default: at its
   * end, and what never comes comes last.
   */
  readonly turns?: number;
}

/** More turns than this are a life without end. */
const TURNS_MAX = 20_000;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface OpenTry {
  readonly dispatch: StepTry & Pick<Dispatch, 'blockId'>;
  readonly at: number;
  readonly event: EngineEvent;
}

/** @throws AssertionError when the instance does not come to an end */
export const record = (blocks: Block[], options: RecorderOptions = {}): RecordedRun =>
  new Recorder(planOf(blocks), options).run();

/** What is recorded so far of one that is left in the middle; undefined when it has ended by then. */
export const recordLife = (blocks: Block[], options: RecorderOptions): RecordedLife | undefined =>
  new Recorder(planOf(blocks), options).lifeSoFar();

class Recorder {
  readonly #plan: Plan;
  readonly #options: RecorderOptions;
  readonly #snapshot;
  readonly #data: JsonObject;
  readonly #open = new Map<string, OpenTry>();
  readonly #tasks: Writable<RecordedTask>[] = [];
  readonly #signals: RecordedSignal[] = [];
  readonly #receipts: RecordedReceipt[] = [];
  /** Calls from within the process that are under way. */
  readonly #calls = new Map<string, RecordedReceipt>();
  #outputs: RecordedOutput[] = [];
  #merges;
  #now = START;
  #ids = 0;
  #lives = 0;
  #last: Progress;

  constructor(plan: Plan, options: RecorderOptions) {
    this.#plan = plan;
    this.#options = options;
    this.#data = options.data ?? {};
    this.#snapshot = freshSnapshot(this.#data);
    this.#merges = [...(options.merges ?? [])];
    this.#last = this.#advance({ kind: 'wake' });
  }

  run(): RecordedRun {
    this.#live();
    const { state } = this.#snapshot;
    assert.ok(state === 'completed' || state === 'failed', `it ended as ${state}`);
    return { ...this.#life(), state };
  }

  lifeSoFar(): RecordedLife | undefined {
    this.#live();
    return isEnded(this.#snapshot.state) ? undefined : this.#life();
  }

  #live(): void {
    const { turns: most = Number.POSITIVE_INFINITY, retries = 0 } = this.#options;
    for (let turns = 0; turns < most; turns += 1) {
      assert.ok(turns < TURNS_MAX, 'a life without end');
      if (Number.isFinite(most) && this.#isStuck) {
        if (!this.#say()) return;
        continue;
      }
      const { state } = this.#snapshot;
      if (!isEnded(state)) this.#next();
      else if (state === 'failed' && this.#lives < retries) {
        this.#lives += 1;
        this.#now += 1;
        this.#advance({ kind: 'retry' });
        this.#advance({ kind: 'wake' });
      } else return;
    }
  }

  #life(): RecordedLife {
    const { id, timezone, execution } = this.#snapshot;
    const life: RecordedLife = {
      id,
      timezone,
      data: this.#data,
      config: {},
      execution,
      created_at: isoTime(START),
      outputs: this.#outputs,
      tasks: this.#tasks.filter((task) => task.completed_at !== null),
      receipts: this.#receipts,
      signals: this.#signals,
    };
    return JSON.parse(JSON.stringify(life)) as RecordedLife;
  }

  get #isStuck(): boolean {
    const times = [...this.#open.values()].map(({ at }) => at);
    const wakeAt = this.#last.wakeAt ?? Number.POSITIVE_INFINITY;
    const isLater = this.#merges.length > 0 || [...times, wakeAt].some(Number.isFinite);
    return !this.#last.more && !isLater && !isEnded(this.#snapshot.state);
  }

  #next(): void {
    if (this.#last.more) {
      this.#advance({ kind: 'wake' });
      return;
    }
    if (this.#say()) return;
    let first: OpenTry | undefined;
    for (const open of this.#open.values())
      if (first === undefined || open.at < first.at) first = open;
    const [merge] = this.#merges;
    const mergeAt = merge === undefined ? Number.POSITIVE_INFINITY : START + merge.after;
    const wakeAt = this.#last.wakeAt ?? Number.POSITIVE_INFINITY;
    const at = Math.min(first?.at ?? Number.POSITIVE_INFINITY, wakeAt, mergeAt);
    this.#now = Number.isFinite(at) ? Math.max(this.#now, at) : this.#now + 1;
    if (merge !== undefined && mergeAt === at && Number.isFinite(at)) this.#merge(merge.values);
    else if (wakeAt === at && Number.isFinite(at)) this.#advance({ kind: 'wake' });
    else {
      assert.ok(first !== undefined, 'nothing is left to happen');
      this.#end(first);
    }
  }

  /** Whether somebody was asked who has something to say. */
  #say(): boolean {
    const { execution } = this.#snapshot;
    for (const [key, open] of Object.entries(execution.o)) {
      const node = this.#plan.nodes[Number(key)];
      const { p, a: attempt } = open as StepRecord;
      const value = this.#options.says?.[node?.id ?? ''];
      if (node?.type !== 'step' || node.gate === undefined || p !== 'gate') continue;
      if (value === undefined) continue;
      const answer = parseAnswer(node.gate, { value }, null);
      assert.ok(answer !== undefined, `${value} is no choice`);
      this.#now += 1_000;
      const iteration = iterationOf(execution, node);
      this.#advance({ kind: 'gate.answered', node: node.index, iteration, attempt, answer });
      return true;
    }
    return false;
  }

  #merge(values: JsonObject): void {
    this.#merges.shift();
    const signal = { signal_type: 'update_context', payload: values as JsonValue };
    this.#signals.push({ ...signal, created_at: isoTime(this.#now) });
    this.#snapshot.data = { ...this.#snapshot.data, ...values };
  }

  #end({ dispatch, event }: OpenTry): void {
    this.#open.delete(keyOf(dispatch));
    const task = this.#taskOf(dispatch);
    if (task !== undefined && event.kind === 'step.outcome') {
      const { outcome } = event;
      task.completed_at = isoTime(this.#now);
      task.state = outcome.kind === 'success' ? 'completed' : 'failed';
      if (outcome.kind === 'success') task.output = outcome.output;
      else {
        task.error_message = outcome.message;
        task.error_retryable = outcome.retryable;
      }
    }
    const progress = this.#advance(event);
    this.#leaveReceipt(dispatch);
    if (task?.state === 'failed') task.withdrawn = isRetried(progress, dispatch.blockId);
  }

  #advance(event: EngineEvent): Progress {
    const progress = advance(this.#plan, this.#snapshot, event, {
      now: this.#now,
      random: () => 0.5,
      unpoliciedRetry: this.#options.unpoliciedRetry ?? 'redispatch',
      stepBudget: 250,
      outputBytesBudget: 1024 * 1024,
    });
    this.#last = progress;
    if (progress.dropErrorRows) {
      this.#outputs = this.#outputs.filter(({ output_ref }) => output_ref !== '__error__');
    }
    for (const row of progress.outputs) {
      this.#outputs.push({
        id: this.#id(),
        block_id: row.blockId,
        iteration: row.iteration,
        try: row.tryNumber,
        output: row.output,
        output_ref: row.outputRef,
        call: row.outputRef === null ? this.#endCall(row) : null,
        created_at: isoTime(this.#now),
      });
    }
    for (const withdrawal of progress.withdrawals) {
      this.#leaveReceipt(withdrawal);
      this.#open.delete(keyOf(withdrawal));
      const task = this.#taskOf(withdrawal);
      if (task === undefined || task.completed_at !== null) continue;
      const timedOut = withdrawal.reason === 'timed_out';
      task.completed_at = isoTime(this.#now);
      task.state = 'failed';
      task.withdrawn = !timedOut || isRetried(progress, withdrawal.blockId);
      task.error_message = timedOut ? 'timed out' : 'cancelled';
      task.error_retryable = timedOut;
      task.timed_out = timedOut;
    }
    for (const dispatch of progress.dispatches) this.#dispatch(dispatch);
    for (const order of progress.children ?? []) {
      if (order.kind === 'cancel') this.#open.delete(keyOf(order));
      else if (order.kind === 'start') this.#startChild(order);
    }
    return progress;
  }

  #dispatch(dispatch: Dispatch): void {
    const { node, iteration, attempt, external } = dispatch;
    if (external) {
      this.#tasks.push({
        id: this.#id(),
        block_id: dispatch.blockId,
        iteration,
        attempt,
        handler: dispatch.handler,
        params: dispatch.params,
        ...{ state: 'failed', withdrawn: false, output: null, error_message: null },
        ...{ error_retryable: null, timed_out: false },
        created_at: isoTime(this.#now),
        completed_at: null,
      });
    } else this.#calls.set(keyOf(dispatch), this.#receiptOf(dispatch));
    const answer = this.#options.answer?.(dispatch, this.#lives) ?? {};
    const { kind = 'success', after = 1, output = {} } = answer;
    const at = kind === 'never' ? Number.POSITIVE_INFINITY : this.#now + after;
    const outcome: StepOutcome =
      kind === 'success' || kind === 'never'
        ? { kind: 'success', output }
        : { kind: 'failure', retryable: kind === 'retryable', message: `${kind} ${attempt}` };
    const event: EngineEvent =
      kind === 'refused'
        ? { kind: 'step.refused', node, iteration, attempt, message: 'no such data' }
        : { kind: 'step.outcome', node, iteration, attempt, external, outcome };
    this.#open.set(keyOf(dispatch), { dispatch, at, event });
  }

  #receiptOf({ blockId, iteration, attempt, handler, params }: Dispatch): RecordedReceipt {
    const { request_sha256 } = effectRequest(handler, params);
    return { block_id: blockId, iteration, attempt, request_sha256 };
  }

  /** The call that gave the output, which takes over its receipt. */
  #endCall({ blockId, iteration, tryNumber }: OutputRow): string | null {
    const key = `${this.#plan.indexOf.get(blockId)}/${iteration}/${tryNumber}`;
    const call = this.#calls.get(key);
    this.#calls.delete(key);
    return call?.request_sha256 ?? null;
  }

  /** A call that is over without an output. */
  #leaveReceipt(step: StepTry): void {
    const call = this.#calls.get(keyOf(step));
    if (call === undefined) return;
    this.#calls.delete(keyOf(step));
    this.#receipts.push(call);
  }

  #startChild(start: ChildStart): void {
    const { node, iteration, attempt } = start;
    const end = this.#options.child?.(start) ?? { kind: 'completed', output: [] };
    const event: EngineEvent = { kind: 'child.ended', node, iteration, attempt, end };
    this.#open.set(keyOf(start), { dispatch: start, at: this.#now + 1, event });
  }

  #taskOf({ node, iteration }: StepTry): Writable<RecordedTask> | undefined {
    const block = this.#plan.nodes[node]?.id;
    return this.#tasks.findLast((task) => task.block_id === block && task.iteration === iteration);
  }

  #id(): string {
    this.#ids += 1;
    return this.#ids.toString(16).padStart(12, '0');
  }
}

const keyOf = ({ node, iteration, attempt }: StepTry): string => `${node}/${iteration}/${attempt}`;

function isRetried(progress: Progress, block: string): boolean {
  return progress.audit.some(
    ({ eventType, blockId }) => eventType === 'step_retried' && blockId === block,
  );
}
