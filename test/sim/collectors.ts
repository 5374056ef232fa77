/**
 * Clients that create instances of sequences that collect creations, by name and by id, start some at once, and cancel
 * some by events. With the same idempotency keys they create instances of another sequence, alone and in batches.
 */

import type { Parts } from './parts.js';

/** A key of its own for each kind; a version of it is never changed. */
export const COLLECTED = [
  {
    debounce: { key: '{{ data.key }}', wait_ms: 1_200, max_wait_ms: 4_000 },
    cancel_on: [{ event: 'dropped', key: '{{ data.token }}' }, { event: 'all dropped' }],
  },
  {
    batch: { key: '{{ data.key }}', size: 3, wait_ms: 2_500 },
    cancel_on: [{ event: 'dropped', key: '{{ data.items.0.token }}' }, { event: 'all dropped' }],
  },
] as const;

const TRIES_MAX = 6;

interface CollectorDeps extends Pick<Parts, 'world' | 'api' | 'faults' | 'random' | 'tables'> {
  readonly tenant: string;
  readonly sequences: readonly SequenceName[];
  /** It does not collect. */
  readonly plain: SequenceName;
}

interface SequenceName {
  readonly id: string;
  readonly name: string;
}

export class Collector {
  readonly #name: string;
  readonly #deps: CollectorDeps;
  #number = 0;
  readonly #tokens: string[] = [];
  #events = 0;

  constructor(name: string, deps: CollectorDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  async run(creations: number): Promise<void> {
    const { world, random, faults } = this.#deps;
    for (let i = 0; i < creations; i++) {
      await world.sleep(world.latency(1, 600));
      if (faults.isOver) return;
      const done = random.chance(0.1)
        ? this.#startNow()
        : random.chance(0.25)
          ? this.#cancel()
          : this.#createSome();
      if (random.chance(0.5)) await done;
    }
  }

  async #createSome(): Promise<void> {
    const { random, sequences, plain } = this.#deps;
    this.#number += 1;
    const own = `${this.#name}_${this.#number}`;
    // Clients meet at some keys, with creations of other sequences and other tokens.
    const key = random.chance(0.3) ? `shared ${random.integer(1, 4)}` : own;
    if (random.chance(0.7)) {
      await this.#create(random.pick(sequences), own, random.chance(0.5) ? key : undefined);
      return;
    }
    // At the same moment, of which one makes an instance.
    const rivals = [random.pick(sequences), plain];
    await Promise.all(rivals.map((one) => this.#create(one, `${own} ${one.name}`, key)));
  }

  /** Asks again while it does not know whether it was heard; without a key it might be collected twice. */
  async #create(sequence: SequenceName, token: string, key: string | undefined): Promise<void> {
    const { api, random, tenant, world } = this.#deps;
    const body = this.#body(sequence, token, key);
    const inBatch = sequence === this.#deps.plain && random.chance(0.5);
    for (let tries = key === undefined ? 1 : TRIES_MAX; tries > 0; tries--) {
      const { status } = inBatch
        ? await api.call('instances.createBatch', tenant, '', { instances: [body] })
        : await api.call('instances.create', tenant, '', body);
      if (status !== 0 && status !== 503 && random.chance(0.7)) return;
      await world.sleep(world.latency(10, 2_000));
    }
  }

  #body(sequence: SequenceName, token: string, key: string | undefined): object {
    const { random, plain, tenant } = this.#deps;
    const { id, name } = sequence;
    this.#tokens.push(token);
    return {
      ...(random.chance(0.3) ? { sequence_id: id } : { sequence: name }),
      ...{ tenant_id: tenant, namespace: 'simulated' },
      ...(sequence === plain ? { metadata: { token } } : {}),
      context: { data: { key: random.pick(['a', 'b']), token } },
      ...(key === undefined ? {} : { idempotency_key: key }),
    };
  }

  /** One of its latest creations, or everything. */
  async #cancel(): Promise<void> {
    const { api, random, tenant, world } = this.#deps;
    const latest = this.#tokens.slice(-3);
    const isOne = latest.length > 0 && random.chance(0.9);
    this.#events += 1;
    const event = {
      event_name: isOne ? 'dropped' : 'all dropped',
      producer_event_id: `${this.#name}_${this.#events}`,
      ...(isOne ? { correlation_key: random.pick(latest) } : {}),
    };
    for (let tries = random.integer(1, 4); tries > 0; tries -= 1) {
      const { status } = await api.call('events.send', tenant, '', event);
      if (status !== 0 && status !== 503 && random.chance(0.8)) return;
      await world.sleep(world.latency(10, 1_000));
    }
  }

  async #startNow(): Promise<void> {
    const { api, random, tables, tenant } = this.#deps;
    const pending = [...tables.rows('pending_starts').keys()];
    if (pending.length > 0) await api.call('pendingStarts.start', tenant, random.pick(pending));
  }
}
