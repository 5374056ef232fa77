/**
 * The worker endpoints that one shard serves: a replica of their rows, read at the start and whenever the owner reports
 * a change of a tenant (`endpoints.read`). Each endpoint is served by the shard that its name leads to.
 */

import type { EndpointStatus } from '../../schema/worker-endpoint.js';
import type { TimerHandle } from '../../src/base/clock.js';
import { routeOfName, shardOf } from '../../src/base/ids.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { PUSH_SLOT_LIMITS } from '../../src/handlers/http-transport.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Messages, Room } from '../runtime/room.js';
import { EVERY_TENANT, TenantReplica } from '../runtime/tenant-replica.js';
import { type EndpointRow, endpointOf, keyOf, type PushLoads } from './loads.js';
import { Pusher, type PusherDeps } from './pusher.js';

type Needed = 'shard' | 'shards' | 'settings' | 'commits' | 'loader' | 'release';

export type ServedDeps = Omit<PusherDeps, 'slots' | 'touch'> & Pick<Kernel<PushLoads>, Needed>;

/** The state of an endpoint, for the front thread. */
export interface NamedStatus {
  readonly tenant_id: string;
  readonly name: string;
  readonly status: EndpointStatus;
}

/** Heartbeats within the silence after which a claim is lost. */
export const BEATS = 3;

export class Served implements Room {
  readonly #deps: ServedDeps;
  readonly #rows: TenantReplica<EndpointRow>;
  readonly #slots = new FairSlots(PUSH_SLOT_LIMITS);
  readonly #pushers = new Map<string, Pusher>();
  /** Of deleted endpoints, with requests in flight. */
  readonly #leaving = new Set<Pusher>();
  readonly #touched = new Set<Pusher>();
  #isStarted = false;
  #isDraining = false;
  #beats: TimerHandle | undefined;

  readonly messages = {
    'endpoints.read': ({ version, tenants }) => this.#rows.changed(version, tenants),
  } satisfies Messages;

  constructor(deps: ServedDeps) {
    this.#deps = deps;
    const { loader, shard } = deps;
    this.#rows = new TenantReplica<EndpointRow>(deps, {
      name: 'worker endpoints',
      page: loader.allEndpoints,
      ofTenants: loader.endpoints,
      take: (rows, tenants) => this.#take(rows, tenants),
      settled: (version) => ({ kind: 'endpoints.settled', version, shard }),
    });
  }

  get parts() {
    return [this.#rows];
  }

  start(): void {
    this.#isStarted = true;
    for (const pusher of this.#pushers.values()) this.#touched.add(pusher);
  }

  tenantBack(tenant = EVERY_TENANT): void {
    this.#rows.reread(tenant);
  }

  /** The tenant is served elsewhere: requests in flight are given up. */
  tenantSuspended(tenant: string): void {
    for (const pusher of this.#all()) {
      const { endpoint } = pusher;
      if (endpoint.tenant_id !== tenant) continue;
      pusher.abort();
      this.#pushers.delete(keyOf(endpoint));
      this.#leaving.delete(pusher);
    }
  }

  /** Requests in flight may still end before the engine stops. */
  drain(): void {
    this.#isDraining = true;
    for (const pusher of this.#pushers.values()) pusher.close();
  }

  /** A request that is cut off costs its claim, which ends by silence. */
  get isBusy(): boolean {
    return this.#all().some(({ inFlight }) => inFlight > 0);
  }

  stop(): void {
    this.#slots.close();
    this.#deps.clock.clearTimeout(this.#beats);
    for (const pusher of this.#all()) pusher.abort();
  }

  endTurn(): void {
    if (!this.#isStarted || this.#touched.size === 0) return;
    for (const pusher of [...this.#touched]) {
      this.#touched.delete(pusher);
      pusher.endTurn();
      if (pusher.inFlight > 0) this.#armBeats();
      else this.#leaving.delete(pusher);
    }
    this.#deps.meter.set('engine_push_in_flight', this.#slots.active);
  }

  #all(): Pusher[] {
    return [...this.#pushers.values(), ...this.#leaving];
  }

  #armBeats(): void {
    const { clock, schedule, settings } = this.#deps;
    this.#beats ??= clock.setTimeout(
      () =>
        schedule(() => {
          this.#beats = undefined;
          for (const pusher of this.#all()) {
            pusher.beat();
            if (pusher.inFlight > 0) this.#armBeats();
          }
        }),
      settings.workerStaleMs / BEATS,
    );
  }

  /** Of the endpoints of the tenant; of all if it is ''. */
  statuses(tenant: string): NamedStatus[] {
    const statuses: NamedStatus[] = [];
    for (const { endpoint, status } of this.#pushers.values()) {
      const { tenant_id, name } = endpoint;
      if (tenant === '' || tenant === tenant_id) statuses.push({ tenant_id, name, status });
    }
    return statuses;
  }

  /** @param tenants whose endpoints the rows are; undefined: all */
  #take(rows: readonly EndpointRow[], tenants: ReadonlySet<string> | undefined): void {
    const { shard, shards, commits } = this.#deps;
    const gone = new Map(this.#pushers);
    for (const [key, { endpoint }] of gone) {
      if (tenants?.has(endpoint.tenant_id) === false) gone.delete(key);
    }
    for (const row of rows) {
      const key = keyOf(row);
      if (shardOf(routeOfName(key), shards) !== shard) continue;
      if (commits.suspended.has(row.tenant_id)) continue;
      gone.delete(key);
      this.#serve(key, row);
    }
    for (const [key, pusher] of gone) {
      pusher.close();
      this.#pushers.delete(key);
      if (pusher.inFlight > 0) this.#leaving.add(pusher);
    }
  }

  #serve(key: string, row: EndpointRow): void {
    const endpoint = endpointOf(row);
    const known = this.#pushers.get(key);
    if (known !== undefined) {
      if (known.endpoint.updated_at !== endpoint.updated_at) known.change(endpoint);
      return;
    }
    const pusher: Pusher = new Pusher(endpoint, {
      ...this.#deps,
      slots: this.#slots,
      touch: () => this.#touched.add(pusher),
    });
    this.#pushers.set(key, pusher);
    if (this.#isDraining) pusher.close();
    this.#touched.add(pusher);
  }
}
