/** Executions: how an instance gets one, and the rows that every change of one writes. */

import type { Execution } from '../../schema/continuity.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, notFound } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import type { Asked, ExecutionOperations } from './operation.js';
import { putEntry, putNextEntry } from './provenance.js';
import type { ExecutionRow } from './rows.js';

export const EXECUTION_OPERATIONS = {
  'continuity.create': {
    ledBy: (body) => body.instance_id,
    serve: createExecution,
  },
  'continuity.appendProvenance': { serve: appendProvenance },
} satisfies Partial<ExecutionOperations>;

/** Adopts the scope that the instance has by itself: its id is that of the execution. */
async function createExecution(
  service: ExecutionService,
  { tenant, body: { instance_id, runtime_id } }: Asked<'continuity.create'>,
): Promise<OperationReply> {
  const { rows } = service;
  // What exists is answered before the instance is asked, which may be gone or fenced.
  const enrolled = (await rows.execution(instance_id)) ?? (await rows.importOf(instance_id));
  if (enrolled?.tenant_id === tenant || (enrolled !== undefined && tenant === '')) {
    throw conflict(`instance ${instance_id} belongs to an execution already`);
  }
  if (enrolled !== undefined) throw notFound(`instance ${instance_id}`);
  const owner = await rows.tenantOf(instance_id);
  if (owner === undefined || (tenant !== '' && owner !== tenant)) {
    throw notFound(`instance ${instance_id}`);
  }
  const execution: Execution = {
    continuity_id: instance_id,
    tenant_id: owner,
    current_instance_id: instance_id,
    owner_runtime_id: runtime_id,
    epoch: 0,
    state: 'owned',
    updated_at: isoTime(service.now),
  };
  const turn = new Turn();
  turn.put('execution.insert', instance_id, execution);
  putLocation(turn, execution, null);
  const entry = { kind: 'execution_created', epoch: 0, summary: 'execution created' } as const;
  putEntry(service, turn, execution, { ...entry, evidence: execution }, null);
  const enrol = { kind: 'enrol', continuityId: instance_id, epoch: 0 } as const;
  await service.order(
    instance_id,
    owner,
    { expect: { epoch: 0, fence: 'none' }, changes: [enrol] },
    turn,
  );
  return { status: 201, body: execution };
}

/** Up to which callers may add to a chain, so that it can be verified as a whole. */
const CHAIN_LENGTH_MAX = 10_000;

/** An entry of the caller's own. */
async function appendProvenance(
  service: ExecutionService,
  { tenant, id, body }: Asked<'continuity.appendProvenance'>,
): Promise<OperationReply> {
  const execution = await executionOf(service, tenant, id);
  const head = await service.rows.provenanceHead(id);
  if (head !== undefined && head.seq + 1 >= CHAIN_LENGTH_MAX) {
    throw conflict(`the chain has ${CHAIN_LENGTH_MAX} entries`);
  }
  const turn = new Turn();
  const { epoch } = execution;
  const evidence = { sha256: body.payload_sha256.toLowerCase() };
  const entry = await putNextEntry(service, turn, execution, { kind: body.kind, epoch, evidence });
  touchExecution(turn, execution);
  await service.commit(turn);
  return { status: 201, body: entry };
}

/** Changes an execution in a unit, which commits nothing if it has changed since it was read. */
export function putExecution(
  service: ExecutionService,
  turn: Turn,
  before: ExecutionRow,
  changes: Partial<Pick<Execution, 'current_instance_id' | 'owner_runtime_id' | 'epoch' | 'state'>>,
): Execution {
  const { version, ...execution } = before;
  const after: Execution = { ...execution, ...changes, updated_at: isoTime(service.now) };
  turn.put('execution.update', before.continuity_id, { ...after, version });
  return after;
}

/** For a unit that changes what hangs on the execution, and nothing of itself; guarded the same. */
export function touchExecution(turn: Turn, execution: ExecutionRow): void {
  turn.put('execution.update', execution.continuity_id, execution);
}

/** Where the execution is at its epoch. */
export function putLocation(turn: Turn, execution: Execution, handoffId: string | null): void {
  const { continuity_id, tenant_id, epoch, owner_runtime_id, current_instance_id } = execution;
  turn.put('location.insert', `${continuity_id}:${epoch}`, {
    continuity_id,
    tenant_id,
    epoch,
    runtime_id: owner_runtime_id,
    instance_id: current_instance_id,
    handoff_id: handoffId,
    entered_at: execution.updated_at,
  });
}

/** @throws EngineError 404 when the tenant ('' is any) has none of that id */
export async function executionOf(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<ExecutionRow> {
  const row = await service.rows.execution(id);
  if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
    throw notFound(`execution ${id}`);
  }
  return row;
}
