/**
 * Migrates the waits of an instance to another version of its sequence. A deadline is kept unless
 * the target changes it; it then counts from the start of the wait. An unclaimed task is withdrawn
 * and dispatched again; a claimed task stays if the target makes the same call.
 */

import type { MigrationFinding } from '../../../schema/continuity.js';
import {
  COMPLETED,
  type Execution,
  type StepPhase,
  type StepRecord,
} from '../../../schema/execution.js';
import { isEnded } from '../../../schema/states.js';
import type { JsonValue } from '../../../src/base/json.js';
import { targetOf } from '../../../src/core/blocks/step.js';
import { parseEventWait, sleepDuration } from '../../../src/core/builtin.js';
import { Evaluation } from '../../../src/core/evaluation.js';
import { nullInKey } from '../../../src/core/key-params.js';
import { type FindingCode, migrationFinding } from '../../../src/core/migration-findings.js';
import type { Parsed } from '../../../src/core/parsed.js';
import type { Plan, PlanNode, StepNode, SubSequenceNode } from '../../../src/core/plan-nodes.js';
import type { Env, Snapshot, StepTry } from '../../../src/core/progress.js';
import { clashOf, continueAfterEnd, indexesIn, remapExecution } from '../../../src/core/remap.js';
import { canonicalJson } from '../../../src/core/sealing/canonical-json.js';
import { renderTemplate } from '../../../src/core/template.js';
import { backoffMs, redispatchMs } from '../../../src/core/timing.js';

export interface CarriedTask {
  readonly id: string;
  readonly params: JsonValue;
  /** A worker has claimed it, or lost the claim without reporting an outcome. */
  readonly isHeld: boolean;
}

export interface CarryOverCase {
  readonly source: Plan;
  readonly target: Plan;
  readonly snapshot: Snapshot;
  /** context.data and the outputs that expressions of the target read. */
  readonly data: Snapshot['data'];
  readonly outputs: Snapshot['outputs'];
  /** Blocks that have an output. */
  readonly ended: ReadonlySet<string>;
  readonly env: Env;
  readonly taskOf: (step: StepTry) => CarriedTask | undefined;
}

export interface CarriedOver {
  readonly execution: Execution;
  /** Tasks to withdraw; their steps are dispatched again. */
  readonly withdrawn: readonly string[];
}

type CarryOverResult = CarriedOver | readonly MigrationFinding[];

interface Wait<N extends Leaf = StepNode> {
  readonly record: StepRecord;
  readonly source: Side<N>;
  readonly target: Side<N>;
  readonly task: CarriedTask | undefined;
}

/** A leaf in one of the versions, and the run that evaluates its expressions. */
interface Side<N extends Leaf = StepNode> {
  readonly run: Evaluation;
  readonly node: N;
}

type Leaf = StepNode | SubSequenceNode;

type Outcome =
  | { readonly kind: 'on'; readonly record: StepRecord }
  | { readonly kind: 'again' }
  | { readonly kind: 'stuck'; readonly code: FindingCode; readonly summary: string };

interface WaitRow {
  /** Whether the step can begin again elsewhere in the target without losing work. */
  readonly mayMove: (wait: Pick<Wait, 'task'>) => boolean;
  /** A method, hence bivariant: the phase determines the type of leaf. */
  carry(wait: Wait<Leaf>): Outcome;
}

const AGAIN: Outcome = { kind: 'again' };
const on = (record: StepRecord): Outcome => ({ kind: 'on', record });
const stuck = (code: FindingCode, summary: string): Outcome => ({ kind: 'stuck', code, summary });
const always = () => true;
const never = () => false;

const WAITS: Readonly<Record<StepPhase, WaitRow>> = {
  ready: { mayMove: always, carry: ({ record }) => on(record) },
  delay: { mayMove: never, carry: carryDelay },
  limited: { mayMove: always, carry: carryLimited },
  backoff: { mayMove: never, carry: carryBackoff },
  // The response would name the step by its index in the source.
  asking: { mayMove: always, carry: () => AGAIN },
  sleep: { mayMove: never, carry: carrySleep },
  // The instance is not loaded, so no handler is running.
  run: { mayMove: always, carry: () => AGAIN },
  task: { mayMove: ({ task }) => task?.isHeld !== true, carry: carryTask },
  event: { mayMove: never, carry: carryEvent },
  // `remap.ts` has carried it over.
  gate: {
    mayMove: never,
    carry: ({ target: { run, node } }) => on(run.execution.o[node.index] as StepRecord),
  },
  child: { mayMove: never, carry: carryChild },
};

export function carryOver(input: CarryOverCase): CarryOverResult {
  const { source, target, snapshot } = input;
  const clash = clashOf(snapshot.execution, source, target);
  const moved = movedCleanUps(input, clash);
  if (moved.length > 0) return moved;
  return clash === undefined ? continueInTarget(input) : restartInTarget(input, clash);
}

export function isCarried(carried: CarryOverResult): carried is CarriedOver {
  return 'execution' in carried;
}

/** Clean-up and hooks that are in progress cannot begin again elsewhere. */
function movedCleanUps(input: CarryOverCase, clash: string | undefined): MigrationFinding[] {
  const { source, target, snapshot, env } = input;
  const { o, a, j } = snapshot.execution;
  const findings: MigrationFinding[] = [];
  if (clash !== undefined && a !== undefined) {
    const [index = '-1'] = Object.entries(o).find(([, { z }]) => z === 1) ?? [];
    const node = source.nodes[Number(index)];
    const summary = `something is still to be cleaned up, and ${clash}`;
    findings.push(
      node === undefined
        ? migrationFinding('CLEANUP_MOVED', summary)
        : findingAt(new Evaluation(source, snapshot, env), node, 'CLEANUP_MOVED', summary),
    );
  }
  for (const { l, e } of j?.r ?? []) {
    const [before, after] = [source.hooks?.[l], target.hooks?.[l]];
    if (before === undefined) continue;
    const missing =
      Object.keys(e.o).length > 0 ? 'they are at work and not in the target' : undefined;
    const why = after === undefined ? missing : clashOf(e, before, after);
    if (why !== undefined) findings.push(migrationFinding('WAIT_MOVED', `hooks ${l}: ${why}`));
  }
  return findings;
}

function continueInTarget(input: CarryOverCase): CarryOverResult {
  const { source, target, snapshot, env, data, outputs } = input;
  const execution = remapExecution(snapshot.execution, source, target);
  const indexOf = indexesIn(snapshot.execution, source, target);
  const before = new Evaluation(source, snapshot, env);
  const after = new Evaluation(target, { ...snapshot, execution, data, outputs }, env);
  const again: number[] = [];
  const withdrawn: string[] = [];
  const findings: MigrationFinding[] = [];
  for (const [node, record] of openLeaves(source, snapshot.execution)) {
    const there = target.nodes[indexOf(node.index)!] as Leaf;
    const task = taskOf(input, before, node, record);
    const sides = { source: { run: before, node }, target: { run: after, node: there } };
    const outcome = WAITS[record.p].carry({ record, task, ...sides });
    if (outcome.kind === 'on') execution.o[there.index] = { ...outcome.record };
    else if (outcome.kind === 'again') {
      execution.o[there.index] = restarted(record, sides);
      again.push(there.index);
      if (task !== undefined) withdrawn.push(task.id);
    } else findings.push(findingAt(before, node, outcome.code, outcome.summary));
  }
  if (findings.length > 0) return findings;
  if (again.length > 0) {
    execution.q = [...(execution.q ?? []), ...again];
    // A parked instance would never dispatch the tries that begin again.
    if (execution.p !== undefined) delete execution.p;
  }
  const isOpen = !isEnded(snapshot.state);
  return { execution: isOpen ? continueAfterEnd(execution, target) : execution, withdrawn };
}

/** The record of the same try. A dispatched try does not need the rate limit again. */
function restarted(record: StepRecord, { source, target }: Pick<Wait<Leaf>, 'source' | 'target'>) {
  const { b, a, x, u } = record;
  const isPast = record.p === 'run' || record.p === 'task';
  const isGranted = isPast && rateLimitOf(source.node) === rateLimitOf(target.node);
  const ready: StepRecord = { b, p: 'ready', a };
  if (x !== undefined) ready.x = x;
  if (u !== undefined) ready.u = u;
  if (isGranted) ready.g = 1;
  return ready;
}

function rateLimitOf(node: Leaf): string | null {
  return node.type === 'step' ? (node.rateLimitKey?.text ?? null) : null;
}

/** Starts again in the target and skips completed blocks. Refused if work would be lost. */
function restartInTarget(input: CarryOverCase, clash: string): CarryOverResult {
  const { source, target, snapshot, env, ended } = input;
  const before = new Evaluation(source, snapshot, env);
  const findings: MigrationFinding[] = [];
  const withdrawn: string[] = [];
  for (const index of Object.keys(snapshot.execution.o).map(Number)) {
    const node = source.nodes[index]!;
    if (!node.kind.isLeaf) {
      if (node.kind.repeats !== 'never')
        findings.push(findingAt(before, node, 'WAIT_MOVED', clash));
      continue;
    }
    const record = snapshot.execution.o[index] as StepRecord;
    const task = taskOf(input, before, node as Leaf, record);
    if (!WAITS[record.p].mayMove({ task })) {
      findings.push(findingAt(before, node, 'WAIT_MOVED', clash));
    } else if (task !== undefined) withdrawn.push(task.id);
  }
  if (findings.length > 0) return findings;
  const { o: _open, q: _queue, k: _kept, p: _parked, ...rest } = snapshot.execution;
  const execution = remapExecution({ ...rest, t: null, o: {} }, source, target);
  for (const node of target.nodes) {
    const isDone = node.kind.isLeaf && node.loops.length === 0 && ended.has(node.id);
    if (isDone) execution.d[node.index] ??= [COMPLETED, 0, 0];
  }
  return { execution, withdrawn };
}

function openLeaves(plan: Plan, { o }: Execution): [Leaf, StepRecord][] {
  return Object.entries(o).flatMap(([index, record]): [Leaf, StepRecord][] => {
    const node = plan.nodes[Number(index)];
    return node?.kind.isLeaf === true ? [[node as Leaf, record as StepRecord]] : [];
  });
}

function taskOf({ taskOf: find }: CarryOverCase, run: Evaluation, node: Leaf, record: StepRecord) {
  return record.p === 'task' ? find(run.tryOf(node, record.a)) : undefined;
}

function findingAt(run: Evaluation, node: PlanNode, code: FindingCode, summary: string) {
  return migrationFinding(code, summary, { block_id: node.id, path: run.pathOf(node) });
}

function startedAt({ record, source }: Wait): number {
  return (source.run.execution.t ?? source.run.env.now) + record.b;
}

function carryDelay(wait: Wait): Outcome {
  const { record, source, target } = wait;
  const { delay, window } = target.node;
  const isSame = areSame(source.node.delay, delay) && areSame(source.node.window, window);
  if (isSame) return on(record);
  // The window is checked after the delay, and before every further try.
  if (delay === undefined || record.a > 0) return AGAIN;
  return on({ ...record, w: targetOf(target.run, delay, startedAt(wait)) });
}

function carryLimited({ record, source, target }: Wait): Outcome {
  return rateLimitOf(source.node) === rateLimitOf(target.node) ? on(record) : AGAIN;
}

/** The back-off of the target, from the failure of the previous try. */
function carryBackoff({ record, source, target }: Wait): Outcome {
  const [old, next] = [source, target].map(({ node: { retry } }) =>
    retry === undefined ? redispatchMs(record.a - 1) : backoffMs(retry, record.a - 1),
  ) as [number, number];
  return on(old === next ? record : { ...record, w: record.w! - old + next });
}

function carrySleep(wait: Wait): Outcome {
  const { record, source, target } = wait;
  const next = durationOf(target);
  if (!next.ok) return stuck('PARAMS_UNRENDERABLE', next.message);
  const began = record.w! - record.m!;
  const old = durationOf(source);
  const isSame = old.ok && old.value === next.value;
  const sleeping = isSame ? record : { ...record, w: began + next.value, m: next.value };
  return on(withTimeLimit(sleeping, source.node, target.node, began));
}

function durationOf(side: Side): Parsed<number> {
  const params = paramsOf(side);
  return params.ok ? sleepDuration(params.value) : params;
}

/** The time limit of the target, from the same start. */
function withTimeLimit(
  record: StepRecord,
  { timeoutMs: old }: StepNode,
  { timeoutMs: next }: StepNode,
  began: number,
): StepRecord {
  if (old === next) return record;
  const { d, ...rest } = record;
  if (next === null) return rest;
  const since = d !== undefined && old !== null ? d - old : began;
  return { ...rest, d: since + next };
}

/** A step that waits for another event in the target begins again, and receives kept signals. */
function carryEvent(wait: Wait): Outcome {
  const { record, target } = wait;
  const params = paramsOf(target);
  const next = params.ok ? parseEventWait(params.value) : params;
  if (!next.ok) return stuck('PARAMS_UNRENDERABLE', next.message);
  const { v, m, d, ...rest } = record;
  if (next.wait.n !== v!.n || next.wait.k !== v!.k) return AGAIN;
  const limit = Math.min(next.timeoutMs ?? Infinity, target.node.timeoutMs ?? Infinity);
  if (limit === (m ?? Infinity)) return on(record);
  const waiting: StepRecord = { ...rest, v: v! };
  if (limit === Infinity) return on(waiting);
  const began = d === undefined ? startedAt(wait) : d - m!;
  return on({ ...waiting, m: limit, d: began + limit });
}

function carryTask(wait: Wait): Outcome {
  const { record, source, target, task } = wait;
  const params = paramsOf(target);
  if (!params.ok) return stuck('PARAMS_UNRENDERABLE', params.message);
  if (task?.isHeld !== true) return AGAIN;
  if (canonicalJson(params.value) !== canonicalJson(task.params)) {
    return stuck(
      'CLAIMED_CALL_CHANGED',
      `a worker has a task of step ${source.node.id}, whose params are others in the target`,
    );
  }
  return on(withTimeLimit(record, source.node, target.node, startedAt(wait)));
}

/** A child that does not exist yet is created as the target defines. */
function carryChild({ record, source, target }: Wait<SubSequenceNode>): Outcome {
  if (record.c === undefined) return on(record);
  const [old, next] = [inputOf(source), inputOf(target)];
  if (!next.ok) return stuck('PARAMS_UNRENDERABLE', next.message);
  const isSame =
    source.node.sequenceName === target.node.sequenceName &&
    source.node.version === target.node.version &&
    old.ok &&
    canonicalJson(old.value) === canonicalJson(next.value);
  if (isSame) return on(record);
  return stuck(
    'CHILD_CALL_CHANGED',
    `block ${source.node.id} waits for its child ${record.c}, which the target starts with another ` +
      'sequence, version or input',
  );
}

function inputOf({ run, node }: Side<SubSequenceNode>): Parsed<JsonValue> {
  const input = renderTemplate(node.input, run.scopeOf(node));
  if (input.ok) return input;
  return { ok: false, message: `the input of block ${node.id} does not render: ${input.message}` };
}

function paramsOf({ run, node }: Side): Parsed<JsonValue> {
  if (node.params === undefined) return { ok: true, value: {} };
  const scope = run.scopeOf(node);
  const params = renderTemplate(node.params, scope);
  const wrong = params.ok ? nullInKey(node, () => scope) : params.message;
  if (params.ok && wrong === undefined) return params;
  return { ok: false, message: `the params of step ${node.id} do not render: ${wrong}` };
}

/** Compiled times have a fixed order of members. */
function areSame(a: object | undefined, b: object | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
