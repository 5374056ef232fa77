/**
 * The shard's part of the change feed. A reader of the feed goes on behind the last
 * entry that it has seen, in the order of (time, id). Units are committed in another order, so it is
 * only shown what lies below the watermark: a time below which no entry can appear any more.
 *
 * A shard answers the question for its watermark in three steps:
 * 1. it names a time, and from then on stamps nothing below it, whatever its clock says;
 * 2. the units that it has made so far are settled, in the rows or never to be there;
 * 3. on the first shard, that time is durable: the next owner of the database stamps nothing below.
 */

import { DATABASE_AWAY } from '../../src/base/errors.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Effects, Room } from '../runtime/room.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import { MARK } from './tables.js';
import { Watchers, type WatchersDeps } from './watchers.js';

export interface ChangeFeedDeps
  extends ServiceDeps,
    Omit<WatchersDeps, 'look'>,
    Pick<Kernel, 'shard' | 'now' | 'whenWriterKnown'> {}

/** On this shard the mark is kept. */
const MARK_SHARD = 0;

export class ChangeFeed implements Room {
  readonly #deps: ChangeFeedDeps;
  /**
   * Who waits for entries of a tenant to be committed: answered with the next version and the time of
   * the latest entry that was made.
   */
  readonly watchers: Watchers;
  readonly #mark: ChangeMark | undefined;
  /** The latest time that an entry has, or that a reader was promised. */
  #floor: UnixMs = 0;
  /** The latest time that an entry has. */
  #latest: UnixMs = 0;

  readonly effects = { audited: ({ tenant }) => this.watchers.changed(tenant) } satisfies Effects;

  constructor(deps: ChangeFeedDeps) {
    this.#deps = deps;
    this.#mark = deps.shard === MARK_SHARD ? new ChangeMark(deps) : undefined;
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

  /** The time of an entry: now, or later when the clock has gone back. Never goes back itself. */
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
   * Answers with `at`, above `past` and the present, below which every entry of this shard that will
   * ever be is in the rows. `ahead` is the time of its latest entry if the clock has not come to it.
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

/** How far the mark is ahead: the feed costs one more row in this time, while it is read. */
const MARK_AHEAD_MS = 1_000;

/** The row that says below which time the next owner of the database must not stamp. */
class ChangeMark {
  readonly #service: Service;
  /** As committed, and as asked for. */
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
        // Unknown or refused: the next question asks for it anew.
        else this.#pending = this.#durable;
      },
    });
  }
}
