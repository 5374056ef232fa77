/** What an instance hears of its parent and of its children, and what it tells them of its own moves. */

import type { StepRecord } from '../../schema/execution.js';
import { type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { retryOf } from '../../src/core/blocks/sub-sequence.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Progress } from '../../src/core/progress.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import type { Came } from './action.js';
import { advance, advanceTry, continueAfter } from './advance.js';
import { awaits, putNote, startChild } from './children.js';
import { openChildren } from './core/family.js';
import { type LiveInstance, stepKey } from './live-instance.js';
import type { MessageOf } from './messages.js';
import { FAMILY_MESSAGE } from './tables.js';

/**
 * The parent hears of the end, children of a pause and of its end. What else a block has to tell its child it
 * says itself.
 *
 * @param before the state before the message, which is another one
 */
export function notifyFamily(actor: LiveInstance, turn: Turn, before: InstanceState): void {
  const { record } = actor;
  const { state } = record.snapshot;
  const { parent_instance_id: parent } = record;
  if (parent !== null && isEnd(state)) putNote(actor, turn, parent, state);
  const word = state === 'paused' ? 'pause' : before === 'paused' ? 'resume' : undefined;
  if (word === undefined) return;
  for (const { child } of openChildren(record.snapshot.execution))
    putNote(actor, turn, child, word);
}

function isEnd(state: InstanceState): state is FamilyMessage['word'] & InstanceState {
  return isEnded(state);
}

export function childFound(
  actor: LiveInstance,
  turn: Turn,
  { start, found }: MessageOf<'child.found'>,
): Came {
  if (!awaits(actor, start)) return undefined;
  actor.running.delete(stepKey(start));
  const came = startChild(actor, turn, start, found, (event) => advance(actor, turn, event));
  return came ?? settled(actor, turn);
}

/** Brings the rows up to what the message left: an instance that waits goes on waiting. */
function settled(actor: LiveInstance, turn: Turn): Progress {
  return advance(actor, turn, { kind: 'wake' });
}

export function childEnded(
  actor: LiveInstance,
  turn: Turn,
  { child, end, note, step }: MessageOf<'child.ended'>,
): Came {
  const { plan, record } = actor;
  if (note !== undefined) dropNote(turn, note);
  const isLookedUp = step !== undefined && actor.running.delete(stepKey(step));
  const { execution, state } = record.snapshot;
  const open = Object.entries(execution.o).find(([, it]) => (it as StepRecord).c === child);
  if (open === undefined || end === undefined || isEnded(state)) {
    return isLookedUp ? settled(actor, turn) : undefined;
  }
  const [node, { a: attempt }] = [Number(open[0]), open[1] as StepRecord];
  const iteration = iterationOf(execution, plan.nodes[node]!);
  const came = advanceTry(actor, turn, { kind: 'child.ended', node, iteration, attempt, end });
  if (came !== undefined || !isLookedUp) return came;
  // It is as it was when it was to be retried: it has yet to hear of that, or of another word in its place.
  putNote(actor, turn, child, retryOf({ plan, execution }, plan.nodes[node]!));
  return settled(actor, turn);
}

/** The instance does as its parent did, which is known to be over for whoever has ended. */
export function parentMoved(
  actor: LiveInstance,
  turn: Turn,
  { note }: MessageOf<'parent.moved'>,
): Came {
  dropNote(turn, note);
  const { parent_instance_id: parent, snapshot } = actor.record;
  const { state, execution } = snapshot;
  if (parent !== note.from) return undefined;
  switch (note.word) {
    case 'cancel':
      return isTerminal(state) ? undefined : advance(actor, turn, { kind: 'cancel' });
    case 'retry':
      // One that goes on by itself tells its end; one that has ended may have told it before.
      if (state === 'completed') putNote(actor, turn, note.from, state);
      if (state === 'cancelled') putNote(actor, turn, note.from, 'gone');
      return state === 'failed' ? retried(actor, turn) : undefined;
    case 'clean_up':
      if (state === 'failed' && execution.m === 1) return retried(actor, turn);
      if (isEnd(state)) putNote(actor, turn, note.from, state);
      return undefined;
    case 'pause':
      return isEnded(state) ? undefined : advance(actor, turn, { kind: 'pause', byParent: true });
    default: {
      // Somebody else may have paused it.
      if (state !== 'paused' || execution.l !== 1) return undefined;
      const progress = advance(actor, turn, { kind: 'resume' });
      continueAfter(actor, turn);
      return progress;
    }
  }
}

function retried(actor: LiveInstance, turn: Turn): Progress {
  continueAfter(actor, turn);
  return advance(actor, turn, { kind: 'retry' });
}

function dropNote(turn: Turn, { to, from, id }: FamilyMessage): void {
  turn.put(FAMILY_MESSAGE.clear, id, { to_id: to, from_id: from, id });
}
