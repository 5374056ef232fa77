/** A server on a database of its own that can be killed and started again, and what a start costs. */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY, type Engine, startEngine } from '../../test/helpers/engine.js';
import { TENANT } from '../fixtures.js';
import { type BenchPostgres, connect } from '../load/postgres.js';

/** Memory of a new process settles within this time: code is compiled, and what was read is collected. */
const SETTLE_MS = 3_000;

export class RestartedServer {
  /** On the server's database. */
  readonly db: pg.Client;
  readonly #databaseUrl: string;
  readonly #shards: number;
  #engine: Engine | undefined;

  private constructor(db: pg.Client, databaseUrl: string, shards: number) {
    this.db = db;
    this.#databaseUrl = databaseUrl;
    this.#shards = shards;
  }

  static async open(
    postgres: BenchPostgres,
    name: string,
    shards = Math.max(1, availableParallelism() - 1),
  ): Promise<RestartedServer> {
    const databaseUrl = await postgres.createDatabase(name);
    const db = await connect(databaseUrl);
    const server = new RestartedServer(db, databaseUrl, shards);
    await server.start();
    return server;
  }

  get port(): number {
    return this.#running.port;
  }

  get pid(): number {
    return this.#running.pid;
  }

  get shards(): number {
    return this.#shards;
  }

  /** @returns milliseconds from the start of the process to the first 200 of /health/ready */
  async start(): Promise<number> {
    const startedAt = performance.now();
    const env = { ENGINE_SHARDS: String(this.#shards) };
    this.#engine = await startEngine({ databaseUrl: this.#databaseUrl, env });
    return performance.now() - startedAt;
  }

  /** SIGKILL: nothing is said to anybody. */
  async kill(): Promise<void> {
    await this.#running.kill();
    this.#engine = undefined;
  }

  /** Of the process, in bytes, when it has settled. */
  async residentBytes(): Promise<number> {
    await pause(SETTLE_MS);
    const status = readFileSync(`/proc/${this.#running.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
  }

  /** @returns what the server answered, which has that status */
  async ask<T>(
    status: number,
    method: string,
    path: string,
    body?: unknown,
    tenant = TENANT,
  ): Promise<T> {
    const { url } = this.#running;
    const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant, isChecked: false });
    try {
      const options = body === undefined ? {} : { body };
      return expectStatus(await client.request<T>(method, path, options), status);
    } finally {
      await client.close();
    }
  }

  /** Whether there is such a route; it is asked with a body that it refuses. */
  async has(path: string): Promise<boolean> {
    const { url } = this.#running;
    const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant: TENANT, isChecked: false });
    try {
      const { status } = await client.post(path, []);
      return status !== 404 && status !== 405;
    } finally {
      await client.close();
    }
  }

  async stop(): Promise<void> {
    await this.#engine?.stop();
    await this.db.end();
  }

  get #running(): Engine {
    if (this.#engine === undefined) throw new Error('the server does not run');
    return this.#engine;
  }
}
