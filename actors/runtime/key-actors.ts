/**
 * Actors of one shard that receive requests of others under a key, such as a concurrency key. An actor is
 * loaded by its first message, or when its rows have work. Messages may be lost, so the rows of such keys
 * are read again periodically, a few at a time (docs/architecture.md).
 */

import { BackgroundJob } from '../../src/base/background-job.js';
import { ActorHost, type HostDeps } from './host.js';
import type { Kernel } from './kernel.js';
import type { HostedMessage } from './kind.js';
import { NO_ID } from './queries.js';
import type { Turn } from './turn.js';

export type KeyActorsDeps = HostDeps & Pick<Kernel, 'clock'>;

export interface KeyState<Rows> {
  /** Undefined while the key has no rows. */
  readonly tenant: string | undefined;
  /** See `Kind`, as is `flush`. */
  readonly isIdle: boolean;
  /** Acts on the rows from which it was loaded. */
  settle(turn: Turn, rows: Rows): void;
  flush(turn: Turn): 'done' | 'reload';
}

export interface KeyKind<Key, Rows> {
  /** In messages to callers: `concurrency key`. */
  readonly noun: string;
  readonly prefix: string;
  readonly residentMax: number;
  /** The time between two rounds over all keys, which bounds the delay that a lost message causes. */
  readonly everyMs: number;
  readonly read: (id: string) => Promise<Rows>;
  readonly restore: (id: string, rows: Rows) => Key;
  /** Up to `limit` ids of keys after `after` that may have work, in order. */
  readonly page: (after: string, limit: number) => Promise<readonly string[]>;
  /** Those of a page whose messages may be lost; absent: all. */
  readonly withWork?: (ids: readonly string[]) => Promise<readonly string[]>;
}

interface KeyMessage<Key> extends HostedMessage {
  readonly take: (key: Key, turn: Turn) => void;
}

/** 10,000 keys with work cost 40 statements a second at an interval of 5 s. */
const RESCAN_PAGE = 200;

export class KeyActors<Key extends KeyState<Rows>, Rows> {
  readonly #kind: KeyKind<Key, Rows>;
  readonly #deps: KeyActorsDeps;
  readonly #host: ActorHost<Key, KeyMessage<Key>, Rows>;
  readonly #rescan: BackgroundJob;

  constructor(kind: KeyKind<Key, Rows>, deps: KeyActorsDeps) {
    this.#kind = kind;
    this.#deps = deps;
    const { noun, prefix, residentMax, everyMs } = kind;
    const { clock, log } = deps;
    this.#host = new ActorHost<Key, KeyMessage<Key>, Rows>(
      {
        noun,
        keyOf: (id) => `${prefix}:${id}`,
        nameOf: (id) => ({ actor: `${prefix}:${id}` }),
        tenantOf: ({ tenant }) => tenant,
        residentMax,
        load: async (ids) =>
          new Map(await Promise.all(ids.map(async (id) => [id, await kind.read(id)] as const))),
        restore: (id, rows) => kind.restore(id, rows!),
        awake: (resident, rows) =>
          this.#host.run(resident, undefined, (turn) => resident.state.settle(turn, rows!)),
        handle: (resident, message) =>
          this.#host.run(resident, message, (turn) => message.take(resident.state, turn)),
        flush: (key, turn) => key.flush(turn),
        isIdle: (key) => key.isIdle,
      },
      deps,
    );
    this.#rescan = new BackgroundJob({
      clock,
      log,
      name: `${noun}s`,
      everyMs,
      run: () => this.#round(),
    });
  }

  start(): void {
    this.#rescan.wake();
  }

  stop(): void {
    this.#rescan.stop();
  }

  /** @param request whose reply depends on the message */
  tell(id: string, kind: string, take: KeyMessage<Key>['take'], request?: number): void {
    this.#host.tell(id, request === undefined ? { kind, take } : { kind, take, request });
  }

  /** A message will follow: loads an absent actor meanwhile. */
  expect(id: string): void {
    this.#host.expect(id);
  }

  isResident(id: string): boolean {
    return this.#host.peek(id) !== undefined;
  }

  isPassive(id: string): boolean {
    const resident = this.#host.peek(id);
    return resident === undefined || this.#host.isIdle(resident);
  }

  /** Its rows were changed by others. */
  reload(id: string): void {
    this.#host.reload(id);
  }

  tenantSuspended(): void {
    this.#host.dropSuspended();
  }

  /** There may be rows without hints. */
  tenantBack(): void {
    this.#host.reloadOwnerless();
    this.start();
  }

  /** Messages to keys in memory may have been lost. */
  reloadAll(): void {
    for (const { id } of [...this.#host.residents]) this.#host.reload(id);
  }

  endTurn(): void {
    this.#host.endTurn();
  }

  async #round(): Promise<void> {
    const { page: read, withWork } = this.#kind;
    for (let after = NO_ID; ; ) {
      const page = await read(after, RESCAN_PAGE);
      const ids = page.length > 0 && withWork !== undefined ? await withWork(page) : page;
      if (this.#rescan.isStopped) return;
      if (ids.length > 0) {
        this.#deps.schedule(() => {
          for (const id of ids) this.#host.reload(id);
        });
      }
      if (page.length < RESCAN_PAGE) return;
      after = page.at(-1)!;
    }
  }
}
