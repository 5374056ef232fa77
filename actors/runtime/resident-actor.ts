/**
 * What the host keeps of a keyed actor beside its state, which is rebuilt from rows while this stays. A record: the
 * rules are in `host.ts`.
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
  /** Ahead of the database by the units under way; undefined while it is loaded. */
  state: State | undefined;
  /** `held`: its kind lets no message in, for a reason of its own. */
  phase: 'loading' | 'ready' | 'held' = 'loading';
  /** Messages that wait, in order. */
  stash: Message[] = [];
  unacked = 0;
  /** Of the units under way. */
  unackedBytes = 0;
  /** The last unit under way: answers that need no commit wait for it. */
  last: PendingUnit | undefined;
  /** What the turns of this turn of the shard came to, of a kind that batches. */
  draft: Turn | undefined;
  /** The messages behind the draft. */
  drafted: Message[] | undefined;
  /** Memory that it takes, estimated. */
  bytes = 0;
  /** Messages at which it threw since it last decided to change anything. */
  defects = 0;
  /** While nothing is under way for it: see `eviction.ts`. */
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
