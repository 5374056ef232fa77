/** What one kind of keyed actor is, as its host (`host.ts`) has to know it. */

import type { EngineError } from '../../src/base/errors.js';
import type { PendingUnit } from './commit-log.js';
import type { Outlook } from './eviction.js';
import type { ResidentActor } from './resident-actor.js';
import type { Turn } from './turn.js';

/** A `request` waits for an answer; a message without one may be dropped. */
export interface HostedMessage {
  readonly kind: string;
  readonly request?: number;
}

/** What one kind of actor is. Functions that are left out have nothing to do. */
export interface Kind<State, Message extends HostedMessage, Rows> {
  /** As a caller calls it: `instance`. */
  readonly noun: string;
  /** The key of its units: unique among all actors of the shard. */
  readonly keyOf: (id: string) => string;
  /** Whose rows an actor changes; undefined: it has none that it could change. */
  readonly tenantOf: (state: State) => string | undefined;
  /** Names the actor in the log. */
  readonly nameOf: (id: string) => object;
  /** Actors in memory; beyond it those that are idle are let go. Absent: only their bytes count. */
  readonly residentMax?: number;
  /** The rows of many actors at once; those that have none may be missing. */
  readonly load: (ids: readonly string[]) => Promise<ReadonlyMap<string, Rows>>;
  /** Rows that come sooner than those of actors that were asked for before wait for them. */
  readonly loadsInOrder?: boolean;
  /** Undefined: there is no such actor. May read more. */
  readonly restore: (
    id: string,
    rows: Rows | undefined,
  ) => State | undefined | Promise<State | undefined>;
  /** When this changes while an actor is restored, what was read for it is old: it is read again. */
  readonly readsSince?: () => number;
  /** Takes one message in, by `run` unless there is nothing to commit. */
  readonly handle: (resident: Ready<State, Message>, message: Message) => void;
  /** Memory says nothing that the rows do not, and nobody waits. */
  readonly isIdle: (state: State) => boolean;
  /** How soon it is likely to be asked for again; absent: any of them as soon as any other. */
  readonly outlookOf?: (state: State) => Outlook;
  /** Characters of JSON that it keeps in memory beside what it committed last. */
  readonly charactersOf?: (state: State) => number;
  /** The last word in the unit of a batch; `reload` asks for more rows. */
  readonly flush?: (state: State, turn: Turn) => 'done' | 'reload';
  /** Told before any message when its state is new; may `run` what follows from the rows. */
  readonly awake?: (resident: Ready<State, Message>, rows: Rows | undefined) => void;
  /** Nothing comes of the message; without this only requests are told. */
  readonly refuse?: (
    resident: ResidentActor<State, Message>,
    message: Message,
    error: EngineError,
  ) => void;
  /** There is no such actor, although there may be rows: what becomes of those who asked for it. */
  readonly missing?: (
    resident: ResidentActor<State, Message>,
    messages: readonly Message[],
    rows: Rows | undefined,
  ) => void;
  /** A unit of it is made, and leaves the shard at the end of the turn. */
  readonly decided?: (resident: ResidentActor<State, Message>, unit: PendingUnit) => void;
  readonly committed?: (resident: ResidentActor<State, Message>, unit: PendingUnit) => void;
  /** The gate of its unit found the row: nothing of the unit happened. */
  readonly existed?: (resident: ResidentActor<State, Message>, unit: PendingUnit) => void;
  /** @returns what the actor is to be told first, when it is back */
  readonly refused?: (
    resident: ResidentActor<State, Message>,
    unit: PendingUnit,
    reason: string,
  ) => Message | undefined;
  /** Its state is about to be discarded. */
  readonly discarded?: (resident: ResidentActor<State, Message>) => void;
  /** It is not in memory any more although it may have something to do. */
  readonly abandoned?: (id: string, error: EngineError) => void;
  /** Its rows make no sense: whenever it is loaded it ends the same. */
  readonly unrestorable?: (id: string) => void;
  /** It threw again at one of its own messages: true lets it be. */
  readonly givesUp?: (resident: ResidentActor<State, Message>, message: Message) => boolean;
}

/** The resident of an actor whose state is here. */
export type Ready<State, Message> = ResidentActor<State, Message> & { readonly state: State };
