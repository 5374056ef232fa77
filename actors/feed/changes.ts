/**
 * The change feed of one shard. Readers continue after their last entry, in the order of (time,
 * id). Units commit in another order, so readers receive only entries below the watermark, below
 * which no entry can appear any more. A shard determines its watermark in three steps:
 *
 * 1. It chooses a time, and stamps no entry below it from then on.
 * 2. It waits until its earlier units are settled.
 * 3. The first shard makes the time durable, so that the next owner of the database respects it.
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
  /** Watches of a tenant's entries, answered with a version and the time of the latest entry. */
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

  /** Entries are not stamped below this time from now on. */
  stampFrom(at: UnixMs): void {
    this.#floor = Math.max(this.#floor, at);
  }

  /**
   * Answers with `at`, a time after `past` and the present below which all entries of this shard
   * are committed, and with `ahead`, the time of its latest entry if that is in the future, else 0.
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

/** The mark is this far ahead, so that it is written at most once in this time. */
const MARK_AHEAD_MS = 1_000;

/** The row with the time below which the next owner of the database stamps no entry. */
class ChangeMark {
  readonly #service: Service;
  /** Committed; `#pending` is requested. */
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
        // Unknown or refused: the next request raises the mark again.
        else this.#pending = this.#durable;
      },
    });
  }
}
