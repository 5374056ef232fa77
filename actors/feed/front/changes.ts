/**
 * The change feed (docs/changes.md): audit entries of a tenant in the order of (time, id), in pages and as server-sent
 * events. Shards report commits, so nothing is polled.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { CHANGES_LIMIT_MAX } from '../../../schema/change.js';
import type { Clock } from '../../../src/base/clock.js';
import { EngineError, invalid } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { UnixMs } from '../../../src/base/time.js';
import type { Reads } from '../../../src/db/reads.js';
import {
  type AnyCall,
  type FrontOperations,
  jsonReply,
  listTenant,
  type Operation,
  type StreamOperation,
} from '../../../src/http/operation.js';
import type { Shards } from '../../runtime/shards.js';
import {
  type ChangePlace,
  cursorOf,
  FEED_START,
  placeBefore,
  placeOf,
} from '../core/change-cursor.js';
import type { feedOperations } from '../operations.js';
import { FollowedTenant, Watermark } from './change-readers.js';
import { type ChangeEntry, type ChangesPage, changesPage } from './change-reads.js';
import { type EventStream, OpenStreams } from './event-stream.js';

/** Buffer of a stream whose client does not read. */
const STREAM_PAGE_BYTES = 1024 * 1024;
/** Streams end when their clients do, which cannot be predicted. */
const RETRY_AFTER_MS = 5_000;
/** Minimum interval between reads of a stream, so that changes are batched. */
const PACE_MS = 50;
/** Retry interval of a stream while shards or the database are unavailable. */
const RETRY_MS = 500;

export interface ChangesDeps {
  readonly client: Pick<Shards<typeof feedOperations>, 'ask'>;
  readonly shards: number;
  readonly clock: Clock;
  /** Engine time. */
  readonly now: () => UnixMs;
  readonly log: Logger;
}

export class Changes {
  readonly watermark: Watermark;
  readonly #deps: ChangesDeps;
  readonly #streams: OpenStreams;
  readonly #followed = new Map<string, FollowedTenant>();
  /** Pages being read, shared by streams at one position. */
  readonly #pages = new Map<string, Promise<ChangesPage>>();

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
    this.watermark = new Watermark(deps);
    const tooMany = (message: string) =>
      new EngineError('ENG_TOO_MANY_STREAMS', message, RETRY_AFTER_MS);
    this.#streams = new OpenStreams({ tooMany, log: deps.log });
  }

  /** Rejects with an EngineError: 400 or 503. */
  readonly #list: Operation<'changes.list'> = async (front, call) => {
    const { query } = call;
    const tenant = tenantOf(call, query.tenant_id);
    const after = placeIn('cursor', query.cursor) ?? FEED_START;
    const limit = Math.max(query.limit, 1);
    const below = await this.#belowNow().catch((error: unknown) => {
      // Entries below the last watermark stay readable while nothing is committed.
      const isDown = error instanceof EngineError && error.code === 'ENG_DATABASE_DOWN';
      if (!isDown || this.watermark.last === 0) throw error;
      return this.watermark.last;
    });
    const page = await changesPage(front.reads, { tenant, after, below, limit });
    const next = page.hasMore ? page.place : page.last;
    const cursor = next === undefined ? '' : `"next_cursor":"${cursorOf(next)}",`;
    const texts = page.entries.map(({ text }) => text);
    return jsonReply(`{"changes":[${texts.join(',')}],${cursor}"has_more":${page.hasMore}}`);
  };

  /** Rejects with an EngineError: 400, 429, or 503. */
  readonly #open: StreamOperation<'changes.stream'> = async (front, call) => {
    const { query } = call;
    const tenant = tenantOf(call, query.tenant_id);
    const given =
      placeIn('cursor', query.cursor) ?? placeIn('Last-Event-ID', call.header('last-event-id'));
    return this.#streams.open(call, async (signal) => {
      const start = given ?? placeBefore(await this.#belowNow());
      return (events) => this.#follow(front.reads, tenant, start, events, signal);
    });
  };

  readonly operations = {
    'changes.list': this.#list,
    'changes.stream': this.#open,
  } satisfies Partial<FrontOperations>;

  get openCount(): number {
    return this.#streams.count;
  }

  close(): void {
    this.#streams.close();
  }

  /** Above any entry that the caller may know. */
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
    const followed = this.#join(tenant);
    try {
      // Sent at once, so that a client that disconnects before the first change resumes from here.
      await events.sendFrames([`: from here\nid: ${cursorOf(start)}\n\n`]);
      let place = start;
      let seen = 0;
      for (;;) {
        const news = await followed.newsSince(seen, signal);
        try {
          const below = await this.watermark.above(news.past);
          for (let hasMore = true; hasMore; ) {
            const page = await this.#page(reads, tenant, place, below);
            await events.sendFrames(page.entries.map(frameOf));
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

  #join(tenant: string): FollowedTenant {
    let followed = this.#followed.get(tenant);
    if (followed === undefined) {
      followed = new FollowedTenant(this.#deps, tenant);
      this.#followed.set(tenant, followed);
    }
    followed.join();
    return followed;
  }

  #page(reads: Reads, tenant: string, after: ChangePlace, below: UnixMs): Promise<ChangesPage> {
    const key = JSON.stringify([tenant, after, below]);
    let page = this.#pages.get(key);
    if (page === undefined) {
      const request = { tenant, after, below, limit: CHANGES_LIMIT_MAX };
      page = changesPage(reads, { ...request, bytesMax: STREAM_PAGE_BYTES }).finally(() =>
        this.#pages.delete(key),
      );
      this.#pages.set(key, page);
    }
    return page;
  }
}

function frameOf(entry: ChangeEntry): string {
  return `id: ${cursorOf(entry)}\nevent: change\ndata: ${entry.text}\n\n`;
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
