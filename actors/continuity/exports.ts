/**
 * The export of a handoff (05 §10). The source instance is fenced first, in the unit that begins the
 * export, so that what is read of it then is all there will ever be. An export that does not come to
 * its end is undone in the same line, or by whoever finds it half done (`healing.ts`).
 */

import type { ExportHandoff, HandoffExported } from '../../schema/handoff.js';
import type { SealedPayload } from '../../src/capsule-work.js';
import { exportConflict } from '../../src/core/continuity/handoff.js';
import { KEY_BYTES, type PayloadKey, parseTransferKey } from '../../src/core/continuity/keys.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, invalid } from '../../src/errors.js';
import { handoffTerms, handoffView } from '../../src/handoff-view.js';
import { Turn } from '../turn.js';
import { contentsOf } from './capsule-contents.js';
import { putArtifact, sealContents } from './capsule-sealing.js';
import type { Desk, DeskReply } from './desk.js';
import { executionOf, putExecution, touchExecution } from './executions.js';
import { lineOfHandoff, moveHandoff, requireState } from './handoff-rows.js';
import { decisionOf } from './handoffs.js';
import { handoffAndExecution, reclaim, settle } from './healing.js';
import { type Asked, keysOf, type Office, type Services } from './office.js';
import type { OrderedChange } from './orders.js';
import { termsIn } from './placements.js';
import { tell } from './provenance.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

export const EXPORT_SERVICES = {
  'handoffs.export': { lineOf: lineOfHandoff, serve: exportHandoff },
} satisfies Services;

const EXPIRES_DEFAULT_SECONDS = 300;

/** A handoff and its execution, as they are in the rows. */
interface Passage {
  readonly handoff: HandoffRow;
  readonly execution: ExecutionRow;
}

async function exportHandoff(
  office: Office,
  { tenant, id, body }: Asked<'handoffs.export'>,
): Promise<DeskReply> {
  keysOf(office);
  const transferKey = transferKeyIn(body);
  const { desk } = office;
  const { handoff, execution } = await handoffAndExecution(office, tenant, id);
  requireState(desk, handoff, 'requested');
  const asked = { handoff, execution: await reclaim(office, execution) };
  await checkExport(office, asked, body);
  const begun = await quiesce(office, asked, body);
  try {
    const bundle = await finish(office, begun, await seal(office, begun, transferKey));
    return { status: 200, body: bundle };
  } catch (error) {
    await undo(office, begun);
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
  office: Office,
  { handoff, execution }: Passage,
  body: ExportHandoff,
): Promise<void> {
  const { desk } = office;
  const { rows } = desk.deps;
  const { tenant_id, continuity_id, current_instance_id: instance } = execution;
  if (execution.state !== 'owned' || execution.epoch !== handoff.expected_epoch) {
    throw conflict(`execution ${continuity_id} was changed meanwhile`);
  }
  const { requirements } = termsIn({ requirements: body.requirements ?? {} });
  const { policy, classification, ...agreed } = handoffTerms(handoff);
  const [decision, destination, instanceState, checkpoint] = await Promise.all([
    decisionOf(office, tenant_id, handoff.placement_decision_id),
    rows.runtime(tenant_id, handoff.destination_runtime_id),
    rows.stateOf(instance),
    rows.lastCheckpoint(instance),
  ]);
  if (instanceState === undefined) throw conflict(`instance ${instance} is not here`);
  const terms = { ...agreed, data_classification: classification, locality_policy: policy };
  const facts = {
    handoff: { ...handoff, ...terms },
    decision,
    requirements,
    destination,
    instanceState,
    hasCheckpoint: checkpoint !== undefined || body.capture_checkpoint === true,
  };
  const fault = exportConflict(facts, desk.now);
  if (fault !== undefined) throw conflict(fault);
  await checkEffects(desk, execution);
}

/**
 * An effect in doubt would be begun again where the execution goes on (00-mission: facts are judged
 * again right before the export).
 */
async function checkEffects({ deps: { rows } }: Desk, execution: ExecutionRow): Promise<void> {
  const [effect] = await rows.unresolvedEffects(execution);
  if (effect === undefined) return;
  throw conflict(`effect ${effect.id} of block ${effect.block_id} is ${effect.state}: resolve it`);
}

/** Fences the instance, and saves a checkpoint of what it is then if that was asked for. */
async function quiesce(
  { desk }: Office,
  { handoff, execution }: Passage,
  { expires_in_seconds, capture_checkpoint }: ExportHandoff,
): Promise<Passage> {
  const { continuity_id, current_instance_id: instance, epoch, tenant_id } = execution;
  const seconds = expires_in_seconds ?? EXPIRES_DEFAULT_SECONDS;
  const capsule_id = desk.deps.newIdLike(continuity_id);
  const capsule_expires_at = isoTime(desk.now + seconds * 1_000);
  const turn = new Turn();
  const moved = moveHandoff(desk, turn, handoff, 'quiescing', { capsule_id, capsule_expires_at });
  touchExecution(turn, execution);
  const changes: OrderedChange[] = [
    { kind: 'fence', fence: { reason: 'transferring', until: capsule_expires_at } },
  ];
  if (capture_checkpoint === true) {
    changes.unshift({ kind: 'capture', checkpointId: desk.deps.newIdLike(instance) });
  }
  const expect = { states: ['paused', 'waiting'], fence: 'none', epoch } as const;
  await desk.order(instance, tenant_id, { expect, changes }, turn);
  return { handoff: moved, execution: { ...execution, version: execution.version + 1 } };
}

async function seal(
  office: Office,
  { handoff, execution }: Passage,
  transferKey: PayloadKey | undefined,
): Promise<SealedPayload> {
  const { desk, plans } = office;
  const { capsule_id: capsuleId, capsule_expires_at: expiresAt } = handoff;
  if (capsuleId === null || expiresAt === null) throw new Error('the handoff names no capsule');
  // What came between the check and the fence.
  await checkEffects(desk, execution);
  const contents = await contentsOf(desk, plans, execution.current_instance_id);
  const { requirements } = handoffTerms(handoff);
  const destination = handoff.destination_runtime_id;
  const terms = { capsuleId, execution, destination, requirements, expiresAt, transferKey };
  return sealContents(desk, keysOf(office), contents, terms);
}

async function finish(
  { desk, keyring }: Office,
  { handoff, execution }: Passage,
  sealed: SealedPayload,
): Promise<HandoffExported> {
  const turn = new Turn();
  const moved = moveHandoff(desk, turn, handoff, 'exported');
  putExecution(desk, turn, execution, { state: 'transferring' });
  putArtifact(desk, turn, sealed);
  const { capsule } = sealed;
  const told = { kind: 'capsule_exported', summary: 'capsule exported' } as const;
  const { epoch } = execution;
  await tell(desk, keyring, turn, execution, { ...told, epoch, evidence: capsule.manifest });
  await desk.commit(turn);
  return {
    handoff: handoffView(moved, desk.now),
    capsule,
    payload_base64: sealed.payloadBase64,
  };
}

/** The handoff has failed, and the instance goes on; should that fail too, the instance asks. */
async function undo(office: Office, { execution }: Passage): Promise<void> {
  const { desk } = office;
  try {
    await settle(office, await executionOf(desk, execution.tenant_id, execution.continuity_id));
  } catch (error) {
    desk.deps.log.info({ err: error }, 'an export that failed is undone later');
  }
}
