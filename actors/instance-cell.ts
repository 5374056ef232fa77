/**
 * The box that an instance's actor lives in: what `Instances` keeps about it beside the actor itself.
 * It outlives the actor when that is rebuilt. A record; the rules are in `instances.ts`.
 */

import type { EngineError } from '../src/errors.js';
import type { PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { InstanceActor } from './instance.js';
import type { InstanceMessage, InstanceRequest } from './instance-messages.js';
import type { NewInstance } from './instance-record.js';
import type { StoredSequence } from './plans.js';
import type { Prepare } from './preparation.js';

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

/** A message that waits for the units before it, and then for rows. */
export interface Held {
  readonly message: InstanceRequest;
  readonly prepare: Prepare;
}

type OnSettled = (cell: Cell, unit: PendingUnit, ack: Settlement) => void;

export class Cell implements UnitOwner {
  readonly key: string;
  incarnation: number;
  actor: InstanceActor | undefined;
  phase: 'loading' | 'creating' | 'ready' | 'reading' | 'purging' = 'loading';
  stash: Message[] = [];
  unacked = 0;
  /** Of the units under way. */
  unackedBytes = 0;
  /** The last unit under way: answers that need no commit wait for it. */
  last: PendingUnit | undefined;
  /** JSON text that the actor holds, estimated. */
  bytes = 0;
  /** Messages in a row at which the actor threw. */
  defects = 0;
  /** What the phase `creating` is about. */
  creation: Creation | undefined;
  /** What the phase `reading` is about, until the units before it are settled. */
  held: Held | undefined;
  readonly #settled: OnSettled;

  constructor(key: string, incarnation: number, settled: OnSettled) {
    this.key = key;
    this.incarnation = incarnation;
    this.#settled = settled;
  }

  settled(unit: PendingUnit, ack: Settlement): void {
    this.#settled(this, unit, ack);
  }
}
