/**
 * In which states an instance may come to rest, given what was asked of it and what of that was
 * acknowledged. A request of unknown outcome counts both ways.
 */

import type { InstanceState } from '../../schema/states.js';
import { isTerminal } from '../../schema/states.js';
import {
  type Control,
  type ControlKind,
  type InstanceRecord,
  isAcknowledged,
  isPossible,
  type Op,
} from './ledger.js';
import { ASKING, PAID_BLOCKS, type Shape } from './shapes.js';

/**
 * Who decides where the instance rests. `free`: its sequence. `paused`, `cancelled`: a client.
 * `ended`: its sequence had ended before the client's request could have an effect.
 */
type Mode = 'free' | 'paused' | 'cancelled' | 'ended';

/**
 * The acknowledged effect of each control. A signal is accepted in every state that is not
 * terminal, and acts on a running instance at the end of its step, which may be its last one. PATCH
 * state acts at once or is refused; an empty list says that it cannot have been accepted.
 */
const EFFECT: Readonly<Record<ControlKind, Readonly<Record<Mode, readonly Mode[]>>>> = {
  pause: {
    free: ['paused', 'ended'],
    paused: ['paused'],
    cancelled: ['cancelled'],
    ended: ['paused', 'ended'],
  },
  resume: { free: ['free'], paused: ['free'], cancelled: ['cancelled'], ended: ['ended'] },
  cancel: {
    free: ['cancelled', 'ended'],
    paused: ['cancelled'],
    cancelled: ['cancelled'],
    ended: ['cancelled', 'ended'],
  },
  withdraw: { free: ['cancelled'], paused: ['cancelled'], cancelled: ['cancelled'], ended: [] },
  'patch.paused': { free: ['paused'], paused: ['paused'], cancelled: [], ended: [] },
  'patch.scheduled': { free: ['free'], paused: ['free'], cancelled: [], ended: ['free'] },
  'patch.cancelled': { free: ['cancelled'], paused: ['cancelled'], cancelled: [], ended: [] },
};

/**
 * @param mayFail a worker's permanent failure was sent and not refused
 */
export function restingStates(
  record: InstanceRecord,
  shape: Shape,
  mayFail: boolean,
): ReadonlySet<InstanceState> {
  const result = record.results.find(({ state }) => state !== undefined && isTerminal(state));
  const shown = record.terminal?.state ?? result?.state;
  if (shown !== undefined) return new Set([shown]);
  const rest = restOfSequence(record, shape, mayFail);
  const states = new Set<InstanceState>();
  for (const mode of modesAfter(record.controls)) {
    if (mode === 'free') for (const state of rest) states.add(state);
    if (mode === 'ended') for (const state of rest) if (isEnd(state)) states.add(state);
    if (mode === 'cancelled') states.add('cancelled');
    if (mode === 'paused') states.add('paused');
    // A worker's permanent failure is applied to a paused instance too.
    if (mode === 'paused' && mayFail) states.add('failed');
  }
  return states;
}

function restOfSequence(
  record: InstanceRecord,
  shape: Shape,
  mayFail: boolean,
): readonly InstanceState[] {
  const { deliveries, signals } = record;
  if (record.shape === 'paid') {
    const wasDelivered = deliveries.map(({ attempts }) => attempts);
    return afterMessages(wasDelivered, PAID_BLOCKS.length);
  }
  if (record.shape === 'asking') {
    const asked = signals.filter(({ type }) => type === `custom:${ASKING}`);
    return afterMessages(
      asked.map((signal) => [signal]),
      1,
    );
  }
  const states: InstanceState[] = [shape.rest];
  if (mayFail) states.push('failed');
  // An instance that was to start in the far future starts at once when it is resumed or
  // rescheduled without a time.
  const isWoken = record.controls.some(isPossible);
  if (shape.rest === 'scheduled' && isWoken) states.push('completed');
  return states;
}

/** It waits for so many messages, each of which was sent once or several times. */
function afterMessages(messages: readonly (readonly Op[])[], wanted: number): InstanceState[] {
  const certain = messages.filter((attempts) => attempts.some(isAcknowledged));
  const possible = messages.filter((attempts) => attempts.some(isPossible));
  return [
    ...(certain.length < wanted ? (['waiting'] as const) : []),
    ...(possible.length >= wanted ? (['completed'] as const) : []),
  ];
}

const isEnd = (state: InstanceState) => state === 'completed' || state === 'failed';

function modesAfter(controls: readonly Control[]): ReadonlySet<Mode> {
  let modes = new Set<Mode>(['free']);
  for (const { kind, certainty } of controls.filter(isPossible)) {
    const after = [...modes].flatMap((mode) => EFFECT[kind][mode]);
    modes = certainty === 'acknowledged' ? new Set(after) : new Set([...modes, ...after]);
  }
  return modes;
}
