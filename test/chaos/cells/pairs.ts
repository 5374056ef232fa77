/**
 * The cells of a chaos run: two engines each, on two Postgres servers, with one directory and a real HAProxy
 * before them that `cells proxy-config --watch` keeps up to date. The second server may be three under Patroni.
 */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { Directory, makeDirectory } from '../../../src/cluster/directory.js';
import { inSchema } from '../../../src/db/database-url.js';
import { eventually } from '../../helpers/api.js';
import { type CellProxy, startCellProxy } from '../../helpers/cell-proxy.js';
import { CLI } from '../../helpers/cli.js';
import { startPostgres } from '../../helpers/database.js';
import { byDepth } from '../../helpers/depth.js';
import { type Engine, freePort, startEngine } from '../../helpers/engine.js';
import { type PatroniCluster, startPatroni } from '../../helpers/patroni.js';

export interface CellPair {
  readonly name: string;
  readonly server: Server;
  /** Its schema is the first of each session. */
  readonly pool: pg.Pool;
  readonly engines: [Engine, Engine];
}

/** What a cell needs of a Postgres. */
interface Server {
  /** With the password, which the directory is not told. */
  readonly url: string;
  /** More of the environment of engines. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

interface Options {
  /** Names of the cells that there are at first, on one server after the other. */
  readonly cells: readonly string[];
  /** Whether the second server is a cluster. */
  readonly hasPatroni: boolean;
}

const TAKE_OVER_MS_MAX = 600_000;
const POLL_MS = 25;
const OUTPUT_BYTES_MAX = 64 * 1_024 * 1_024;

export class CellPairs {
  readonly directory: Directory;
  readonly clusterUrl: string;
  readonly cells = new Map<string, CellPair>();
  /** The second server, when it is one. */
  readonly patroni: PatroniCluster | undefined;
  proxy!: CellProxy;
  readonly #servers: readonly Server[];
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'engine-cells-'));
  /** The passwords of all servers, as clients of Postgres look them up. */
  readonly #passwords = path.join(this.#folder, 'pgpass');

  private constructor(servers: readonly Server[], patroni: PatroniCluster | undefined) {
    this.#servers = servers;
    this.patroni = patroni;
    this.clusterUrl = (servers[0] as Server).url;
    this.directory = new Directory(this.clusterUrl, 'chaos of cells');
    const lines = servers.map(({ url }) => {
      const { hostname, port, username, password } = new URL(url);
      return `${hostname}:${port}:*:${username}:${password}\n`;
    });
    writeFileSync(this.#passwords, lines.join(''), { mode: 0o600 });
  }

  static async start({ cells, hasPatroni }: Options): Promise<CellPairs> {
    const patroni = hasPatroni ? await startPatroni() : undefined;
    const second = patroni === undefined ? singleServer() : serverOf(patroni);
    const pairs = new CellPairs(await Promise.all([singleServer(), second]), patroni);
    try {
      await makeDirectory(pairs.clusterUrl);
      for (const name of cells) {
        const server = pairs.#nextServer();
        const engines = await addresses();
        const database_url = withoutPassword(server.url);
        await pairs.directory.createCell({ name, database_url, engines, state: 'open' });
        await pairs.#run(name, server, engines);
      }
      // The command ends when a session of the directory takes three seconds to begin, as on a busy machine.
      const { clusterUrl } = pairs;
      const starting = () => startCellProxy({ clusterUrl });
      pairs.proxy = await eventually(starting, TAKE_OVER_MS_MAX);
      return pairs;
    } catch (error) {
      await pairs.stop();
      throw error;
    }
  }

  /** Writes a cell down that takes no tenants yet; the proxy is told by the directory. @returns what runs its engines */
  async create(name: string): Promise<() => Promise<void>> {
    const server = this.#nextServer();
    const engines = await addresses();
    const given = engines.flatMap((address) => ['--engine', address]);
    const database = withoutPassword(server.url);
    await this.command('cells', 'create', name, '--database', database, '--closed', ...given);
    return () => this.#run(name, server, engines);
  }

  /** Ends the engines of a cell that no tenant is in, and takes it out of the directory. */
  async remove(name: string): Promise<void> {
    await Promise.all(this.cell(name).engines.map((engine) => engine.stop()));
    await this.command('cells', 'remove', name, '--yes');
  }

  cell(name: string): CellPair {
    const found = this.cells.get(name);
    if (found === undefined) throw new Error(`no cell ${name}`);
    return found;
  }

  /** The cells whose tables are in the cluster. */
  onPatroni(): readonly CellPair[] {
    return [...this.cells.values()].filter(({ server }) => server === this.#servers[1]);
  }

  /** Resolves when one of its engines serves. */
  async untilReady(name: string): Promise<void> {
    const { engines } = this.cell(name);
    while (!(await Promise.all(engines.map(isReady))).includes(true)) await wait(POLL_MS);
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

  /**
   * By the command line, as an operator does it on a machine of his own: where it is measured what cells feel of it, it
   * steps back behind them here.
   *
   * @returns what it printed
   * @throws Error with what it said, when it did not end well
   */
  async command(...args: readonly string[]): Promise<string> {
    const env = {
      PATH: process.env.PATH ?? '',
      ENGINE_CLUSTER_URL: this.clusterUrl,
      PGPASSFILE: this.#passwords,
    };
    const options = { env, maxBuffer: OUTPUT_BYTES_MAX };
    const nice = ['-n', byDepth('0', '10'), process.execPath, CLI, ...args];
    return (await promisify(execFile)('nice', nice, options)).stdout;
  }

  async stop(): Promise<void> {
    await this.proxy?.stop();
    for (const { engines, pool } of this.cells.values()) {
      await Promise.all(engines.map((engine) => engine.stop()));
      await pool.end();
    }
    await this.directory.close();
    await Promise.all(this.#servers.map((server) => server.stop()));
    rmSync(this.#folder, { recursive: true });
  }

  #nextServer(): Server {
    return this.#servers[this.cells.size % this.#servers.length] as Server;
  }

  async #run(name: string, server: Server, addresses: readonly string[]): Promise<void> {
    const options = {
      databaseUrl: withoutPassword(server.url),
      env: {
        ...server.env,
        PGPASSFILE: this.#passwords,
        ENGINE_DB_SCHEMA: name,
        ENGINE_CLUSTER_URL: this.clusterUrl,
        ENGINE_SHARDS: '1',
        ENGINE_TRUSTED_PROXIES: '127.0.0.1',
        ENGINE_ALLOW_INTERNAL_URLS: 'true',
        ENGINE_WORKER_REAPER_STALE_SECS: '2',
        ENGINE_WORKER_REAPER_TICK_SECS: '1',
      },
    };
    const [first, second] = addresses.map((address) => Number(address.split(':')[1]));
    const owner = await startEngine({ ...options, port: first as number });
    const standby = await startEngine({ ...options, port: second as number, waitFor: 'listening' });
    const pool = new pg.Pool({ connectionString: inSchema(server.url, name), max: 2 });
    pool.on('error', () => undefined);
    this.cells.set(name, { name, server, pool, engines: [owner, standby] });
  }
}

async function singleServer(): Promise<Server> {
  const server = await startPostgres();
  const database = await server.createDatabase({ isMigrated: false });
  return { url: database.connectionString, env: {}, stop: () => server.stop() };
}

/** Commits wait for a replica, and the engines hold on to that. */
function serverOf(patroni: PatroniCluster): Server {
  const env = { ENGINE_DB_SYNCHRONOUS: 'required' };
  return { url: patroni.proxyUrl, env, stop: () => patroni.stop() };
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = '';
  return url.href;
}

const addresses = async () => [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];

const isReady = async ({ url }: Engine) =>
  (await fetch(`${url}/health/ready`).catch(() => undefined))?.status === 200;
