/**
 * The concurrency keys of one shard. A key comes to life with the first instance that wants a slot
 * of it; from time to time the rows of the keys are read again, a few at a time, since what was said
 * about them may have been lost.
 */

import { BackgroundJob } from '../../src/background-job.js';
import { ActorHost, type HostDeps, type HostedMessage } from '../runtime/host.js';
import type { Rows } from '../runtime/loader.js';
import type { Room } from '../runtime/room.js';
import type { Turn } from '../runtime/turn.js';
import { ConcurrencyKey, type KeyRows, WAITERS_MAX, type Wish } from './key.js';

export type KeysDeps = HostDeps & Pick<Room, 'loader' | 'clock' | 'shards'>;

interface KeyMessage extends HostedMessage {
  readonly take: (key: ConcurrencyKey, turn: Turn) => void;
}

/** Keys that are read again at once, before the others have their turn. */
const RESCAN_PAGE = 100;

/** Between two rounds over all keys: how long a lost word can hold a slot up. */
const RESCAN_MS = 5_000;

/** Keys in memory; beyond it those that nobody needs are let go. */
const KEYS_MAX = 10_000;

const FIRST_KEY = '00000000-0000-0000-0000-000000000000';

export class Keys {
  readonly #deps: KeysDeps;
  readonly #host: ActorHost<ConcurrencyKey, KeyMessage, KeyRows>;
  /** Reads the rows of every key of this shard. */
  readonly #rescan: BackgroundJob;

  constructor(deps: KeysDeps) {
    this.#deps = deps;
    const { loader, shards } = deps;
    this.#host = new ActorHost<ConcurrencyKey, KeyMessage, KeyRows>(
      {
        noun: 'concurrency key',
        keyOf: (id) => `permits:${id}`,
        nameOf: (id) => ({ actor: `permits:${id}` }),
        residentMax: KEYS_MAX,
        load: (ids) => readKeys(loader, ids),
        restore: (id, rows = NO_ROWS) => new ConcurrencyKey(id, shards, rows),
        awake: (cell, rows = NO_ROWS) =>
          this.#host.run(cell, undefined, (turn) => cell.state.settle(turn, rows)),
        handle: (cell, message) =>
          this.#host.run(cell, message, (turn) => message.take(cell.state, turn)),
        flush: (key, turn) => key.admit(turn),
        isIdle: (key) => key.isIdle,
      },
      deps,
    );
    const { clock, log } = deps;
    this.#rescan = new BackgroundJob({
      clock,
      log,
      name: 'concurrency keys',
      everyMs: RESCAN_MS,
      run: () =>
        this.#round().catch((error: unknown) =>
          log.debug({ err: error }, 'keys could not be read'),
        ),
    });
  }

  /** Whether the key may be let go. */
  isPassive(id: string): boolean {
    const cell = this.#host.peek(id);
    return cell === undefined || this.#host.isIdle(cell);
  }

  wanted(id: string, wish: Wish): void {
    this.#host.tell(id, { kind: 'wanted', take: (key, turn) => key.wanted(turn, wish) });
  }

  left(id: string, instance: string, number: number): void {
    this.#host.tell(id, { kind: 'left', take: (key, turn) => key.left(turn, instance, number) });
  }

  start(): void {
    this.#rescan.wake();
  }

  stop(): void {
    this.#rescan.stop();
  }

  /** Words of a shard that died may be lost. */
  shardDied(): void {
    this.#rescan.wake();
  }

  endTurn(): void {
    this.#host.endTurn();
  }

  async #round(): Promise<void> {
    const { loader, schedule } = this.#deps;
    for (let after = FIRST_KEY; ; ) {
      const page = await loader.permitKeys(after, RESCAN_PAGE);
      if (this.#rescan.isStopped) return;
      if (page.length > 0) {
        schedule(() => {
          for (const id of page) this.#host.reload(id);
        });
      }
      if (page.length < RESCAN_PAGE) return;
      after = page.at(-1) as string;
    }
  }
}

const NO_ROWS: KeyRows = { holders: [], waiters: [] };

async function readKeys(loader: Rows, ids: readonly string[]): Promise<Map<string, KeyRows>> {
  const read = async (id: string): Promise<[string, KeyRows]> => {
    // In this order: who is granted a slot in between is among the holders of the next reading.
    const holders = await loader.permitHolders(id);
    return [id, { holders, waiters: await loader.permitWaiters(id, WAITERS_MAX) }];
  };
  return new Map(await Promise.all(ids.map(read)));
}
