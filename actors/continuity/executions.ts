/** Executions: how an instance gets one, and the rows that every change of one writes (05 §1). */

import type { Execution } from '../../schema/continuity.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, notFound } from '../../src/errors.js';
import { Turn } from '../turn.js';
import type { Desk, DeskReply } from './desk.js';
import type { Asked, Office, Services } from './office.js';
import { putEntry, tell } from './provenance.js';
import type { ExecutionRow } from './rows.js';

export const EXECUTION_SERVICES = {
  'continuity.create': {
    ledBy: (body) => body.instance_id,
    serve: createExecution,
  },
  'continuity.appendProvenance': { serve: appendProvenance },
} satisfies Services;

/** Adopts the scope that the instance has by itself: its id is that of the execution. */
async function createExecution(
  { desk, keyring }: Office,
  { tenant, body: { instance_id, runtime_id } }: Asked<'continuity.create'>,
): Promise<DeskReply> {
  const { rows } = desk.deps;
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
    updated_at: isoTime(desk.now),
  };
  const turn = new Turn();
  turn.put('execution.insert', instance_id, execution);
  putLocation(turn, execution, null);
  const told = { kind: 'execution_created', epoch: 0, summary: 'execution created' } as const;
  putEntry(desk, keyring, turn, execution, { ...told, evidence: execution }, null);
  const enrol = { kind: 'enrol', continuityId: instance_id, epoch: 0 } as const;
  await desk.order(
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
  { desk, keyring }: Office,
  { tenant, id, body }: Asked<'continuity.appendProvenance'>,
): Promise<DeskReply> {
  const execution = await executionOf(desk, tenant, id);
  const head = await desk.deps.rows.provenanceHead(id);
  if (head !== undefined && head.seq + 1 >= CHAIN_LENGTH_MAX) {
    throw conflict(`the chain has ${CHAIN_LENGTH_MAX} entries`);
  }
  const turn = new Turn();
  const { epoch } = execution;
  const evidence = { sha256: body.payload_sha256.toLowerCase() };
  const entry = await tell(desk, keyring, turn, execution, { kind: body.kind, epoch, evidence });
  touchExecution(turn, execution);
  await desk.commit(turn);
  return { status: 201, body: entry };
}

/** Changes an execution in a unit, which commits nothing if it has changed since it was read. */
export function putExecution(
  desk: Desk,
  turn: Turn,
  before: ExecutionRow,
  changes: Partial<Pick<Execution, 'current_instance_id' | 'owner_runtime_id' | 'epoch' | 'state'>>,
): Execution {
  const { version, ...execution } = before;
  const after: Execution = { ...execution, ...changes, updated_at: isoTime(desk.now) };
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
export async function executionOf(desk: Desk, tenant: string, id: string): Promise<ExecutionRow> {
  const row = await desk.deps.rows.execution(id);
  if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
    throw notFound(`execution ${id}`);
  }
  return row;
}
