/**
 * The export of a handoff. The source instance is fenced first, in the unit that begins the
 * export, so that what is read of it then is all there will ever be. An export that does not come to
 * its end is undone in the same line, or by whoever finds it half done (`reconciliation.ts`).
 */

import type { ExportHandoff, HandoffExported } from '../../schema/handoff.js';
import { exportConflict } from '../../src/core/continuity/handoff.js';
import { handoffTerms, handoffView } from '../../src/core/continuity/handoff-view.js';
import { KEY_BYTES, type PayloadKey, parseTransferKey } from '../../src/core/continuity/keys.js';
import type { SealedPayload } from '../../src/core/continuity/sealed-payload.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, invalid } from '../../src/errors.js';
import type { OrderedChange } from '../instance/orders.js';
import { Turn } from '../runtime/turn.js';
import { contentsOf } from './capsule-contents.js';
import { putArtifact, sealContents } from './capsule-sealing.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { executionOf, putExecution, touchExecution } from './executions.js';
import { lineOfHandoff, moveHandoff, requireState } from './handoff-rows.js';
import { decisionOf } from './handoffs.js';
import { type Asked, type ExecutionOperations, keysOf } from './operation.js';
import { termsIn } from './placements.js';
import { putNextEntry } from './provenance.js';
import { handoffAndExecution, reclaim, settle } from './reconciliation.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

export const EXPORT_OPERATIONS = {
  'handoffs.export': { lineOf: lineOfHandoff, serve: exportHandoff },
} satisfies Partial<ExecutionOperations>;

const EXPIRES_DEFAULT_SECONDS = 300;

/** A handoff and its execution, as they are in the rows. */
interface OpenExport {
  readonly handoff: HandoffRow;
  readonly execution: ExecutionRow;
}

async function exportHandoff(
  service: ExecutionService,
  { tenant, id, body }: Asked<'handoffs.export'>,
): Promise<OperationReply> {
  keysOf(service);
  const transferKey = transferKeyIn(body);
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'requested');
  const asked = { handoff, execution: await reclaim(service, execution) };
  await checkExport(service, asked, body);
  const begun = await quiesce(service, asked, body);
  try {
    const bundle = await finish(service, begun, await seal(service, begun, transferKey));
    return { status: 200, body: bundle };
  } catch (error) {
    await undo(service, begun);
    throw error;
  }
}

/** @throws EngineError 400 unless the key, if there is one, is base64 of 32 bytes */
function transferKeyIn({ payload_key_base64: text }: ExportHandoff): PayloadKey | undefined {
  if (text == null) return undefined;
  const key = parseTransferKey(text);
  if (key === undefined) throw invalid(`payload_key_base64 must be base64 of ${KEY_BYTES} bytes`);
  return key;
}

/** Rejects with 409 when anything is not as it was agreed on; nothing has happened then. */
async function checkExport(
  service: ExecutionService,
  { handoff, execution }: OpenExport,
  body: ExportHandoff,
): Promise<void> {
  const { rows } = service;
  const { tenant_id, continuity_id, current_instance_id: instance } = execution;
  if (execution.state !== 'owned' || execution.epoch !== handoff.expected_epoch) {
    throw conflict(`execution ${continuity_id} was changed meanwhile`);
  }
  const { requirements } = termsIn({ requirements: body.requirements ?? {} });
  const [decision, destination, instanceState, checkpoint] = await Promise.all([
    decisionOf(service, tenant_id, handoff.placement_decision_id),
    rows.runtime(tenant_id, handoff.destination_runtime_id),
    rows.stateOf(instance),
    rows.lastCheckpoint(instance),
  ]);
  if (instanceState === undefined) throw conflict(`instance ${instance} is not here`);
  const facts = {
    handoff,
    decision,
    requirements,
    destination,
    instanceState,
    hasCheckpoint: checkpoint !== undefined || body.capture_checkpoint === true,
  };
  const fault = exportConflict(facts, service.now);
  if (fault !== undefined) throw conflict(fault);
  await checkEffects(service, execution);
}

/**
 * An effect in doubt would be begun again where the execution goes on: facts are judged
 * again right before the export.
 */
async function checkEffects({ rows }: ExecutionService, execution: ExecutionRow): Promise<void> {
  const [effect] = await rows.unresolvedEffects(execution);
  if (effect === undefined) return;
  throw conflict(`effect ${effect.id} of block ${effect.block_id} is ${effect.state}: resolve it`);
}

/** Fences the instance, and saves a checkpoint of what it is then if that was asked for. */
async function quiesce(
  service: ExecutionService,
  { handoff, execution }: OpenExport,
  { expires_in_seconds, capture_checkpoint }: ExportHandoff,
): Promise<OpenExport> {
  const { continuity_id, current_instance_id: instance, epoch, tenant_id } = execution;
  const seconds = expires_in_seconds ?? EXPIRES_DEFAULT_SECONDS;
  const capsule_id = service.newIdLike(continuity_id);
  const capsule_expires_at = isoTime(service.now + seconds * 1_000);
  const turn = new Turn();
  const moved = moveHandoff(service, turn, handoff, 'quiescing', {
    capsule_id,
    capsule_expires_at,
  });
  touchExecution(turn, execution);
  const changes: OrderedChange[] = [
    { kind: 'fence', fence: { reason: 'transferring', until: capsule_expires_at } },
  ];
  if (capture_checkpoint === true) {
    changes.unshift({ kind: 'capture', checkpointId: service.newIdLike(instance) });
  }
  const expect = { states: ['paused', 'waiting'], fence: 'none', epoch } as const;
  await service.order(instance, tenant_id, { expect, changes }, turn);
  return { handoff: moved, execution: { ...execution, version: execution.version + 1 } };
}

async function seal(
  service: ExecutionService,
  { handoff, execution }: OpenExport,
  transferKey: PayloadKey | undefined,
): Promise<SealedPayload> {
  const { capsule_id: capsuleId, capsule_expires_at: expiresAt } = handoff;
  if (capsuleId === null || expiresAt === null) throw new Error('the handoff names no capsule');
  // What came between the check and the fence.
  await checkEffects(service, execution);
  const contents = await contentsOf(service, execution.current_instance_id);
  const { requirements } = handoffTerms(handoff);
  const destination = handoff.destination_runtime_id;
  const terms = { capsuleId, execution, destination, requirements, expiresAt, transferKey };
  return sealContents(service, contents, terms);
}

async function finish(
  service: ExecutionService,
  { handoff, execution }: OpenExport,
  sealed: SealedPayload,
): Promise<HandoffExported> {
  const turn = new Turn();
  const moved = moveHandoff(service, turn, handoff, 'exported');
  putExecution(service, turn, execution, { state: 'transferring' });
  putArtifact(service, turn, sealed);
  const { capsule } = sealed;
  const entry = { kind: 'capsule_exported', summary: 'capsule exported' } as const;
  const { epoch } = execution;
  await putNextEntry(service, turn, execution, { ...entry, epoch, evidence: capsule.manifest });
  await service.commit(turn);
  return {
    handoff: handoffView(moved, service.now),
    capsule,
    payload_base64: sealed.payloadBase64,
  };
}

/** The handoff has failed, and the instance goes on; should that fail too, the instance asks. */
async function undo(service: ExecutionService, { execution }: OpenExport): Promise<void> {
  try {
    await settle(service, await executionOf(service, execution.tenant_id, execution.continuity_id));
  } catch (error) {
    service.log.info({ err: error }, 'an export that failed is undone later');
  }
}
