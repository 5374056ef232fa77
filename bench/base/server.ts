/** The server of a job: a child process on a database of its own that can be killed and started again. */

import { availableParallelism } from 'node:os';
import type pg from 'pg';
import { createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY, type Engine, startEngine } from '../../test/helpers/engine.js';
import { postRequest } from '../client/requests.js';
import type { Bench } from '../job.js';
import { createBody, TENANT } from './fixtures.js';
import { connect } from './postgres.js';

export interface Launch {
  /** A built checkout whose server is started instead of this one's. */
  readonly checkout?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArgs?: readonly string[];
}

export class BenchServer {
  readonly shards: number;
  readonly databaseUrl: string;
  /** On the server's database. */
  readonly db: pg.Client;
  readonly #launch: Launch;
  #engine: Engine | undefined;

  private constructor(shards: number, databaseUrl: string, db: pg.Client, launch: Launch) {
    this.shards = shards;
    this.databaseUrl = databaseUrl;
    this.db = db;
    this.#launch = launch;
  }

  /** @param name of its database */
  static async open(bench: Bench, name: string, launch: Launch = {}): Promise<BenchServer> {
    const { shards = Math.max(1, availableParallelism() - 1), lanes } = bench.options;
    const databaseUrl = await (await bench.postgres()).createDatabase(name);
    const env = {
      ENGINE_SHARDS: String(shards),
      ...(lanes === undefined ? {} : { ENGINE_WRITER_LANES: String(lanes) }),
      ...launch.env,
    };
    const db = await connect(databaseUrl);
    const server = new BenchServer(shards, databaseUrl, db, { ...launch, env });
    await server.start();
    return server;
  }

  get pid(): number {
    return this.#running.pid;
  }

  get port(): number {
    return this.#running.port;
  }

  get url(): string {
    return this.#running.url;
  }

  /** @returns milliseconds from the start of the process to the first 200 of /health/ready */
  async start(): Promise<number> {
    const startedAt = performance.now();
    this.#engine = await startEngine({ databaseUrl: this.databaseUrl, ...this.#launch });
    return performance.now() - startedAt;
  }

  async kill(): Promise<void> {
    await this.#running.kill();
    this.#engine = undefined;
  }

  async stop(): Promise<void> {
    await this.#engine?.stop();
    await this.db.end();
  }

  /** Of the root key. @returns the answer, which has that status */
  async ask<T>(
    status: number,
    method: string,
    path: string,
    body?: unknown,
    tenant = TENANT,
  ): Promise<T> {
    const client = createClient({
      url: this.url,
      apiKey: DEFAULT_API_KEY,
      tenant,
      isChecked: false,
    });
    try {
      const options = body === undefined ? {} : { body };
      return expectStatus(await client.request<T>(method, path, options), status);
    } finally {
      await client.close();
    }
  }

  /** @returns the id of the stored sequence */
  async store(sequence: object, tenant = TENANT): Promise<string> {
    const body = { ...sequence, tenant_id: tenant };
    return (await this.ask<{ id: string }>(201, 'POST', '/sequences', body, tenant)).id;
  }

  /** @returns `POST /instances` of a typical client */
  async createRequest(sequence: object): Promise<string> {
    return postRequest('/instances', JSON.stringify(createBody(await this.store(sequence))));
  }

  /** Transactions of the writer so far: every flush counts one up on its lane's row. */
  async flushes(): Promise<number> {
    const { rows } = await this.db.query<{ batches: number }>(
      `select coalesce(sum(last), 0)::int8 as batches
         from (select max(batch) as last from lane_flushes group by lane) lanes`,
    );
    return rows[0]!.batches;
  }

  get #running(): Engine {
    if (this.#engine === undefined) throw new Error('the server does not run');
    return this.#engine;
  }
}
