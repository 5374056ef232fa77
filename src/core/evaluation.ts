/**
 * One turn of the evaluator: the queue, the budget, the collected progress, and the operations that all block kinds
 * share. When a block is done, the evaluation calls the kind of its parent. Calls nest with the depth of the tree, never
 * along a list or a loop.
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
import { holds } from './condition.js';
import { isBeingCut, keepOpen, reopenOwed } from './cutting.js';
import { OpenLeaves } from './deadlines.js';
import type { EffectOutcome } from './effects.js';
import type { Scope } from './expression/scope.js';
import { reasonOf } from './failures.js';
import {
  collectOutput,
  keepOutput,
  layOverItems,
  leaveItem,
  mergeIntoItems,
} from './loop-items.js';
import { isFailure, isOutsideCleanUp } from './owed.js';
import { iterationOf, pathOf, rangeOf } from './paths.js';
import type { NodePlace, Plan, StepNode } from './plan-nodes.js';
import {
  type AuditEvent,
  type ChildOrder,
  type EndedGate,
  type Env,
  GATE_REF,
  type KeptSignal,
  noProgress,
  type OutputRow,
  type Snapshot,
  type StepTry,
  type TakenSignal,
} from './progress.js';
import { clearError, Scopes } from './scopes.js';
import { renderTemplate } from './template.js';

/** An index of fewer open nodes is not kept: it is cheaper to make than to have in memory. */
const KEPT_NODES_MIN = 32;
const LEAVES = new WeakMap<Execution, OpenLeaves>();

export class Evaluation {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  readonly execution: Execution;
  readonly env: Env;

  readonly progress = noProgress();
  /** The failure of the node that is about to fail, and then of the enclosing blocks. */
  cause: Failure | undefined;

  #leaves: OpenLeaves | undefined;
  readonly #queue: number[];
  #head = 0;
  #stepsLeft: number;
  #charactersLeft: number;
  readonly scopes: Scopes;

  constructor(plan: Plan, snapshot: Snapshot, env: Env) {
    this.plan = plan;
    this.snapshot = snapshot;
    this.execution = snapshot.execution;
    this.env = env;
    this.scopes = new Scopes(this);
    this.#queue = this.execution.q ?? [];
    this.#stepsLeft = env.stepBudget;
    this.#charactersLeft = env.outputBytesBudget;
  }

  push(index: number): void {
    this.#queue.push(index);
  }

  get isExhausted(): boolean {
    return this.#stepsLeft <= 0 || this.#charactersLeft <= 0 || this.env.isOver?.() === true;
  }

  get hasQueue(): boolean {
    return this.#head < this.#queue.length;
  }

  /** Processes the queue until it is empty, the budget is spent, or the root list has ended. */
  drain(): void {
    while (this.hasQueue && !this.isExhausted && this.execution.e === undefined) {
      const index = this.#queue[this.#head]!;
      this.#head += 1;
      this.#stepsLeft -= 1;
      this.#visit(this.plan.nodes[index]!);
    }
  }

  fireDue(): void {
    for (;;) {
      const next = this.leaves.next();
      if (next === undefined || next.at > this.env.now || this.isExhausted) return;
      this.leaves.pop();
      this.#stepsLeft -= 1;
      const node = this.plan.nodes[next.node]!;
      node.kind.due(this, node, this.execution.o[next.node]!);
    }
  }

  storeQueue(): void {
    const left = this.#head === 0 ? this.#queue : this.#queue.slice(this.#head);
    if (left.length > 0) this.execution.q = left;
    else if (this.execution.q !== undefined) delete this.execution.q;
  }

  dropQueue(): void {
    this.#queue.length = 0;
    this.#head = 0;
  }

  charge(value: JsonValue): void {
    const left = Math.max(this.#charactersLeft, 0);
    this.#charactersLeft -= sizeWithin(value, left) ?? left;
  }

  #visit(node: NodePlace): void {
    const record = this.execution.o[node.index];
    if (record !== undefined) node.kind.revisit(this, node, record);
    else if (this.execution.d[node.index] === undefined && this.#isExpected(node)) {
      if (isOutsideCleanUp(this, node)) this.finish(node, CANCELLED);
      else if (this.#isToRun(node)) node.kind.enter(this, node);
    }
  }

  /** Evaluates `when`, except for a block that had begun before a retry, so that it is not left half done. */
  #isToRun(node: NodePlace): boolean {
    const { when } = node;
    if (when === undefined) return true;
    const kept = this.execution.k?.[node.index];
    if (kept !== undefined) {
      if (!node.kind.isKept) delete this.execution.k![node.index];
      return true;
    }
    if (!when.ok) node.kind.invalidWhen(this, node, `when does not parse: ${when.message}`);
    else if (holds(when.value, this.scopeOf(node))) return true;
    else this.finish(node, SKIPPED);
    return false;
  }

  /** False for nodes that were queued before the enclosing block was decided or cut off. */
  #isExpected(node: NodePlace): boolean {
    if (node.parent < 0) return this.execution.x !== 1;
    const above = this.execution.o[node.parent];
    if (above === undefined || above.x === 1 || above.j !== undefined) return false;
    return this.plan.nodes[node.parent]!.kind.runsList(above, node.branch);
  }

  /** Milliseconds since the instance began. */
  get offset(): number {
    return Math.max(0, this.env.now - (this.execution.t ?? this.env.now));
  }

  /** Opens a composite; its timeout counts from now. */
  open(node: NodePlace, record: OpenRecord): void {
    this.execution.o[node.index] = record;
    if (node.timeoutMs === null) return;
    record.d = this.env.now + node.timeoutMs;
    this.leaves.watch(node.index, record);
  }

  /** Removes and returns the record that the block had before the instance failed and was retried. */
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
    this.#leaves ??= LEAVES.get(this.execution) ?? this.#indexLeaves();
    return this.#leaves;
  }

  /** For deadlines that were changed without `open` or `putLeaf`. */
  dropLeaves(): void {
    this.#leaves = undefined;
    LEAVES.delete(this.execution);
  }

  #indexLeaves(): OpenLeaves {
    const leaves = new OpenLeaves(this.execution, this.plan.nodes);
    if (leaves.nodes >= KEPT_NODES_MIN) LEAVES.set(this.execution, leaves);
    return leaves;
  }

  finish(node: NodePlace, code: DoneCode): void {
    const record = this.execution.o[node.index];
    // An enclosing block that has continued takes over the failed clean-up.
    if (record !== undefined && code !== COMPLETED && isBeingCut(this, node, record)) {
      reopenOwed(this, node, record);
    }
    if (record !== undefined && this.owesInside(node)) {
      record.j = code;
      this.#continueParent(node);
    } else this.notifyParent(node, this.close(node, code));
  }

  /** Whether a child is open for a retry because its clean-up failed. */
  owesInside({ lists }: NodePlace): boolean {
    return lists.some((list) => list.some((index) => this.execution.o[index] !== undefined));
  }

  /** Continues the clean-up of the parent, which was cut off with a block that stays open for a retry. */
  #continueParent({ parent: index }: NodePlace): void {
    const above = this.execution.o[index];
    if (above?.x !== 1 || above.j !== undefined) return;
    const parent = this.plan.nodes[index]!;
    parent.kind.childCut(this, parent, above);
  }

  notifyParent(node: NodePlace, code: DoneCode): void {
    if (node.parent < 0) {
      this.#rootDone(node, code);
      return;
    }
    const parent = this.plan.nodes[node.parent]!;
    const record = this.execution.o[node.parent]!;
    if (record.j !== undefined || record.z === 1) {
      const requested = record.j ?? CANCELLED;
      if (!this.owesInside(parent)) parent.kind.endLate(this, parent, record, requested);
    } else if (record.x === 1) parent.kind.childCut(this, parent, record);
    else if (parent.kind.runsList(record, node.branch)) {
      parent.kind.childDone(this, parent, record, node, code);
    }
  }

  /** @param cause of a failure that was recorded before the blocks inside had ended */
  end(node: NodePlace, code: DoneCode, cause: Failure | undefined): void {
    if (code === FAILED) this.cause = cause;
    this.finish(node, code);
  }

  /** Must be called while the loops around are in the iteration in which the try began. */
  endEffect(node: NodePlace, { a, u }: StepRecord, outcome: EffectOutcome): void {
    if (u === undefined) return;
    this.progress.effects ??= [];
    this.progress.effects.push({ ...this.tryOf(node, a), effect: u, outcome });
  }

  /** The oldest kept signal with this name that `isAddressed` accepts. */
  firstSignal(name: string, isAddressed = (_: KeptSignal) => true): KeptSignal | undefined {
    return this.snapshot.signals?.find((signal) => signal.name === name && isAddressed(signal));
  }

  takeSignal({ seq }: KeptSignal, node: NodePlace, status: TakenSignal['status']): void {
    const { snapshot, progress } = this;
    snapshot.signals = snapshot.signals!.filter((signal) => signal.seq !== seq);
    progress.takenSignals ??= [];
    progress.takenSignals.push({ seq, blockId: node.id, status });
  }

  /** Renders the `reply` of a step that has just taken an answer. One that cannot be rendered is null. */
  noteReply(node: StepNode): void {
    if (node.reply === undefined) return;
    const { progress } = this;
    const rendered = renderTemplate(node.reply, this.scopeOf(node));
    const reply = rendered.ok ? rendered.value : null;
    if (!rendered.ok) {
      const message = `reply: ${rendered.message}`;
      progress.logs.push({ blockId: node.id, level: 'warn', message });
    }
    const last = progress.takenSignals?.at(-1);
    if (last?.blockId === node.id && last.reply === undefined) last.reply = reply;
    else progress.reply ??= reply;
  }

  endGate(gate: EndedGate): void {
    this.progress.gates ??= [];
    this.progress.gates.push(gate);
  }

  /** Closes the node without notifying the parent. Returns how it ended: a node that has timed out fails. */
  close(node: NodePlace, requested: DoneCode): DoneCode {
    const record = this.execution.o[node.index];
    const code = record?.o === 1 ? FAILED : requested;
    if (record?.o === 1) this.cause = record.y;
    const began = record?.b ?? this.offset;
    const ms = Math.max(0, this.offset - began);
    const done: DoneRecord = [code, began, ms];
    if (code === COMPLETED || code === FAILED) {
      this.progress.ended ??= [];
      this.progress.ended.push({ id: node.id, isFailed: code === FAILED, ms });
    }
    if (record !== undefined) {
      const { kind } = node;
      if (kind.isLeaf) {
        const { b, a, c, k, z } = record as StepRecord;
        this.leaves.remove(record as StepRecord);
        if (c !== undefined) done.push({ b, a, c, ...(k && { k }), ...(z && { z }) } as StepRecord);
      } else if (isFailure(code)) {
        if (kind.isKept || node.when !== undefined) done.push(record);
      } else clearError(this, node);
      delete this.execution.o[node.index];
    }
    this.execution.d[node.index] = done;
    return code;
  }

  #rootDone(node: NodePlace, code: DoneCode): void {
    const { execution, plan } = this;
    // An instance that was cut off because it timed out fails.
    if (execution.x === 1) execution.e = execution.y === undefined ? CANCELLED : FAILED;
    else if (isFailure(code)) {
      execution.e = code;
      if (code === FAILED) execution.y = this.cause ?? this.unrecorded(node);
    } else if (!startAt(this, plan.roots, node.position + 1)) execution.e = COMPLETED;
  }

  /** The failure of a block that failed under an engine that did not record reasons. */
  unrecorded(node: NodePlace): Failure {
    return this.failureAt(node, 'unrecorded', `${node.type} ${node.id} failed`);
  }

  /** Resets all nodes inside to pending, for the next iteration. */
  reset(node: NodePlace): void {
    this.#forgetNodes(node.index + 1, node.end);
    this.#dropInside(node, prefixOf(this.iterationOf(node)));
  }

  /** Resets only the lists in a range of branches. */
  resetLists(node: NodePlace, from: number, to: number): void {
    for (const list of node.lists.slice(from, to)) this.#forgetNodes(...rangeOf(this.plan, list));
  }

  /** Resets a list that has run and runs again. */
  resetList(node: NodePlace, branch: number): void {
    this.resetLists(node, branch, branch + 1);
    const range = rangeOf(this.plan, this.plan.nodes[node.first]!.lists[branch]!);
    this.#dropBetween(range, prefixOf(this.iterationOf(node)));
  }

  /** Releases the state of an item that has ended, in a for_each with slots. */
  leaveItem(node: NodePlace, item: number): void {
    this.#dropInside(node, `${prefixOf(this.iterationOf(node))}${item}.`);
    leaveItem(this, node, item);
    this.scopes.forgetItem();
  }

  #dropInside(node: NodePlace, iterations: string): void {
    const { index, end } = this.plan.nodes[node.first]!;
    this.#dropBetween([index + 1, end], iterations);
  }

  /** Drops the items of inner for_each blocks that a failure or a race has left open. */
  #dropBetween([from, end]: readonly [number, number], iterations: string): void {
    if (this.snapshot.snapshots.size === 0) return;
    for (const key of [...this.snapshot.snapshots.keys()]) {
      const colon = key.indexOf(':');
      const index = this.plan.indexOf.get(key.slice(colon + 1));
      if (index === undefined || index < from || index >= end) continue;
      if (`${key.slice(0, colon)}.`.startsWith(iterations)) this.dropSnapshot(key);
    }
  }

  /** Keeps a block open for a retry whose clean-up failed while it was being cut off. */
  noteCleanupFailure(node: NodePlace, record: OpenRecord): void {
    keepOpen(this, node, record, this.cause);
    this.#continueParent(node);
  }

  #forgetNodes(from: number, to: number): void {
    const { d, k } = this.execution;
    for (let i = from; i < to; i += 1) {
      if (d[i] !== undefined) delete d[i];
      if (k?.[i] !== undefined) delete k[i];
    }
  }

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
    return this.scopes.of(node);
  }

  markCurrent(node: StepNode, attempt: number): void {
    const { runtime } = this.snapshot;
    const total = runtime.total_steps_executed;
    runtime.current_step = node.id;
    runtime.attempt = attempt;
    runtime.current_step_started_at = isoTime(this.env.now);
    runtime.total_steps_executed = (typeof total === 'number' ? total : 0) + 1;
    this.scopes.forget();
  }

  #dataWith(values: JsonObject): JsonObject {
    const { data } = this.snapshot;
    return Object.keys(values).length === 0 ? data : { ...data, ...values };
  }

  /** @param tryNumber 0 for a composite @param attempt `next`: numbered as in a loop, as the row may be stored again */
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
    // The row with a loop's iterations is not an output.
    if (outputRef === null && node.kind.repeats === 'never') collectOutput(this, node, output);
    if (keepOutput(this, node, kept)) this.scopes.forgetItem();
  }

  /** Stores the progress of a for_each in a row that expressions do not read. */
  storeProgress(node: NodePlace, output: JsonObject, attempt: number): void {
    this.#storeRow(node, 0, output, null, node.loops.length === 0 ? attempt : this.#nextRow(node));
  }

  /** Stores the answer at a gate, which expressions do not read, in a row with the number of the next one. */
  storeAnswer(node: NodePlace, tryNumber: number, output: JsonObject): void {
    const isLooped = node.loops.length > 0;
    const attempt = isLooped ? (this.execution.c?.[node.first] ?? 0) : tryNumber;
    this.#storeRow(node, tryNumber, output, GATE_REF, attempt);
  }

  #storeRow(
    node: NodePlace,
    tryNumber: number,
    output: JsonValue,
    outputRef: OutputRow['outputRef'],
    attempt: number,
  ): string {
    const iteration = this.iterationOf(node);
    const row = { blockId: node.id, iteration, tryNumber, attempt, output, outputRef };
    this.progress.outputs.push(row);
    this.charge(output);
    return iteration;
  }

  /** Merges a step's output into context.data and what its item sees. @returns false: too large, nothing has changed */
  mergeOutput(node: NodePlace, output: JsonObject): boolean {
    if (this.env.fitsContext?.(this.#dataWith(output)) === false) return false;
    this.snapshot.data = this.#dataWith(mergeIntoItems(this, node, output));
    this.scopes.forgetItem();
    return true;
  }

  /** Merges the answer at a gate, which is not an output. */
  mergeAnswer(node: NodePlace, values: JsonObject): void {
    this.snapshot.data = this.#dataWith(layOverItems(this, node, values));
    this.scopes.forgetItem();
  }

  /** Rows of a block inside loops are numbered across all iterations (docs/reference/instances.md). */
  #nextRow({ first }: NodePlace): number {
    this.execution.c ??= {};
    const number = this.execution.c[first] ?? 0;
    this.execution.c[first] = number + 1;
    return number;
  }

  /** Must be called before the node finishes as failed. @param attempt of a step */
  noteFailure(node: NodePlace, code: FailureCode, message: string, attempt?: number): void {
    this.cause = this.failureAt(node, code, message, attempt);
    const eventType = node.kind.isLeaf ? 'step_failed' : 'block_failed';
    this.audit(eventType, node, { message: this.cause.message });
  }

  audit(eventType: AuditEvent['eventType'], { id }: { id: string }, details: JsonObject): void {
    this.progress.audit.push({ eventType, blockId: id, details });
  }

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

  orderChild(order: ChildOrder): void {
    this.progress.children ??= [];
    this.progress.children.push(order);
  }

  snapshotKey(node: NodePlace): string {
    return `${this.iterationOf(node)}:${node.id}`;
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
    this.progress.snapshots.push({ key, items: copy });
    this.charge(copy);
  }

  dropSnapshots(): void {
    if (this.snapshot.snapshots.size === 0) return;
    for (const key of [...this.snapshot.snapshots.keys()]) this.dropSnapshot(key);
  }

  dropSnapshot(key: string): void {
    if (this.snapshot.items !== undefined) delete this.snapshot.items[key];
    if (!this.snapshot.snapshots.delete(key)) return;
    const { snapshots, droppedSnapshots } = this.progress;
    const added = snapshots.findIndex((snapshot) => snapshot.key === key);
    // Items snapshotted in this turn have no row yet.
    if (added >= 0) snapshots.splice(added, 1);
    else droppedSnapshots.push(key);
  }
}

/** The prefix of the iterations inside an iteration. */
const prefixOf = (iteration: string): string => (iteration === '' ? '' : `${iteration}.`);
