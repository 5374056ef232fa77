/** The host's record of a keyed actor (`host.ts`). It stays while the state is rebuilt from rows. */

import type { PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Line, Member } from './eviction.js';
import type { Turn } from './turn.js';

type OnSettled<State, Message> = (
  resident: ResidentActor<State, Message>,
  unit: PendingUnit,
  ack: Settlement,
) => void;

export class ResidentActor<State, Message>
  implements UnitOwner, Member<ResidentActor<State, Message>>
{
  readonly id: string;
  readonly key: string;
  incarnation: number;
  /** Undefined while loading; otherwise ahead of the database by the units in flight. */
  state: State | undefined;
  /** `blocked`: its kind admits no message. */
  phase: 'loading' | 'ready' | 'blocked' = 'loading';
  stash: Message[] = [];
  unacked = 0;
  unackedBytes = 0;
  /** The last unit in flight; replies without a commit wait for it. */
  last: PendingUnit | undefined;
  /** For a kind that batches: what the messages of this turn of the shard have decided. */
  draft: Turn | undefined;
  /** The messages of `draft`. */
  drafted: Message[] | undefined;
  bytes = 0;
  /** How many messages made it throw since its last change. */
  defects = 0;
  /** See `eviction.ts`; undefined while it is busy. */
  line: Line<ResidentActor<State, Message>> | undefined;
  older: ResidentActor<State, Message> | undefined;
  newer: ResidentActor<State, Message> | undefined;
  readonly #settled: OnSettled<State, Message>;

  constructor(id: string, key: string, incarnation: number, settled: OnSettled<State, Message>) {
    this.id = id;
    this.key = key;
    this.incarnation = incarnation;
    this.#settled = settled;
  }

  settled(unit: PendingUnit, ack: Settlement): void {
    this.#settled(this, unit, ack);
  }
}
