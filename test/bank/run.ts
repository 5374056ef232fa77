/**
 * Orders by the hundred at a bank that is not to be relied on, by flows that are cancelled, killed with their server and
 * retried by an operator; and in the end what the bank and the dead letter queue say of each.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { Client, EngineError, type TaskInstance, Worker } from '../../client/src/index.js';
import { createRandom, type Random } from '../chaos/random.js';
import { Bank, type Operation, type Order } from './bank.js';
import { type Flow, FlowMaker, inputOf, PARTS, PAYING } from './flows.js';

export interface Place {
  readonly url: string;
  readonly apiKey: string;
  readonly tenant: string;
  readonly sql: pg.Pool;
}

interface Running {
  readonly order: string;
  readonly flow: Flow;
  readonly id: string;
  retries: number;
}

/** Flows under way at once. */
const AT_ONCE = 40;
/** Flows that share a definition. */
const PER_SEQUENCE = 6;
/** Of the orders: those that somebody cancels, and when. */
const CANCELLED = 0.3;
const CANCELLED_MS_MAX = 400;
/** Of the orders: those for which one thing is declined always. */
const HOPELESS = 0.12;
/** How often an operator retries what has failed, and what the bank says has yet to be refunded. */
const PATIENCE = { usual: 5, owed: 100 } as const;
const LOOK_MS = 100;

export class Orders {
  readonly bank: Bank;
  readonly counts = { flows: 0, retries: 0, batches: 0, cancels: 0, hardStops: 0, givenUp: 0 };
  readonly #place: Place;
  readonly #random: Random;
  readonly #client: Client;
  readonly #worker: Worker;
  readonly #running: Running[] = [];
  #sequences: { readonly flow: Flow; readonly id: string }[] = [];

  constructor(place: Place, seed: number) {
    this.#place = place;
    this.#random = createRandom(seed, 0);
    this.bank = new Bank(createRandom(seed, 1));
    this.#client = new Client({ ...place, namespace: 'orders', retries: 1_000 });
    this.#worker = new Worker(this.#client, {
      handlers: this.bank.handlers(),
      pollWaitMs: 1_000,
      complainAfterMs: 0,
      logger: { info: () => undefined, warn: () => undefined },
    });
  }

  /** Stores so many orders' flows, and opens the bank. */
  async open(flows: number): Promise<void> {
    const maker = new FlowMaker(this.#random, await this.bank.listen());
    await this.#store(PAYING, maker.paying());
    for (let n = 0; n < flows / PER_SEQUENCE; n += 1) {
      const flow = maker.next();
      this.#sequences.push({
        flow,
        id: await this.#store(`${flow.kind}-${n}`, flow.blocks, flow.more),
      });
    }
    await this.#worker.start();
  }

  /** Places orders until there are so many; resolves when each is placed. */
  async placeUntil(count: number): Promise<void> {
    const one = async () => {
      while (this.counts.flows < count) {
        this.counts.flows += 1;
        await this.#placeOne(`order-${this.counts.flows}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  }

  /** Resolves when so many orders have been begun. */
  async reaches(count: number): Promise<void> {
    while (this.counts.flows < count) await pause(1);
  }

  /** As long as `isOver` does not hold, and then until there is nothing left that a retry could help. */
  async operate(isOver: () => boolean): Promise<void> {
    for (;;) {
      await pause(LOOK_MS);
      // What fails behind this look is seen by the next one.
      const wasAtRest = isOver() && (await this.#isAtRest());
      const failed = await this.#failed().catch(unlessAway);
      if (failed === undefined) continue;
      const hopeful = failed.filter((instance) => this.#isWorthIt(instance));
      await this.#retry(hopeful).catch(unlessAway);
      if (wasAtRest && hopeful.length === 0) return;
    }
  }

  async stop(): Promise<void> {
    await this.#worker.stop();
    this.bank.stop();
  }

  /** Sentences about orders that are not as they have to be: about those that were sent, and about the others. */
  async violations(): Promise<{ readonly sent: string[]; readonly unsent: string[] }> {
    const failed = new Map((await this.#failed()).map((instance) => [instance.id, instance]));
    const found = { sent: [] as string[], unsent: [] as string[] };
    for (const { order, flow, id } of this.#running) {
      const { balance, price, parcels, never, history } = this.bank.account(order);
      const has = `${balance} of ${price} and ${parcels} parcels: ${history.join(', ')}`;
      const is = `${order} (${flow.kind}, ${id}) has ${has}`;
      if (parcels > 0 && balance !== price) found.sent.push(is);
      if (parcels > 0 || balance === 0) continue;
      const failure = failed.get(id)?.failure;
      if (failure !== undefined && never.includes('refund')) continue;
      if (!flow.hasHook && (await this.#wasGivenUp(id))) this.counts.givenUp += 1;
      else found.unsent.push(`${is}; ${JSON.stringify(failure)}`);
    }
    return found;
  }

  async #store(name: string, blocks: readonly object[], more: object = {}): Promise<string> {
    const body = { name, version: 1, blocks: blocks as never, ...more };
    return (await this.#client.sequences.create(body)).id;
  }

  async #placeOne(order: string): Promise<void> {
    const random = this.#random;
    const { flow, id: sequence_id } = random.pick(this.#sequences);
    const price = PARTS * random.integer(1, 50);
    const things: readonly Operation[] = ['charge', 'ship', 'refund'];
    const never = random.chance(HOPELESS) ? [random.pick(things)] : [];
    // What cannot be refunded is not worth an order that always goes well.
    this.bank.order(order, {
      price,
      never: never.includes('refund') ? [...never, 'ship'] : never,
    } satisfies Order);
    const wait = random.chance(CANCELLED) ? random.integer(0, CANCELLED_MS_MAX) : undefined;
    const { id } = await this.#client.instances.create({
      sequence_id,
      context: { data: inputOf(order, price) },
      idempotency_key: order,
    });
    this.#running.push({ order, flow, id, retries: 0 });
    if (wait === undefined) return;
    await pause(wait);
    await this.#cancel(flow, id).catch(unlessAway);
  }

  /** What has failed is left to the operator, unless the flow has a hook. */
  async #cancel({ hasHook }: Flow, id: string): Promise<void> {
    const { instances } = this.#client;
    if (hasHook && this.#random.chance(0.5)) {
      await instances.patchState(id, { state: 'cancelled' }, { retries: 0 });
      this.counts.hardStops += 1;
      return;
    }
    const { state } = await instances.get(id);
    if (!hasHook && state === 'failed') return;
    if (this.#random.chance(0.5)) {
      await instances.signal(id, { signal_type: 'cancel' }, { retries: 0 });
    } else await instances.batchAction({ filter: { ids: [id] }, action: 'cancel' }, { retries: 0 });
    this.counts.cancels += 1;
  }

  /** The dead letter queue, but for children, which are retried by their parents. */
  async #failed(): Promise<readonly TaskInstance[]> {
    const found: TaskInstance[] = [];
    for await (const instance of this.#client.instances.deadLetters({ limit: 1_000 })) {
      if (instance.parent_instance_id == null) found.push(instance);
    }
    return found;
  }

  #isWorthIt({ id }: TaskInstance): boolean {
    const one = this.#running.find((running) => running.id === id);
    if (one === undefined) return false;
    const { balance, parcels, never } = this.bank.account(one.order);
    const isOwed = balance > 0 && parcels === 0 && !never.includes('refund');
    return one.retries < (isOwed ? PATIENCE.owed : PATIENCE.usual);
  }

  /** One by one, or all at once. */
  async #retry(failed: readonly TaskInstance[]): Promise<void> {
    for (const { id } of failed) this.#running.find((one) => one.id === id)!.retries += 1;
    const { instances } = this.#client;
    this.counts.retries += failed.length;
    if (failed.length === 0) return;
    if (this.#random.chance(0.5)) {
      this.counts.batches += 1;
      const ids = failed.map(({ id }) => id);
      await instances.batchAction({ filter: { ids }, action: 'retry' }, { retries: 0 });
    } else {
      for (const { id } of failed) await instances.retry(id, {}, { retries: 0 }).catch(unlessAway);
    }
  }

  async #isAtRest(): Promise<boolean> {
    const { rows } = await this.#place.sql.query(
      `select from instances where tenant_id = $1
        and (state not in ('completed', 'failed', 'cancelled') or execution #>> '{j,r,0}' is not null) limit 1`,
      [this.#place.tenant],
    );
    return rows.length === 0;
  }

  /** A cancel of what has failed gives up what it owes: it came when the failure was not seen yet. */
  async #wasGivenUp(id: string): Promise<boolean> {
    for await (const { from_state, to_state } of this.#client.instances.audit(id)) {
      if (from_state === 'failed' && to_state === 'cancelled') return true;
    }
    return false;
  }
}

/** The server is down, or somebody else was faster: whoever asked looks again later. */
function unlessAway(error: unknown): undefined {
  if (!(error instanceof EngineError) || error.status === 500) throw error;
}
