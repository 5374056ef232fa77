/**
 * The shard's part of the change feed. Readers continue after the last entry they have seen, in the order of (time,
 * id). Units commit in another order, so readers only get entries below the watermark: a time below which no entry can
 * appear any more. A shard answers a request for its watermark in three steps:
 *
 * 1. It chooses a time, and from then on stamps nothing below it, whatever its clock says.
 * 2. All its earlier units are settled: committed, or never to be.
 * 3. On the first shard, that time is durable: the next owner of the database stamps nothing below it.
 */

import { DATABASE_AWAY } from '../../src/base/errors.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { type Kernel, onFirstShard } from '../runtime/kernel.js';
import type { Effects, Room } from '../runtime/room.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { MARK } from './tables.js';
import { Watchers, type WatchersDeps } from './watchers.js';

interface ChangeFeedDeps
  extends ServiceDeps,
    Omit<WatchersDeps, 'look'>,
    Pick<Kernel, 'shard' | 'now' | 'whenWriterKnown'> {}

export class ChangeFeed implements Room {
  readonly #deps: ChangeFeedDeps;
  /** Watches of a tenant's entries: answered with the next version and the time of the latest entry. */
  readonly watchers: Watchers;
  readonly #mark: ChangeMark | undefined;
  /** The latest time of an entry or of a watermark. */
  #floor: UnixMs = 0;
  /** The latest time of an entry. */
  #latest: UnixMs = 0;

  readonly effects = { audited: ({ tenant }) => this.watchers.changed(tenant) } satisfies Effects;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
    this.#mark = onFirstShard(deps, () => new ChangeMark(deps));
    this.watchers = new Watchers({
      ...deps,
      look: (_tenant, { request }, version) => {
        const body = `{"version":${version},"latest":${this.#latest}}`;
        deps.release([{ kind: 'reply', request, status: 200, body }]);
      },
    });
  }

  drain(): void {
    this.watchers.drain();
  }

  stop(): void {
    this.watchers.stop();
  }

  writerReady(): void {
    this.watchers.changedAll();
  }

  tenantSuspended(tenant: string): void {
    this.watchers.changed(tenant);
  }

  tenantComes(_tenant: string, stampsFrom: UnixMs): void {
    this.stampFrom(stampsFrom);
  }

  tenantBack(): void {
    this.watchers.changedAll();
  }

  /** The time of an entry: now, or later when the clock was set back. Never decreases. */
  stamp(): UnixMs {
    this.stampFrom(Math.floor(this.#deps.now()));
    this.#latest = this.#floor;
    return this.#latest;
  }

  /** From now on nothing is stamped below this time. */
  stampFrom(at: UnixMs): void {
    this.#floor = Math.max(this.#floor, at);
  }

  /**
   * Answers with `at`, above `past` and the present: every entry of this shard below it is in the rows. `ahead` is the
   * time of its latest entry, if that is in the future.
   */
  watermark(request: number, past: UnixMs): void {
    const { commits, now, whenWriterKnown, release } = this.#deps;
    const time = Math.floor(now());
    this.stampFrom(Math.max(time, past, this.#latest) + 1);
    const at = this.#floor;
    const body = `{"at":${at},"ahead":${this.#latest > time ? this.#latest : 0}}`;
    this.#mark?.raise(at);
    commits.whenSettled(() =>
      whenWriterKnown(() => {
        const isSafe = this.#mark === undefined || this.#mark.covers(at);
        release([
          isSafe
            ? { kind: 'reply', request, status: 200, body }
            : { kind: 'error', request, error: DATABASE_AWAY },
        ]);
      }),
    );
  }
}

/** How far the mark is ahead: while it is read, the feed costs one more row in this time. */
const MARK_AHEAD_MS = 1_000;

/** The row with the time below which the next owner of the database must not stamp. */
class ChangeMark {
  readonly #service: Service;
  /** As committed; `#pending` as requested. */
  #durable: UnixMs = 0;
  #pending: UnixMs = 0;

  constructor(deps: ServiceDeps) {
    this.#service = new Service('change-mark', deps);
  }

  covers(at: UnixMs): boolean {
    return at <= this.#durable;
  }

  raise(at: UnixMs): void {
    if (at <= this.#pending) return;
    const mark = at + MARK_AHEAD_MS;
    this.#pending = mark;
    const turn = new Turn();
    turn.put(MARK.set, 'change-mark', { id: 1, stamps_from: isoTime(mark) });
    this.#service.commitNow(turn, {
      settled: (error) => {
        if (error === undefined) this.#durable = mark;
        // Unknown or refused: the next request raises it again.
        else this.#pending = this.#durable;
      },
    });
  }
}
