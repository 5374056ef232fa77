/**
 * Events and signals on their way into the steps that wait for them. That a wait took an event is a row,
 * written in the unit in which its step goes on.
 */

import type { StepRecord } from '../../schema/execution.js';
import type { JsonValue } from '../../src/base/json.js';
import { isoTime } from '../../src/base/time.js';
import { iterationOf } from '../../src/core/paths.js';
import type { Progress, StepTry } from '../../src/core/progress.js';
import { EVENT_TAKE, EVENT_WAIT } from '../event/tables.js';
import type { Turn } from '../runtime/turn.js';
import { advance } from './advance.js';
import type { LiveInstance } from './live-instance.js';
import type { MessageOf } from './messages.js';
import { tellPeer } from './progress.js';

/** One that is for a wait that is over is given back. */
export function eventArrived(
  actor: LiveInstance,
  turn: Turn,
  { key, event, wait, payload }: MessageOf<'event.arrived'>,
): Progress | undefined {
  const step = waitOf(actor, ({ v }) => v?.i === wait);
  if (step === undefined) {
    // Whatever brought it here, it shall not bring another one.
    turn.put(EVENT_WAIT.clear, wait, { instance_id: actor.record.id, id: wait });
    tellPeer(actor, turn, key, { kind: 'event.taken', key, event, wait, outcome: 'gone' });
    return undefined;
  }
  const { blockId, ...given } = step;
  const progress = advance(actor, turn, {
    kind: 'event.arrived',
    ...given,
    event: { id: event, payload: JSON.parse(payload) as JsonValue },
  });
  const outcome = actor.eventWaits.has(wait) ? 'refused' : 'taken';
  turn.put(EVENT_TAKE.insert, `${event}:${wait}`, {
    instance_id: actor.record.id,
    event_id: event,
    wait_id: wait,
    block_id: blockId,
    outcome,
    taken_at: isoTime(actor.env.now()),
  });
  if (outcome === 'taken') turn.count('engine_events_matched_total');
  tellPeer(actor, turn, key, { kind: 'event.taken', key, event, wait, outcome });
  return progress;
}

/** Lets the wait that began first take the signal that is kept under its name. */
export function offerSignal(actor: LiveInstance, turn: Turn, name: string): Progress | undefined {
  const step = waitOf(actor, ({ v }) => v?.n === name);
  if (step === undefined) return undefined;
  const { blockId: _, ...given } = step;
  return advance(actor, turn, { kind: 'event.arrived', ...given });
}

/** The oldest of the waits that are meant: their ids ascend. */
function waitOf(
  { record, plan }: LiveInstance,
  isAddressed: (step: StepRecord) => boolean,
): (StepTry & { readonly blockId: string }) | undefined {
  const { execution } = record.snapshot;
  let oldest: { readonly node: number; readonly id: string } | undefined;
  for (const key in execution.o) {
    const step = execution.o[key] as StepRecord;
    if (step.p !== 'event' || !isAddressed(step)) continue;
    const id = step.v!.i ?? '';
    if (oldest === undefined || id < oldest.id) oldest = { node: Number(key), id };
  }
  const node = oldest && plan.nodes[oldest.node];
  if (node === undefined) return undefined;
  const { a: attempt } = execution.o[node.index] as StepRecord;
  const iteration = iterationOf(execution, node);
  return { node: node.index, iteration, attempt, blockId: node.id };
}
