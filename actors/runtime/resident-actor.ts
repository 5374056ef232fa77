/**
 * The host's record of a keyed actor besides its state: the state is rebuilt from rows while this record
 * stays. The rules are in `host.ts`.
 */

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
  /** Of its units. */
  readonly key: string;
  incarnation: number;
  /** Ahead of the database by the units in flight; undefined while it is loaded. */
  state: State | undefined;
  /** `held`: its kind admits no message. */
  phase: 'loading' | 'ready' | 'held' = 'loading';
  /** Waiting messages, in order. */
  stash: Message[] = [];
  unacked = 0;
  /** Of the units in flight. */
  unackedBytes = 0;
  /** The last unit in flight: replies without a commit wait for it. */
  last: PendingUnit | undefined;
  /** The joined turns of this turn of the shard, for a kind that batches. */
  draft: Turn | undefined;
  /** The messages behind the draft. */
  drafted: Message[] | undefined;
  /** Estimated memory. */
  bytes = 0;
  /** Messages at which it threw since its last change. */
  defects = 0;
  /** While it is idle: see `eviction.ts`. */
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
