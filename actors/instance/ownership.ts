/**
 * Orders of an execution, and the fence that stops an instance while this engine does not own it.
 * An order is checked and committed with the execution's mutations in one unit.
 */

import { conflict, type EngineError } from '../../src/base/errors.js';
import { isoTimeOrNull } from '../../src/base/time.js';
import { conflictFor, migrationFinding } from '../../src/core/migration-findings.js';
import type { Progress } from '../../src/core/progress.js';
import type { Turn } from '../runtime/turn.js';
import { advance } from './advance.js';
import { recordCancelWaits } from './cancel-waits.js';
import { familyFindings } from './core/family.js';
import { liveCheckpoint, placeSha256 } from './core/live-place.js';
import { continuityIdOf } from './effects.js';
import { dropEventWaits, renewEventWaits } from './event-waits.js';
import {
  type Action,
  type Handled,
  isSeenBy,
  type LiveInstance,
  type Preparation,
  type Sources,
} from './live-instance.js';
import type { InstanceMessage } from './messages.js';
import { putCheckpoint } from './notes.js';
import type { Expectations, Fence, OrderedChange, OrderView } from './orders.js';
import { sendToPeer } from './progress.js';
import { setTimer } from './settling.js';
import { taskHints } from './tasks.js';
import {
  checkAtRest,
  type Foreseen,
  foresee,
  migrated,
  NOTHING_FORESEEN,
  putOwnership,
  restored,
  takeBack,
} from './version-switch.js';

/** Reads, orders (which lift the fence), timers, and grants (which the instance returns). */
const PASSES: ReadonlySet<InstanceMessage['kind']> = new Set<InstanceMessage['kind']>([
  'get',
  'tree',
  'look',
  'result',
  'standing',
  'order',
  'wake',
  'permit.granted',
  'rate.granted',
]);

const REASONS: Readonly<Record<Fence['reason'], string>> = {
  transferring: 'is being handed over',
  moved: 'was handed over',
  imported: 'was imported and is not owned yet',
};

/** The error for a message that the fence stops. */
export function fenced(actor: LiveInstance, message: InstanceMessage): EngineError | undefined {
  const { id, fence } = actor.record;
  if (fence === null || PASSES.has(message.kind)) return undefined;
  // Other tenants get the same error as for an unknown id.
  if ('tenant' in message && !isSeenBy(actor, message.tenant)) return undefined;
  return conflict(`instance ${id} ${REASONS[fence.reason]}`);
}

/** Asks the execution whether the fence still stands, once its time has passed. */
export function askAboutFence(actor: LiveInstance, turn: Turn): void {
  const { id, fence } = actor.record;
  if (fence?.until == null || Date.parse(fence.until) > actor.env.now()) return;
  const execution = continuityIdOf(actor.record);
  sendToPeer(actor, turn, execution, { kind: 'continuity.ask', execution, instance: id });
  // Ask again if the message is lost.
  setTimer(actor, turn, actor.env.now() + ASK_AGAIN_MS, false);
}

const ASK_AGAIN_MS = 5_000;

/** Rejects with 404 or 409 when the instance has changed since the order was decided. */
export const carryOut: Preparation<'order'> = async (actor, sources, { request, order }) => {
  const { expect, changes, mutations } = order;
  await check(actor, sources, expect);
  const found: { of: Foreseen } = { of: NOTHING_FORESEEN };
  const prepared = await Promise.all(
    changes.map((change) => prepare(actor, sources, change, found)),
  );
  return (turn) => {
    let last: Handled;
    for (const change of prepared) last = change(turn, last) ?? last;
    for (const part of mutations) turn.mutations.push(part);
    turn.reply(request, 200, JSON.stringify(viewOf(actor, found.of)));
    return last;
  };
};

/** @throws EngineError 409: a parent and a child that depend on each other stay on one server */
function checkFamily({ record, plan }: LiveInstance): void {
  const { id: instance, parent_instance_id: parent, snapshot } = record;
  const family = { instance, parent, execution: snapshot.execution };
  const findings = familyFindings(family, (node) => plan.nodes[node]!.id);
  if (findings.length > 0) throw conflictFor(findings);
}

function viewOf({ record }: LiveInstance, { obstacles, lost }: Foreseen): OrderView {
  const { snapshot } = record;
  const { current_step: step } = snapshot.runtime;
  return {
    state: snapshot.state,
    sequenceId: record.sequence_id,
    currentStep: typeof step === 'string' ? step : null,
    nextFireAt: isoTimeOrNull(snapshot.nextFireAt),
    ...(obstacles.length > 0 && { obstacles }),
    ...(lost.length > 0 && { lost }),
  };
}

async function check(actor: LiveInstance, { rows }: Sources, expect: Expectations): Promise<void> {
  const { record } = actor;
  const { snapshot, id } = record;
  const stale = (what: string) =>
    conflictFor([migrationFinding('CHANGED_MEANWHILE', `instance ${id} ${what}`)]);
  if (expect.states !== undefined && !expect.states.includes(snapshot.state)) {
    throw stale(`is ${snapshot.state}, not ${expect.states.join(' or ')}`);
  }
  if (expect.isAtRest === true) checkAtRest(actor);
  if (expect.sequenceId !== undefined && expect.sequenceId !== record.sequence_id) {
    throw stale('has been migrated to another version');
  }
  if (expect.epoch !== undefined && expect.epoch !== record.ownership_epoch) {
    throw stale(`is at epoch ${record.ownership_epoch}, not ${expect.epoch}`);
  }
  if (expect.fence !== undefined && expect.fence !== (record.fence?.reason ?? 'none')) {
    throw stale(record.fence === null ? 'is owned here' : REASONS[record.fence.reason]);
  }
  const { placeSha256: place, checkpointId } = expect;
  const { data, config, execution } = snapshot;
  if (
    place !== undefined &&
    place !== placeSha256({ data, config, audit: record.context_audit, execution })
  ) {
    throw stale('has another context or has continued since');
  }
  if (checkpointId !== undefined && checkpointId !== (await rows.newestCheckpoint(id))) {
    throw stale('has a newer checkpoint');
  }
}

async function prepare(
  actor: LiveInstance,
  sources: Sources,
  change: OrderedChange,
  found: { of: Foreseen },
): Promise<Action> {
  const { record } = actor;
  switch (change.kind) {
    case 'enrol':
      return (turn, before) => {
        record.continuity_id = change.continuityId;
        record.ownership_epoch = change.epoch;
        putOwnership(actor.record, turn);
        return before ?? 'touched';
      };
    case 'fence':
      // The fence would stop the outcome of a running step.
      checkAtRest(actor);
      if (change.fence.reason === 'transferring') checkFamily(actor);
      return (turn, before) => fence(actor, turn, change.fence, before);
    case 'own':
      return (turn) => own(actor, turn, change.epoch);
    case 'capture':
      return (turn) => {
        const data = liveCheckpoint(actor.plan, record.snapshot, record.snapshot.runtime);
        putCheckpoint(actor, turn, change.checkpointId, JSON.stringify(data));
        return undefined;
      };
    case 'resume':
      return (turn) => advance(actor, turn, { kind: 'resume' });
    case 'foresee':
      found.of = await foresee(actor, sources, change);
      return (_, before) => before;
    case 'migrate':
      return migrated(actor, sources, change);
    case 'restore':
      return restored(actor, sources, change);
  }
}

/** Pauses a moved instance, which releases a slot, even one that was kept for a worker. */
function fence(actor: LiveInstance, turn: Turn, fence: Fence, before: Handled): Handled {
  const { record } = actor;
  const { state, execution } = record.snapshot;
  const leaves = fence.reason === 'moved' && (state !== 'paused' || execution.r === 1);
  // Withdraw unclaimed tasks; the destination starts their steps.
  if (fence.reason === 'transferring') takeBack(actor, turn);
  const handled = leaves ? advance(actor, turn, { kind: 'pause' }) : before;
  if (fence.reason === 'moved') dropEventWaits(actor, turn);
  record.fence = fence;
  recordCancelWaits(actor, turn);
  const until = fence.until === null ? null : Date.parse(fence.until);
  putOwnership(actor.record, turn);
  // The only timer while the fence stands; `own` restores the others.
  setTimer(actor, turn, until, false);
  if (handled === undefined || handled === 'touched') return 'touched';
  return { ...handled, wakeAt: until, more: false };
}

/** Restores timers, queued tasks and heartbeat watches; in-process steps start again. */
function own(actor: LiveInstance, turn: Turn, epoch: number): Progress {
  const { record } = actor;
  record.fence = null;
  record.ownership_epoch = epoch;
  putOwnership(actor.record, turn);
  turn.effects.push(...taskHints(actor));
  renewEventWaits(actor, turn);
  return advance(actor, turn, { kind: 'wake', recovered: true });
}
