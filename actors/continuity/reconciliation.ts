/**
 * Putting an execution in order that time or a crash has left behind: a capsule past its end, an
 * export that was cut off, an instance that still waits for a handoff that is over. All of it happens in the execution's line.
 */

import { holdsExecution } from '../../schema/continuity-words.js';
import { Turn } from '../runtime/turn.js';
import { EXPORT_FAILED } from './core/handoff.js';
import { handoffStateAt } from './core/handoff-view.js';
import type { ExecutionService } from './execution-service.js';
import { commitWith, putExecution, touchExecution } from './executions.js';
import { moveHandoff, type Passage } from './handoff-rows.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

/**
 * Ends what is over. An export is made in the line of its execution: one that is found half done
 * there was cut off.
 *
 * @returns the execution as it is then
 */
export async function settle(
  service: ExecutionService,
  execution: ExecutionRow,
): Promise<ExecutionRow> {
  const handoffs = await service.rows.all('handoffs', execution.continuity_id);
  const open = handoffs.find(({ state }) => holdsExecution(state));
  if (open !== undefined) return settleOpen(service, execution, open);
  const resumed = handoffs.findLast(({ state }) => state === 'resumed');
  return resumed === undefined ? execution : settleResumed(service, execution, resumed);
}

/** Both as they are once what is over has been ended. */
export async function handoffAndExecution(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<Passage> {
  const { tenant_id, continuity_id } = await service.rows.owned('handoff', tenant, id);
  const execution = await settle(
    service,
    await service.rows.owned('execution', tenant_id, continuity_id),
  );
  return { handoff: await service.rows.owned('handoff', tenant, id), execution };
}

/**
 * Takes an execution back that no handoff holds any more, as an engine left it that did not do so with
 * a revocation; for who begins something new.
 */
export async function reclaim(
  service: ExecutionService,
  before: ExecutionRow,
): Promise<ExecutionRow> {
  const execution = await settle(service, before);
  if (execution.state !== 'transferring') return execution;
  const open = await openHandoff(service, execution);
  return open === undefined ? takeBack(service, execution, new Turn()) : execution;
}

/** The one that holds the execution. */
export async function openHandoff(
  { rows }: ExecutionService,
  { continuity_id }: ExecutionRow,
): Promise<HandoffRow | undefined> {
  return (await rows.all('handoffs', continuity_id)).find(({ state }) => holdsExecution(state));
}

/** A fenced instance asks whether it may go on. */
export async function answerFence(
  service: ExecutionService,
  continuityId: string,
  instance: string,
): Promise<void> {
  const found = await service.rows.one('execution', continuityId);
  if (found === undefined) return;
  if (found.current_instance_id !== instance) {
    await leaveBehind(service, found, instance);
    return;
  }
  const execution = await reclaim(service, found);
  const open = await openHandoff(service, execution);
  const { epoch, tenant_id } = execution;
  const expect = { fence: 'transferring', epoch } as const;
  if (open !== undefined) {
    const fence = { reason: 'transferring', until: open.capsule_expires_at } as const;
    await service.order(instance, tenant_id, { expect, changes: [{ kind: 'fence', fence }] });
  } else if (found.version === execution.version) {
    const turn = new Turn();
    touchExecution(turn, execution);
    await service.order(instance, tenant_id, { expect, changes: [{ kind: 'own', epoch }] }, turn);
  }
}

/** The execution has gone on as another instance: this one is never run again. */
export const LEFT_BEHIND = { kind: 'fence', fence: { reason: 'moved', until: null } } as const;

export async function leaveBehind(
  service: ExecutionService,
  { tenant_id }: ExecutionRow,
  instance: string,
): Promise<void> {
  const expect = { fence: 'transferring' } as const;
  await service.order(instance, tenant_id, { expect, changes: [LEFT_BEHIND] });
}

async function settleOpen(
  service: ExecutionService,
  execution: ExecutionRow,
  open: HandoffRow,
): Promise<ExecutionRow> {
  const turn = new Turn();
  if (open.state === 'quiescing') {
    moveHandoff(service, turn, open, 'failed', { failure_code: EXPORT_FAILED });
  } else if (handoffStateAt(open, service.now) === 'expired') {
    moveHandoff(service, turn, open, 'expired');
  } else return execution;
  return takeBack(service, execution, turn);
}

/** Writes down that the instance which the handoff led to has ended. */
async function settleResumed(
  service: ExecutionService,
  execution: ExecutionRow,
  resumed: HandoffRow,
): Promise<ExecutionRow> {
  const epoch = resumed.expected_epoch + 1;
  const destination = await service.rows.one('stateAt', execution.continuity_id, epoch);
  if (handoffStateAt(resumed, service.now, destination?.state) !== 'completed') return execution;
  const turn = new Turn();
  moveHandoff(service, turn, resumed, 'completed');
  touchExecution(turn, execution);
  await service.commit(turn);
  return { ...execution, version: execution.version + 1 };
}

/** Owned again at the same epoch, and its instance goes on where it is here. */
export async function takeBack(
  service: ExecutionService,
  execution: ExecutionRow,
  turn: Turn,
): Promise<ExecutionRow> {
  const after = putExecution(service, turn, execution, { state: 'owned' });
  const { epoch, version } = execution;
  const expect = { fence: 'transferring', epoch } as const;
  await commitWith(service, turn, execution, { expect, changes: [{ kind: 'own', epoch }] });
  return { ...after, version: version + 1 };
}
