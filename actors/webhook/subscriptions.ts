/**
 * The owner of webhook subscriptions, on the first shard. It caches no rows: each request reads, decides, and commits
 * one unit. The response is sent after every shard has the change (`subscribers.ts`), so that it applies to instances
 * that end later. A secret is only in the response to its creation and, sealed, in its row.
 */

import { changedTo } from '../../schema/change-shapes.js';
import {
  type CreateSubscription,
  type SubscriptionCreated,
  type UpdateSubscription,
  WEBHOOK_EVENTS,
  type WebhookSubscription,
} from '../../schema/webhook.js';
import { conflict, invalid } from '../../src/base/errors.js';
import { owned, tenantOf } from '../../src/base/tenancy.js';
import { isoTime } from '../../src/base/time.js';
import { checkUnchanged, updatedAt } from '../../src/base/unchanged-since.js';
import type { StoredSecret } from '../../src/core/sealing/sealing.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, RouteOperations } from '../runtime/operation.js';
import { Publisher } from '../runtime/publisher.js';
import type { Messages, Room } from '../runtime/room.js';
import {
  type RowSecretsDeps,
  randomBytes,
  storedSecret,
  warnIfWeak,
} from '../runtime/row-secrets.js';
import { Service } from '../runtime/service.js';
import { EVERY_TENANT } from '../runtime/tenant-replica.js';
import { Turn } from '../runtime/turn.js';
import { type Subscription, subscriptionOf, type WebhookLoads } from './loads.js';
import type { Subscribers } from './subscribers.js';
import { SUBSCRIPTION, WEBHOOK } from './tables.js';

export interface SubscriptionsDeps extends Kernel<WebhookLoads>, RowSecretsDeps {
  readonly subscribers: Pick<Subscribers, 'size'>;
  readonly sender: Pick<WebhookSender, 'problemOf'>;
}

/** Each subscription adds one row to the end of every instance of the tenant. */
export const SUBSCRIPTIONS_PER_TENANT_MAX = 20;
/** Every shard has a replica of all subscriptions, at some 500 bytes each. */
const SUBSCRIPTIONS_MAX = 20_000;
const SECRET_BYTES = 32;

export class Subscriptions implements Room {
  readonly #deps: SubscriptionsDeps;
  readonly #publisher: Publisher<string>;
  /** Requests of one tenant are serialized, so that the limit holds. */
  readonly #service: Service;

  readonly operations = {
    'webhooks.subscribe': { serve: (call) => this.#create(call) },
    'webhooks.update': { serve: (call) => this.#update(call) },
    'webhooks.unsubscribe': { serve: (call) => this.#delete(call) },
  } satisfies RouteOperations;
  readonly messages = {
    'subscriptions.settled': ({ version, shard }) => this.#publisher.settled(version, shard),
  } satisfies Messages;

  constructor(deps: SubscriptionsDeps) {
    this.#deps = deps;
    this.#service = new Service('subscriptions', deps);
    const message = (version: number, tenants: readonly string[]) =>
      ({ kind: 'subscriptions.read', version, tenants }) as const;
    this.#publisher = new Publisher<string>(deps, EVERY_TENANT, message);
  }

  get parts() {
    return [this.#publisher];
  }

  #create({ request, tenant: header, body }: Call<CreateSubscription>): void {
    const tenant = tenantOf(header, body.tenant_id);
    if (tenant.trim() === '') throw invalid('tenant_id must not be blank');
    this.#checkUrl(body.url);
    this.#service.answer(request, 201, tenant, () => this.#insert(request, tenant, body));
  }

  async #insert(
    request: number,
    tenant_id: string,
    body: CreateSubscription,
  ): Promise<SubscriptionCreated> {
    const { loader, subscribers, newId, now, random } = this.#deps;
    const known = await this.#service.read(() => loader.subscriptions([tenant_id]));
    if (known.length >= SUBSCRIPTIONS_PER_TENANT_MAX) {
      throw conflict(`a tenant has at most ${SUBSCRIPTIONS_PER_TENANT_MAX} webhook subscriptions`);
    }
    if (subscribers.size >= SUBSCRIPTIONS_MAX) {
      throw conflict(`there are at most ${SUBSCRIPTIONS_MAX} webhook subscriptions of all tenants`);
    }
    const secret = body.secret ?? `whsec_${randomBytes(random, SECRET_BYTES).toString('hex')}`;
    const at = isoTime(now());
    const place = { id: newId(), tenant_id };
    const row: Subscription = {
      ...place,
      url: body.url,
      events: body.events == null ? [...WEBHOOK_EVENTS] : ordered(body.events),
      secret: this.#stored(place, secret),
      created_at: at,
      updated_at: at,
    };
    await this.#put(request, row);
    return { ...wireOf(row), secret };
  }

  #update({ request, tenant, target: id, body }: Call<UpdateSubscription>): void {
    if (body.url !== undefined) this.#checkUrl(body.url);
    this.#service.answer(request, 200, id, async () => {
      const row = await this.#own(tenant, id);
      checkUnchanged(body.if_unchanged_since, row.updated_at);
      const changed: Subscription = {
        ...row,
        url: body.url ?? row.url,
        events: ordered(changedTo(body.events, row.events, WEBHOOK_EVENTS)),
        secret: body.secret === undefined ? row.secret : this.#stored(row, body.secret),
        updated_at: updatedAt(this.#deps.now(), row.updated_at),
      };
      await this.#put(request, changed);
      return wireOf(changed);
    });
  }

  /** Deletes parked webhooks with the row; shards drop pending ones. */
  #delete({ request, tenant, target: id }: Call): void {
    this.#service.answer(request, 204, id, async () => {
      const row = await this.#own(tenant, id);
      const turn = new Turn(row.tenant_id, request);
      turn.put(SUBSCRIPTION.clear, id, { id });
      turn.put(WEBHOOK.dropParked, id, { subscription_id: id });
      await this.#commit(turn, row);
      return undefined;
    });
  }

  async #own(tenant: string, id: string): Promise<Subscription> {
    const row = await this.#service.read(() => this.#deps.loader.subscription(id));
    return subscriptionOf(owned(row, tenant, `webhook subscription ${id}`));
  }

  #put(request: number, row: Subscription): Promise<void> {
    const turn = new Turn(row.tenant_id, request);
    turn.put(SUBSCRIPTION.set, row.id, row);
    return this.#commit(turn, row);
  }

  #commit(turn: Turn, { id, tenant_id }: Pick<Subscription, 'id' | 'tenant_id'>): Promise<void> {
    const publish = () => this.#publisher.publish(tenant_id);
    return this.#service.commit(turn, { key: `subscription:${id}`, publish });
  }

  #checkUrl(url: string): void {
    const problem = this.#deps.sender.problemOf(url);
    if (problem !== undefined) throw invalid(`url: ${problem}`);
  }

  #stored(place: Pick<Subscription, 'id' | 'tenant_id'>, secret: string): StoredSecret {
    const { keyring, log } = this.#deps;
    const fields = { subscriptionId: place.id };
    if (keyring === undefined) log.warn(fields, 'the secret of a webhook is stored unsealed');
    warnIfWeak(this.#deps, secret, fields);
    return storedSecret(this.#deps, place, secret);
  }
}

/** Removes duplicates and sorts. */
function ordered(events: readonly WebhookSubscription['events'][number][]) {
  return WEBHOOK_EVENTS.filter((event) => events.includes(event));
}

function wireOf({ secret: _, ...row }: Subscription): WebhookSubscription {
  return { ...row, events: [...row.events] };
}
