/**
 * The webhook recipients of ended instances on one shard: the addresses of the deployment and a replica of all
 * subscriptions, because the unit that ends an instance cannot wait for rows. The replica is loaded at the start and
 * read again whenever the owner reports a change of a tenant (`subscriptions.read`).
 */

import type { WebhookEvent } from '../../src/core/webhook.js';
import type { Kernel } from '../runtime/kernel.js';
import { Replica } from '../runtime/replica.js';
import type { Messages, Room } from '../runtime/room.js';
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

/** Stands for every tenant in a change report. */
export const EVERY_TENANT = '';
const OWNER = 0;
/** Rows of one query, about a megabyte. */
const PAGE_ROWS = 2_000;

export class Subscribers implements Room {
  readonly #deps: SubscribersDeps;
  readonly #ofDeployment: readonly WebhookTarget[];
  #byTenant = new Map<string, readonly Subscription[]>();
  #byId = new Map<string, Subscription>();
  readonly #rows: Replica<string>;

  readonly messages = {
    'subscriptions.read': ({ version, tenants }) => this.#rows.changed(version, tenants),
  } satisfies Messages;

  constructor(deps: SubscribersDeps) {
    this.#deps = deps;
    this.#ofDeployment = deps.urls.map((url) => ({ url, subscription: null }));
    this.#rows = new Replica(deps, {
      read: (tenants) => this.#read(tenants),
      failed: (err) =>
        deps.log.warn({ err }, 'webhook subscriptions could not be read; trying again'),
      settled: (version) => {
        const message = { kind: 'subscriptions.settled', version, shard: deps.shard } as const;
        deps.release([{ kind: 'peer', shard: OWNER, message }]);
      },
    });
  }

  /** Rejects when the rows cannot be read. */
  prepare(): Promise<void> {
    return this.#rows.start([EVERY_TENANT]);
  }

  stop(): void {
    this.#rows.stop();
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

  /** Resolves when the subscriptions of the tenant were read again. */
  tenantComes(tenant: string): Promise<void> {
    return this.#rows.readAnew([tenant]);
  }

  writerReady(): void {
    this.#rows.reread([EVERY_TENANT]);
  }

  /** Returns a function that applies the rows. */
  async #read(tenants: ReadonlySet<string>): Promise<() => void> {
    if (tenants.has(EVERY_TENANT)) {
      const rows = await this.#readAll();
      return () => {
        const all = [...this.#byTenant.keys(), ...rows.map((row) => row.tenant_id)];
        this.#take(new Set(all), rows);
      };
    }
    const rows = await this.#deps.loader.subscriptions([...tenants]);
    return () => this.#take(tenants, rows);
  }

  async #readAll(): Promise<SubscriptionRow[]> {
    const rows: SubscriptionRow[] = [];
    for (;;) {
      const page = await this.#deps.loader.allSubscriptions(rows.at(-1)?.id, PAGE_ROWS);
      rows.push(...page);
      if (page.length < PAGE_ROWS) return rows;
    }
  }

  /** Replaces the subscriptions of these tenants. */
  #take(tenants: ReadonlySet<string>, rows: readonly SubscriptionRow[]): void {
    const deleted = new Set<string>();
    for (const tenant of tenants) {
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
