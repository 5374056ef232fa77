/** Messages of parents and children, and those that an instance sends when its own state changes. */

import type { StepRecord } from '../../schema/execution.js';
import { type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { retryOf } from '../../src/core/blocks/sub-sequence.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Progress } from '../../src/core/progress.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import { advance, advanceTry, awaits, continueAfter, putNote, startChild } from './advance.js';
import { openChildren } from './core/family.js';
import { type Handler, type LiveInstance, stepKey } from './live-instance.js';
import { FAMILY_MESSAGE } from './tables.js';

/**
 * Reports the end to the parent, and a pause and its end to the children. Blocks send all else themselves.
 *
 * @param before the other state before the message
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

export const childFound: Handler<'child.found'> = (actor, turn, { start, found }) => {
  if (!awaits(actor, start)) return undefined;
  actor.running.delete(stepKey(start));
  return startChild(actor, turn, start, found) ?? settled(actor, turn);
};

/** Updates the rows after the message; a waiting instance continues to wait. */
function settled(actor: LiveInstance, turn: Turn): Progress {
  return advance(actor, turn, { kind: 'wake' });
}

export const childEnded: Handler<'child.ended'> = (actor, turn, { child, end, note, step }) => {
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
  // Its retry has not arrived yet: send it again.
  putNote(actor, turn, child, retryOf({ plan, execution }, plan.nodes[node]!));
  return settled(actor, turn);
};

/** Follows the parent, unless the instance has ended. */
export const parentMoved: Handler<'parent.moved'> = (actor, turn, { note }) => {
  dropNote(turn, note);
  const { parent_instance_id: parent, snapshot } = actor.record;
  const { state, execution } = snapshot;
  if (parent !== note.from) return undefined;
  switch (note.word) {
    case 'cancel':
      return isTerminal(state) ? undefined : advance(actor, turn, { kind: 'cancel' });
    case 'retry':
      // An ended child may have reported its end before.
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
      // It may have been paused by a request.
      if (state !== 'paused' || execution.l !== 1) return undefined;
      const progress = advance(actor, turn, { kind: 'resume' });
      continueAfter(actor, turn);
      return progress;
    }
  }
};

function retried(actor: LiveInstance, turn: Turn): Progress {
  continueAfter(actor, turn);
  return advance(actor, turn, { kind: 'retry' });
}

function dropNote(turn: Turn, { to, from, id }: FamilyMessage): void {
  turn.put(FAMILY_MESSAGE.clear, id, { to_id: to, from_id: from, id });
}
