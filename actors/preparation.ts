/**
 * Messages that need rows which actors do not hold. `Instances` lets the units before such a message
 * settle, keeps back what comes behind it, and reads; what was read becomes an operation, which the
 * actor carries out as if it had known it all along.
 */

import type { Progress } from '../src/core/progress.js';
import { fork } from './forks.js';
import type { InstanceActor } from './instance.js';
import type { InstanceMessage } from './instance-messages.js';
import { pruneCheckpoints } from './instance-notes.js';
import { obey } from './instance-ownership.js';
import { injectBlocks, migrate, resumeFrom } from './instance-surgery.js';
import type { Rows } from './loader.js';
import type { Plans } from './plans.js';
import type { Turn } from './turn.js';

export interface Sources {
  readonly rows: Rows;
  readonly plans: Plans;
  /** Brings a new instance to life beside the one that is asked; `begin` gives its first unit. */
  readonly bear: (child: InstanceActor, begin: () => Turn) => void;
}

/** What a message does in its turn; see `InstanceActor.handle` for the result. */
export type Operation = (turn: Turn) => Progress | 'touched' | undefined;

/** Rejects with the EngineError that is the answer, or because the rows cannot be read. */
export type Prepare = (actor: InstanceActor, sources: Sources) => Promise<Operation>;

/** Undefined for messages that need nothing but the actor. */
export function preparationOf(message: InstanceMessage): Prepare | undefined {
  switch (message.kind) {
    case 'injectBlocks':
      return (actor, sources) => injectBlocks(actor, sources, message);
    case 'resumeFrom':
      return (actor, sources) => resumeFrom(actor, sources, message);
    case 'fork':
      return (actor, sources) => fork(actor, sources, message);
    case 'migrate':
      return (actor, sources) => migrate(actor, sources, message);
    case 'order':
      return (actor, sources) => obey(actor, sources, message);
    case 'checkpoint.prune':
      return (actor, sources) => pruneCheckpoints(actor, sources, message);
    default:
      return undefined;
  }
}
