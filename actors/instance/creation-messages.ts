/** How instances are asked for: messages that an actor takes which may not be there yet. */

import type { EngineError } from '../../src/errors.js';
import type { StoredSequence } from '../catalog/plans.js';
import type { InstanceMessage } from './messages.js';
import type { NewInstance } from './record.js';

/** A creation. With an idempotency key the actor may exist already. */
export interface Creation {
  readonly kind: 'create';
  readonly request: number;
  readonly instance: NewInstance;
  readonly sequence: StoredSequence;
}

/** A creation that is refused, unless its instance is there already. */
export interface Repeat {
  readonly kind: 'repeat';
  readonly request: number;
  readonly instance: NewInstance;
  readonly otherwise: EngineError;
}

export type Message = InstanceMessage | Creation | Repeat;
