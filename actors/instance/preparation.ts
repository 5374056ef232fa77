/**
 * Messages that need rows which actors do not hold. `Instances` lets the units before such a message
 * settle, keeps back what comes behind it, and reads; what was read becomes an action, which the
 * actor carries out as if it had known it all along.
 */

import type { Action, Prepare, Sources } from './action.js';
import { injectBlocks, migrate, resumeFrom } from './edits.js';
import { fork } from './forks.js';
import type { LiveInstance } from './live-instance.js';
import type { InstanceMessage } from './messages.js';
import { pruneCheckpoints } from './notes.js';
import { carryOut } from './ownership.js';
import { recallTask } from './restore.js';

const PREPARATIONS = {
  injectBlocks,
  resumeFrom,
  fork,
  migrate,
  order: carryOut,
  pruneCheckpoints,
} satisfies {
  readonly [Kind in InstanceMessage['kind']]?: (
    actor: LiveInstance,
    sources: Sources,
    message: Extract<InstanceMessage, { kind: Kind }>,
  ) => Promise<Action>;
};

/** What no actor can take as it is. */
export type AlwaysPrepared = keyof typeof PREPARATIONS;

type Reads = (actor: LiveInstance, sources: Sources, message: never) => ReturnType<Prepare>;

/** Undefined for messages that need nothing but the actor. */
export function preparationOf(
  { tasks }: LiveInstance,
  message: InstanceMessage,
): Prepare | undefined {
  const isRecalled = 'task' in message && 'request' in message && !tasks.has(message.task);
  const prepare: Reads | undefined = isRecalled
    ? recallTask
    : (PREPARATIONS as Partial<Record<string, Reads>>)[message.kind];
  return prepare && ((actor, sources) => prepare(actor, sources, message as never));
}
