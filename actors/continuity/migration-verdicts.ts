/** The verdict on the migration of one instance, from its rows. */

import type { MigrationFinding, MigrationVerdict } from '../../schema/continuity.js';
import type { SemanticDiff } from '../../schema/release.js';
import { EngineError, notFound } from '../../src/base/errors.js';
import type { JsonObject } from '../../src/base/json.js';
import { TooCostly } from '../../src/base/offload.js';
import { failure, type PositionVerdict } from '../release/core/position.js';
import { COMPARE_DEFINITIONS } from '../release/jobs.js';
import { findingCodes, findingsIn, verdictOn } from './core/migration-plan.js';
import type { ExecutionService } from './execution-service.js';
import { REPLAY_MIGRATION } from './jobs.js';
import { unchanged } from './migration-rows.js';
import type { Place } from './places.js';
import type { ExecutionRow, VersionRow } from './rows.js';

export interface JudgedMigration {
  readonly execution: ExecutionRow;
  readonly place: Place;
  readonly source: VersionRow;
  readonly target: VersionRow;
  /** context.data before and after the transforms. */
  readonly sourceData: JsonObject;
  readonly targetData: JsonObject;
  readonly hasTransforms: boolean;
}

export interface Verdict {
  readonly disposition: MigrationVerdict;
  readonly codes: readonly string[];
  readonly findings: readonly MigrationFinding[];
}

/** Total size of the outputs that a replay holds in memory. */
const HISTORY_BYTES_MAX = 32 * 1024 * 1024;

export async function judgeMigration(
  service: ExecutionService,
  migration: JudgedMigration,
): Promise<Verdict> {
  const { source, target, execution, hasTransforms } = migration;
  const [diffText, outputBlocks, stored] = await Promise.all([
    service.offload.run(execution.tenant_id, COMPARE_DEFINITIONS, {
      baseline: source.definition,
      candidate: target.definition,
    }),
    service.rows.all('outputBlocks', execution.current_instance_id),
    service.plans.load(target.id),
  ]);
  if (stored === undefined) throw notFound(`sequence ${target.id}`);
  const diff = JSON.parse(diffText) as SemanticDiff;
  const outputs = outputBlocks
    .map(({ block_id }) => block_id)
    .filter((block) => !stored.plan.indexOf.has(block));
  const [replayed, { obstacles = [], lost = [] }] = await Promise.all([
    replay(service, migration, diff.entries.length === 0),
    foreseen(service, migration),
  ]);
  if (!replayed.passed) {
    const { continuity_id } = execution;
    service.log.info({ execution: continuity_id, reason: replayed.reason }, 'a replay failed');
  }
  const inTheWay = [...obstacles, ...(replayed.passed ? [] : [replayed.finding])];
  const losses = { outputs, cleanUps: lost };
  const codes = findingCodes(diff, losses, inTheWay.length === 0);
  const findings = findingsIn(diff, losses, hasTransforms, inTheWay);
  return { disposition: verdictOn(codes, hasTransforms), codes, findings };
}

/** Asks the instance for waits it could not keep and clean-ups it would lose. */
async function foreseen(
  service: ExecutionService,
  { execution, place, target, targetData: data }: JudgedMigration,
) {
  const change = { kind: 'foresee', sequenceId: target.id, data } as const;
  return await service.order(execution, { expect: unchanged(execution, place), changes: [change] });
}

async function replay(
  service: ExecutionService,
  { execution, source, target, sourceData, targetData, hasTransforms }: JudgedMigration,
  isSame: boolean,
): Promise<PositionVerdict> {
  const { rows, offload, log, unpoliciedRetry } = service;
  const { current_instance_id: instance, continuity_id, tenant_id } = execution;
  const totals = await rows.one('outputTotals', instance);
  if ((totals?.bytes ?? 0) > HISTORY_BYTES_MAX) {
    return failure('REPLAY_TOO_LARGE', 'the history of the instance is too large to be replayed');
  }
  const [life, receipts] = await Promise.all([
    rows.one('life', instance),
    rows.effects(continuity_id),
  ]);
  if (life === undefined) throw notFound(`instance ${instance}`);
  try {
    return await offload.run(tenant_id, REPLAY_MIGRATION, {
      source: source.definition,
      target: target.definition,
      isSame,
      life,
      sourceData: JSON.stringify(sourceData),
      targetData: JSON.stringify(targetData),
      hasTransforms,
      receipts,
      unpoliciedRetry,
    });
  } catch (error) {
    if (error instanceof EngineError && !(error instanceof TooCostly)) throw error;
    if (!(error instanceof TooCostly)) log.error({ instanceId: instance, err: error }, 'defect');
    return failure('REPLAY_TOO_LARGE', 'the replay takes too long or too much');
  }
}
