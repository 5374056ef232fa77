/** The rate limits of one shard, by the hash of tenant and key. */

import type { PutRateLimit } from '../../schema/rate.js';
import type { UnixMs } from '../../src/base/time.js';
import { ActorHost, type HostDeps } from '../runtime/host.js';
import type { Kernel } from '../runtime/kernel.js';
import type { HostedMessage } from '../runtime/kind.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Turn } from '../runtime/turn.js';
import type { LimitLoads } from './loads.js';
import {
  type Asker,
  type LimitPlace,
  RateLimiter,
  type RateLimiterDeps,
  type RateRows,
  windowMs,
} from './rate.js';

export type RatesDeps = HostDeps & RateLimiterDeps & Pick<Kernel<LimitLoads>, 'loader'>;

interface RateMessage extends HostedMessage {
  readonly take: (rate: RateLimiter, turn: Turn) => void;
}

/** Limits in memory; idle ones beyond it are evicted, and reloaded from rows. */
const RATES_MAX = 10_000;

const NO_ROWS: RateRows = { limit: undefined, grants: [] };

export class Rates implements Room {
  readonly #deps: RatesDeps;
  readonly #host: ActorHost<RateLimiter, RateMessage, RateRows>;
  /** Attempts with a reservation in the discarded state of a limiter that is being reloaded. */
  readonly #called = new Map<string, readonly Asker[]>();

  readonly messages = {
    'rate.asked': ({ limit, instance, node, iteration, attempt }) =>
      this.asked(limit, { instance, node, iteration, attempt }),
    'rate.used': ({ limit, grant, at }) => this.used(limit, grant, at),
  } satisfies Messages;

  constructor(deps: RatesDeps) {
    this.#deps = deps;
    this.#host = new ActorHost<RateLimiter, RateMessage, RateRows>(
      {
        noun: 'rate limit',
        keyOf: (id) => `rate:${id}`,
        nameOf: (id) => ({ actor: `rate:${id}` }),
        tenantOf: ({ tenant }) => tenant,
        residentMax: RATES_MAX,
        load: (ids) => this.#read(ids),
        restore: (id, rows = NO_ROWS) => new RateLimiter(id, deps, rows),
        discarded: ({ id, state }) => {
          if (state !== undefined) this.#called.set(id, state.expected);
        },
        abandoned: (id) => this.#called.delete(id),
        awake: (resident) => {
          const called = this.#called.get(resident.id) ?? [];
          this.#called.delete(resident.id);
          this.#host.run(resident, undefined, (turn) => resident.state.call(turn, called));
        },
        handle: (resident, message) =>
          this.#host.run(resident, message, (turn) => message.take(resident.state, turn)),
        flush: (rate, turn) => {
          rate.record(turn);
          return 'done';
        },
        isIdle: (rate) => rate.isIdle,
      },
      deps,
    );
  }

  asked(id: string, asker: Asker): void {
    this.#host.tell(id, { kind: 'asked', take: (rate, turn) => rate.asked(turn, asker) });
  }

  /** @param at when the grant was used; null when it was not */
  used(id: string, grant: number, at: UnixMs | null): void {
    this.#host.tell(id, { kind: 'used', take: (rate) => rate.used(grant, at) });
  }

  put(id: string, request: number, place: LimitPlace, limit: PutRateLimit): void {
    this.#host.tell(id, {
      kind: 'put',
      request,
      take: (rate, turn) => rate.put(turn, request, place, limit),
    });
  }

  delete(id: string, request: number): void {
    this.#host.tell(id, {
      kind: 'delete',
      request,
      take: (rate, turn) => rate.delete(turn, request),
    });
  }

  tenantBack(): void {
    this.#host.reloadOwnerless();
  }

  tenantSuspended(): void {
    this.#host.dropSuspended();
  }

  endTurn(): void {
    this.#host.endTurn();
  }

  async #read(ids: readonly string[]): Promise<Map<string, RateRows>> {
    const { loader, now } = this.#deps;
    const read = async (id: string): Promise<[string, RateRows]> => {
      const limit = await loader.rateLimit(id);
      if (limit === undefined) return [id, NO_ROWS];
      return [id, { limit, grants: await loader.rateGrants(id, now() - windowMs(limit)) }];
    };
    return new Map(await Promise.all(ids.map(read)));
  }
}
