/**
 * One rate limit of one tenant (spec/06 row 23): an exact sliding window. A grant is a row before it
 * is told, and the row's time is the last moment at which it may be used; who uses it says when it
 * did. So never more than `max_count` tries begin within any window, whatever is lost or late.
 *
 * Whoever is refused is told when to ask again, each a place of its own in the order of asking, so
 * that a crowd does not come back at once and the first to be refused is the first to be let through.
 */

import type { RateLimit } from '../schema/rate.js';
import { routeOf, shardOf } from '../src/core/ids.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import { notFound } from '../src/errors.js';
import { GrantWindow } from './grant-window.js';
import type { RateGrantRow, RateLimitRow } from './loader.js';
import type { PeerMessage } from './protocol.js';
import { RowActor, type RowActorDeps } from './row-actor.js';

/** The try that asks. */
export interface Asker {
  readonly instance: string;
  readonly node: number;
  readonly iteration: string;
  readonly attempt: number;
}

export interface RateActorDeps extends RowActorDeps {
  readonly newId: () => string;
  readonly random: () => number;
}

interface RateRows {
  readonly limit: RateLimitRow | undefined;
  readonly grants: readonly RateGrantRow[];
}

/** A grant that is not used by then is void, and the try asks again. */
const USE_WITHIN_MS = 1_000;

/** Rows of windows that are over are deleted at most this often. */
const PRUNE_EVERY_MS = 10_000;

export class RateActor extends RowActor<RateRows> {
  readonly #id: string;
  readonly #deps: RateActorDeps;
  #limit: RateLimitRow | undefined;
  #window = new GrantWindow(0, 0);
  #nextGrant: number;
  /** Grants of this turn, whose row is put at its end. */
  #granted = 0;
  #grantedUntil: UnixMs = 0;
  #prunedAt: UnixMs = 0;

  /** @param id from `rateLimitId` */
  constructor(id: string, deps: RateActorDeps) {
    super(`rate:${id}`, deps);
    this.#id = id;
    this.#deps = deps;
    // Numbers of an earlier life of this actor must not be taken for those of this one.
    this.#nextGrant = Math.floor(deps.random() * 2 ** 48);
  }

  asked(asker: Asker): void {
    this.tell(() => this.#asked(asker));
  }

  /** @param at when the grant was used; null when it was not, and is free again */
  used(grant: number, at: UnixMs | null): void {
    this.tell(() => this.#window.used(grant, at));
  }

  put(request: number, limit: RateLimitRow): void {
    this.tell(() => this.#put(request, limit), request);
  }

  delete(request: number): void {
    this.tell(() => this.#delete(request), request);
  }

  protected async read(): Promise<RateRows> {
    const { loader, now } = this.deps;
    const limit = await loader.rateLimit(this.#id);
    if (limit === undefined) return { limit, grants: [] };
    return { limit, grants: await loader.rateGrants(this.#id, now() - windowMs(limit)) };
  }

  protected restore({ limit, grants }: RateRows): void {
    // The places were of the window that is gone; those who had one ask for another.
    this.#change(limit);
    this.#window = windowOf(limit);
    for (const { granted_at, count } of grants) {
      for (let i = 0; i < count; i++) this.#window.restore(Date.parse(granted_at));
    }
  }

  protected decide(): 'done' {
    if (this.#granted === 0) return 'done';
    const id = this.#deps.newId();
    this.turn.put('rateGrant.insert', id, {
      limit_id: this.#id,
      granted_at: isoTime(this.#grantedUntil),
      id,
      count: this.#granted,
    });
    this.#granted = 0;
    this.#prune();
    return 'done';
  }

  protected get isIdle(): boolean {
    return this.#window.isEmpty(this.deps.now());
  }

  #asked(asker: Asker): void {
    if (this.#limit === undefined) {
      this.#answer(asker, grantedMessage(asker, UNLIMITED, Number.MAX_SAFE_INTEGER));
      return;
    }
    const now = this.deps.now();
    const until = this.#window.place(keyOf(asker), now);
    if (until > now) {
      const { instance, node, iteration, attempt } = asker;
      this.#answer(asker, ['rate.deferred', instance, node, iteration, attempt, until]);
      return;
    }
    this.#nextGrant += 1;
    const usableUntil = now + USE_WITHIN_MS;
    this.#window.grant(this.#nextGrant, usableUntil);
    this.#granted += 1;
    this.#grantedUntil = usableUntil;
    this.#answer(asker, grantedMessage(asker, this.#nextGrant, usableUntil));
  }

  #answer({ instance }: Asker, message: PeerMessage): void {
    const shard = shardOf(routeOf(instance), this.deps.shards);
    this.turn.effects.push({ kind: 'peer', shard, message });
  }

  #put(request: number, limit: RateLimitRow): void {
    const now = this.deps.now();
    const record: RateLimit = {
      tenant_id: limit.tenant_id,
      key: limit.limit_key,
      max_count: limit.max_count,
      window_seconds: limit.window_seconds,
      updated_at: isoTime(now),
    };
    this.turn.put('rateLimit.set', this.#id, {
      id: this.#id,
      tenant_id: limit.tenant_id,
      limit_key: limit.limit_key,
      max_count: limit.max_count,
      window_seconds: limit.window_seconds,
      updated_at: record.updated_at,
    });
    this.turn.reply(request, 200, JSON.stringify(record));
    this.#change(limit);
  }

  #delete(request: number): void {
    if (this.#limit === undefined) {
      this.turn.fail(request, notFound('rate limit'));
      return;
    }
    this.turn.put('rateLimit.clear', this.#id, { id: this.#id });
    this.turn.reply(request, 204, '');
    this.#change(undefined);
  }

  /** Those who were told to come later may come at once: their places were of the old limit. */
  #change(limit: RateLimitRow | undefined): void {
    this.#limit = limit;
    for (const key of this.#window.change(limit?.max_count ?? 0, windowMs(limit))) {
      const asker = askerOf(key);
      const { instance, node, iteration, attempt } = asker;
      this.#answer(asker, ['rate.changed', instance, node, iteration, attempt]);
    }
  }

  #prune(): void {
    const now = this.deps.now();
    if (now - this.#prunedAt < PRUNE_EVERY_MS) return;
    this.#prunedAt = now;
    const before = isoTime(now - windowMs(this.#limit));
    this.turn.put('rateGrant.prune', this.#id, { limit_id: this.#id, before });
  }
}

/** The number of a grant that nobody counts. */
const UNLIMITED = 0;

function windowOf(limit: RateLimitRow | undefined): GrantWindow {
  return new GrantWindow(limit?.max_count ?? 0, windowMs(limit));
}

function windowMs(limit: RateLimitRow | undefined): number {
  return (limit?.window_seconds ?? 0) * 1_000;
}

function grantedMessage(asker: Asker, grant: number, usableUntil: UnixMs): PeerMessage {
  const { instance, node, iteration, attempt } = asker;
  return ['rate.granted', instance, node, iteration, attempt, grant, usableUntil];
}

function keyOf({ instance, node, iteration, attempt }: Asker): string {
  return `${instance}/${node}/${iteration}/${attempt}`;
}

function askerOf(key: string): Asker {
  const [instance = '', node, iteration = '', attempt] = key.split('/');
  return { instance, node: Number(node), iteration, attempt: Number(attempt) };
}
