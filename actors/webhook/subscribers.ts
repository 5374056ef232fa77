/**
 * The webhook recipients of ended instances on one shard: the addresses of the deployment and a replica of all
 * subscriptions, because the unit that ends an instance cannot wait for rows. The replica is loaded at the start and
 * read again whenever the owner reports a change of a tenant (`subscriptions.read`).
 */

import type { WebhookEvent } from '../../src/core/webhook.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Messages, Room } from '../runtime/room.js';
import { TenantReplica } from '../runtime/tenant-replica.js';
import {
  type Subscription,
  type SubscriptionRow,
  subscriptionOf,
  type WebhookLoads,
  type WebhookTarget,
} from './loads.js';

export interface SubscribersDeps
  extends Pick<Kernel, 'shard' | 'clock' | 'log' | 'release' | 'schedule'> {
  readonly loader: Pick<WebhookLoads, 'subscriptions' | 'allSubscriptions'>;
  readonly urls: readonly string[];
  /** Called with deleted subscriptions, whose pending webhooks are dropped. */
  readonly deleted: (subscriptions: ReadonlySet<string>) => void;
}

export class Subscribers implements Room {
  readonly #deps: SubscribersDeps;
  readonly #ofDeployment: readonly WebhookTarget[];
  #byTenant = new Map<string, readonly Subscription[]>();
  #byId = new Map<string, Subscription>();
  readonly #rows: TenantReplica<SubscriptionRow>;

  readonly messages = {
    'subscriptions.read': ({ version, tenants }) => this.#rows.changed(version, tenants),
  } satisfies Messages;

  constructor(deps: SubscribersDeps) {
    this.#deps = deps;
    this.#ofDeployment = deps.urls.map((url) => ({ url, subscription: null }));
    const { loader, shard } = deps;
    this.#rows = new TenantReplica<SubscriptionRow>(deps, {
      name: 'webhook subscriptions',
      page: (after, limit) => loader.allSubscriptions(after?.id, limit),
      ofTenants: loader.subscriptions,
      take: (rows, tenants) => this.#take(rows, tenants),
      settled: (version) => ({ kind: 'subscriptions.settled', version, shard }),
    });
  }

  get parts() {
    return [this.#rows];
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Subscription | undefined {
    return this.#byId.get(id);
  }

  targetsOf(tenant: string, event: WebhookEvent): readonly WebhookTarget[] {
    const subscriptions = this.#byTenant.get(tenant);
    if (subscriptions === undefined) return this.#ofDeployment;
    const wanting = subscriptions.filter(({ events }) => events.includes(event));
    return [...this.#ofDeployment, ...wanting.map(({ id, url }) => ({ url, subscription: id }))];
  }

  /** Replaces the subscriptions of these tenants, or of all. */
  #take(rows: readonly SubscriptionRow[], tenants: ReadonlySet<string> | undefined): void {
    const deleted = new Set<string>();
    for (const tenant of tenants ?? [...this.#byTenant.keys()]) {
      for (const { id } of this.#byTenant.get(tenant) ?? []) deleted.add(id);
      this.#byTenant.delete(tenant);
    }
    for (const id of deleted) this.#byId.delete(id);
    for (const row of rows) {
      const subscription = subscriptionOf(row);
      const { id, tenant_id } = subscription;
      this.#byId.set(id, subscription);
      this.#byTenant.set(tenant_id, [...(this.#byTenant.get(tenant_id) ?? []), subscription]);
      deleted.delete(id);
    }
    if (deleted.size > 0) this.#deps.deleted(deleted);
  }
}
