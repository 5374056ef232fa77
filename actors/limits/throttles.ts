/**
 * The throttles of sequences on one shard, by key: instances wait for their start, oldest first. A grant is committed
 * before it is sent, and counts at the latest time of its use, so that no window has more starts than its limit, even if
 * messages are lost or late.
 */

import { routeOf, shardOf } from '../../src/base/ids.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import { KeyActors, type KeyActorsDeps, type KeyState } from '../runtime/key-actors.js';
import type { PeerMessage } from '../runtime/protocol.js';
import type { Messages, Room } from '../runtime/room.js';
import type { Turn } from '../runtime/turn.js';
import type { LimitLoads, StartGrantRow, StartWaiterRow } from './loads.js';
import { StartWindow } from './start-window.js';
import { START_GRANT } from './tables.js';
import { WaitingLine } from './waiting-line.js';

type ThrottlesDeps = KeyActorsDeps &
  Pick<Kernel<LimitLoads>, 'loader' | 'now' | 'newId' | 'random' | 'shards'>;

export class Throttles extends KeyActors<ThrottleKey, ThrottleRows> implements Room {
  readonly messages = {
    'start.wanted': (request) => this.tell(request.key, 'wanted', (key) => key.wanted(request)),
    'start.left': ({ key: id, instance }) => this.tell(id, 'left', (key) => key.left(instance)),
    'start.used': ({ key: id, grant, at }) => this.tell(id, 'used', (key) => key.used(grant, at)),
  } satisfies Messages;

  constructor(deps: ThrottlesDeps) {
    const { loader, now, clock, schedule } = deps;
    const wakeAt = (id: string, at: UnixMs) => {
      clock.setTimeout(
        () =>
          schedule(() => {
            if (this.isResident(id)) this.tell(id, 'due', (key) => key.due());
          }),
        Math.max(0, at - now()),
      );
    };
    super(
      {
        noun: 'throttle',
        prefix: 'throttle',
        residentMax: 10_000,
        everyMs: 30_000,
        read: async (id) => {
          // Waiting instances first: one that starts in between is granted once more, and ignores it.
          const waiters = await loader.startWaiters(id);
          const windowMs = Math.max(0, ...waiters.map(({ per_ms }) => per_ms));
          return { waiters, grants: await loader.startGrants(id, now() - windowMs) };
        },
        restore: (id, rows) => new ThrottleKey(id, { ...deps, wakeAt }, rows),
        page: loader.startKeys,
      },
      deps,
    );
  }

  /** Messages to the restarted shard may be lost. */
  peerBack(): void {
    this.start();
  }
}

type StartRequest = Extract<PeerMessage, { kind: 'start.wanted' }>;

interface ThrottleRows {
  readonly waiters: readonly StartWaiterRow[];
  readonly grants: readonly StartGrantRow[];
}

interface KeyDeps extends Pick<ThrottlesDeps, 'now' | 'newId' | 'random' | 'shards'> {
  readonly wakeAt: (id: string, at: UnixMs) => void;
}

/** An unused grant expires, and the instance requests another. */
const USE_WITHIN_MS = 1_000;
/** Interval between deletions of rows of past windows. */
const PRUNE_EVERY_MS = 10_000;
/** A timer wakes at this time at the latest; longer ones do not exist. */
const WAKE_MS_MAX = 3_600_000;

class ThrottleKey implements KeyState<ThrottleRows> {
  readonly #id: string;
  readonly #deps: KeyDeps;
  tenant: string | undefined;
  readonly #line: WaitingLine<StartRequest>;
  readonly #window = new StartWindow();
  /** The starts of this time were read. */
  readonly #windowMs: number;
  #isOutdated = false;
  #wakesAt: UnixMs = Number.POSITIVE_INFINITY;
  /** Instances that have come in this turn. */
  readonly #arrived = new Set<string>();
  #nextGrant: number;
  /** Grants without a row, which is put at the end of the turn. */
  #granted = 0;
  #prunedAt: UnixMs = 0;

  constructor(id: string, deps: KeyDeps, { waiters, grants }: ThrottleRows) {
    this.#id = id;
    this.#deps = deps;
    // Rows of a removed instance have no tenant.
    this.tenant = waiters.find((row) => row.tenant_id !== null)?.tenant_id ?? undefined;
    this.#line = new WaitingLine(waiters.map((row) => requestOf(id, row)));
    this.#windowMs = Math.max(0, ...waiters.map(({ per_ms }) => per_ms));
    // Random, so that numbers of an earlier actor do not match.
    this.#nextGrant = Math.floor(deps.random() * 2 ** 48);
    const terms = this.#line.first;
    for (const { granted_at, count } of grants) {
      for (let i = 0; i < count; i++) if (terms) this.#window.add(Date.parse(granted_at), terms);
    }
  }

  /** The instances that wait are in the line, and grants in rows. */
  settle(): void {}

  get isIdle(): boolean {
    return this.#line.first === undefined;
  }

  wanted(request: StartRequest): void {
    this.tenant ??= request.tenant;
    this.#isOutdated ||= request.perMs > this.#windowMs;
    this.#arrived.add(request.instance);
    this.#line.put(request);
  }

  left(instance: string): void {
    this.#line.remove(instance);
  }

  used(grant: number, at: UnixMs | null): void {
    this.#window.used(grant, at);
  }

  due(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  flush(turn: Turn): 'done' | 'reload' {
    if (this.#isOutdated) return 'reload';
    const now = this.#deps.now();
    for (;;) {
      const next = this.#line.first;
      if (next === undefined) break;
      const at = this.#window.nextAt(now, next);
      if (at > now) {
        this.#wake(Math.min(at, now + WAKE_MS_MAX));
        break;
      }
      this.#line.shift();
      this.#grant(turn, next, now);
    }
    this.#record(turn, now + USE_WITHIN_MS);
    for (const instance of this.#arrived) {
      if (this.#line.find(instance) !== undefined) turn.count('engine_starts_put_off_total');
    }
    this.#arrived.clear();
    return this.#line.isUsedUp ? 'reload' : 'done';
  }

  #wake(at: UnixMs): void {
    if (at >= this.#wakesAt) return;
    this.#wakesAt = at;
    this.#deps.wakeAt(this.#id, at);
  }

  #grant(turn: Turn, { instance, ...terms }: StartRequest, now: UnixMs): void {
    this.#nextGrant += 1;
    this.#granted += 1;
    const grant = this.#nextGrant;
    const usableUntil = now + USE_WITHIN_MS;
    this.#window.grant(grant, now, usableUntil, terms);
    const message = { kind: 'start.granted', key: this.#id, instance, grant, usableUntil } as const;
    const shard = shardOf(routeOf(instance), this.#deps.shards);
    turn.effects.push({ kind: 'peer', shard, message });
  }

  /** Puts one row for all grants of the turn. */
  #record(turn: Turn, usableUntil: UnixMs): void {
    if (this.#granted === 0) return;
    const id = this.#deps.newId();
    turn.put(START_GRANT.insert, id, {
      key_id: this.#id,
      granted_at: isoTime(usableUntil),
      id,
      tenant_id: this.tenant ?? '',
      count: this.#granted,
    });
    this.#granted = 0;
    const now = this.#deps.now();
    if (now - this.#prunedAt < PRUNE_EVERY_MS) return;
    this.#prunedAt = now;
    const before = isoTime(now - this.#windowMs);
    turn.put(START_GRANT.prune, this.#id, { key_id: this.#id, before });
  }
}

function requestOf(key: string, row: StartWaiterRow): StartRequest {
  return {
    kind: 'start.wanted',
    key,
    instance: row.instance_id,
    tenant: row.tenant_id ?? '',
    createdAt: Date.parse(row.created_at),
    limit: row.max_starts,
    perMs: row.per_ms,
    burst: row.burst,
  };
}
