/**
 * One turn of the evaluator at work: the queue, the budget, what has been collected for the progress
 * so far, and the moves that all kinds of blocks share. Blocks call it; it calls the parent of a
 * block that is done. Nothing recurses along a list or a loop, only up and down the tree.
 */

import {
  CANCELLED,
  COMPLETED,
  type DoneCode,
  type DoneRecord,
  type Execution,
  FAILED,
  type OpenRecord,
  SKIPPED,
  type StepRecord,
} from '../../schema/execution.js';
import type { Failure, FailureCode } from '../../schema/failure.js';
import { sizeWithin } from '../base/bounds.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { isoTime } from '../base/time.js';
import { startAt } from './blocks/list.js';
import { forgetError } from './caught.js';
import { evaluateCondition, isTruthy, type Scope } from './condition.js';
import { takeOverOwed } from './cutting.js';
import type { EffectOutcome } from './effects.js';
import { reasonOf } from './failures.js';
import { Lanes } from './lanes.js';
import { OpenLeaves } from './open-leaves.js';
import { isLeftAlone } from './owed.js';
import { iterationOf, pathOf, runKey } from './paths.js';
import type { NodePlace, Plan, StepNode } from './plan-nodes.js';
import type {
  AuditEvent,
  ChildOrder,
  Dispatch,
  EndedEffect,
  EndedGate,
  Env,
  GATE_REF,
  KeptSignal,
  LogLine,
  OutputRow,
  RateRequest,
  Snapshot,
  StepTry,
  TakenSignal,
  Withdrawal,
} from './progress.js';
import { Scopes } from './scopes.js';

/** What one turn is given: time passes while it runs, and only its caller can tell. */
export interface TurnEnv extends Env {
  /**
   * Whether the turn has taken long enough. Asked between blocks, since one step may cost a thousand
   * times what another does: steps and characters alone do not bound the time. Absent: never.
   */
  readonly isOver?: () => boolean;
}

/** Indexes of the executions in memory; one that is loaded again gets a new one. */
const LEAVES = new WeakMap<Execution, OpenLeaves>();

export class Evaluation {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  readonly execution: Execution;
  readonly env: TurnEnv;

  readonly outputs: OutputRow[] = [];
  readonly dispatches: Dispatch[] = [];
  readonly withdrawals: Withdrawal[] = [];
  readonly rateRequests: RateRequest[] = [];
  effects: EndedEffect[] | undefined;
  children: ChildOrder[] | undefined;
  takenSignals: TakenSignal[] | undefined;
  opensEventWait = false;
  gates: EndedGate[] | undefined;
  readonly logs: LogLine[] = [];
  readonly audit: AuditEvent[] = [];
  readonly counts = {
    stepsExecuted: 0,
    stepsInPlace: 0,
    stepsFailed: 0,
    stepsRetried: 0,
    timeouts: 0,
    breaches: 0,
  };
  newSnapshots: Map<string, JsonValue[]> | undefined;
  readonly droppedSnapshots: string[] = [];
  /** Blocks that run another time: what they have left goes. */
  readonly droppedOutputs: string[] = [];
  dropErrorRows = false;
  /** Why the node that finishes as failed does so; those around it fail of the same. */
  cause: Failure | undefined;

  readonly #queue: number[];
  #head = 0;
  #stepsLeft: number;
  #charactersLeft: number;
  readonly lanes: Lanes;
  readonly #scopes: Scopes;

  constructor(plan: Plan, snapshot: Snapshot, env: TurnEnv) {
    this.plan = plan;
    this.snapshot = snapshot;
    this.execution = snapshot.execution;
    this.env = env;
    this.lanes = new Lanes(this);
    this.#scopes = new Scopes(this);
    this.#queue = this.execution.q ?? [];
    this.#stepsLeft = env.stepBudget;
    this.#charactersLeft = env.outputBytesBudget;
  }

  // -------------------------------------------------------------- the queue and the budget

  /** To be started, or continued if it is open. */
  push(index: number): void {
    this.#queue.push(index);
  }

  get isExhausted(): boolean {
    return this.#stepsLeft <= 0 || this.#charactersLeft <= 0 || this.env.isOver?.() === true;
  }

  get hasQueue(): boolean {
    return this.#head < this.#queue.length;
  }

  /** Runs what is queued until nothing is, the budget is spent, or the root list has ended. */
  drain(): void {
    while (this.hasQueue && !this.isExhausted && this.execution.e === undefined) {
      const index = this.#queue[this.#head]!;
      this.#head += 1;
      this.#stepsLeft -= 1;
      this.#visit(this.plan.nodes[index]!);
    }
  }

  /** What is due at this time. */
  fireDue(): void {
    for (;;) {
      const next = this.leaves.next();
      if (next === undefined || next.at > this.env.now || this.isExhausted) return;
      this.leaves.pop();
      this.spendStep();
      const node = this.plan.nodes[next.node]!;
      node.kind.due(this, node, this.execution.o[next.node]!);
    }
  }

  /** Writes the rest of the queue back into the execution. */
  storeQueue(): void {
    const left = this.#head === 0 ? this.#queue : this.#queue.slice(this.#head);
    if (left.length > 0) this.execution.q = left;
    else if (this.execution.q !== undefined) delete this.execution.q;
  }

  dropQueue(): void {
    this.#queue.length = 0;
    this.#head = 0;
  }

  spendStep(): void {
    this.#stepsLeft -= 1;
  }

  /** Counts a value that becomes part of this commit. */
  charge(value: JsonValue): void {
    const left = Math.max(this.#charactersLeft, 0);
    this.#charactersLeft -= sizeWithin(value, left) ?? left;
  }

  #visit(node: NodePlace): void {
    const record = this.execution.o[node.index];
    if (record !== undefined) node.kind.again(this, node, record);
    else if (this.execution.d[node.index] === undefined && this.#isExpected(node)) {
      if (isLeftAlone(this, node)) this.finish(node, CANCELLED);
      else if (this.#passes(node, node.when)) node.kind.enter(this, node);
    }
  }

  /**
   * Whether the block runs by its `when`; it is done otherwise. One that had begun when the instance failed
   * goes on: it would be left half done.
   */
  #passes(node: NodePlace, when: NodePlace['when']): boolean {
    if (when === undefined) return true;
    const kept = this.execution.k?.[node.index];
    if (kept !== undefined) {
      if (!node.kind.isKept) delete this.execution.k![node.index];
      return true;
    }
    if (!when.ok) node.kind.misguided(this, node, `when does not parse: ${when.message}`);
    else if (isTruthy(evaluateCondition(when.value, this.scopeOf(node)))) return true;
    else this.finish(node, SKIPPED);
    return false;
  }

  /** False for what was queued before the block around it was decided or cut off. */
  #isExpected(node: NodePlace): boolean {
    if (node.parent < 0) return this.execution.x !== 1;
    const above = this.execution.o[node.parent];
    if (above === undefined || above.x === 1) return false;
    return this.plan.nodes[node.parent]!.kind.runsList(above, node.branch);
  }

  // -------------------------------------------------------------- opening and ending nodes

  /** Milliseconds since the instance began. */
  get offset(): number {
    return Math.max(0, this.env.now - (this.execution.t ?? this.env.now));
  }

  /** Opens a composite, whose time counts from here on. */
  open(node: NodePlace, record: OpenRecord): void {
    this.execution.o[node.index] = record;
    if (node.timeoutMs === null) return;
    record.d = this.env.now + node.timeoutMs;
    this.leaves.watch(node.index, record);
  }

  /** What the block was at before the instance failed and was retried; handed out once. */
  takeKept(node: NodePlace): OpenRecord | undefined {
    const kept = this.execution.k?.[node.index];
    if (kept !== undefined) delete this.execution.k![node.index];
    return kept;
  }

  /** Opens a leaf, or replaces the record of an open one. */
  putLeaf(node: NodePlace, record: StepRecord): void {
    const before = this.execution.o[node.index] as StepRecord | undefined;
    const { leaves } = this;
    if (before !== undefined) leaves.remove(before);
    this.execution.o[node.index] = record;
    leaves.add(node.index, record);
  }

  get leaves(): OpenLeaves {
    let leaves = LEAVES.get(this.execution);
    if (leaves === undefined) {
      leaves = new OpenLeaves(this.execution, this.plan.nodes);
      LEAVES.set(this.execution, leaves);
    }
    return leaves;
  }

  /** Deadlines were changed otherwise than by `open` and `putLeaf`. */
  dropLeaves(): void {
    LEAVES.delete(this.execution);
  }

  /** The node is done: tells its parent, which may be done with it. */
  finish(node: NodePlace, code: DoneCode): void {
    const record = this.execution.o[node.index];
    if (record !== undefined && code !== COMPLETED) takeOverOwed(this, node, record);
    if (record !== undefined && this.owesInside(node)) {
      record.j = code;
      this.#goOnAround(node);
    } else this.tellParent(node, this.close(node, code));
  }

  /** Something inside could not be cleaned up, and is open for a retry. */
  owesInside({ lists }: NodePlace): boolean {
    return lists.some((list) => list.some((index) => this.execution.o[index] !== undefined));
  }

  /** What is around a block that stays open, and was cut off with it, goes on to clean up. */
  #goOnAround({ parent: index }: NodePlace): void {
    const above = this.execution.o[index];
    if (above?.x !== 1 || above.j !== undefined) return;
    const parent = this.plan.nodes[index]!;
    parent.kind.childCut(this, parent, above);
  }

  /** The node has been closed. */
  tellParent(node: NodePlace, code: DoneCode): void {
    if (node.parent < 0) {
      this.#rootDone(node, code);
      return;
    }
    const parent = this.plan.nodes[node.parent]!;
    const record = this.execution.o[node.parent]!;
    if (record.j !== undefined || record.z === 1) {
      const asked = record.j ?? CANCELLED;
      if (!this.owesInside(parent)) parent.kind.endLate(this, parent, record, asked);
    } else if (record.x === 1) parent.kind.childCut(this, parent, record);
    else if (parent.kind.runsList(record, node.branch)) {
      parent.kind.childDone(this, parent, record, node, code);
    }
  }

  /** As failed, for a reason that was put aside until the blocks inside had ended. */
  fail(node: NodePlace, cause: Failure | undefined): void {
    this.cause = cause;
    this.finish(node, FAILED);
  }

  /** To be called while the loops around are where they were when the try began. */
  endEffect(node: NodePlace, { a, u }: StepRecord, outcome: EffectOutcome): void {
    if (u === undefined) return;
    this.effects ??= [];
    this.effects.push({ ...this.tryOf(node, a), effect: u, outcome });
  }

  /** The oldest signal that is kept under the name, of those that are meant. */
  firstSignal(name: string, isMeant = (_: KeptSignal) => true): KeptSignal | undefined {
    return this.snapshot.signals?.find((signal) => signal.name === name && isMeant(signal));
  }

  /** It is kept no more. */
  takeSignal({ seq }: KeptSignal, node: NodePlace, status: TakenSignal['status']): void {
    const { snapshot } = this;
    snapshot.signals = snapshot.signals!.filter((signal) => signal.seq !== seq);
    this.takenSignals ??= [];
    this.takenSignals.push({ seq, blockId: node.id, status });
  }

  endGate(gate: EndedGate): void {
    this.gates ??= [];
    this.gates.push(gate);
  }

  /** Without telling the parent. Returns how it ended: what has timed out fails, whatever it came to. */
  close(node: NodePlace, asked: DoneCode): DoneCode {
    const record = this.execution.o[node.index];
    const code = record?.o === 1 ? FAILED : asked;
    if (record?.o === 1) this.cause = record.y;
    const began = record?.b ?? this.offset;
    const done: DoneRecord = [code, began, Math.max(0, this.offset - began)];
    if (record !== undefined) {
      const { kind } = node;
      if (kind.isLeaf) {
        const { b, a, c, k, z } = record as StepRecord;
        this.leaves.remove(record as StepRecord);
        if (c !== undefined) done.push({ b, a, c, ...(k && { k }), ...(z && { z }) } as StepRecord);
      } else if (code === FAILED || code === CANCELLED) {
        if (kind.isKept || node.when !== undefined) done.push(record);
      } else forgetError(this, node);
      delete this.execution.o[node.index];
    }
    this.execution.d[node.index] = done;
    return code;
  }

  #rootDone(node: NodePlace, code: DoneCode): void {
    const { execution, plan } = this;
    // An instance that is cut off because it has timed out is to fail.
    if (execution.x === 1) execution.e = execution.y === undefined ? CANCELLED : FAILED;
    else if (code === FAILED || code === CANCELLED) {
      execution.e = code;
      if (code === FAILED) execution.y = this.cause ?? this.unrecorded(node);
    } else if (!startAt(this, plan.roots, node.position + 1)) execution.e = COMPLETED;
  }

  /** Part of the block failed under an engine, or elsewhere, that did not note why. */
  unrecorded(node: NodePlace): Failure {
    return this.failureAt(node, 'unrecorded', `${node.type} ${node.id} failed`);
  }

  /** All nodes inside go back to pending: the next iteration begins. */
  reset(node: NodePlace): void {
    this.#forgetNodes(node.index + 1, node.end);
    this.#dropInside(node, beneath(this.iterationOf(node)));
  }

  /** The same for some lists of a block that runs items side by side. */
  resetLists(node: NodePlace, from: number, to: number): void {
    for (const list of node.lists.slice(from, to)) {
      this.#forgetNodes(list[0]!, this.plan.nodes[list.at(-1)!]!.end);
    }
  }

  /** A block that runs items side by side is done with one. */
  leaveItem(node: NodePlace, item: number): void {
    this.#dropInside(node, `${beneath(this.iterationOf(node))}${item}.`);
    this.lanes.leave(node, item);
    this.#scopes.forgetItem();
  }

  /** A for_each that was caught in its failure, or lost a race, has left its items. */
  #dropInside(node: NodePlace, iterations: string): void {
    if (this.snapshot.snapshots.size === 0) return;
    const { index: from, end } = this.plan.nodes[node.first]!;
    for (const key of [...this.snapshot.snapshots.keys()]) {
      const colon = key.indexOf(':');
      const index = this.plan.indexOf.get(key.slice(colon + 1));
      if (index === undefined || index <= from || index >= end) continue;
      if (`${key.slice(0, colon)}.`.startsWith(iterations)) this.#drop(key);
    }
  }

  /** What the block was to clean up while it is being cut off has failed: it stays open for a retry. */
  noteCleanupFailure(node: NodePlace, record: OpenRecord): void {
    record.z = 1;
    this.execution.a ??= { f: this.cause ?? this.unrecorded(node) };
    this.#goOnAround(node);
  }

  #forgetNodes(from: number, to: number): void {
    const { d, k } = this.execution;
    for (let i = from; i < to; i += 1) {
      if (d[i] !== undefined) delete d[i];
      if (k?.[i] !== undefined) delete k[i];
    }
  }

  // -------------------------------------------------------------- what blocks read

  iterationOf(node: NodePlace): string {
    return iterationOf(this.execution, node);
  }

  pathOf(node: NodePlace): string {
    return pathOf(this.plan, this.execution, node);
  }

  tryOf(node: NodePlace, attempt: number): StepTry {
    return { node: node.index, iteration: this.iterationOf(node), attempt };
  }

  scopeOf(node: NodePlace): Scope {
    return this.#scopes.of(node);
  }

  overlayOf(node: NodePlace): JsonObject | null {
    return this.#scopes.overlayOf(node);
  }

  // -------------------------------------------------------------- what blocks leave behind

  markCurrent(node: StepNode, attempt: number): void {
    const { runtime } = this.snapshot;
    const total = runtime.total_steps_executed;
    runtime.current_step = node.id;
    runtime.attempt = attempt;
    runtime.current_step_started_at = isoTime(this.env.now);
    runtime.total_steps_executed = (typeof total === 'number' ? total : 0) + 1;
    this.#scopes.forget();
  }

  #dataWith(values: JsonObject): JsonObject {
    const { data } = this.snapshot;
    return Object.keys(values).length === 0 ? data : { ...data, ...values };
  }

  /**
   * @param tryNumber 0 for the row of a composite itself
   * @param attempt `next`: the row may be stored again, so that its rows are counted outside of loops too
   */
  storeOutput(
    node: NodePlace,
    tryNumber: number,
    output: JsonValue,
    outputRef: '__error__' | null,
    attempt: number | 'next' = tryNumber,
  ): void {
    const number = attempt !== 'next' && node.loops.length === 0 ? attempt : this.#nextRow(node);
    const iteration = this.#storeRow(node, tryNumber, output, outputRef, number);
    const kept = { iteration, output };
    if (node.isRead) this.snapshot.outputs.set(node.id, kept);
    // What a loop notes of its passes is no output.
    if (outputRef === null && node.kind.repeats === 'never') this.lanes.collect(node, output);
    if (this.lanes.keep(node, kept)) this.#scopes.forgetItem();
  }

  /** How far a for_each has come: a row that expressions do not read. */
  storeProgress(node: NodePlace, output: JsonObject, attempt: number): void {
    this.#storeRow(node, 0, output, null, node.loops.length === 0 ? attempt : this.#nextRow(node));
  }

  /** A row beside those of the tries, which expressions do not read: it has the number of the row to come. */
  storeNote(
    node: NodePlace,
    tryNumber: number,
    output: JsonObject,
    outputRef: typeof GATE_REF,
  ): void {
    const isLooped = node.loops.length > 0;
    const attempt = isLooped ? (this.execution.c?.[node.first] ?? 0) : tryNumber;
    this.#storeRow(node, tryNumber, output, outputRef, attempt);
  }

  #storeRow(
    node: NodePlace,
    tryNumber: number,
    output: JsonValue,
    outputRef: OutputRow['outputRef'],
    attempt: number,
  ): string {
    const iteration = this.iterationOf(node);
    this.outputs.push({ blockId: node.id, iteration, tryNumber, attempt, output, outputRef });
    this.charge(output);
    return iteration;
  }

  /**
   * The output of a step becomes part of context.data, and of what its own item sees there.
   *
   * @returns false when the data may not take it in, and nothing has happened
   */
  mergeOutput(node: NodePlace, output: JsonObject): boolean {
    if (this.env.fitsContext?.(this.#dataWith(output)) === false) return false;
    this.snapshot.data = this.#dataWith(this.lanes.merge(node, output));
    this.#scopes.forgetItem();
    return true;
  }

  /** The same for what a person said, which is no output. */
  mergeAnswer(node: NodePlace, values: JsonObject): void {
    this.snapshot.data = this.#dataWith(this.lanes.lay(node, values));
    this.#scopes.forgetItem();
  }

  /** What expressions see has changed otherwise than by outputs. */
  forgetScopes(): void {
    this.#scopes.forgetItem();
  }

  /** Rows of a block inside loops count on over all iterations (docs/reference/instances.md). */
  #nextRow({ first }: NodePlace): number {
    this.execution.c ??= {};
    const number = this.execution.c[first] ?? 0;
    this.execution.c[first] = number + 1;
    return number;
  }

  /** To be called before the node finishes as failed. @param attempt of a step */
  noteFailure(node: NodePlace, code: FailureCode, message: string, attempt?: number): void {
    this.cause = this.failureAt(node, code, message, attempt);
    const eventType = node.kind.isLeaf ? 'step_failed' : 'block_failed';
    this.audit.push({ eventType, blockId: node.id, details: { message: this.cause.message } });
  }

  /** @param attempt of a step */
  failureAt(node: NodePlace, code: FailureCode, message: string, attempt?: number): Failure {
    const { handler } = node as Partial<StepNode>;
    return {
      block_id: node.id,
      path: this.pathOf(node),
      handler: handler ?? null,
      attempt: attempt ?? null,
      ...reasonOf(code, message, this.env.now),
    };
  }

  askAboutChild(order: ChildOrder): void {
    this.children ??= [];
    this.children.push(order);
  }

  // -------------------------------------------------------------- the items of for_each blocks

  snapshotKey(node: NodePlace): string {
    return runKey(this.execution, node);
  }

  snapshotOf(node: NodePlace): readonly JsonValue[] {
    const items = this.snapshot.snapshots.get(this.snapshotKey(node));
    if (items === undefined) throw new Error(`the items of ${node.type} ${node.id} are missing`);
    return items;
  }

  putSnapshot(node: NodePlace, items: readonly JsonValue[]): void {
    const key = this.snapshotKey(node);
    const copy = [...items];
    this.snapshot.snapshots.set(key, copy);
    this.newSnapshots ??= new Map();
    this.newSnapshots.set(key, copy);
    this.charge(copy);
  }

  dropSnapshot(node: NodePlace): void {
    this.#drop(this.snapshotKey(node));
  }

  dropSnapshots(): void {
    if (this.snapshot.snapshots.size === 0) return;
    for (const key of [...this.snapshot.snapshots.keys()]) this.#drop(key);
  }

  #drop(key: string): void {
    if (this.snapshot.items !== undefined) delete this.snapshot.items[key];
    if (!this.snapshot.snapshots.delete(key)) return;
    // What was made in this turn has no row yet.
    if (this.newSnapshots?.delete(key) !== true) this.droppedSnapshots.push(key);
  }
}

/** How the iterations begin that go on within one. */
function beneath(iteration: string): string {
  return iteration === '' ? '' : `${iteration}.`;
}
