/** Two cells with an engine each, in one database or two, the directory that knows them, and moves between them. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { STORE } from '../../actors/shard/store.js';
import { Directory, type MoveRow, makeDirectory } from '../../src/cluster/directory.js';
import type { Step } from '../../src/cluster/move-plan.js';
import type { Tallies, Tally } from '../../src/cluster/move-rows.js';
import { beginSnapshot, tablesWithRows, tallyOf } from '../../src/cluster/move-rows.js';
import { type MoverOptions, TenantMover } from '../../src/cluster/move-steps.js';
import { Moves } from '../../src/cluster/moves.js';
import { tenantTables } from '../../src/cluster/tenant-rows.js';
import { inSchema } from '../../src/db/database-url.js';
import { withClient } from '../../src/db/pool.js';
import { type Api, startApi, type Tenant } from './api.js';
import { createTestDatabase, type TestDatabase } from './database.js';

export type CellName = 'east' | 'west';

/** What the command does, in its order. */
export const MOVE_STEPS: readonly Step[] = [
  ...([
    'suspend-target',
    'suspend-source',
    'copy',
    'switch',
    'admit-target',
    'depart-source',
  ] as const),
  ...(['clear-source'] as const),
];

/** Where a test may cut it off; it tells each (`MoverOptions.at`). */
export const MOVE_POINTS: readonly string[] = [
  ...MOVE_STEPS.flatMap((name) => [`before ${name}`, `behind ${name}`]),
  'between tables',
  'before the commit of the copy',
];

/** More of what the engine of each is started with. */
type CellsEnv = Readonly<Record<CellName, Readonly<Record<string, string>>>>;

/** Longer than an engine takes to start on a machine that does other things. */
const PATIENCE_MS = 300_000;

export class TwoCells {
  readonly east: Api;
  readonly west: Api;
  readonly directory: Directory;
  readonly directoryUrl: string;
  /** Dropped in the end. */
  readonly #databases: readonly TestDatabase[];
  readonly #sql: Readonly<Record<CellName, pg.Pool>>;

  private constructor(
    east: Api,
    west: Api,
    databases: readonly TestDatabase[],
    directory: Directory,
    directoryUrl: string,
  ) {
    this.east = east;
    this.west = west;
    this.#databases = databases;
    this.directory = directory;
    this.directoryUrl = directoryUrl;
    this.#sql = { east: poolOf(east), west: poolOf(west) };
  }

  /** @param databases 2: each cell has its own */
  static async start(databases: 1 | 2, env: CellsEnv = { east: {}, west: {} }): Promise<TwoCells> {
    const first = await createTestDatabase({ isMigrated: false });
    const second = databases === 2 ? await createTestDatabase({ isMigrated: false }) : first;
    return TwoCells.on({ directory: first, east: first, west: second }, env);
  }

  /** On these databases, which are empty, and are dropped in the end. */
  static async on(
    databases: Readonly<Record<CellName | 'directory', TestDatabase>>,
    env: CellsEnv = { east: {}, west: {} },
  ): Promise<TwoCells> {
    const directoryUrl = databases.directory.connectionString;
    await makeDirectory(directoryUrl);
    const directory = new Directory(directoryUrl, 'test');
    const start = async (cell: CellName, database: TestDatabase, shards: number) => {
      const { connectionString: database_url } = database;
      await directory.createCell({ name: cell, database_url, engines: [], state: 'open' });
      const own = { ENGINE_DB_SCHEMA: cell, ENGINE_SHARDS: `${shards}` };
      return startApi({
        database,
        env: { ...own, ENGINE_CLUSTER_URL: directoryUrl, ...SHARED, ...env[cell] },
      });
    };
    const east = await start('east', databases.east, 2);
    const west = await start('west', databases.west, 3);
    const all = [...new Set(Object.values(databases))];
    return new TwoCells(east, west, all, directory, directoryUrl);
  }

  async stop(): Promise<void> {
    await Promise.all([this.east.stop(), this.west.stop()]);
    await Promise.all([this.#sql.east.end(), this.#sql.west.end(), this.directory.close()]);
    for (const database of this.#databases) await database.drop();
  }

  api(cell: CellName): Api {
    return cell === 'east' ? this.east : this.west;
  }

  /** The tenant as that cell serves it. */
  tenant(cell: CellName, name: string): Tenant {
    return this.api(cell).tenant(name);
  }

  async place(tenant: string, cell: CellName): Promise<void> {
    await this.directory.settle([tenant], cell, 'hand');
  }

  /** Begins the move or goes on with the one under way. Resolves with it and its steps. */
  async move(
    tenant: string,
    to: CellName,
    more: Partial<MoverOptions> = {},
  ): Promise<{ readonly move: MoveRow; readonly steps: readonly Step[] }> {
    const moves = await Moves.open(this.directoryUrl);
    try {
      const move = (await moves.underWay(tenant)) ?? (await moves.begin(tenant, to));
      const steps: Step[] = [];
      const mover = new TenantMover(move, {
        tables: tenantTables(STORE),
        moves,
        sourceUrl: this.api(move.from_cell as CellName).database.connectionString,
        targetUrl: this.api(move.to_cell as CellName).database.connectionString,
        onStep: (step) => steps.push(step),
        patienceMs: PATIENCE_MS,
        ...more,
      });
      return { move: await mover.run(), steps };
    } finally {
      await moves.close();
    }
  }

  /** The same as a process of its own, which kills itself at that point if it comes there. */
  async moveUntil(tenant: string, to: CellName, point: string): Promise<boolean> {
    const from = to === 'east' ? 'west' : 'east';
    const urls = [from, to].map((cell) => this.api(cell as CellName).database.connectionString);
    const { signal } = await runToExit(CHILD, [this.directoryUrl, tenant, to, ...urls, point]);
    return signal === 'SIGKILL';
  }

  /** The move under way is given up, and what it has left is cleared. */
  async giveUp(tenant: string): Promise<MoveRow> {
    await this.noteGivenUp(tenant);
    return (await this.move(tenant, 'west')).move;
  }

  /** The directory says so, and nothing more is done. */
  async noteGivenUp(tenant: string): Promise<void> {
    const moves = await Moves.open(this.directoryUrl);
    try {
      const move = await moves.underWay(tenant);
      assert.ok(move !== undefined);
      await moves.giveUp(move.id);
    } finally {
      await moves.close();
    }
  }

  /** By table: how many rows of the tenant are in that cell. */
  async rows(cell: CellName, tenant: string): Promise<Record<string, number>> {
    const tallies = Object.entries(await this.tallies(cell, tenant));
    return Object.fromEntries(tallies.map(([name, { rows }]) => [name, rows]));
  }

  /** The same with the hashes of the rows. */
  async tallies(cell: CellName, tenant: string): Promise<Tallies> {
    const connectionString = inSchema(this.api(cell).database.connectionString, cell);
    return withClient({ connectionString, applicationName: 'test' }, async (client) => {
      await beginSnapshot(client);
      const found: Record<string, Tally> = {};
      for (const table of await tablesWithRows(client, tenantTables(STORE), tenant)) {
        found[table.name] = await tallyOf(client, table, tenant);
      }
      return found;
    });
  }

  query<Row extends pg.QueryResultRow>(cell: CellName, text: string): Promise<pg.QueryResult<Row>> {
    return this.#sql[cell].query<Row>(text);
  }
}

function poolOf({ database }: Api): pg.Pool {
  const pool = new pg.Pool({ connectionString: database.connectionString, max: 1 });
  // A server that is killed ends its sessions; the next query has another one.
  pool.on('error', () => undefined);
  return pool;
}

const CHILD = fileURLToPath(new URL('./move.child.js', import.meta.url));

function runToExit(file: string, args: readonly string[]): Promise<{ signal: string | null }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    child.once('error', reject);
    child.once('exit', (_code, signal) => resolve({ signal }));
  });
}

const SHARED = { ENGINE_ALLOW_INTERNAL_URLS: 'true', ENGINE_ENCRYPTION_KEY: 'a7'.repeat(32) };
