/**
 * Migration of one instance in one request: plan, verdict and application. The instance need not be
 * enrolled and continues in its state. It can be rolled back like a planned migration, unless the
 * server has no keys.
 */

import type { MigratedInstance, MigrateTo } from '../../schema/continuity.js';
import { conflict, notFound } from '../../src/base/errors.js';
import { owned } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { CHECKPOINT } from '../instance/output-tables.js';
import { Turn } from '../runtime/turn.js';
import type { ExecutionService } from './execution-service.js';
import { implicitExecution } from './executions.js';
import { changeVersion, insertMigration, presentPlace, versionOf } from './migration-rows.js';
import type { Verdict } from './migration-verdicts.js';
import {
  checkAlive,
  checkSameName,
  checkVerdict,
  entryOf,
  judged,
  migrationOf,
  requireOwned,
  type Subject,
  sealRollback,
  storedPlan,
} from './migrations.js';
import type { RequestTarget, Serve } from './operation.js';
import { reclaim } from './reconciliation.js';
import type { ExecutionRow, VersionRow } from './rows.js';

/** The execution of an imported instance has another id. */
export async function executionOfInstance(
  { rows }: ExecutionService,
  { tenant, id }: RequestTarget,
): Promise<string> {
  owned(await rows.one('instance', id), tenant, `instance ${id}`);
  return (await rows.one('importOf', id))?.continuity_id ?? id;
}

export const migrateInstance: Serve<'migrations.migrate'> = async (service, request) => {
  const { body } = request;
  const { execution, isNew } = await presentExecution(service, request);
  const place = await presentPlace(service, execution);
  checkAlive(place.row, execution);
  const source = await versionOf(service, execution.tenant_id, place.row.sequence_id);
  const target = await targetOf(service, source, body);
  const answer = replyOf(request.id, source, target, place.row.state);
  if (target.id === source.id) return answer(SAME_VERSION);
  const { subject, verdict } = await judged(service, { execution, place, source, target }, body);
  if (body.dry_run === true) return { ...answer(verdict), dry_run: true };
  checkVerdict(verdict, body.approved === true);
  return answer(verdict, await apply(service, subject, isNew, verdict, body));
};

const SAME_VERSION: Verdict = { disposition: 'automatic', codes: [], findings: [] };

/** Rejects with 404, or with 409 when the execution is in transfer or continues elsewhere. */
async function presentExecution(
  service: ExecutionService,
  target: RequestTarget,
): Promise<{ readonly execution: ExecutionRow; readonly isNew: boolean }> {
  const { id, tenant } = target;
  const { rows } = service;
  const row = await rows.one('execution', await executionOfInstance(service, target));
  if (row === undefined) {
    const instance = owned(await rows.one('instance', id), tenant, `instance ${id}`);
    const implicit = implicitExecution(service, { id, tenant_id: instance.tenant_id });
    return { execution: { ...implicit, version: 0 }, isNew: true };
  }
  const execution = requireOwned(await reclaim(service, row));
  if (execution.current_instance_id !== id) throw conflict(`instance ${id} was handed over`);
  return { execution, isNew: false };
}

/** Rejects with 404 when there is no such version, 400 when it is of another sequence. */
async function targetOf(
  service: ExecutionService,
  source: VersionRow,
  { version, sequence_id, to_sequence_id, target_sequence_id }: MigrateTo,
): Promise<VersionRow> {
  const { tenant_id, namespace, name } = source;
  const id = sequence_id ?? to_sequence_id ?? target_sequence_id;
  if (id == null) {
    const row = await service.rows.one('versionNamed', tenant_id, namespace, name, version ?? 0);
    if (row === undefined) throw notFound(`version ${version} of sequence ${name}`);
    return row;
  }
  const target = await versionOf(service, tenant_id, id);
  if (version != null && target.version !== version) {
    throw notFound(`version ${version} of sequence ${id}`);
  }
  checkSameName(source, target);
  return target;
}

type Applied = Pick<MigratedInstance, 'state' | 'migration_id' | 'rollback_expires_at'>;

/** One unit: the instance in the target version, its execution, and the rollback capsule. */
async function apply(
  service: ExecutionService,
  subject: Subject,
  isNew: boolean,
  verdict: Verdict,
  body: MigrateTo,
): Promise<Applied> {
  const { execution, place, checkpoint } = subject;
  const { stored, secrets } = storedPlan(service, subject, verdict, body);
  const turn = new Turn();
  turn.put(CHECKPOINT.insert, checkpoint.id, checkpoint);
  const hasKeys = service.keyring !== undefined;
  const { rollback_expires_at } = stored;
  const rollback = hasKeys
    ? await sealRollback(service, turn, subject, rollback_expires_at)
    : { manifest: null, rollback_capsule: null, rollback_expires_at: isoTime(service.now) };
  const { id } = stored.plan;
  const applied = {
    ...stored,
    ...rollback,
    goes_on: true as const,
    applied_epoch: execution.epoch + 1,
    applied_at: isoTime(service.now),
  };
  insertMigration(service, turn, applied, secrets, 'applied');
  const { state } = await changeVersion(service, turn, {
    execution,
    isNew,
    place,
    checkpoint_data: subject.migrated,
    entry: entryOf(subject, id, rollback.rollback_capsule?.manifest_sha256 ?? null),
    change: migrationOf(subject, { pauses: false }),
  });
  return { state, migration_id: id, rollback_expires_at: hasKeys ? rollback_expires_at : null };
}

function replyOf(
  instance_id: string,
  source: VersionRow,
  target: VersionRow,
  before: MigratedInstance['state'],
) {
  const of = ({ id, version }: VersionRow) => ({ sequence_id: id, version });
  return (
    { disposition, codes, findings }: Verdict,
    { migration_id = null, rollback_expires_at = null, state = before }: Partial<Applied> = {},
  ): MigratedInstance => ({
    migrated: migration_id !== null,
    instance_id,
    from: of(source),
    to: of(target),
    verdict: disposition,
    finding_codes: [...codes],
    findings: [...findings],
    state,
    migration_id,
    rollback_expires_at,
  });
}
