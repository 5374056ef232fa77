/** A kind of keyed actors, as its host (`host.ts`) uses it. */

import type { EngineError } from '../../src/base/errors.js';
import type { PendingUnit } from './commit-log.js';
import type { Outlook } from './eviction.js';
import type { ResidentActor } from './resident-actor.js';
import type { Turn } from './turn.js';

/** A `request` waits for a reply; a message without one may be dropped. */
export interface HostedMessage {
  readonly kind: string;
  readonly request?: number;
}

/** Omitted functions do nothing. */
export interface Kind<State, Message extends HostedMessage, Rows> {
  /** In messages to callers: `instance`. */
  readonly noun: string;
  /** Of its units: unique among all actors of the shard. */
  readonly keyOf: (id: string) => string;
  /** The tenant whose rows an actor changes; undefined: it has no rows. */
  readonly tenantOf: (state: State) => string | undefined;
  /** The actor in the log. */
  readonly nameOf: (id: string) => object;
  /** Actors in memory; beyond it idle ones are evicted. Absent: only their memory counts. */
  readonly residentMax?: number;
  /** The rows of many actors at once; actors without rows may be missing. */
  readonly load: (ids: readonly string[]) => Promise<ReadonlyMap<string, Rows>>;
  /** Whether rows that arrive early wait for those of earlier requested actors. */
  readonly loadsInOrder?: boolean;
  /** Undefined: there is no such actor. May read more. */
  readonly restore: (
    id: string,
    rows: Rows | undefined,
  ) => State | undefined | Promise<State | undefined>;
  /** When this changes while an actor is restored, its rows are read again. */
  readonly readsSince?: () => number;
  /** Handles one message, by `run` unless there is nothing to commit. */
  readonly handle: (resident: Ready<State, Message>, message: Message) => void;
  /** Memory has nothing that the rows have not, and no request waits. */
  readonly isIdle: (state: State) => boolean;
  /** Absent: all the same. */
  readonly outlookOf?: (state: State) => Outlook;
  /** Characters of JSON that it keeps in memory besides its last unit. */
  readonly charactersOf?: (state: State) => number;
  /** Called last in the unit of a batch; `reload` requests more rows. */
  readonly flush?: (state: State, turn: Turn) => 'done' | 'reload';
  /** Called before any message when its state is new; may `run` what follows from the rows. */
  readonly awake?: (resident: Ready<State, Message>, rows: Rows | undefined) => void;
  /** The message is dropped; without this only requests are answered. */
  readonly refuse?: (
    resident: ResidentActor<State, Message>,
    message: Message,
    error: EngineError,
  ) => void;
  /** There is no such actor, although there may be rows: answers the waiting messages. */
  readonly missing?: (
    resident: ResidentActor<State, Message>,
    messages: readonly Message[],
    rows: Rows | undefined,
  ) => void;
  /** A unit of it was made, and leaves the shard at the end of the turn. */
  readonly decided?: (resident: ResidentActor<State, Message>, unit: PendingUnit) => void;
  readonly committed?: (resident: ResidentActor<State, Message>, unit: PendingUnit) => void;
  /** The gate of its unit found the row: the unit was not committed. */
  readonly existed?: (resident: ResidentActor<State, Message>, unit: PendingUnit) => void;
  /** @returns the first message of the actor when it is loaded again */
  readonly refused?: (
    resident: ResidentActor<State, Message>,
    unit: PendingUnit,
    reason: string,
  ) => Message | undefined;
  /** Its state is about to be discarded. */
  readonly discarded?: (resident: ResidentActor<State, Message>) => void;
  /** It has left memory although it may have work. */
  readonly abandoned?: (id: string, error: EngineError) => void;
  /** Its rows are invalid: every load fails. */
  readonly unrestorable?: (id: string) => void;
  /** It threw again at one of its own messages; true: it is quarantined. */
  readonly givesUp?: (resident: ResidentActor<State, Message>, message: Message) => boolean;
}

/** The record of an actor whose state is loaded. */
export type Ready<State, Message> = ResidentActor<State, Message> & { readonly state: State };
