/**
 * The clients of a run: they make instances and interfere with them, in every way that the API has,
 * as the seed says. What they were promised is checked by `promises.ts`, whatever they make of it.
 */

import { INSTANCE_STATES } from '../../schema/states.js';
import { keyedInstanceId } from '../../src/base/ids.js';
import type { ApiReply } from './api.js';
import { POISON } from './memory-backend.js';
import type { Row } from './memory-tables.js';
import type { Parts } from './parts.js';
import { CANCEL_EVENT, CANCEL_KEY, CHOICES, CONFIG, DATA, EVENT, EVENT_KEYS } from './shapes.js';
import { openSteps } from './watcher.js';

export interface SimSequence {
  readonly id: string;
  readonly tenant: string;
  /** Clients delete it and create it again. */
  readonly isSpare: boolean;
  /** Of its creation. */
  readonly body: object;
}

/** The one rate limit of each tenant. */
export const RATE_KEY = CONFIG.limit;
/** Limits the key while it has no limit of its own. */
const RATE_PATTERN = 'out*';

/** What clients put there: any of these may be in force. */
export const RATE_LIMITS = [
  { max_count: 1, window_seconds: 4 },
  { max_count: 2, window_seconds: 1 },
  { max_count: 3, window_seconds: 2 },
] as const;

/** Concurrency keys with their limits: a key always comes with the same one. */
export const CONCURRENCY = [
  { concurrency_key: 'one', max_concurrency: 1 },
  { concurrency_key: 'two', max_concurrency: 2 },
] as const;

/** In the tables they look what is asked and waited for. */
interface ClientDeps extends Pick<Parts, 'world' | 'api' | 'faults' | 'random' | 'tables'> {
  readonly sequences: readonly SimSequence[];
  /** Many instances come with a concurrency key. */
  readonly isKeyed: boolean;
  /** The sequences have limits. */
  readonly isLimited: boolean;
  /** There are releases: most of what clients do is to make instances. */
  readonly isReleased: boolean;
  /** They retry most of what fails. */
  readonly isRetried: boolean;
  /** Shared by all clients: they meet at the same instances. */
  readonly instances: { readonly id: string; readonly tenant: string }[];
}

const OPERATIONS = {
  create: 6,
  'create keyed': 4,
  'create batch': 1,
  signal: 4,
  burst: 2,
  'patch state': 2,
  'patch context': 2,
  get: 2,
  tree: 1,
  retry: 1,
  change: 1,
  rest: 2,
  answer: 6,
  event: 8,
  'rate limit': 5,
  'change sequence': 2,
} as const;

const RELEASED_OPERATIONS: Readonly<Record<keyof typeof OPERATIONS, number>> = {
  ...OPERATIONS,
  create: 14,
  'create keyed': 8,
  'create batch': 4,
  rest: 1,
  answer: 0,
  event: 0,
  'rate limit': 1,
};

const RETRIED_OPERATIONS: typeof RELEASED_OPERATIONS = { ...OPERATIONS, retry: 12 };

export const SIGNALS = {
  pause: 2,
  resume: 3,
  cancel: 2,
  update_context: 4,
  'custom:hint': 2,
  [`custom:${EVENT}`]: 4,
} as const;

/** A keyed creation of unknown outcome is asked for again so often at most. */
const TRIES_MAX = 6;

export class SimClient {
  readonly #name: string;
  readonly #deps: ClientDeps;
  #number = 0;

  constructor(name: string, deps: ClientDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  async run(operations: number, pauseMs: number): Promise<void> {
    const { world, random, faults } = this.#deps;
    for (let i = 0; i < operations; i++) {
      await world.sleep(world.latency(1, pauseMs));
      if (faults.isOver) return;
      // A client does not always wait for its answer.
      const done = this.#operation();
      if (random.chance(0.7)) await done;
    }
  }

  #operation(): Promise<unknown> {
    const { random, instances, api } = this.#deps;
    const { isReleased, isRetried } = this.#deps;
    const own = isRetried ? RETRIED_OPERATIONS : OPERATIONS;
    const weights = isReleased ? RELEASED_OPERATIONS : own;
    const operation = instances.length === 0 ? 'create' : random.weighted(weights);
    if (operation === 'create') return this.#create();
    if (operation === 'create keyed') return this.#createKeyed();
    if (operation === 'create batch') return this.#createBatch();
    const { id, tenant } = this.#target();
    const operations: Record<typeof operation, () => Promise<unknown>> = {
      signal: () => this.#signal(id, tenant),
      burst: () => this.#burst(id, tenant),
      'patch state': () => {
        const state = random.pick(INSTANCE_STATES);
        const at = random.chance(0.3) ? { next_fire_at: this.#soon() } : {};
        return api.call('instances.patchState', tenant, id, { state, ...at });
      },
      'patch context': () => {
        const config = { ...CONFIG, mark: this.#newToken() };
        return api.call('instances.patchContext', tenant, id, { context: { config } });
      },
      get: () => api.call('instances.get', tenant, id),
      tree: () => api.call('instances.tree', tenant, id),
      retry: () => this.#retry(id, tenant),
      change: () => this.#changeMany(tenant),
      rest: () => this.#rest(id, tenant),
      answer: () => this.#answer(),
      event: () => this.#sendEvent(tenant),
      'rate limit': () => this.#limitRate(tenant),
      'change sequence': () => this.#changeSequence(),
    };
    return operations[operation]();
  }

  /** One that a client made, or a child of one. */
  #target(): { readonly id: string; readonly tenant: string } {
    const { random, instances, tables } = this.#deps;
    const rows = [...tables.rows('instances').values()];
    const children = rows.filter(({ parent_instance_id }) => parent_instance_id !== null);
    if (children.length === 0 || random.chance(0.7)) return random.pick(instances);
    const { id, tenant_id } = random.pick(children);
    return { id: String(id), tenant: String(tenant_id) };
  }

  // ---------------------------------------------------------------- creations

  async #create(): Promise<void> {
    const body = this.#newInstance();
    const reply = await this.#deps.api.call('instances.create', body.tenant_id, '', body);
    this.#remember(reply, body.tenant_id);
  }

  async #createKeyed(): Promise<void> {
    const { api, random, world } = this.#deps;
    const key = `key ${random.integer(1, this.#deps.isReleased ? 20 : 6)}`;
    const body = { ...this.#newInstance(), idempotency_key: key };
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const reply = await api.call('instances.create', body.tenant_id, '', body);
      this.#remember(reply, body.tenant_id);
      if (reply.status !== 0 && reply.status !== 503) return;
      await world.sleep(world.latency(10, 2_000));
    }
  }

  async #createBatch(): Promise<void> {
    const { api, random, instances } = this.#deps;
    const [first, ...rest] = Array.from({ length: random.integer(1, 4) }, () => ({
      ...this.#newInstance(),
      ...(random.chance(0.3) ? { idempotency_key: this.#newToken() } : {}),
    }));
    const tenant = first!.tenant_id;
    const all = [first!, ...rest.filter(({ tenant_id }) => tenant_id === tenant)];
    const { status } = await api.call('instances.createBatch', tenant, '', { instances: all });
    if (status !== 201) return;
    for (const item of all) {
      if (!('idempotency_key' in item)) continue;
      instances.push({ id: keyedInstanceId(tenant, String(item.idempotency_key)), tenant });
    }
  }

  #newInstance() {
    const { random, sequences, faults, isReleased } = this.#deps;
    const { id, tenant } =
      isReleased && random.chance(0.7) ? sequences[0]! : random.pick(sequences);
    const key = this.#deps.isKeyed && random.chance(0.5) ? random.pick(CONCURRENCY) : {};
    const config = faults.hits('poison') ? { ...CONFIG, poison: POISON } : CONFIG;
    return {
      sequence_id: id,
      tenant_id: tenant,
      namespace: 'simulated',
      priority: random.pick(['low', 'normal', 'high', 'critical']),
      metadata: { token: this.#newToken(), ...this.#releaseMetadata(id) },
      context: { data: { ...DATA, ...this.#lane() }, config },
      ...key,
      ...(random.chance(0.15) ? { next_fire_at: this.#soon() } : {}),
      ...(random.chance(0.06) ? { timeout: random.integer(1_000, 12_000) } : {}),
    };
  }

  /** By which the limits of a sequence may divide; kept seeds draw no number for it. */
  #lane(): object {
    const { random, isLimited } = this.#deps;
    return isLimited ? { lane: random.pick(['fast', 'slow']) } : {};
  }

  /** What was asked for, and by what a release may divide; the stamp is not the client's to give. */
  #releaseMetadata(asked: string): object {
    const { random, isReleased } = this.#deps;
    if (!isReleased) return {};
    return {
      asked,
      ...(random.chance(0.3) ? { cohort_key: `cohort ${random.integer(1, 9)}` } : {}),
      ...(random.chance(0.1) ? { release: { release_id: 'forged', variant: 'candidate' } } : {}),
    };
  }

  #remember({ status, body }: ApiReply, tenant: string): void {
    const { instances } = this.#deps;
    if (status !== 201) return;
    const { id } = body as { id: string };
    if (!instances.some((known) => known.id === id)) instances.push({ id, tenant });
  }

  // ---------------------------------------------------------------- changes

  #signal(id: string, tenant: string): Promise<unknown> {
    const { random, api } = this.#deps;
    const signal_type = random.weighted(SIGNALS);
    const payload = this.#payloadOf(signal_type);
    return api.call('instances.signal', tenant, id, { signal_type, payload });
  }

  /** One that has failed, at times together with its parent. */
  #retry(id: string, tenant: string): Promise<unknown> {
    const { random, api, tables, isRetried } = this.#deps;
    const failed = [...tables.rows('instances').values()].filter(({ state }) => state === 'failed');
    if (!isRetried || failed.length === 0) return api.call('instances.retry', tenant, id);
    const one = random.pick(failed);
    const both = [one.id, random.chance(0.5) ? one.parent_instance_id : null];
    return Promise.all(
      both.flatMap((name) =>
        name == null ? [] : api.call('instances.retry', String(one.tenant_id), String(name)),
      ),
    );
  }

  /** Paused for a while. */
  async #rest(id: string, tenant: string): Promise<void> {
    const { random, api, world } = this.#deps;
    await api.call('instances.signal', tenant, id, { signal_type: 'pause' });
    await world.sleep(random.integer(100, 4_000));
    await api.call('instances.signal', tenant, id, { signal_type: 'resume' });
  }

  #payloadOf(signal: string): object {
    if (signal === 'update_context') return { [this.#newToken()]: 1 };
    return signal === `custom:${EVENT}` ? this.#eventPayload() : { any: 'thing' };
  }

  /** Steps with a schema refuse one without a token. */
  #eventPayload(): object {
    return this.#deps.random.chance(0.85) ? { token: this.#newToken() } : { other: 1 };
  }

  /** An open question, or one that was open: by its id or by a signal, at times by two people at once. */
  #answer(): Promise<unknown> {
    const { random, tables } = this.#deps;
    const all = [...tables.rows('approvals').values()];
    const open = all.filter(({ outcome }) => outcome === null);
    const some = open.length > 0 && random.chance(0.8) ? open : all;
    if (some.length === 0) return Promise.resolve();
    const asked = random.pick(some);
    if (random.chance(0.3)) return Promise.all([this.#say(asked), this.#say(asked)]);
    return this.#say(asked);
  }

  async #say({ id = null, instance_id, tenant_id, block_id }: Row): Promise<void> {
    const { random, api, world } = this.#deps;
    const value = random.chance(0.1) ? 'perhaps' : random.pick(CHOICES);
    const [instance, tenant] = [String(instance_id), String(tenant_id)];
    if (random.chance(0.2)) {
      const signal = { signal_type: `custom:human_input:${block_id}`, payload: { value } };
      await api.call('instances.signal', tenant, instance, signal);
      return;
    }
    const given = { value, comment: null, answerId: this.#newToken(), by: this.#name };
    for (let tries = random.integer(1, 3); tries > 0; tries -= 1) {
      const body = { approval: id, given };
      const { status } = await api.call('instances.answer', tenant, instance, body);
      if (status !== 0 && status !== 503) return;
      await world.sleep(world.latency(10, 1_000));
    }
  }

  /** Of the events that steps wait for. */
  #awaitedKeys(tenant: string): (string | undefined)[] {
    const { tables } = this.#deps;
    return [...tables.rows('event_waits').values()].flatMap(({ instance_id }) => {
      const row = tables.row('instances', String(instance_id));
      if (row?.tenant_id !== tenant) return [];
      return openSteps(row).flatMap(({ p, v }) => (p === 'event' ? [v?.k] : []));
    });
  }

  /** Asks again while it does not know whether it was heard. */
  async #sendEvent(tenant: string): Promise<void> {
    const { random, api, world } = this.#deps;
    const cancels = random.chance(0.4);
    const awaited = random.chance(0.7) ? this.#awaitedKeys(tenant) : [];
    const anyKey = random.chance(0.75) ? random.pick(EVENT_KEYS) : undefined;
    const waitKey = awaited.length > 0 ? random.pick(awaited) : anyKey;
    const cancelKey = random.chance(0.7) ? CANCEL_KEY : undefined;
    const correlation_key = cancels ? cancelKey : waitKey;
    const event = {
      event_name: cancels ? CANCEL_EVENT : EVENT,
      producer_event_id: this.#newToken(),
      payload: this.#eventPayload(),
      ...(correlation_key === undefined ? {} : { correlation_key }),
      ...(random.chance(0.2) ? { ttl_seconds: random.integer(1, 5) } : {}),
    };
    for (let tries = random.integer(1, 4); tries > 0; tries -= 1) {
      const { status } = await api.call('events.send', tenant, '', event);
      const isSent = status !== 0 && status !== 503;
      if (isSent && random.chance(0.8)) return;
      await world.sleep(world.latency(10, 1_000));
    }
  }

  /** Several at once, the first of which the database may refuse: then those behind it go, too. */
  #burst(id: string, tenant: string): Promise<unknown> {
    const { api, faults } = this.#deps;
    const any = faults.hits('poison', 4) ? POISON : 'thing';
    const signals = [
      { signal_type: 'custom:hint', payload: { any } },
      { signal_type: 'update_context', payload: { [this.#newToken()]: 1 } },
      { signal_type: 'update_context', payload: { [this.#newToken()]: 2 } },
    ];
    return Promise.all(signals.map((body) => api.call('instances.signal', tenant, id, body)));
  }

  /** As the front does it for a bulk change: the instances of one shard at a time. */
  #changeMany(tenant: string): Promise<unknown> {
    const { random, api, instances } = this.#deps;
    const ids = instances.filter((one) => one.tenant === tenant).map(({ id }) => id);
    const route = random.integer(0, 5);
    const some = ids.filter((id) => Number.parseInt(id.slice(-4), 16) % 6 === route).slice(0, 3);
    if (some.length === 0) return Promise.resolve();
    const state = random.pick(['paused', 'scheduled', 'cancelled', 'waiting'] as const);
    const change = { kind: 'state', state };
    const job = random.chance(0.5) ? this.#newJob() : undefined;
    return api.call('instances.changeMany', '', '', { ids: some, change, job });
  }

  #newJob(): string {
    const digits = () => this.#deps.random.integer(0, 0xffff_ffff).toString(16).padStart(8, '0');
    return `${digits()}-0000-7000-8000-0000${digits()}`;
  }

  /** The second time while tries are put off by the first, if there are any. */
  async #limitRate(tenant: string): Promise<void> {
    const { random, api, world } = this.#deps;
    if (random.chance(0.2)) {
      await api.call('rateLimits.delete', tenant, RATE_KEY);
      return;
    }
    if (random.chance(0.3)) {
      if (random.chance(0.3)) await api.call('rateLimits.delete', tenant, RATE_PATTERN);
      else await api.call('rateLimits.put', tenant, RATE_PATTERN, random.pick(RATE_LIMITS));
      return;
    }
    await api.call('rateLimits.put', tenant, RATE_KEY, RATE_LIMITS[0]);
    await world.sleep(world.latency(100, 1_500));
    await api.call('rateLimits.put', tenant, RATE_KEY, random.pick(RATE_LIMITS));
  }

  #changeSequence(): Promise<unknown> {
    const { random, api, sequences } = this.#deps;
    const spare = sequences.find(({ isSpare }) => isSpare);
    if (spare === undefined) return Promise.resolve();
    const { id, tenant, body } = spare;
    const what = random.weighted({ create: 4, delete: 5, deprecate: 1 });
    if (what === 'create') return api.call('sequences.create', tenant, '', body);
    if (what === 'delete') return api.call('catalog.delete', tenant, id, { cascade: true });
    return api.call('sequences.deprecate', tenant, id, {});
  }

  #soon(): string {
    const { world, random } = this.#deps;
    return new Date(world.now + random.integer(-1_000, 10_000)).toISOString();
  }

  #newToken(): string {
    this.#number += 1;
    return `${this.#name}_${this.#number}`;
  }
}
