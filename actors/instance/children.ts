/**
 * The children of an instance: instances that its blocks start. The parent's unit makes the child, a row in
 * its plain first state, which the child's own actor finds by its timer; so it is there if and only if the
 * parent knows of it. The parent tells it of its own moves by notes (`family-messages.ts`).
 */

import type { StepRecord } from '../../schema/execution.js';
import type { FailureCode } from '../../schema/failure.js';
import { PRIORITIES, rankOf } from '../../schema/states.js';
import { EngineError } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime } from '../../src/base/time.js';
import type { ChildStart, EngineEvent, Progress, StepTry } from '../../src/core/progress.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import type { Found } from './child-places.js';
import { type LiveInstance, nextId, stepKey } from './live-instance.js';
import { tellPeer } from './progress.js';
import { type InstanceRecord, type NewInstance, nameIn, newRecord, wholeRow } from './record.js';
import { FAMILY_MESSAGE, INSTANCE, TIMER } from './tables.js';

/** Takes in an event beside those of the message. */
type GoOn = (event: EngineEvent) => Progress;

/**
 * Does what blocks ask about children.
 *
 * @param goOn takes in that one cannot be made
 * @returns what all of it came to
 */
export function askAboutChildren(
  actor: LiveInstance,
  turn: Turn,
  progress: Progress,
  goOn: GoOn,
): Progress {
  let came = progress;
  for (const order of progress.children ?? []) {
    switch (order.kind) {
      case 'start': {
        const next = startChild(actor, turn, order, undefined, goOn);
        if (next !== undefined) came = joined(came, next);
        break;
      }
      case 'cancel':
        actor.running.delete(stepKey(order));
        if (order.child !== undefined) putNote(actor, turn, order.child, 'cancel');
        break;
      case 'retry':
      case 'clean_up':
        putNote(actor, turn, order.child, order.kind);
        break;
      case 'look': {
        const { node, iteration, attempt, child } = order;
        const step = { node, iteration, attempt };
        actor.running.set(stepKey(step), step);
        turn.effects.push({ kind: 'child.look', instance: actor.record.id, child, step });
      }
    }
  }
  return came;
}

/** What two evaluations of one message came to together. */
function joined(first: Progress, last: Progress): Progress {
  return { ...last, audit: [...first.audit, ...last.audit] };
}

/** Whether the block still waits for this child. */
export function awaits({ record }: LiveInstance, { node, attempt }: StepTry): boolean {
  const open = record.snapshot.execution.o[node] as StepRecord | undefined;
  return open?.p === 'child' && open.a === attempt;
}

/**
 * Makes the child, or has read what that takes; `child.found` comes then.
 *
 * @param found what was read for it
 * @returns what it came to that there is the child, or that there can be none; undefined: nothing yet
 */
export function startChild(
  actor: LiveInstance,
  turn: Turn,
  start: ChildStart,
  found: Found | undefined,
  goOn: GoOn,
): Progress | undefined {
  const { node, iteration, attempt } = start;
  // The end of another child of this turn may have cut it off.
  if (!awaits(actor, start)) return undefined;
  const refuse = (code: FailureCode, message: string) => {
    const end = { kind: 'failed', code, message } as const;
    return goOn({ kind: 'child.ended', node, iteration, attempt, end });
  };
  const depth = depthOf(actor.record) + 1;
  if (depth > LIMITS.childDepthMax) {
    return refuse('child_too_deep', `children nest at most ${LIMITS.childDepthMax} deep`);
  }
  const asked = askedFor(actor, start, depth);
  let child: NewInstance | undefined;
  let isLater = false;
  try {
    child = actor.env.placeChild(asked, found);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.status !== 503) return refuse('child_not_started', error.message);
    isLater = true;
  }
  if (child !== undefined) {
    putChild(actor, turn, child);
    return goOn({ kind: 'child.made', node, iteration, attempt, child: child.id });
  }
  const step = { node, iteration, attempt };
  // Until it is made, whoever brings this instance to life asks for it again.
  actor.running.set(stepKey(step), step);
  const name = nameIn(asked.body)!;
  turn.effects.push({ kind: 'child.find', instance: actor.record.id, start, name, isLater });
  return undefined;
}

/** As its parent in everything but what it is about; a key of concurrency would make the two wait for each other. */
function askedFor({ record }: LiveInstance, start: ChildStart, depth: number): NewInstance {
  const { id, tenant_id, namespace, priority, traceparent, snapshot } = record;
  return {
    id: start.child,
    parent: id,
    traceparent: traceparent ?? undefined,
    body: {
      tenant_id,
      namespace,
      sequence: start.sequence,
      version: start.version,
      priority: PRIORITIES[priority] ?? null,
      timezone: snapshot.timezone,
      metadata: { _parent_block_id: start.blockId, [DEPTH]: depth },
      context: { data: start.input, config: snapshot.config },
      dry_run: snapshot.runtime.dry_run === true,
      dry_run_auto_approve: snapshot.runtime.dry_run_auto_approve === true,
    },
  };
}

const DEPTH = '_sub_sequence_depth';

/** How many parents are above the instance; what a caller wrote there says nothing. */
function depthOf({ parent_instance_id, metadata }: InstanceRecord): number {
  const depth = metadata[DEPTH];
  return parent_instance_id !== null && typeof depth === 'number' ? depth : 0;
}

function putChild(actor: LiveInstance, turn: Turn, child: NewInstance): void {
  const { id } = child;
  const { snapshot } = actor.record;
  const record = newRecord(child, actor.env.now());
  const at = Date.parse(record.created_at);
  const rank = rankOf(record.priority);
  turn.put(INSTANCE.insertChild, id, wholeRow(record));
  turn.put(TIMER.set, id, { instance_id: id, fire_at: isoTime(at), recover: false, rank });
  tellPeer(actor, turn, id, { kind: 'wake', instance: id, at, rank, tenant: record.tenant_id });
  turn.count('engine_child_instances_total');
  if (snapshot.state === 'paused') putNote(actor, turn, id, 'pause');
}

/** Tells another instance: a row, and a hint of it. */
export function putNote(
  actor: LiveInstance,
  turn: Turn,
  to: string,
  word: FamilyMessage['word'],
): void {
  const id = nextId(actor);
  const from = actor.record.id;
  turn.put(FAMILY_MESSAGE.set, `${to}:${from}`, { to_id: to, from_id: from, id, word });
  tellPeer(actor, turn, to, { kind: 'family.message', to, from, id, word });
}
