/**
 * Clients that wait: for the end of the instances that they create, or for a step to take the signal that they send.
 * What they are answered is checked by `promises.ts`.
 */

import type { ApiReply } from './api.js';
import type { SimSequence } from './clients.js';
import type { Parts } from './parts.js';
import { DATA, HANDLERS } from './shapes.js';

/** The step that signals are sent to. */
const ASKED_STEP = 'event0';
/** Their name. */
const ASKED = 'asked';

/** Blocks of their sequence: a task of a worker, then a step that replies. */
export const ASKED_BLOCKS = [
  { type: 'step', id: 'before', handler: HANDLERS[0], retry: { max_attempts: 2 } },
  {
    ...{ type: 'step', id: ASKED_STEP, handler: 'wait_for_event' },
    params: { name: ASKED, schema: { type: 'object', required: ['token'] } },
    reply: { heard: `{{ outputs.${ASKED_STEP}.token }}` },
  },
  { type: 'step', id: 'after', handler: 'noop', delay: { duration: 200 } },
] as const;

/** Of another one, whose slots are given by the owner of the key: the answer comes from the owner of the instance. */
export const QUICK = {
  blocks: [{ type: 'step', id: 'quick', handler: 'sleep', params: { duration_ms: 300 } }],
  concurrency: { limit: 2 },
} as const;

/** At times longer than a run has faults. */
const WAITS_MS = [0, 300, 2_000, 20_000] as const;
const TRIES_MAX = 4;

interface WaiterDeps extends Pick<Parts, 'world' | 'api' | 'faults' | 'random' | 'tables'> {
  readonly sequences: readonly SimSequence[];
  /** That of `ASKED_BLOCKS`, and that of `QUICK`. */
  readonly asked: SimSequence;
  readonly quick: SimSequence;
}

export class Waiter {
  readonly #name: string;
  readonly #deps: WaiterDeps;
  #number = 0;

  constructor(name: string, deps: WaiterDeps) {
    this.#name = name;
    this.#deps = deps;
  }

  async run(operations: number): Promise<void> {
    const { world, random, faults } = this.#deps;
    for (let i = 0; i < operations; i++) {
      await world.sleep(world.latency(1, 600));
      if (faults.isOver) return;
      const done = random.chance(0.5) ? this.#create() : this.#ask();
      if (random.chance(0.4)) await done;
    }
  }

  /** With a key, it is asked for again while nobody knows what became of it, and at times although it is known. */
  async #create(): Promise<void> {
    const { random, sequences, asked, quick } = this.#deps;
    const { id, tenant } = random.pick([asked, quick, random.pick(sequences)]);
    const key = random.chance(0.6) ? `waited ${random.integer(1, 12)}` : undefined;
    const body = {
      sequence_id: id,
      tenant_id: tenant,
      namespace: 'simulated',
      metadata: { token: this.#newToken() },
      context: { data: DATA, config: { yes: true, no: false, limit: 'outbound' } },
      ...(key === undefined ? {} : { idempotency_key: key }),
    };
    for (let tries = key === undefined ? 1 : TRIES_MAX; tries > 0; tries -= 1) {
      const { status } = await this.#call('instances.create', tenant, '', body);
      if (status !== 0 && status !== 503 && random.chance(0.7)) return;
    }
  }

  async #ask(): Promise<void> {
    const { random, tables, asked } = this.#deps;
    const rows = [...tables.rows('instances').values()];
    const own = rows.filter(({ sequence_id }) => sequence_id === asked.id);
    const waiting = own.filter(({ state }) => state === 'waiting');
    const some = waiting.length > 0 && random.chance(0.7) ? waiting : own;
    if (some.length === 0) return;
    const { id } = random.pick(some);
    // The step refuses one without a token.
    const payload = random.chance(0.85) ? { token: this.#newToken() } : { other: 1 };
    const body = { signal_type: `custom:${ASKED}`, payload };
    await this.#call('instances.signal', asked.tenant, String(id), body);
  }

  #call(operation: string, tenant: string, target: string, body: object): Promise<ApiReply> {
    const { api, random } = this.#deps;
    const query = { wait_ms: random.pick(WAITS_MS) };
    return api.call(operation, tenant, target, body, undefined, query);
  }

  #newToken(): string {
    this.#number += 1;
    return `${this.#name}_${this.#number}`;
  }
}
