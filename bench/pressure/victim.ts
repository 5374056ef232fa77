/**
 * The tenants that do not attack: they create, poll tasks, list, call out and read streams, each in a loop of its own
 * with a pause, so that they are no load themselves.
 */

import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient, expectStatus } from '../../test/helpers/client.js';
import { openEvents } from '../../test/helpers/event-stream.js';
import { NAMESPACE } from '../base/fixtures.js';
import type { Figures } from '../base/report.js';
import { Samples } from '../client/samples.js';
import { ATTACKER_ADDRESS } from './attacker.js';

export const OPERATIONS = ['create', 'poll', 'list', 'http', 'stream'] as const;
type OperationName = (typeof OPERATIONS)[number];

/** The columns of the figures. */
export const p99Of = (name: OperationName): string => `${name} p99 ms`;
export const ERRORS = 'errors';

/** Between two operations of a loop. */
const PAUSE_MS = 15;
const HEALTH_PAUSE_MS = 250;
/** An answer that takes longer counts as none. */
const PATIENCE_MS = 20_000;
const HANDLER = 'pressed';

interface Victim {
  readonly tenant: string;
  readonly apiKey: string;
  readonly client: Client;
  readonly sequences: Readonly<Record<'noop' | 'external' | 'http', string>>;
  /** An instance that has ended. */
  readonly ended: string;
}

export class Victims {
  readonly #url: string;
  readonly #victims: Victim[] = [];
  readonly #calls = new Map<string, () => void>();
  readonly #sink: Server;

  private constructor(url: string, sink: Server) {
    this.#url = url;
    this.#sink = sink;
    sink.on('request', (request, response) => {
      request.resume();
      response.end('{}');
      this.#calls.get(request.url ?? '')?.();
    });
  }

  /** @param keys a key of each tenant */
  static async start(url: string, keys: Readonly<Record<string, string>>): Promise<Victims> {
    const sink = createServer();
    sink.listen(0, '127.0.0.1');
    await once(sink, 'listening');
    const self = new Victims(url, sink);
    for (const [tenant, apiKey] of Object.entries(keys)) await self.#add(tenant, apiKey);
    return self;
  }

  /**
   * @param loops of each operation; each takes the next tenant in turn
   * @param say is given each sort of error, with how often it came
   */
  async measure(ms: number, loops: number, say: (text: string) => void): Promise<Figures> {
    const until = performance.now() + ms;
    const samples = new Map(OPERATIONS.map((name) => [name, new Samples()]));
    const errors = new Map<string, number>();
    const note = (what: string) => errors.set(what, (errors.get(what) ?? 0) + 1);
    let turn = 0;
    const loop = async (name: OperationName) => {
      for (; performance.now() < until; await pause(PAUSE_MS)) {
        turn += 1;
        const victim = this.#victims[turn % this.#victims.length]!;
        try {
          samples.get(name)!.add(await this[name](victim));
        } catch (error) {
          note(`${name}: ${error instanceof Error ? error.message.slice(0, 160) : error}`);
        }
      }
    };
    const watch = async () => {
      for (; performance.now() < until; await pause(HEALTH_PAUSE_MS)) {
        const what = await healthFault(this.#url);
        if (what !== undefined) note(what);
      }
    };
    const working = OPERATIONS.flatMap((name) => Array.from({ length: loops }, () => loop(name)));
    await Promise.all([watch(), ...working]);
    for (const [what, count] of errors) say(`  ${count}: ${what}`);
    // Without one that came to an end there is no time, and all of them are among the errors.
    const p99 = (one: Samples) => (one.summary().count === 0 ? Number.NaN : one.summary().p99);
    const figures = [...samples].map(([name, one]) => [p99Of(name), p99(one)] as const);
    const failed = [...errors.values()].reduce((sum, count) => sum + count, 0);
    return { ...Object.fromEntries(figures), [ERRORS]: failed };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#victims.map(({ client }) => client.close()));
    this.#sink.closeAllConnections();
    this.#sink.close();
  }

  async #add(tenant: string, apiKey: string): Promise<void> {
    const options = { url: this.#url, apiKey, tenant, connections: 32, timeoutMs: PATIENCE_MS };
    const client = createClient(options);
    const store = async (name: string, block: object) => {
      const blocks = [{ type: 'step', id: 'only', ...block }];
      const body = { tenant_id: tenant, namespace: NAMESPACE, name, version: 1, blocks };
      return expectStatus(await client.post<{ id: string }>('/sequences', body), 201).id;
    };
    const { port } = this.#sink.address() as AddressInfo;
    const params = { url: `http://127.0.0.1:${port}/{{ data.token }}`, method: 'GET' };
    const sequences = {
      noop: await store('noop', { handler: 'noop' }),
      external: await store('external', { handler: HANDLER }),
      http: await store('http', { handler: 'http_request', params }),
    };
    const victim = { tenant, apiKey, client, sequences, ended: '' };
    const ended = await create(victim, 'noop');
    this.#victims.push({ ...victim, ended });
  }

  // ---------------------------------------------------------------- the operations, in milliseconds

  async create(victim: Victim): Promise<number> {
    const startedAt = performance.now();
    await create(victim, 'noop');
    return performance.now() - startedAt;
  }

  /** Of the poll alone: the task is there, or comes while it waits. */
  async poll(victim: Victim): Promise<number> {
    await create(victim, 'external');
    const startedAt = performance.now();
    const body = { handler_name: HANDLER, worker_id: 'w', limit: 1, wait_ms: PATIENCE_MS / 2 };
    const tasks = expectStatus(
      await victim.client.post<object[]>('/workers/tasks/poll', body),
      200,
    );
    if (tasks.length === 0) throw new Error('no task came');
    return performance.now() - startedAt;
  }

  async list(victim: Victim): Promise<number> {
    const startedAt = performance.now();
    expectStatus(await victim.client.get('/instances?limit=20'), 200);
    return performance.now() - startedAt;
  }

  /** From the creation to the arrival of the call. */
  async http(victim: Victim): Promise<number> {
    const token = crypto.randomUUID();
    const arrived = new Promise<void>((resolve) => this.#calls.set(`/${token}`, resolve));
    const startedAt = performance.now();
    try {
      await create(victim, 'http', { token });
      const late = pause(PATIENCE_MS, 'late' as const, { ref: false });
      if ((await Promise.race([arrived, late])) === 'late') {
        throw new Error('the call of the step did not arrive');
      }
      return performance.now() - startedAt;
    } finally {
      this.#calls.delete(`/${token}`);
    }
  }

  /** To the end of the stream of an instance that has ended. */
  async stream({ tenant, apiKey, ended }: Victim): Promise<number> {
    const startedAt = performance.now();
    const url = `${this.#url}/api/v1/instances/${ended}/stream`;
    const headers = { 'x-api-key': apiKey, 'x-tenant-id': tenant };
    const reader = await openEvents({ url, headers });
    try {
      if (reader.status !== 200) throw new Error(`status ${reader.status}`);
      await Promise.race([reader.ended, reader.until(({ events }) => events.length > 0)]);
      return performance.now() - startedAt;
    } finally {
      reader.close();
    }
  }
}

/** Asks as a proxy with the address of an attacker would. @returns undefined when the server is ready */
function healthFault(url: string): Promise<string | undefined> {
  const options = { localAddress: ATTACKER_ADDRESS, agent: false, timeout: PATIENCE_MS };
  return new Promise((resolve) => {
    get(`${url}/health/ready`, options, (reply) => {
      reply.resume();
      resolve(reply.statusCode === 200 ? undefined : `health: status ${reply.statusCode}`);
    })
      .on('error', (error) => resolve(`health: ${error.message}`))
      .on('timeout', () => resolve('health: no answer'));
  });
}

async function create(
  { client, tenant, sequences }: Omit<Victim, 'ended'>,
  kind: keyof Victim['sequences'],
  data: object = {},
): Promise<string> {
  const body = {
    sequence_id: sequences[kind],
    tenant_id: tenant,
    namespace: NAMESPACE,
    context: { data },
  };
  return expectStatus(await client.post<{ id: string }>('/instances', body), 201).id;
}
