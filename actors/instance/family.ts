/** Messages between parents and children, and reports of the instance's own state. */

import type { StepRecord } from '../../schema/execution.js';
import { type InstanceState, isEnded, isTerminal } from '../../schema/states.js';
import { retryOf } from '../../src/core/blocks/sub-sequence.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Progress } from '../../src/core/progress.js';
import type { FamilyMessage } from '../runtime/protocol.js';
import type { Turn } from '../runtime/turn.js';
import {
  advance,
  advanceTry,
  awaits,
  continueAfter,
  putFamilyMessage,
  startChild,
} from './advance.js';
import { openChildren } from './core/family.js';
import { type Handler, type LiveInstance, stepKey } from './live-instance.js';
import { FAMILY_MESSAGE } from './tables.js';

/** Reports an end to the parent, a pause or resume to the children. Blocks send the rest. */
export function notifyFamily(actor: LiveInstance, turn: Turn, before: InstanceState): void {
  const { record } = actor;
  const { state } = record.snapshot;
  const { parent_instance_id: parent } = record;
  if (parent !== null && isEnd(state)) {
    // The parent has heard of the failure. If a retry of it was faster than this message, it starts another child.
    const isGivenUp = state === 'cancelled' && before === 'failed';
    putFamilyMessage(actor, turn, parent, isGivenUp ? 'gone' : state);
  }
  const word = state === 'paused' ? 'pause' : before === 'paused' ? 'resume' : undefined;
  if (word === undefined) return;
  for (const { child } of openChildren(record.snapshot.execution)) {
    putFamilyMessage(actor, turn, child, word);
  }
}

function isEnd(state: InstanceState): state is FamilyMessage['word'] & InstanceState {
  return isEnded(state);
}

export const childFound: Handler<'child.found'> = (actor, turn, { start, found }) => {
  if (!awaits(actor, start)) return undefined;
  actor.running.delete(stepKey(start));
  return startChild(actor, turn, start, found) ?? advance(actor, turn, { kind: 'wake' });
};

export const childEnded: Handler<'child.ended'> = (actor, turn, { child, end, received, step }) => {
  const { plan, record } = actor;
  if (received !== undefined) clearMessage(turn, received);
  const isLookedUp = step !== undefined && actor.running.delete(stepKey(step));
  const { execution, state } = record.snapshot;
  const open = Object.entries(execution.o).find(([, it]) => (it as StepRecord).c === child);
  if (open === undefined || end === undefined || isEnded(state)) {
    return isLookedUp ? advance(actor, turn, { kind: 'wake' }) : undefined;
  }
  const [node, { a: attempt }] = [Number(open[0]), open[1] as StepRecord];
  const iteration = iterationOf(execution, plan.nodes[node]!);
  const progress = advanceTry(actor, turn, { kind: 'child.ended', node, iteration, attempt, end });
  if (progress !== undefined || !isLookedUp) return progress;
  // The child has not received its retry yet. Send it again.
  putFamilyMessage(actor, turn, child, retryOf({ plan, execution }, plan.nodes[node]!));
  return advance(actor, turn, { kind: 'wake' });
};

export const parentMoved: Handler<'parent.moved'> = (actor, turn, { received }) => {
  clearMessage(turn, received);
  const { parent_instance_id: parent, snapshot } = actor.record;
  const { state, execution } = snapshot;
  if (parent !== received.from) return undefined;
  switch (received.word) {
    case 'cancel':
      return isTerminal(state) ? undefined : advance(actor, turn, { kind: 'cancel' });
    case 'retry':
      // The child may have ended before the retry arrived. Report its end again.
      if (state === 'completed') putFamilyMessage(actor, turn, received.from, state);
      if (state === 'cancelled') putFamilyMessage(actor, turn, received.from, 'gone');
      return state === 'failed' ? retried(actor, turn) : undefined;
    case 'clean_up':
      if (state === 'failed' && execution.m === 1) return retried(actor, turn);
      if (isEnd(state)) putFamilyMessage(actor, turn, received.from, state);
      return undefined;
    case 'pause':
      return isEnded(state) ? undefined : advance(actor, turn, { kind: 'pause', byParent: true });
    default: {
      // A child that a request paused stays paused.
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

function clearMessage(turn: Turn, { to, from, id }: FamilyMessage): void {
  turn.put(FAMILY_MESSAGE.clear, id, { to_id: to, from_id: from, id });
}
