/**
 * The cells of a chaos run: two engines each, on two Postgres servers, with one directory and a real HAProxy
 * before them that `cells proxy-config --watch` keeps up to date.
 */

import pg from 'pg';
import { Directory, makeDirectory } from '../../../src/cluster/directory.js';
import { inSchema } from '../../../src/db/database-url.js';
import { type CellProxy, startCellProxy } from '../../helpers/cell-proxy.js';
import { startPostgres, type TestDatabase, type TestPostgres } from '../../helpers/database.js';
import { type Engine, freePort, startEngine } from '../../helpers/engine.js';

export interface CellPair {
  readonly name: string;
  readonly database: TestDatabase;
  /** Its schema is the first of each session. */
  readonly pool: pg.Pool;
  readonly engines: [Engine, Engine];
}

const TAKE_OVER_MS_MAX = 120_000;

export class CellPairs {
  readonly directory: Directory;
  readonly clusterUrl: string;
  readonly cells = new Map<string, CellPair>();
  proxy!: CellProxy;
  readonly #servers: readonly TestPostgres[];
  readonly #databases: readonly TestDatabase[];

  private constructor(servers: readonly TestPostgres[], databases: readonly TestDatabase[]) {
    this.#servers = servers;
    this.#databases = databases;
    this.clusterUrl = (databases[0] as TestDatabase).connectionString;
    this.directory = new Directory(this.clusterUrl, 'chaos of cells');
  }

  /** @param names of the cells that there are at first, on one server after the other */
  static async start(names: readonly string[]): Promise<CellPairs> {
    const servers = await Promise.all([startPostgres(), startPostgres()]);
    const made = servers.map((server) => server.createDatabase({ isMigrated: false }));
    const pairs = new CellPairs(servers, await Promise.all(made));
    try {
      await makeDirectory(pairs.clusterUrl);
      for (const name of names) await pairs.add(name);
      pairs.proxy = await startCellProxy('haproxy', { clusterUrl: pairs.clusterUrl });
      return pairs;
    } catch (error) {
      await pairs.stop();
      throw error;
    }
  }

  /** A cell that takes new tenants; the proxy is told by the directory. */
  async add(name: string): Promise<void> {
    const database = this.#databases[this.cells.size % this.#databases.length] as TestDatabase;
    const ports = [await freePort(), await freePort()] as const;
    await this.directory.createCell({
      name,
      database_url: database.connectionString,
      engines: ports.map((port) => `127.0.0.1:${port}`),
      state: 'open',
    });
    const options = {
      databaseUrl: database.connectionString,
      env: {
        ENGINE_DB_SCHEMA: name,
        ENGINE_CLUSTER_URL: this.clusterUrl,
        ENGINE_SHARDS: '1',
        ENGINE_TRUSTED_PROXIES: '127.0.0.1',
        ENGINE_ALLOW_INTERNAL_URLS: 'true',
        ENGINE_WORKER_REAPER_STALE_SECS: '2',
        ENGINE_WORKER_REAPER_TICK_SECS: '1',
      },
    };
    const owner = await startEngine({ ...options, port: ports[0] });
    const standby = await startEngine({ ...options, port: ports[1], waitFor: 'listening' });
    const connectionString = inSchema(database.connectionString, name);
    const pool = new pg.Pool({ connectionString, max: 2 });
    pool.on('error', () => undefined);
    this.cells.set(name, { name, database, pool, engines: [owner, standby] });
  }

  cell(name: string): CellPair {
    const found = this.cells.get(name);
    if (found === undefined) throw new Error(`no cell ${name}`);
    return found;
  }

  /** SIGKILL. @returns when the other engine serves: what stands again by `restart` */
  async killOwner(name: string): Promise<{ restart(): Promise<void> }> {
    const { engines } = this.cell(name);
    const at = (await isReady(engines[0])) ? 0 : 1;
    await engines[at].kill();
    await engines[1 - at]?.waitReady(TAKE_OVER_MS_MAX);
    return {
      restart: async () => {
        engines[at] = await engines[at].restart({ waitFor: 'listening' });
      },
    };
  }

  async stop(): Promise<void> {
    await this.proxy?.stop();
    for (const { engines, pool } of this.cells.values()) {
      await Promise.all(engines.map((engine) => engine.stop()));
      await pool.end();
    }
    await this.directory.close();
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}

const isReady = async ({ url }: Engine) =>
  (await fetch(`${url}/health/ready`).catch(() => undefined))?.status === 200;
