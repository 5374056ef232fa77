/** What an attack is made of: requests that go on until it is stopped, and the statuses that they were answered with. */

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import { NAMESPACE } from '../base/fixtures.js';
import { CheapClient } from './cheap-client.js';

export interface AttackPlace {
  readonly url: string;
  readonly apiKey: string;
  readonly tenant: string;
  /** Takes every call and answers none of them. */
  readonly slowUrl: string;
  /** A share of the full size, for runs that only check whether everything works. */
  readonly scale: number;
  /** From now to the time at which timers of an attack fall due. */
  readonly leadMs: number;
}

/** How often each status came; 0: no answer. */
export type Statuses = Record<string, number>;

/** Of stalled requests, and of the health checks that must succeed all the same. */
export const ATTACKER_ADDRESS = '127.0.0.2';
/** Of one connection whose request was refused. */
const REFUSED_PAUSE_MS = 20;
/** How often it is asked whether a giant has ended. */
const LOOK_MS = 50;

/** One attack under way. */
export class Attacker {
  readonly place: AttackPlace;
  readonly statuses: Statuses = {};
  /** For preparations. */
  readonly #client: Client;
  readonly #cheap: CheapClient;
  readonly #stopped = new AbortController();
  readonly #work: Promise<void>[] = [];

  constructor(place: AttackPlace) {
    this.place = place;
    // Each request under way listens.
    setMaxListeners(0, this.#stopped.signal);
    const { url, apiKey, tenant } = place;
    this.#client = createClient({ url, apiKey, tenant, connections: 16, isChecked: false });
    this.#cheap = new CheapClient(Number(new URL(url).port), apiKey, tenant);
  }

  /** @returns at least one */
  size(full: number): number {
    return Math.max(1, Math.round(full * this.place.scale));
  }

  creation(sequence_id: string) {
    return { sequence_id, tenant_id: this.place.tenant, namespace: NAMESPACE };
  }

  async store(definition: object): Promise<string> {
    return expectStatus(await this.#client.post<{ id: string }>('/sequences', definition), 201).id;
  }

  sequence(blocks: readonly object[]): Promise<string> {
    const name = crypto.randomUUID();
    const tenant_id = this.place.tenant;
    return this.store({ tenant_id, namespace: NAMESPACE, name, version: 1, blocks });
  }

  async instance(sequence: string): Promise<string> {
    const reply = await this.#client.post<{ id: string }>('/instances', this.creation(sequence));
    return expectStatus(reply, 201).id;
  }

  /** Creates an instance and reads it until it has ended. */
  async complete(sequence: string, data: object): Promise<number> {
    const { signal } = this.#stopped;
    const body = { ...this.creation(sequence), context: { data } };
    const created = await this.#client.post<{ id: string }>('/instances', body, signal);
    for (let state = ''; created.status === 201 && state !== 'completed'; ) {
      await pause(LOOK_MS);
      if (signal.aborted) break;
      const { id } = created.body;
      ({ state } = (await this.#client.get<{ state: string }>(`/instances/${id}`)).body);
    }
    return created.status;
  }

  /** Polls tasks and completes them. */
  async workOn(handler_name: string): Promise<number> {
    const worker_id = 'w';
    const poll = { handler_name, worker_id, limit: 20, wait_ms: 100 };
    const { status, body } = await this.#client.post<{ id: string }[]>('/workers/tasks/poll', poll);
    for (const { id } of status === 200 ? body : []) {
      await this.#client.post(`/workers/tasks/${id}/complete`, { worker_id, output: { n: 1 } });
    }
    return status;
  }

  /** A refusal is a result, not an error. */
  post(path: string, body: object): Promise<number> {
    const reply = this.#client.post(path, body, this.#stopped.signal);
    return this.#counted(reply.then(({ status }) => status));
  }

  get(path: string): Promise<number> {
    return this.#counted(this.#cheap.ask('GET', path));
  }

  raw(path: string, raw: Buffer): Promise<number> {
    return this.#counted(this.#cheap.ask('POST', path, raw));
  }

  /** On a connection of its own, which is held until the answer has ended. */
  hold(method: string, path: string, body?: string): Promise<number> {
    return this.#counted(this.#cheap.hold(method, path, body));
  }

  /** Without a key, on a connection of its own, with a body that comes a byte at a time or never. */
  stall(path: string, paceMs?: number): Promise<number> {
    return this.#counted(this.#cheap.stall(path, ATTACKER_ADDRESS, paceMs));
  }

  /** So many at once, each again and again until the attack is stopped. */
  repeat(count: number, send: () => Promise<number>): void {
    const { signal } = this.#stopped;
    const loop = async () => {
      while (!signal.aborted) {
        const status = await send();
        if (status >= 400 || status === 0) await pause(REFUSED_PAUSE_MS);
      }
    };
    for (let at = 0; at < count; at += 1) this.#work.push(loop());
  }

  async stop(): Promise<Statuses> {
    this.#stopped.abort();
    this.#cheap.close();
    await Promise.all(this.#work);
    await this.#client.close();
    return this.statuses;
  }

  /** @param reply rejects when there is none */
  async #counted(reply: Promise<number>): Promise<number> {
    const status = await reply.catch(() => 0);
    // Requests that the end of the attack cuts off are not counted as unanswered.
    if (!this.#stopped.signal.aborted) {
      this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    }
    return status;
  }
}
