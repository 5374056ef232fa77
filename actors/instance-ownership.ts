/**
 * Ownership of one instance (spec/05 §1 and §9): the orders of its execution's desk, and the fence
 * that keeps it from being run while it is not this engine's to run. An order is checked, carried out
 * and committed together with the desk's own mutations, as one unit.
 */

import { liveCheckpoint, placeSha256 } from '../src/core/continuity/live-place.js';
import { routeOf, shardOf } from '../src/core/ids.js';
import type { Progress } from '../src/core/progress.js';
import { rankOf } from '../src/core/states.js';
import { isoTime, isoTimeOrNull } from '../src/core/time.js';
import { conflict, type EngineError } from '../src/errors.js';
import type { Expectations, Fence, OrderedChange, OrderView } from './continuity/orders.js';
import type { InstanceActor } from './instance.js';
import type { InstanceMessage, InstanceRequest } from './instance-messages.js';
import { migrated, restored } from './instance-passage.js';
import { heartbeatWatches, readyHints } from './instance-tasks.js';
import type { Operation, Sources } from './preparation.js';
import type { Turn } from './turn.js';

type Ordered = Extract<InstanceRequest, { kind: 'order' }>;

// ---------------------------------------------------------------- the fence

/**
 * What reaches a fenced instance: reads; the desk, which alone lifts the fence; timers, which ask the
 * desk; and grants, which it has no use for and gives back.
 */
const PASSES: ReadonlySet<InstanceMessage['kind']> = new Set<InstanceMessage['kind']>([
  'get',
  'tree',
  'look',
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

/** Why the message must not reach the instance; undefined when it may. */
export function fenced(actor: InstanceActor, message: InstanceMessage): EngineError | undefined {
  const { id, fence } = actor.record;
  if (fence === null || PASSES.has(message.kind)) return undefined;
  // Others are told that there is no such thing, as ever.
  if ('tenant' in message && !actor.isSeenBy(message.tenant)) return undefined;
  return conflict(`instance ${id} ${REASONS[fence.reason]}`);
}

/** A timer of a fenced instance: once the fence may be over, its desk is asked. */
export function askDesk(actor: InstanceActor, turn: Turn): void {
  const { id, tenantId, fence } = actor.record;
  if (fence?.until == null || Date.parse(fence.until) > actor.env.now()) return;
  const continuityId = actor.record.continuityId ?? id;
  turn.effects.push({
    kind: 'peer',
    shard: shardOf(routeOf(continuityId), actor.env.shards),
    message: ['continuity.ask', continuityId, id, tenantId],
  });
  // It asks again, should the word be lost.
  setTimer(actor, turn, actor.env.now() + ASK_AGAIN_MS);
}

const ASK_AGAIN_MS = 5_000;

/** The one timer of a fenced instance; what it waits for itself has no time before `own`. */
function setTimer(actor: InstanceActor, turn: Turn, at: number | null): void {
  const { id, priority } = actor.record;
  if (at === null) {
    if (actor.timer !== undefined) turn.put('timer.clear', id, { instance_id: id });
    actor.timer = undefined;
    return;
  }
  const rank = rankOf(priority);
  actor.timer = { fireAt: at, recover: false };
  turn.put('timer.set', id, { instance_id: id, fire_at: isoTime(at), recover: false, rank });
  turn.effects.push({ kind: 'timer', instance: id, at, rank });
}

// ---------------------------------------------------------------- orders

/** Rejects with 404 or 409 when the instance is not what the desk decided on. */
export async function obey(
  actor: InstanceActor,
  sources: Sources,
  { request, order }: Ordered,
): Promise<Operation> {
  const { expect, changes, mutations } = order;
  await check(actor, sources, expect);
  const prepared = await Promise.all(changes.map((change) => prepare(actor, sources, change)));
  return (turn) => {
    let last: Came;
    for (const change of prepared) last = change(turn, last) ?? last;
    for (const part of mutations) turn.mutations.push(part);
    turn.reply(request, 200, JSON.stringify(viewOf(actor)));
    return last;
  };
}

function viewOf({ record }: InstanceActor): OrderView {
  const { snapshot } = record;
  const { current_step: step } = snapshot.runtime;
  return {
    state: snapshot.state,
    sequenceId: record.sequenceId,
    currentStep: typeof step === 'string' ? step : null,
    nextFireAt: isoTimeOrNull(snapshot.nextFireAt),
  };
}

async function check(
  { record, running }: InstanceActor,
  { rows }: Sources,
  expect: Expectations,
): Promise<void> {
  const { snapshot, id, contextAudit } = record;
  const stale = (what: string) => conflict(`instance ${id} ${what}`);
  if (expect.states !== undefined && !expect.states.includes(snapshot.state)) {
    throw stale(`is ${snapshot.state}, not ${expect.states.join(' or ')}`);
  }
  if (expect.isAtRest === true && running.size > 0) throw stale('has a step at work');
  if (expect.sequenceId !== undefined && expect.sequenceId !== record.sequenceId) {
    throw stale('has gone over to another version');
  }
  if (expect.epoch !== undefined && expect.epoch !== record.ownershipEpoch) {
    throw stale(`is at epoch ${record.ownershipEpoch}, not ${expect.epoch}`);
  }
  if (expect.fence !== undefined && expect.fence !== (record.fence?.reason ?? 'none')) {
    throw stale(record.fence === null ? 'is owned here' : REASONS[record.fence.reason]);
  }
  const { placeSha256: place, checkpointId } = expect;
  const { data, config, execution } = snapshot;
  if (
    place !== undefined &&
    place !== placeSha256({ data, config, audit: contextAudit, execution })
  ) {
    throw stale('has another context or has gone on by now');
  }
  if (checkpointId !== undefined && checkpointId !== (await rows.newestCheckpoint(id))) {
    throw stale('has a newer checkpoint by now');
  }
}

/** What the changes of an order came to so far. */
type Came = Progress | 'touched' | undefined;

/** What a change does in its turn; everything that can be refused is refused before. */
export type Change = (turn: Turn, before: Came) => Came;

async function prepare(
  actor: InstanceActor,
  sources: Sources,
  change: OrderedChange,
): Promise<Change> {
  const { record } = actor;
  switch (change.kind) {
    case 'enrol':
      return (turn, before) => {
        record.continuityId = change.continuityId;
        record.ownershipEpoch = change.epoch;
        putOwnership(actor, turn);
        return before ?? 'touched';
      };
    case 'fence':
      // Its outcome could not be taken in behind the fence.
      if (actor.running.size > 0) throw conflict(`instance ${record.id} has a step at work`);
      return (turn, before) => fence(actor, turn, change.fence, before);
    case 'own':
      return (turn) => own(actor, turn, change.epoch);
    case 'capture':
      return (turn) => capture(actor, turn, change.checkpointId);
    case 'resume':
      return (turn) => {
        const progress = actor.advance(turn, { kind: 'resume' });
        actor.continueAfter(turn);
        return progress;
      };
    case 'migrate':
      return migrated(actor, sources, change);
    case 'restore':
      return restored(actor, sources, change);
  }
}

export function putOwnership({ record }: InstanceActor, turn: Turn): void {
  turn.put('instance.ownership', record.id, {
    id: record.id,
    continuity_id: record.continuityId,
    ownership_epoch: record.ownershipEpoch,
    fence: record.fence,
  });
}

/** One that has gone for good is paused, since that gives the slot of its concurrency key back. */
function fence(actor: InstanceActor, turn: Turn, fence: Fence, before: Came): Came {
  const { record } = actor;
  const leaves = fence.reason === 'moved' && record.snapshot.state === 'waiting';
  const came = leaves ? actor.advance(turn, { kind: 'pause' }) : before;
  record.fence = fence;
  const until = fence.until === null ? null : Date.parse(fence.until);
  putOwnership(actor, turn);
  setTimer(actor, turn, until);
  if (came === undefined || came === 'touched') return 'touched';
  return { ...came, wakeAt: until, more: false };
}

/**
 * What the fence kept back is due again: its timers, its tasks for the queues, their heartbeats. A
 * step that was inside a process is begun again, as after a crash: nothing was at work behind it.
 */
function own(actor: InstanceActor, turn: Turn, epoch: number): Progress {
  const { record } = actor;
  record.fence = null;
  record.ownershipEpoch = epoch;
  putOwnership(actor, turn);
  turn.effects.push(...readyHints(actor), ...heartbeatWatches(actor));
  return actor.advance(turn, { kind: 'wake', recovered: true });
}

/** The live state in the form that migrations and capsules read (spec/05 §2). */
function capture({ record, plan, env }: InstanceActor, turn: Turn, id: string): undefined {
  const { snapshot } = record;
  turn.put('checkpoint.insert', id, {
    id,
    instance_id: record.id,
    checkpoint_data: liveCheckpoint(plan, snapshot, snapshot.runtime),
    created_at: isoTime(env.now()),
  });
  return undefined;
}
