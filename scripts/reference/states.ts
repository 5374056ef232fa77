/** The states of instances, and the transitions that a caller may request. */

import { canPatch, INSTANCE_STATES, type InstanceState } from '../../schema/states.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

const STATES: { readonly [State in InstanceState]: string } = {
  scheduled: 'waits for a time, or in the queue',
  running: 'a step runs in the server, or can run now',
  waiting: 'waits for workers or for a person',
  paused: 'nothing new starts until it is resumed',
  failed: 'a block failed without being caught; kept in the dead letter queue for a retry',
  completed: 'has finished',
  cancelled: 'was stopped before it finished',
};

export function stateRegions(): Regions {
  const rows = INSTANCE_STATES.map((state) => {
    const moves = INSTANCE_STATES.filter((to) => canPatch(state, to)).map(code);
    return [code(state), STATES[state], moves.join(', ') || 'none'];
  });
  return { states: table(['state', 'the instance', 'transitions by `PATCH …/state`'], rows) };
}
