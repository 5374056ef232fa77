/** The status of an instance for its explanation. Read-only. */

import { WAITS_FOR_SLOT, WAITS_FOR_START } from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import { isEnded } from '../../schema/states.js';
import { cancellingIn } from '../../src/core/instance-state.js';
import type { StepNode } from '../../src/core/plan-nodes.js';
import { type WaitFacts, waitsOf, whole } from '../../src/core/waits.js';
import { owedPaths } from './core/owed-clean-ups.js';
import { isRetried, runsAgain, standsFor } from './core/retry-preview.js';
import { truncatedOutputs } from './core/truncated-outputs.js';
import type { LiveInstance } from './live-instance.js';
import { failureOf, type InstanceRecord } from './record.js';

export function standingOf(actor: LiveInstance, child?: string) {
  const { record, plan, env } = actor;
  const { id, sequence_id, tenant_id, created_at, continuity_id, snapshot } = record;
  const failure = failureOf(record);
  const factsOf = (node: StepNode, iteration: string) => taskFacts(actor, node, iteration);
  return {
    id,
    sequence_id,
    tenant_id,
    state: snapshot.state,
    created_at,
    failure,
    cancelling: cancellingIn(snapshot.runtime),
    again: isRetried(snapshot) ? runsAgain(plan, snapshot) : null,
    owes: snapshot.execution.m === 1,
    cancelOn: isEnded(snapshot.state) ? [] : (snapshot.execution.E ?? []),
    is_dry_run: snapshot.runtime.dry_run === true,
    ...(child === undefined ? {} : { stands: standsFor(plan, snapshot, child) }),
    owed: isEnded(snapshot.state) ? owedPaths(plan, snapshot.execution) : [],
    cut: truncatedOutputs(plan, snapshot),
    parent: record.parent_instance_id,
    root: rootOf(actor, failure),
    continuity_id,
    ...waitsOf(plan, snapshot, env.now(), waitsOfWhole(record), factsOf),
  };
}

/** The part of an explanation that follows from the instance's own state. */
export type InstanceStatus = Readonly<ReturnType<typeof standingOf>>;

function rootOf({ plan }: LiveInstance, failure: Failure | null): string | null {
  let node = plan.nodes[plan.indexOf.get(failure?.block_id ?? '') ?? plan.roots[0] ?? -1];
  while (node !== undefined && node.parent >= 0) node = plan.nodes[node.parent];
  return node?.id ?? null;
}

function waitsOfWhole(record: InstanceRecord): WaitFacts[] {
  const { fence, snapshot, concurrency_key, max_concurrency } = record;
  const waits: WaitFacts[] = [];
  if (fence !== null) waits.push(whole('handoff', { reason: fence.reason, until: fence.until }));
  if (snapshot.execution.w === WAITS_FOR_SLOT) {
    const key = concurrency_key ?? '';
    waits.push(whole('slot', { key, max_concurrency: max_concurrency ?? 1 }));
  }
  if (snapshot.execution.w === WAITS_FOR_START) {
    waits.push(whole('throttle', { key: snapshot.execution.i ?? '' }));
  }
  return waits;
}

function taskFacts(actor: LiveInstance, node: StepNode, iteration: string): Partial<WaitFacts> {
  const task = actor.tasks.lastOf({ blockId: node.id, iteration });
  if (task === undefined) return {};
  const { id: task_id, queue_name: queue, created_at, worker_id, claimed_at, heartbeat_at } = task;
  const { lost_claims } = task;
  const known = { task_id, queue, ...(lost_claims === 0 ? {} : { lost_claims }) };
  if (task.state !== 'claimed') return { ...known, since: created_at };
  return {
    kind: 'worker',
    ...known,
    since: claimed_at,
    ...(worker_id === null ? {} : { worker_id }),
    ...(heartbeat_at === null ? {} : { heartbeat_at }),
  };
}
