/**
 * Putting an execution in order that time or a crash has left behind: a capsule past its end, an
 * export that was cut off, a handoff that was revoked, an instance that still waits for a handoff
 * that is over (05 §9). All of it happens in the execution's line.
 */

import { EXPORT_FAILED } from '../../src/core/continuity/handoff.js';
import { holdsExecution } from '../../src/core/continuity/states.js';
import { handoffStateAt } from '../../src/handoff-view.js';
import { Turn } from '../turn.js';
import type { Desk } from './desk.js';
import { executionOf, putExecution, touchExecution } from './executions.js';
import { handoffOf, moveHandoff } from './handoff-rows.js';
import type { Office } from './office.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

/**
 * Ends what is over. An export is made in the line of its execution: one that is found half done
 * there was cut off.
 *
 * @returns the execution as it is then
 */
export async function settle({ desk }: Office, execution: ExecutionRow): Promise<ExecutionRow> {
  const handoffs = await desk.deps.rows.handoffs(execution.continuity_id);
  const open = handoffs.find(({ state }) => holdsExecution(state));
  if (open !== undefined) return settleOpen(desk, execution, open);
  const resumed = handoffs.findLast(({ state }) => state === 'resumed');
  return resumed === undefined ? execution : settleResumed(desk, execution, resumed);
}

/** Both as they are once what is over has been ended. */
export async function handoffAndExecution(
  office: Office,
  tenant: string,
  id: string,
): Promise<{ handoff: HandoffRow; execution: ExecutionRow }> {
  const { desk } = office;
  const { tenant_id, continuity_id } = await handoffOf(desk, tenant, id);
  const execution = await settle(office, await executionOf(desk, tenant_id, continuity_id));
  return { handoff: await handoffOf(desk, tenant, id), execution };
}

/** Takes an execution back whose handoff was revoked or has failed; for who begins something new. */
export async function reclaim(office: Office, before: ExecutionRow): Promise<ExecutionRow> {
  const { desk } = office;
  const execution = await settle(office, before);
  if (execution.state !== 'transferring') return execution;
  const open = await openHandoff(desk, execution);
  return open === undefined ? takeBack(desk, execution, new Turn()) : execution;
}

/** The one that holds the execution. */
export async function openHandoff(
  { deps: { rows } }: Desk,
  { continuity_id }: ExecutionRow,
): Promise<HandoffRow | undefined> {
  return (await rows.handoffs(continuity_id)).find(({ state }) => holdsExecution(state));
}

/** A fenced instance asks whether it may go on. */
export async function answerFence(
  office: Office,
  continuityId: string,
  instance: string,
): Promise<void> {
  const { desk } = office;
  const found = await desk.deps.rows.execution(continuityId);
  if (found === undefined) return;
  if (found.current_instance_id !== instance) {
    await leaveBehind(desk, found, instance);
    return;
  }
  const execution = await reclaim(office, found);
  const open = await openHandoff(desk, execution);
  const { epoch, tenant_id } = execution;
  const expect = { fence: 'transferring', epoch } as const;
  if (open !== undefined) {
    const fence = { reason: 'transferring', until: open.capsule_expires_at } as const;
    await desk.order(instance, tenant_id, { expect, changes: [{ kind: 'fence', fence }] });
  } else if (found.version === execution.version) {
    const turn = new Turn();
    touchExecution(turn, execution);
    await desk.order(instance, tenant_id, { expect, changes: [{ kind: 'own', epoch }] }, turn);
  }
}

/** The execution has gone on as another instance: this one is never run again. */
export async function leaveBehind(
  desk: Desk,
  { tenant_id }: ExecutionRow,
  instance: string,
): Promise<void> {
  const fence = { reason: 'moved', until: null } as const;
  const changes = [{ kind: 'fence', fence }] as const;
  await desk.order(instance, tenant_id, { expect: { fence: 'transferring' }, changes });
}

async function settleOpen(
  desk: Desk,
  execution: ExecutionRow,
  open: HandoffRow,
): Promise<ExecutionRow> {
  const turn = new Turn();
  if (open.state === 'quiescing') {
    moveHandoff(desk, turn, open, 'failed', { failure_code: EXPORT_FAILED });
  } else if (handoffStateAt(open, desk.now) === 'expired') {
    moveHandoff(desk, turn, open, 'expired');
  } else return execution;
  return takeBack(desk, execution, turn);
}

/** Writes down that the instance which the handoff led to has ended. */
async function settleResumed(
  desk: Desk,
  execution: ExecutionRow,
  resumed: HandoffRow,
): Promise<ExecutionRow> {
  const { rows } = desk.deps;
  const state = await rows.stateAt(execution.continuity_id, resumed.expected_epoch + 1);
  if (handoffStateAt(resumed, desk.now, state) !== 'completed') return execution;
  const turn = new Turn();
  moveHandoff(desk, turn, resumed, 'completed');
  touchExecution(turn, execution);
  await desk.commit(turn);
  return { ...execution, version: execution.version + 1 };
}

/** Owned again at the same epoch, and its instance goes on where it is here. */
export async function takeBack(
  desk: Desk,
  execution: ExecutionRow,
  turn: Turn,
): Promise<ExecutionRow> {
  const after = putExecution(desk, turn, execution, { state: 'owned' });
  const { current_instance_id: instance, tenant_id, epoch, version } = execution;
  if ((await desk.deps.rows.tenantOf(instance)) === undefined) await desk.commit(turn);
  else {
    const expect = { fence: 'transferring', epoch } as const;
    await desk.order(instance, tenant_id, { expect, changes: [{ kind: 'own', epoch }] }, turn);
  }
  return { ...after, version: version + 1 };
}
