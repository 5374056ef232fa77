/**
 * What every message leaves in the rows of its instance, once it is known what came of it: the row
 * itself, its timer, its slot, and what its end gives rise to.
 */

import type { Failure } from '../../schema/failure.js';
import { type InstanceState, rankOf } from '../../schema/states.js';
import { isoTime, isoTimeOrNull, laterOf, type UnixMs } from '../../src/base/time.js';
import { updatedAt } from '../../src/base/unchanged-since.js';
import type { Progress } from '../../src/core/progress.js';
import { noteOutcome } from '../release/attribution.js';
import type { Turn } from '../runtime/turn.js';
import { continueAfter } from './advance.js';
import { putDeadLetter } from './dead-letter.js';
import { noteEnd } from './end-webhooks.js';
import { notifyFamily } from './family.js';
import { writeGates } from './gate-rows.js';
import { recordPermit } from './limits.js';
import type { LiveInstance } from './live-instance.js';
import { failedEffect } from './log-lines.js';
import * as notes from './notes.js';
import {
  changedRow,
  changingRow,
  failureOf,
  offersTasks,
  type PermitStatus,
  permitStatus,
  type Sections,
  sectionsOf,
  wholeLine,
} from './record.js';
import { DEAD_LETTER, INSTANCE, TIMER } from './tables.js';
import { offerTasks } from './tasks.js';

/** What a message may change about an instance that has rows elsewhere, or is not always written. */
export interface StateBefore {
  readonly state: InstanceState;
  readonly permit: PermitStatus;
  readonly offers: boolean;
  readonly failure: Failure | null;
  readonly context: Sections;
  readonly updatedAt: string;
}

/** The unit that creates the instance, with all that it does before its first commit. */
export function settleNew(actor: LiveInstance, turn: Turn, begin: () => Progress): void {
  actor.creationAudit = '';
  const { record } = actor;
  const { snapshot } = record;
  const begunAt = record.created_at;
  const stamp = actor.env.stamp();
  record.created_at = isoTime(stamp);
  const before = stateBefore(actor);
  const progress = begin();
  // Behind what it does: nothing of that is later.
  touch(actor);
  // The stamp may be later than the clock: nothing is due before it was created.
  const { nextFireAt: due } = snapshot;
  if (due !== null && isoTime(due) === begunAt) snapshot.nextFireAt = stamp;
  settle(actor, turn, progress, before);
  notes.putLines(actor, turn);
  writeGates(actor, turn);
  turn.put(INSTANCE.insert, actor.record.id, wholeLine(actor.record, actor.creationAudit));
  turn.effects.push({ kind: 'counted', tenant: record.tenant_id, change: 'created' });
  actor.creationAudit = undefined;
  record.given = undefined;
}

export function stateBefore(actor: LiveInstance): StateBefore {
  const { record } = actor;
  return {
    state: record.snapshot.state,
    permit: permitStatus(record),
    offers: offersTasks(record),
    failure: failureOf(record),
    context: sectionsOf(record),
    updatedAt: record.updated_at,
  };
}

export function touch(actor: LiveInstance): void {
  const { record } = actor;
  const now = isoTime(actor.env.now());
  // The stamp of the creation may be ahead of the clock, and so may a change of the context.
  record.updated_at = laterOf(now, laterOf(record.created_at, record.updated_at));
}

/** Who has read the context is told that it is another one (`if_unchanged_since`), also within the same millisecond. */
function touchAgain({ record, env }: LiveInstance, before: string): void {
  if (record.updated_at === before) record.updated_at = updatedAt(env.now(), before);
}

export function write(
  actor: LiveInstance,
  turn: Turn,
  progress: Progress | 'touched',
  before: StateBefore,
): void {
  touch(actor);
  if (isOther(before.context, sectionsOf(actor.record))) touchAgain(actor, before.updatedAt);
  if (progress !== 'touched') settle(actor, turn, progress, before);
  writeGates(actor, turn);
  writeInstance(actor, turn, before.context);
}

function isOther(before: Sections, after: Sections): boolean {
  return (
    before.data !== after.data || before.config !== after.config || before.audit !== after.audit
  );
}

/** One row of it, with those sections of its context that were replaced. */
function writeInstance({ record }: LiveInstance, turn: Turn, before: Sections): void {
  const { id } = record;
  const { data, config, audit } = sectionsOf(record);
  if (data === before.data) turn.put(INSTANCE.update, id, changingRow(record));
  else turn.put(INSTANCE.change, id, changedRow(record));
  if (config !== before.config || audit !== before.audit) {
    turn.put(INSTANCE.config, id, { id, config, context_audit: audit });
  }
}

/** Everything beside the instance's own row that follows from its new state. */
function settle(actor: LiveInstance, turn: Turn, progress: Progress, before: StateBefore): void {
  recordPermit(actor, turn, before.permit);
  if (offersTasks(actor.record) !== before.offers) offerTasks(actor, turn);
  writeTimer(actor, turn, progress);
  writeFailure(actor, turn, before.failure);
  writeDeadLetter(actor, turn, progress, before);
  if (actor.record.snapshot.state !== before.state) notifyFamily(actor, turn, before.state);
  if (progress.more) continueAfter(actor, turn);
}

/**
 * Keeps the row in `timers` equal to what the instance waits for. A continuation and an
 * in-process step have no due time of their own: `recover` finds them after a crash.
 */
function writeTimer(actor: LiveInstance, turn: Turn, progress: Progress): void {
  const continues = turn.effects.some((effect) => effect.kind === 'continue');
  const recover = actor.running.size > 0 || progress.more || continues;
  setTimer(actor, turn, progress.wakeAt, recover);
}

export function setTimer(
  actor: LiveInstance,
  turn: Turn,
  fireAt: UnixMs | null,
  recover: boolean,
): void {
  const { id, priority } = actor.record;
  const rank = rankOf(priority);
  if (fireAt === null && !recover) {
    if (actor.timer === undefined) return;
    actor.timer = undefined;
    turn.put(TIMER.clear, id, { instance_id: id });
    return;
  }
  if (fireAt !== null) turn.effects.push({ kind: 'timer', instance: id, at: fireAt, rank });
  if (actor.timer?.fireAt === fireAt && actor.timer.recover === recover) return;
  actor.timer = { fireAt, recover };
  turn.put(TIMER.set, id, {
    instance_id: id,
    fire_at: isoTimeOrNull(fireAt),
    recover,
    rank,
  });
}

/** Keeps the column equal to why the instance is failed. The row of a new instance carries it. */
function writeFailure(actor: LiveInstance, turn: Turn, before: Failure | null): void {
  const { record, creationAudit } = actor;
  const failure = failureOf(record);
  if (failure === before || creationAudit !== undefined) return;
  turn.put(INSTANCE.failure, record.id, { id: record.id, failure });
}

function writeDeadLetter(
  actor: LiveInstance,
  turn: Turn,
  progress: Progress,
  { state: before, failure }: StateBefore,
): void {
  const { id, sequence_id, snapshot } = actor.record;
  if (snapshot.state === before) {
    // It has failed already, and then not even cleaned up.
    const isWorse = before === 'failed' && failureOf(actor.record) !== failure;
    if (isWorse) putDeadLetter(actor.record, turn, isoTime(actor.env.now()));
    return;
  }
  noteEnd(actor, turn);
  noteOutcome(actor.record, turn, before);
  countEnd(actor, turn);
  if (snapshot.state === 'completed') {
    turn.count('engine_instances_completed_total');
    turn.effects.push({ kind: 'completed', sequence: sequence_id });
  }
  if (snapshot.state === 'failed') {
    turn.count('engine_instances_failed_total');
    turn.effects.push(failedEffect(actor.record, progress.audit));
    putDeadLetter(actor.record, turn, isoTime(actor.env.now()));
  } else if (before === 'failed') {
    turn.put(DEAD_LETTER.clear, id, { instance_id: id });
  }
}

function countEnd(actor: LiveInstance, turn: Turn): void {
  const { tenant_id: tenant, created_at, snapshot } = actor.record;
  const { state: change } = snapshot;
  if (change === 'cancelled') turn.effects.push({ kind: 'counted', tenant, change });
  if (change !== 'completed' && change !== 'failed') return;
  const durationMs = actor.env.now() - Date.parse(created_at);
  turn.effects.push({ kind: 'counted', tenant, change, durationMs });
}
