/**
 * Reconciles an execution with what time or a crash has changed: an expired capsule, an interrupted
 * export, an instance still fenced after its handoff has ended. Runs in the line of the execution.
 */

import { holdsExecution } from '../../schema/continuity-words.js';
import { Turn } from '../runtime/turn.js';
import { EXPORT_FAILED } from './core/handoff.js';
import { handoffStateAt } from './core/handoff-view.js';
import type { ExecutionService } from './execution-service.js';
import { commitWith, putExecution, touchExecution } from './executions.js';
import { type HandoffAndExecution, moveHandoff } from './handoff-rows.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

/** Ends handoffs that are interrupted, expired or completed. @returns the execution after that */
export async function settle(
  service: ExecutionService,
  execution: ExecutionRow,
): Promise<ExecutionRow> {
  const handoffs = await service.rows.all('handoffs', execution.continuity_id);
  const open = handoffs.find(isOpen);
  if (open !== undefined) return settleOpen(service, execution, open);
  const resumed = handoffs.findLast(({ state }) => state === 'resumed');
  return resumed === undefined ? execution : settleResumed(service, execution, resumed);
}

/** Both after `settle`. */
export async function handoffAndExecution(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<HandoffAndExecution> {
  const { rows } = service;
  const { tenant_id, continuity_id } = await rows.owned('handoff', tenant, id);
  const execution = await settle(service, await rows.owned('execution', tenant_id, continuity_id));
  return { handoff: await rows.owned('handoff', tenant, id), execution };
}

/** Settles, and takes back an execution that is in transfer without an open handoff. */
export async function reclaim(
  service: ExecutionService,
  before: ExecutionRow,
): Promise<ExecutionRow> {
  const execution = await settle(service, before);
  if (execution.state !== 'transferring') return execution;
  const open = await openHandoff(service, execution);
  return open === undefined ? takeBack(service, execution, new Turn()) : execution;
}

export async function openHandoff(
  { rows }: ExecutionService,
  { continuity_id }: ExecutionRow,
): Promise<HandoffRow | undefined> {
  return (await rows.all('handoffs', continuity_id)).find(isOpen);
}

function isOpen({ state }: HandoffRow): boolean {
  return holdsExecution(state);
}

/** Answers a fenced instance that asks whether its fence still applies. */
export async function answerFence(
  service: ExecutionService,
  continuityId: string,
  instance: string,
): Promise<void> {
  const found = await service.rows.one('execution', continuityId);
  if (found === undefined) return;
  if (found.current_instance_id !== instance) {
    await fenceMoved(service, { ...found, current_instance_id: instance });
    return;
  }
  const execution = await reclaim(service, found);
  const open = await openHandoff(service, execution);
  const { epoch } = execution;
  const expect = { fence: 'transferring', epoch } as const;
  if (open !== undefined) {
    const fence = { reason: 'transferring', until: open.capsule_expires_at } as const;
    await service.order(execution, { expect, changes: [{ kind: 'fence', fence }] });
  } else if (found.version === execution.version) {
    const turn = new Turn();
    touchExecution(turn, execution);
    await service.order(execution, { expect, changes: [{ kind: 'own', epoch }] }, turn);
  }
}

/** The execution continues as another instance: this one never runs again. */
export const MOVED_FENCE = { kind: 'fence', fence: { reason: 'moved', until: null } } as const;

export async function fenceMoved(
  service: ExecutionService,
  source: Pick<ExecutionRow, 'current_instance_id' | 'tenant_id'>,
): Promise<void> {
  await service.order(source, { expect: { fence: 'transferring' }, changes: [MOVED_FENCE] });
}

async function settleOpen(
  service: ExecutionService,
  execution: ExecutionRow,
  open: HandoffRow,
): Promise<ExecutionRow> {
  const turn = new Turn();
  // An export runs in this line: one found here was interrupted.
  if (open.state === 'quiescing') {
    moveHandoff(service, turn, open, 'failed', { failure_code: EXPORT_FAILED });
  } else if (handoffStateAt(open, service.now) === 'expired') {
    moveHandoff(service, turn, open, 'expired');
  } else return execution;
  return takeBack(service, execution, turn);
}

/** Completes the handoff if the instance at the destination has ended. */
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

/** The source owns the execution again at the same epoch; its instance continues if it is here. */
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
