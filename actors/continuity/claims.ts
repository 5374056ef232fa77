/**
 * Claims an imported execution whose source has its own database: a statement in which the source
 * grants the ownership lifts the fence. The instance stays paused.
 */

import type { Execution } from '../../schema/continuity.js';
import { isUuid } from '../../schema/formats.js';
import type { ClaimExecution } from '../../schema/handoff.js';
import { conflict, invalid } from '../../src/base/errors.js';
import { isJsonObject, type JsonObject, ownValue } from '../../src/base/json.js';
import { parseJson } from '../../src/base/json-guard.js';
import { isoTime } from '../../src/base/time.js';
import { Turn } from '../runtime/turn.js';
import { openStatement, states } from './core/statements.js';
import type { ExecutionService } from './execution-service.js';
import { ownImported, putExecution, putLocation, shownExecution } from './executions.js';
import { keysOf, type Serve } from './operation.js';
import { putNextEntry } from './provenance.js';
import type { ExecutionRow, ImportRow } from './rows.js';
import { EXECUTION } from './tables.js';

/** Parses only; the signature is verified later. @throws EngineError 400 */
export function executionIn({ ownership_grant }: ClaimExecution): string {
  const json = parseJson(ownership_grant.statement);
  const id =
    json.ok && isJsonObject(json.value) ? ownValue(json.value, 'continuity_id') : undefined;
  if (typeof id !== 'string' || !isUuid(id)) {
    throw invalid('ownership_grant.statement must be JSON with a continuity_id');
  }
  return id;
}

/** Idempotent for as long as the execution is here at that epoch. */
export const claimExecution: Serve<'continuity.claim'> = async (service, { tenant, id, body }) => {
  const { rows } = service;
  const { trusted, signing } = keysOf(service);
  const grant = openStatement(body.ownership_grant, trusted.values());
  const instance = grant && ownValue(grant, 'instance_id');
  const imported = typeof instance === 'string' ? await rows.one('importOf', instance) : undefined;
  if (
    grant === undefined ||
    imported === undefined ||
    (tenant !== '' && tenant !== imported.tenant_id) ||
    !isGranted(grant, imported, signing.publicKey)
  ) {
    throw conflict('the grant does not give an execution that was imported here');
  }
  const epoch = imported.source_epoch + 1;
  const before = await rows.one('execution', id);
  return before !== undefined && before.epoch >= epoch
    ? claimedBefore(before, imported, epoch)
    : takeOver(service, before, imported, grant);
};

/** Whether the statement grants exactly what this server imported. */
function isGranted(grant: JsonObject, imported: ImportRow, importer: string): boolean {
  const { tenant_id, capsule_id, continuity_id, destination_runtime_id, instance_id } = imported;
  const isStated = states(grant, {
    kind: 'ownership_granted',
    importer_public_key: importer,
    tenant_id,
    capsule_id,
    continuity_id,
    epoch: imported.source_epoch + 1,
    owner_runtime_id: destination_runtime_id,
    instance_id,
  });
  return isStated && typeof grant.handoff_id === 'string' && isUuid(grant.handoff_id);
}

/** @throws EngineError 409 when the execution is at another epoch or instance */
function claimedBefore(
  execution: ExecutionRow,
  { instance_id }: ImportRow,
  epoch: number,
): Execution {
  if (execution.epoch === epoch && execution.current_instance_id === instance_id) {
    return shownExecution(execution);
  }
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
  if (before === undefined) turn.put(EXECUTION.insert, continuity_id, first);
  putLocation(turn, execution, grant.handoff_id as string);
  const entry = { kind: 'runtime_claimed', summary: 'runtime claimed' } as const;
  await putNextEntry(service, turn, execution, { ...entry, evidence: { grant, execution } });
  await ownImported(service, turn, execution);
  return execution;
}
