/** The states of instances, and the moves between them that a caller may ask for. */

import { canPatch, INSTANCE_STATES, type InstanceState } from '../../schema/states.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';

const STATES: { readonly [State in InstanceState]: string } = {
  scheduled: 'waits for a time, or for its turn',
  running: 'is at work: a step runs in the server, or something can run now',
  waiting: 'waits for workers or for the answer of a person',
  paused: 'was stopped; nothing new starts until it is resumed',
  failed: 'a block failed and nothing caught it; kept in the dead letter queue for a retry',
  completed: 'is done',
  cancelled: 'was ended before it was done',
};

export function stateRegions(): Regions {
  const rows = INSTANCE_STATES.map((state) => {
    const moves = INSTANCE_STATES.filter((to) => canPatch(state, to)).map(code);
    return [code(state), STATES[state], moves.join(', ') || 'nothing: it has ended'];
  });
  return { states: table(['state', 'the instance', '`PATCH …/state` may ask for'], rows) };
}
