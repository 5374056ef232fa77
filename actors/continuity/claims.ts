/**
 * The claim of an imported execution whose source has a database of its own: the source's word that
 * it granted the ownership lifts the fence here. The instance stays paused.
 */

import type { Execution } from '../../schema/continuity.js';
import { isUuid } from '../../schema/formats.js';
import { openStatement } from '../../src/core/continuity/statements.js';
import type { JsonObject } from '../../src/core/json.js';
import { isJsonObject, ownValue } from '../../src/core/json.js';
import { parseJson } from '../../src/core/json-guard.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, invalid } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { putExecution, putLocation } from './executions.js';
import { type Asked, type ExecutionOperations, keysOf } from './operation.js';
import { putNextEntry } from './provenance.js';
import type { ExecutionRow, ImportRow } from './rows.js';

export const CLAIM_OPERATIONS = {
  'continuity.claim': {
    ledBy: ({ ownership_grant }) => continuityIdIn(ownership_grant.statement),
    serve: claimExecution,
  },
} satisfies Partial<ExecutionOperations>;

/** Whether the statement is to be believed is another question. @throws EngineError 400 */
function continuityIdIn(statement: string): string {
  const json = parseJson(statement);
  const id =
    json.ok && isJsonObject(json.value) ? ownValue(json.value, 'continuity_id') : undefined;
  if (typeof id !== 'string' || !isUuid(id)) {
    throw invalid('ownership_grant.statement must be JSON with a continuity_id');
  }
  return id;
}

/** Asked again, it answers the same for as long as the execution is here at that epoch. */
async function claimExecution(
  service: ExecutionService,
  { tenant, id, body }: Asked<'continuity.claim'>,
): Promise<OperationReply> {
  const { rows } = service;
  const { trusted, signing } = keysOf(service);
  const grant = openStatement(body.ownership_grant, trusted.values());
  const instance = grant && ownValue(grant, 'instance_id');
  const imported = typeof instance === 'string' ? await rows.importOf(instance) : undefined;
  if (
    grant === undefined ||
    imported === undefined ||
    !isGranted(grant, imported, tenant, signing.publicKey)
  ) {
    throw conflict('the grant does not give an execution that was imported here');
  }
  const epoch = imported.source_epoch + 1;
  const before = await rows.execution(id);
  if (before !== undefined && before.epoch >= epoch) {
    return { status: 200, body: claimedBefore(before, imported, epoch) };
  }
  return { status: 200, body: await takeOver(service, before, imported, grant) };
}

/** Every fact that is stated is that of the import, which this very server made. */
function isGranted(grant: JsonObject, imported: ImportRow, tenant: string, key: string): boolean {
  return (
    grant.kind === 'ownership_granted' &&
    grant.importer_public_key === key &&
    (tenant === '' || tenant === imported.tenant_id) &&
    grant.tenant_id === imported.tenant_id &&
    grant.capsule_id === imported.capsule_id &&
    grant.continuity_id === imported.continuity_id &&
    grant.epoch === imported.source_epoch + 1 &&
    grant.owner_runtime_id === imported.destination_runtime_id &&
    grant.instance_id === imported.instance_id &&
    typeof grant.handoff_id === 'string' &&
    isUuid(grant.handoff_id)
  );
}

/** @throws EngineError 409 when the execution has gone on since */
function claimedBefore(
  { version: _, ...execution }: ExecutionRow,
  { instance_id }: ImportRow,
  epoch: number,
): Execution {
  if (execution.epoch === epoch && execution.current_instance_id === instance_id) return execution;
  throw conflict(`execution ${execution.continuity_id} is at epoch ${execution.epoch} by now`);
}

async function takeOver(
  service: ExecutionService,
  before: ExecutionRow | undefined,
  imported: ImportRow,
  grant: JsonObject,
): Promise<Execution> {
  const { continuity_id, tenant_id, instance_id, destination_runtime_id } = imported;
  const epoch = imported.source_epoch + 1;
  const turn = new Turn();
  const owned = {
    current_instance_id: instance_id,
    owner_runtime_id: destination_runtime_id,
    epoch,
    state: 'owned',
  } as const;
  const first = { continuity_id, tenant_id, ...owned, updated_at: isoTime(service.now) };
  const execution = before === undefined ? first : putExecution(service, turn, before, owned);
  if (before === undefined) turn.put('execution.insert', continuity_id, first);
  putLocation(turn, execution, grant.handoff_id as string);
  const entry = { kind: 'runtime_claimed', epoch, summary: 'runtime claimed' } as const;
  await putNextEntry(service, turn, execution, { ...entry, evidence: { grant, execution } });
  const expect = { states: ['paused'], fence: 'imported' } as const;
  await service.order(instance_id, tenant_id, { expect, changes: [{ kind: 'own', epoch }] }, turn);
  return execution;
}
