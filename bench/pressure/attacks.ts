/**
 * The attacks of one tenant on what all tenants share: each has preparations, which are not measured, and a load that
 * goes on until it is stopped. What is refused is asked again after a pause, which keeps the attacker's own work off
 * the cores that the server needs.
 */

import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import {
  COMPOSITES,
  deepest,
  endless,
  type Giant,
  heaviest,
  longest,
  widest,
} from '../../test/helpers/giants.js';
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
  /** When the measured time begins and ends, from now: what is due at once is due in its middle. */
  readonly leadMs: number;
}

/** How often each status came; 0: no answer. */
export type Statuses = Record<string, number>;

export interface Attack {
  readonly what: string;
  /** All requests, those of the others too, go through the documented HAProxy where it is installed. */
  readonly isProxied?: true;
  /** Resolves when the load goes on; it ends by the signal. */
  readonly begin: (attacker: Attacker) => Promise<void>;
}

/** Of stalled requests; who asks how the server is has it, too. */
export const ATTACKER_ADDRESS = '127.0.0.2';
/** Of one connection whose request was refused. */
const REFUSED_PAUSE_MS = 20;
/** How often it is asked whether a giant has ended. */
const LOOK_MS = 50;
const WORKER_STEP = 'attacked';

export const ATTACKS: Readonly<Record<string, Attack>> = {
  http: {
    what: '`http_request` slots: 2,000 instances whose step calls a server that never answers',
    begin: async (a) => {
      const params = { url: a.place.slowUrl, method: 'GET' };
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'http_request', params }]);
      const body = { instances: fill(a.size(200), () => a.creation(id)) };
      for (let batch = 0; batch < 10; batch += 1) await a.post('/instances/batch', body);
    },
  },
  streams: {
    what: 'event streams: 300 of a waiting instance, opened again whenever one ends',
    begin: async (a) => {
      const id = await a.instance(
        await a.sequence([{ type: 'step', id: 's', handler: WORKER_STEP }]),
      );
      a.repeat(a.size(300), () => a.hold('GET', `/instances/${id}/stream`));
    },
  },
  polls: {
    what: 'parked polls: 1,000 of 60 s, of 50 handlers',
    begin: async (a) => {
      let next = 0;
      a.repeat(a.size(1_000), () => {
        next += 1;
        const poll = { handler_name: `none-${next % 50}`, worker_id: `w${next}`, wait_ms: 60_000 };
        return a.hold('POST', '/workers/tasks/poll', JSON.stringify(poll));
      });
    },
  },
  lists: {
    what: 'lists: 16 connections whose filters match nothing among 20,000 instances',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const body = { instances: fill(a.size(1_000), () => a.creation(id)) };
      for (let batch = 0; batch < 20; batch += 1) await a.post('/instances/batch', body);
      a.repeat(16, () => a.get('/instances?failure=nothing'));
    },
  },
  bodies: {
    what: 'hostile bodies: 2 connections with 10 MB of `[[],[],…`',
    begin: async (a) => {
      const raw = Buffer.from(`{"instances":[${'[],'.repeat(a.size(3_300_000))}[]]}`);
      a.repeat(2, () => a.raw('/instances/batch', raw));
    },
  },
  large: {
    what: 'large bodies: 8 connections with contexts of 200 KB',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: WORKER_STEP }]);
      const context = { data: { text: 'x'.repeat(a.size(200_000)) } };
      const raw = Buffer.from(JSON.stringify({ ...a.creation(id), context }));
      a.repeat(8, () => a.raw('/instances', raw));
    },
  },
  batches: {
    what: 'batches: 8 connections with 1,000 instances each',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const raw = Buffer.from(
        JSON.stringify({ instances: fill(a.size(1_000), () => a.creation(id)) }),
      );
      a.repeat(8, () => a.raw('/instances/batch', raw));
    },
  },
  definitions: {
    what: 'validations and diffs: 4 connections with definitions of 4,000 blocks, 4 that compare two of them',
    begin: async (a) => {
      const blocks = fill(a.size(4_000), (at) => ({
        type: 'step',
        id: `s${at}`,
        handler: 'noop',
        when: `data.n${at} > 1 && data.text == "x"`,
      }));
      const body = { tenant_id: a.place.tenant, namespace: NAMESPACE, name: 'large', blocks };
      const sides = {
        tenant_id: a.place.tenant,
        baseline_sequence_id: await a.store({ ...body, version: 1 }),
        candidate_sequence_id: await a.store({ ...body, version: 2, blocks: blocks.toReversed() }),
      };
      const raw = Buffer.from(JSON.stringify({ ...body, version: 3 }));
      a.repeat(4, () => a.raw('/sequences/validate', raw));
      a.repeat(4, () => a.raw('/sequences/releases/diff', Buffer.from(JSON.stringify(sides))));
    },
  },
  webhooks: {
    what: 'webhooks: each of 4 batches of 500 ends is told to 5 subscribers that never answer',
    begin: async (a) => {
      for (let at = 0; at < 5; at += 1) {
        await a.post('/webhooks', { url: `${a.place.slowUrl}${at}` });
      }
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const body = { instances: fill(a.size(500), () => a.creation(id)) };
      for (let batch = 0; batch < 4; batch += 1) await a.post('/instances/batch', body);
    },
  },
  timers: {
    what: 'timers: 20,000 instances that are due at the same moment',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      // The time of the batches is a part of it: the first of them must not be due before the last one is there.
      const next_fire_at = new Date(Date.now() + a.place.leadMs).toISOString();
      const body = { instances: fill(a.size(1_000), () => ({ ...a.creation(id), next_fire_at })) };
      for (let batch = 0; batch < 20; batch += 1) await a.post('/instances/batch', body);
      await pause(Math.max(0, Date.parse(next_fire_at) - Date.now() - DUE_AFTER_BEGIN_MS));
    },
  },
  flood: {
    what: 'creations: 256 connections without a pause',
    begin: async (a) => {
      const id = await a.sequence([{ type: 'step', id: 's', handler: 'noop' }]);
      const raw = Buffer.from(JSON.stringify(a.creation(id)));
      a.repeat(a.size(256), () => a.raw('/instances', raw));
    },
  },
  stalled: {
    what: 'bodies that stall, without a key: 7,600 connections of one address, whose bound is 7,500',
    begin: async (a) => {
      a.repeat(a.size(7_600), () => a.stall('/instances'));
    },
  },
  slow: {
    what: 'slow bodies, without a key, through HAProxy: 60 of one address, a byte each second',
    isProxied: true,
    begin: async (a) => {
      a.repeat(a.size(60), () => a.stall('/instances', 1_000));
    },
  },
  deep: giant('64 levels of all kinds', () => deepest(COMPOSITES)),
  long: giant('5,000 blocks in a list', longest),
  wide: giant('5,000 blocks in 256 branches', widest),
  tasks: giant('5,000 tasks in 256 branches, a worker', () => widest(WORKER_STEP)),
  endless: giant('a loop of 100,000 iterations', endless),
  heavy: giant('a context of 256 KiB, a worker', () => heaviest(WORKER_STEP)),
};

/** One instance as large as the limits allow, started again whenever it has ended. */
function giant(what: string, make: () => Giant): Attack {
  return {
    what: `a giant: ${what}`,
    begin: async (a) => {
      const { blocks, data = {}, handler } = make();
      const id = await a.sequence(blocks);
      a.repeat(1, () => a.complete(id, data));
      if (handler !== undefined) a.repeat(1, () => a.workOn(handler));
    },
  };
}

/** How long measuring has gone on when the timers of the attack are due. */
const DUE_AFTER_BEGIN_MS = 500;

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

  /** What is refused is a part of the result, and no error. */
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

  /** Of a body that never comes, or a byte at a time, by nobody, on a connection of its own. */
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
    // What the end of the attack cuts off was not answered by nobody.
    if (!this.#stopped.signal.aborted) {
      this.statuses[status] = (this.statuses[status] ?? 0) + 1;
    }
    return status;
  }
}

function fill<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}
