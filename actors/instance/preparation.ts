/**
 * Messages that need rows which actors do not hold. `Instances` lets the units before such a message
 * settle, keeps back what comes behind it, and reads; what was read becomes an operation, which the
 * actor carries out as if it had known it all along.
 */

import { injectBlocks, migrate, resumeFrom } from './edits.js';
import { fork } from './forks.js';
import type { InstanceMessage } from './messages.js';
import { pruneCheckpoints } from './notes.js';
import type { Prepare } from './operation.js';
import { carryOut } from './ownership.js';

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
      return (actor, sources) => carryOut(actor, sources, message);
    case 'pruneCheckpoints':
      return (actor, sources) => pruneCheckpoints(actor, sources, message);
    default:
      return undefined;
  }
}
