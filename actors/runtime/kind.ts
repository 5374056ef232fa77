/** A kind of keyed actors, as its host (`host.ts`) uses it. */

import type { EngineError } from '../../src/base/errors.js';
import type { PendingUnit } from './commit-log.js';
import type { Outlook } from './eviction.js';
import type { ResidentActor as Actor } from './resident-actor.js';
import type { Turn } from './turn.js';

/** A `request` waits for a reply; a message without one may be dropped. */
export type HostedMessage = { readonly kind: string; readonly request?: number };

/** Omitted functions do nothing. */
export interface Kind<State, Message extends HostedMessage, Rows> {
  /** In messages to callers: `instance`. */
  readonly noun: string;
  /** Unique among all actors of the shard. */
  readonly keyOf: (id: string) => string;
  /** Undefined while the actor has no rows. */
  readonly tenantOf: (state: State) => string | undefined;
  readonly nameOf: (id: string) => object;
  /** Maximum actors in memory; absent: only their memory is limited. */
  readonly residentMax?: number;
  /** Actors without rows may be missing from the result. */
  readonly load: (ids: readonly string[]) => Promise<ReadonlyMap<string, Rows>>;
  /** Whether rows that arrive early wait for the rows of actors requested earlier. */
  readonly loadsInOrder?: boolean;
  /** May read more rows. Undefined: there is no such actor. */
  readonly restore: (
    id: string,
    rows: Rows | undefined,
  ) => State | undefined | Promise<State | undefined>;
  /** If the value changes while an actor is restored, its rows are read again. */
  readonly readsSince?: () => number;
  /** Calls `run` unless there is nothing to commit. */
  readonly handle: (actor: Ready<State, Message>, message: Message) => void;
  /** All of its state is in the rows, and no request waits. */
  readonly isIdle: (state: State) => boolean;
  /** Absent: all are `active`. */
  readonly outlookOf?: (state: State) => Outlook;
  /** Characters of JSON that it keeps in memory besides its last unit. */
  readonly charactersOf?: (state: State) => number;
  /** Called last in the unit of a batch; `reload` requests more rows. */
  readonly flush?: (state: State, turn: Turn) => 'done' | 'reload';
  /** Called before any message when its state is new; may call `run`. */
  readonly awake?: (actor: Ready<State, Message>, rows: Rows | undefined) => void;
  /** Called for a dropped message; absent: only requests are answered. */
  readonly refuse?: (actor: Actor<State, Message>, message: Message, error: EngineError) => void;
  /** Answers the waiting messages: there is no such actor, although there may be rows. */
  readonly missing?: (
    actor: Actor<State, Message>,
    messages: readonly Message[],
    rows: Rows | undefined,
  ) => void;
  /** A unit was appended; it is posted at the end of the turn. */
  readonly decided?: (actor: Actor<State, Message>, unit: PendingUnit) => void;
  readonly committed?: (actor: Actor<State, Message>, unit: PendingUnit) => void;
  /** The gate of the unit found its row: the unit was not committed. */
  readonly existed?: (actor: Actor<State, Message>, unit: PendingUnit) => void;
  /** @returns the first message of the actor when it is loaded again */
  readonly refused?: (
    actor: Actor<State, Message>,
    unit: PendingUnit,
    reason: string,
  ) => Message | undefined;
  readonly discarded?: (actor: Actor<State, Message>) => void;
  /** It was dropped although it may have work. */
  readonly abandoned?: (id: string, error: EngineError) => void;
  /** Its rows are invalid: every load fails. */
  readonly unrestorable?: (id: string) => void;
  /** It threw again at one of its own messages; true quarantines it. */
  readonly givesUp?: (actor: Actor<State, Message>, message: Message) => boolean;
}

export type Ready<State, Message> = Actor<State, Message> & { readonly state: State };
