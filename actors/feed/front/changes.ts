/**
 * The change feed (docs/changes.md): audit entries of a tenant, in pages and as server-sent events.
 * Shards report commits, so nothing is polled.
 */

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { CHANGES_LIMIT_MAX } from '../../../schema/change.js';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError, invalid } from '../../../src/base/errors.js';
import { valueFor } from '../../../src/base/quota/last-used.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { Reads } from '../../../src/db/reads.js';
import type { FrontKernel } from '../../../src/http/front-room.js';
import {
  type AnyCall,
  type FrontOperations,
  jsonReply,
  listTenant,
} from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import {
  type ChangePlace,
  cursorOf,
  FEED_START,
  placeBefore,
  placeOf,
} from '../core/change-cursor.js';
import type { feedOperations } from '../room.js';
import { type ChangesPage, changesPage } from './change-reads.js';
import { type EventStream, OpenStreams } from './event-stream.js';

/** Bounds the buffer of a stream with a client that does not read. */
const STREAM_PAGE_BYTES = 1024 * 1024;
const RETRY_AFTER_MS = 5_000;
/** Minimum interval of reads and of requests to a shard, so that changes are batched. */
const PACE_MS = 50;
/** While a shard or the database is unavailable. */
const RETRY_MS = 500;

interface ChangesDeps extends Pick<FrontKernel, 'clock' | 'now' | 'log'> {
  readonly client: Pick<Shards<typeof feedOperations>, 'ask'>;
  readonly shards: number;
}

export class Changes {
  readonly watermark: Watermark;
  readonly #deps: ChangesDeps;
  readonly streams: OpenStreams;
  readonly #followed = new Map<string, FollowedTenant>();
  /** Reads in progress, shared by streams at one position. */
  readonly #pages = new Map<string, Promise<ChangesPage>>();

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
    this.watermark = new Watermark(deps);
    const tooMany = (message: string) =>
      new EngineError('ENG_TOO_MANY_STREAMS', message, RETRY_AFTER_MS);
    this.streams = new OpenStreams({ tooMany, log: deps.log });
  }

  readonly operations = {
    /** @throws EngineError 400 or 503 */
    'changes.list': async (front, call) => {
      const { query } = call;
      const tenant = tenantOf(call, query.tenant_id);
      const after = placeIn('cursor', query.cursor) ?? FEED_START;
      const limit = Math.max(query.limit, 1);
      const below = await this.#belowNow().catch((error: unknown) => {
        // Without a writer nothing is committed, so the last watermark stays valid.
        const isDown = error instanceof EngineError && error.code === 'ENG_DATABASE_DOWN';
        if (!isDown || this.watermark.last === 0) throw error;
        return this.watermark.last;
      });
      const page = await changesPage(front.reads, { tenant, after, below, limit });
      const next = page.hasMore ? page.place : page.entries.at(-1);
      const cursor = next === undefined ? '' : `"next_cursor":"${cursorOf(next)}",`;
      const texts = page.entries.map(({ text }) => text);
      return jsonReply(`{"changes":[${texts.join(',')}],${cursor}"has_more":${page.hasMore}}`);
    },
    /** @throws EngineError 400, 429 or 503 */
    'changes.stream': async (front, call) => {
      const { query } = call;
      const tenant = tenantOf(call, query.tenant_id);
      const requested =
        placeIn('cursor', query.cursor) ?? placeIn('Last-Event-ID', call.header('last-event-id'));
      return this.streams.open(call, async (signal) => {
        const start = requested ?? placeBefore(await this.#belowNow());
        return (events) => this.#follow(front.reads, tenant, start, events, signal);
      });
    },
  } satisfies Partial<FrontOperations>;

  #belowNow(): Promise<UnixMs> {
    return this.watermark.above(Math.floor(this.#deps.now()));
  }

  async #follow(
    reads: Reads,
    tenant: string,
    start: ChangePlace,
    events: EventStream,
    signal: AbortSignal,
  ): Promise<void> {
    const follow = () => new FollowedTenant(this.#deps, tenant);
    const followed = valueFor(this.#followed, tenant, follow);
    followed.join();
    try {
      // A client that disconnects before the first change resumes from here.
      await events.sendFrames([`: from here\nid: ${cursorOf(start)}\n\n`]);
      let place = start;
      let seen = 0;
      for (;;) {
        const news = await followed.newsSince(seen, signal);
        try {
          const below = await this.watermark.above(news.past);
          for (let hasMore = true; hasMore; ) {
            const page = await this.#page(reads, tenant, place, below);
            const frames = page.entries.map(
              (entry) => `id: ${cursorOf(entry)}\nevent: change\ndata: ${entry.text}\n\n`,
            );
            await events.sendFrames(frames);
            ({ place, hasMore } = page);
          }
          seen = news.seen;
          await pause(PACE_MS, undefined, { signal });
        } catch (error) {
          if (signal.aborted || !(error instanceof EngineError)) throw error;
          await pause(RETRY_MS, undefined, { signal });
        }
      }
    } finally {
      if (followed.leave()) this.#followed.delete(tenant);
    }
  }

  #page(reads: Reads, tenant: string, after: ChangePlace, below: UnixMs): Promise<ChangesPage> {
    const key = JSON.stringify([tenant, after, below]);
    return valueFor(this.#pages, key, () => {
      const request = { tenant, after, below, limit: CHANGES_LIMIT_MAX };
      return changesPage(reads, { ...request, bytesMax: STREAM_PAGE_BYTES }).finally(() =>
        this.#pages.delete(key),
      );
    });
  }
}

/** @throws EngineError 400 */
function tenantOf(call: AnyCall, queried: string | undefined): string {
  const tenant = listTenant(call, queried);
  if (tenant === undefined) throw invalid('the header x-tenant-id or tenant_id is required');
  return tenant;
}

/** @throws EngineError 400 */
function placeIn(name: string, cursor: string | undefined): ChangePlace | undefined {
  if (cursor === undefined || cursor === '') return undefined;
  const place = placeOf(cursor);
  if (place === undefined) throw invalid(`${name} is not a cursor of an earlier answer`);
  return place;
}

/**
 * Readers within this time share one request to the shards. A request may advance the times of
 * entries by a millisecond, so more frequent ones would outrun the clock.
 */
const ROUND_MS = 2;

interface WatermarkDeps extends Pick<ChangesDeps, 'client' | 'shards'> {
  readonly clock: Pick<Clock, 'setTimeout'>;
}

export class Watermark {
  readonly #deps: WatermarkDeps;
  /** The highest watermark of any shard so far (`SupervisorDeps.stampsFrom`). */
  highest: UnixMs = 0;
  #past: UnixMs = 0;
  #round: Promise<UnixMs> | undefined;
  /** The latest result of `above`; 0: none yet. */
  last: UnixMs = 0;

  constructor(deps: WatermarkDeps) {
    this.#deps = deps;
  }

  /** The mark of an earlier owner of the database. */
  raise(at: UnixMs): void {
    this.highest = Math.max(this.highest, at);
  }

  /**
   * A time after `past` below which all entries are committed.
   *
   * @throws EngineError if a shard is unavailable
   */
  above(past: UnixMs): Promise<UnixMs> {
    this.#past = Math.max(this.#past, past);
    this.#round ??= new Promise((resolve, reject) => {
      this.#deps.clock.setTimeout(() => {
        this.#round = undefined;
        this.#below(this.#past).then(resolve, reject);
      }, ROUND_MS);
    });
    return this.#round;
  }

  /** A second request covers shards that stamp ahead of their clock. */
  async #below(past: UnixMs): Promise<UnixMs> {
    let { below, ahead } = await this.#ask(past);
    if (below <= ahead) ({ below } = await this.#ask(ahead));
    this.last = Math.max(this.last, below);
    return below;
  }

  async #ask(past: UnixMs): Promise<{ readonly below: UnixMs; readonly ahead: UnixMs }> {
    const { client, shards } = this.#deps;
    const requests = Array.from({ length: shards }, async (_, shard) => {
      const reply = await client.ask(shard, 'changes.watermark', '', '', past);
      const answer = JSON.parse(reply.body) as { readonly at: UnixMs; readonly ahead: UnixMs };
      this.raise(answer.at);
      return answer;
    });
    const answers = await Promise.all(requests);
    return {
      below: Math.min(...answers.map(({ at }) => at)),
      ahead: Math.max(...answers.map(({ ahead }) => ahead)),
    };
  }
}

/** Shares one request per shard among all followers of a tenant. */
class FollowedTenant {
  readonly #deps: ChangesDeps;
  readonly #tenant: string;
  readonly #ending = new AbortController();
  readonly #waiting = new Set<() => void>();
  #followers = 0;
  #news = 0;
  #past: UnixMs = 0;

  constructor(deps: ChangesDeps, tenant: string) {
    this.#deps = deps;
    this.#tenant = tenant;
    // One listener per shard; Node warns beyond ten.
    setMaxListeners(0, this.#ending.signal);
    for (let shard = 0; shard < deps.shards; shard++) void this.#watch(shard);
  }

  join(): void {
    this.#followers += 1;
  }

  /** Ends the requests of the last follower. @returns whether it was the last one */
  leave(): boolean {
    this.#followers -= 1;
    if (this.#followers > 0) return false;
    this.#ending.abort();
    return true;
  }

  /**
   * Resolves on a change since `seen`, with the next `seen` and an upper bound of the times of
   * entries. Rejects with the reason of the signal.
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

  /** An unknown version is answered at once, so no change is missed. */
  async #watch(shard: number): Promise<void> {
    const { client } = this.#deps;
    const { signal } = this.#ending;
    let known: number | undefined;
    while (!signal.aborted) {
      try {
        const reply = await client.ask(shard, 'changes.watch', this.#tenant, '', known, { signal });
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
