/**
 * Lists the waits of an instance from its state in memory: first waits of the whole instance, then waits of its open
 * leaves in the order of the plan. `explanation.ts` adds the events that can end each wait.
 */

import type { Execution, StepRecord } from '../../schema/execution.js';
import { WAITS_MAX, type Wait } from '../../schema/explanation.js';
import { isEnded } from '../../schema/states.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../base/time.js';
import { earlier, limitOf } from './deadlines.js';
import { iterationOf, pathOf } from './paths.js';
import type { Plan, PlanNode, StepNode } from './plan-nodes.js';
import type { Snapshot } from './progress.js';

export type WaitFacts = Omit<Wait, 'summary'>;
/** Facts about a step besides its record, such as its task. */
export type StepFacts = (node: StepNode, iteration: string) => Partial<WaitFacts>;

/** @param ofWhole further waits of the whole instance */
export function waitsOf(
  plan: Plan,
  snapshot: Snapshot,
  now: UnixMs,
  ofWhole: readonly WaitFacts[],
  factsOf: StepFacts,
): { readonly waits: readonly WaitFacts[]; readonly count: number } {
  const { state, execution } = snapshot;
  if (isEnded(state)) return { waits: [], count: 0 };
  const waits = [...ofWhole, ...holds(snapshot, now)];
  let count = waits.length;
  for (const key of Object.keys(execution.o)) {
    const node = plan.nodes[Number(key)]!;
    if (!node.kind.isLeaf) continue;
    count += 1;
    if (waits.length >= WAITS_MAX) continue;
    waits.push(
      node.type === 'step'
        ? waitOf(plan, execution, node, factsOf)
        : leafWait(plan, execution, node),
    );
  }
  // The instance is running, or has not begun.
  if (count === 0) return { waits: [whole('engine')], count: 1 };
  return { waits, count };
}

export function whole(kind: Wait['kind'], more: Partial<WaitFacts> = {}): WaitFacts {
  return { kind, block_id: null, path: null, since: null, until: null, ...more };
}

function holds({ state, execution, nextFireAt }: Snapshot, now: UnixMs): WaitFacts[] {
  const { h, p, t } = execution;
  const found: WaitFacts[] = [];
  if (state === 'paused') found.push(whole('pause'));
  const startAt = h ?? (t === null && state === 'scheduled' ? nextFireAt : null);
  if (startAt !== null && startAt > now) found.push(whole('start', { until: isoTime(startAt) }));
  if (p === 1) found.push(whole('signal'));
  return found;
}

function leafWait(plan: Plan, execution: Execution, node: PlanNode): WaitFacts {
  const { p, b, w, c } = execution.o[node.index] as StepRecord;
  // Time limits are suspended in a pause.
  const limit = execution.z === undefined ? endOf(plan, execution, node) : undefined;
  return {
    kind: KINDS[p],
    block_id: node.id,
    path: pathOf(plan, execution, node),
    since: isoTimeOrNull(execution.t === null ? null : execution.t + b),
    until: isoTimeOrNull(w ?? limit ?? null),
    ...(c === undefined ? {} : { child_id: c }),
  };
}

function waitOf(plan: Plan, execution: Execution, node: StepNode, factsOf: StepFacts): WaitFacts {
  const record = execution.o[node.index] as StepRecord;
  const { p, a, w, d, m, v, k, l } = record;
  const wait: WaitFacts = {
    ...leafWait(plan, execution, node),
    attempt: a,
    max_attempts: node.retry?.maxAttempts ?? null,
    handler: node.handler,
  };
  if (p === 'sleep' && m !== undefined) wait.since = isoTime(w! - m);
  if (p === 'event') {
    if (m !== undefined) wait.since = isoTime(d! - m);
    wait.name = v!.n;
    if (v!.k !== undefined) wait.key = v!.k;
  }
  if (p === 'gate') {
    wait.approval_id = k ?? '';
    const { choices = [], approvers = [] } = node.gate ?? {};
    wait.choices = choices.map(({ value }) => value);
    if (approvers.length > 0) wait.approvers = [...approvers];
    if (execution.t !== null) wait.since = isoTime(execution.t + (m ?? record.b));
  }
  // `w` is the time at which the step repeats its request, not the end of the wait.
  if (p === 'asking') wait.until = null;
  if (wait.kind === 'rate_limit') wait.key = l ?? node.rateLimitKey?.text ?? '';
  return p === 'task' ? { ...wait, ...factsOf(node, iterationOf(execution, node)) } : wait;
}

/** The earliest time limit of the leaf, the blocks around it and the instance. */
function endOf(plan: Plan, execution: Execution, node: PlanNode): UnixMs | undefined {
  let first = earlier(execution.u, execution.o[node.index]!.d);
  for (let at = node.index; at >= 0; at = plan.nodes[at]!.parent) {
    const record = execution.o[at];
    if (record !== undefined) first = earlier(first, limitOf(record));
  }
  return first;
}

const KINDS: Readonly<Record<StepRecord['p'], Wait['kind']>> = {
  ready: 'engine',
  delay: 'delay',
  limited: 'rate_limit',
  backoff: 'retry',
  asking: 'rate_limit',
  sleep: 'sleep',
  run: 'handler',
  task: 'task',
  event: 'event',
  gate: 'approval',
  child: 'child',
};
