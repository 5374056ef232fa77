/**
 * Requests of change feed readers to the shards: the watermark, and news of a followed tenant. See
 * `actors/feed/changes.ts`.
 */

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { Shards } from '../../runtime/shards.js';
import type { feedOperations } from '../operations.js';

/**
 * Readers within this time share one request to the shards. Each request may put the times of entries a millisecond
 * ahead, so at most one in this time does not outrun the clock.
 */
const ROUND_MS = 2;
/** Minimum interval between requests to a shard, so that changes are batched. */
const PACE_MS = 50;
/** Retry interval for an unavailable shard. */
const RETRY_MS = 500;

export interface WatermarkDeps {
  readonly client: Pick<Shards<typeof feedOperations>, 'ask'>;
  readonly shards: number;
  readonly clock: Pick<Clock, 'setTimeout'>;
}

export interface FollowedTenantDeps extends Omit<WatermarkDeps, 'clock'> {
  readonly log: Logger;
}

export class Watermark {
  readonly #deps: WatermarkDeps;
  /** No shard may stamp below; see `SupervisorDeps.stampsFrom`. */
  #highest: UnixMs = 0;
  #past: UnixMs = 0;
  #round: Promise<UnixMs> | undefined;
  #last: UnixMs = 0;

  constructor(deps: WatermarkDeps) {
    this.#deps = deps;
  }

  /** The highest watermark of any shard so far. */
  get highest(): UnixMs {
    return this.#highest;
  }

  /** The latest result of `above`: every entry below it is in the rows. 0: none yet. */
  get last(): UnixMs {
    return this.#last;
  }

  /** The mark of an earlier owner of the database. */
  raise(at: UnixMs): void {
    this.#highest = Math.max(this.#highest, at);
  }

  /**
   * A time above `past` below which all entries are in the rows. Rejects with an EngineError when a shard is
   * unavailable.
   */
  above(past: UnixMs): Promise<UnixMs> {
    this.#past = Math.max(this.#past, past);
    this.#round ??= new Promise((resolve, reject) => {
      this.#deps.clock.setTimeout(() => {
        this.#round = undefined;
        this.#below(this.#past)
          .then((below) => {
            this.#last = Math.max(this.#last, below);
            return below;
          })
          .then(resolve, reject);
      }, ROUND_MS);
    });
    return this.#round;
  }

  /** Repeated when a shard stamps ahead of its clock, so that a caller's own changes are visible at once. */
  async #below(past: UnixMs): Promise<UnixMs> {
    const { below, ahead } = await this.#ask(past);
    return below > ahead ? below : (await this.#ask(ahead)).below;
  }

  async #ask(past: UnixMs): Promise<{ readonly below: UnixMs; readonly ahead: UnixMs }> {
    const { client, shards } = this.#deps;
    const asked = Array.from({ length: shards }, async (_, shard) => {
      const reply = await client.ask(shard, 'changes.watermark', '', '', past);
      const answer = JSON.parse(reply.body) as { readonly at: UnixMs; readonly ahead: UnixMs };
      this.raise(answer.at);
      return answer;
    });
    const answers = await Promise.all(asked);
    return {
      below: Math.min(...answers.map(({ at }) => at)),
      ahead: Math.max(...answers.map(({ ahead }) => ahead)),
    };
  }
}

/** A followed tenant: one request per shard, whatever the number of followers. */
export class FollowedTenant {
  readonly #deps: FollowedTenantDeps;
  readonly #tenant: string;
  readonly #ending = new AbortController();
  readonly #waiting = new Set<() => void>();
  #followers = 0;
  /** Counts reported changes. */
  #news = 0;
  #past: UnixMs = 0;

  constructor(deps: FollowedTenantDeps, tenant: string) {
    this.#deps = deps;
    this.#tenant = tenant;
    // One listener per shard; Node warns beyond ten.
    setMaxListeners(0, this.#ending.signal);
    for (let shard = 0; shard < deps.shards; shard++) void this.#watch(shard);
  }

  join(): void {
    this.#followers += 1;
  }

  /** @returns whether no follower is left, and requests have ended */
  leave(): boolean {
    this.#followers -= 1;
    if (this.#followers > 0) return false;
    this.#ending.abort();
    return true;
  }

  /**
   * Resolves on a change since `seen`, with the next value of `seen`; the times of reported entries are at most `past`.
   * Rejects with the reason of the signal.
   */
  async newsSince(seen: number, signal: AbortSignal): Promise<{ seen: number; past: UnixMs }> {
    while (this.#news === seen) await this.#wait(signal);
    return { seen: this.#news, past: this.#past };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const settle = () => {
        this.#waiting.delete(settle);
        signal.removeEventListener('abort', settle);
        if (signal.aborted) reject(signal.reason);
        else resolve();
      };
      this.#waiting.add(settle);
      signal.addEventListener('abort', settle, { once: true });
    });
  }

  #report(past: UnixMs): void {
    this.#past = Math.max(this.#past, past);
    this.#news += 1;
    for (const settle of this.#waiting) settle();
  }

  /** An unknown version is answered at once, so nothing is missed. */
  async #watch(shard: number): Promise<void> {
    const { client } = this.#deps;
    const { signal } = this.#ending;
    let known: number | undefined;
    while (!signal.aborted) {
      try {
        const reply = await client.ask(shard, 'changes.watch', this.#tenant, '', known, signal);
        const { version, latest } = JSON.parse(reply.body) as { version: number; latest: UnixMs };
        if (version !== known) this.#report(latest);
        known = version;
        await pause(PACE_MS);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof EngineError)) this.#deps.log.error({ err: error }, 'defect');
        known = undefined;
        await pause(RETRY_MS);
      }
    }
  }
}
