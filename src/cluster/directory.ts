/**
 * The directory of a cluster (docs/operate/cells.md): its cells, the tenants settled in each, their moves, and the
 * latest report of each engine. Owns the statements on the schema `cluster` that engines and commands share. Every
 * change of cells or placements raises the revision in its own transaction and notifies the listeners.
 */

import { readFileSync } from 'node:fs';
import type pg from 'pg';
import type { Cell, CellEngine, TenantMove } from '../../schema/cell.js';
import { ConfigError } from '../base/config-error.js';
import { packageFile } from '../base/package-files.js';
import { type ConnectionOptions, createClient, createPool, withClient } from '../db/pool.js';
import { inTransaction, statementsIn } from '../db/sql-script.js';
import { transaction } from './command-sessions.js';

export type CellState = Cell['state'];

export interface CellRow extends Omit<Cell, 'addresses' | 'engines' | keyof CellCounts> {
  /** The addresses of its engines for proxies, as host:port. */
  readonly engines: readonly string[];
  readonly joined_at: string | null;
  /** When all tenants with rows in the cell had been settled; null until the search for them has finished. */
  readonly found_at: string | null;
}

/** hand: by an operator. hash: by its bucket. move: by a move. found: it had rows there before. */
type PlacedBy = 'hand' | 'hash' | 'move' | 'found';

export interface Settled {
  readonly tenant_id: string;
  readonly cell: string;
}

export interface PlacementRow extends Settled {
  readonly placed_by: PlacedBy;
  readonly placed_at: string;
  readonly revision: number;
}

export type MoveRow = Readonly<TenantMove>;

/** Sent by each engine every few seconds. */
export interface EngineReport
  extends Readonly<Pick<CellEngine, 'address' | 'role' | 'version' | 'lag_ms'>> {
  /** Identifies the process. */
  readonly id: string;
  readonly cell: string;
  /** The latest migration of the cell's tables. */
  readonly migration: number;
  /** The encryption keys with which it can open sealed data. */
  readonly key_ids: readonly string[];
}

export interface EngineRow extends EngineReport {
  readonly seen_at: string;
  /** By the clock of the directory. */
  readonly silent_ms: number;
}

type CellCounts = Pick<Cell, 'tenants' | 'moves_under_way'>;

/** The directory is missing or has another version. */
export class DirectoryError extends ConfigError {
  override readonly name = 'DirectoryError';
}

const SCHEMA_VERSION = 2;
/** Its notifications carry the revision. */
const CHANNEL = 'engine_cluster';
/** Short: a request may wait for the statement. */
const STATEMENT_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const CONNECTIONS_MAX = 2;
/** Three missed reports: the engine counts as stopped. */
export const ENGINE_SILENT_MS = 15_000;
/** The row of an engine without a report for this long is deleted. */
const ENGINE_FORGOTTEN_MS = 86_400_000;

/** Begins each change of cells or placements: locks the revision until the commit, so that changes are serial. */
export const RAISED = `raised as (
  update cluster.revision set number = number + 1
  returning number, pg_notify('${CHANNEL}', number::text) as notified)`;

const connection = (url: string, applicationName: string): ConnectionOptions => ({
  connectionString: url,
  applicationName,
  statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  queryTimeoutMs: STATEMENT_TIMEOUT_MS,
  connectTimeoutMs: CONNECT_TIMEOUT_MS,
});

const SHARDS = 'citus.enable_schema_based_sharding';

/** Creates the missing tables of the directory. */
export async function makeDirectory(url: string): Promise<void> {
  const text = readFileSync(packageFile('src/cluster/schema.sql'), 'utf8');
  const statements = [
    // Serialises commands that create the schema.
    `select pg_advisory_xact_lock(hashtext('${CHANNEL}'))`,
    // Citus would distribute the schema, but notifications stay on the node (docs/operate/citus.md).
    `select set_config('${SHARDS}', 'off', true) where current_setting('${SHARDS}', true) is not null`,
    ...statementsIn(text),
  ];
  await withClient(connection(url, 'cluster'), (client) => inTransaction(client, statements));
}

const MARKS = {
  joined: 'set joined_at = now() from raised where name = $1 and joined_at is null',
  searched: 'set found_at = now() from raised where name = $1 and found_at is null',
  unsearched:
    'set joined_at = coalesce(joined_at, now()), found_at = null from raised where name = $1',
} as const;

/** Its methods reject with the errors of `pg`. */
export class Directory {
  readonly #url: string;
  readonly #name: string;
  readonly #pool: pg.Pool;

  /** Connects on first use. @param applicationName shown in `pg_stat_activity` */
  constructor(url: string, applicationName: string) {
    this.#url = url;
    this.#name = applicationName;
    this.#pool = createPool({
      ...connection(url, applicationName),
      connectionsMax: CONNECTIONS_MAX,
      onError: () => undefined,
    });
  }

  get url(): string {
    return this.#url;
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  async #rows<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    return (await this.#pool.query<Row>(text, [...values])).rows;
  }

  async transaction<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      return await transaction(client, () => work(client));
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
    }
  }

  /** Upgrades an older directory if the role may. @throws DirectoryError when it is missing or has another version */
  async check(): Promise<void> {
    const [found] = await this.#rows<{ exists: boolean }>(
      "select to_regclass('cluster.revision') is not null as exists",
    );
    if (found?.exists !== true) {
      throw new DirectoryError('the database has no directory of a cluster: cells create makes it');
    }
    let version = await this.#number('schema_version');
    if (version < SCHEMA_VERSION) {
      // Without the right to upgrade it, the error below says what to do.
      await makeDirectory(this.#url).catch(() => undefined);
      version = await this.#number('schema_version');
    }
    if (version !== SCHEMA_VERSION) {
      throw new DirectoryError(
        `the directory of the cluster has version ${version} and this program knows ${SCHEMA_VERSION}: ` +
          (version > SCHEMA_VERSION
            ? 'use the newer program'
            : 'cells list brings it up to date, as the role that made it'),
      );
    }
  }

  revision(): Promise<number> {
    return this.#number('number');
  }

  async #number(column: 'number' | 'schema_version'): Promise<number> {
    const text = `select ${column} as value from cluster.revision`;
    return (await this.#rows<{ value: number }>(text))[0]?.value ?? 0;
  }

  /** Listens until the returned function is called. A broken connection loses notifications: poll, too. */
  async listen(onRaised: (revision: number) => void, onBroken: () => void): Promise<() => void> {
    const client = createClient({ ...connection(this.#url, `${this.#name} listens`) });
    client.on('error', () => undefined);
    client.on('notification', ({ payload = '' }) => onRaised(Number(payload)));
    await client.connect();
    try {
      await client.query(`listen ${CHANNEL}`);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    client.once('end', onBroken);
    return () => {
      client.off('end', onBroken);
      client.end().catch(() => undefined);
    };
  }

  cells(): Promise<CellRow[]> {
    return this.#rows<CellRow>(`select ${CELL_COLUMNS} from cluster.cells order by name`);
  }

  async cell(name: string): Promise<CellRow | undefined> {
    return (await this.cells()).find((cell) => cell.name === name);
  }

  /** @returns undefined when the name is taken */
  async createCell(cell: Pick<CellRow, 'name' | 'database_url' | 'engines' | 'state'>) {
    const rows = await this.#rows<CellRow>(
      `with ${RAISED} insert into cluster.cells (name, database_url, engines, state)
       select $1, $2, $3, $4 from raised on conflict do nothing returning ${CELL_COLUMNS}`,
      [cell.name, cell.database_url, cell.engines, cell.state],
    );
    return rows[0];
  }

  /** Absent members stay. @returns undefined when there is no such cell */
  async changeCell(
    name: string,
    changed: Partial<Pick<CellRow, 'database_url' | 'engines' | 'state'>>,
  ): Promise<CellRow | undefined> {
    const rows = await this.#rows<CellRow>(
      `with ${RAISED} update cluster.cells set database_url = coalesce($2, database_url),
         engines = coalesce($3::text[], engines), state = coalesce($4, state)
       from raised where name = $1 returning ${CELL_COLUMNS}`,
      [name, changed.database_url ?? null, changed.engines ?? null, changed.state ?? null],
    );
    return rows[0];
  }

  async markCell(name: string, mark: keyof typeof MARKS): Promise<void> {
    await this.#rows(`with ${RAISED} update cluster.cells ${MARKS[mark]}`, [name]);
  }

  /** Removes a cell that nothing refers to, or returns why it was kept. */
  removeCell(name: string) {
    return this.transaction(async (client) => {
      // Takes the lock of all changes: no tenant is placed in the cell meanwhile.
      await client.query(`with ${RAISED} select from raised`);
      const { rows } = await client.query<
        Record<'cell' | 'tenants' | 'engines' | 'moves', boolean>
      >(
        `select exists (select from cluster.cells where name = $1) as cell,
           exists (select from cluster.placements where cell = $1) as tenants,
           exists (select from cluster.engines where cell = $1
             and seen_at > now() - $2::int * interval '1 millisecond') as engines,
           exists (select from cluster.moves
             where ended_at is null and $1 in (from_cell, to_cell)) as moves`,
        [name, ENGINE_SILENT_MS],
      );
      const found = rows[0];
      if (found?.cell !== true) return 'missing' as const;
      if (found.moves) return 'is moved' as const;
      if (found.tenants) return 'has tenants' as const;
      if (found.engines) return 'has engines' as const;
      await client.query('delete from cluster.engines where cell = $1', [name]);
      await client.query('delete from cluster.cells where name = $1', [name]);
      return undefined;
    });
  }

  async counts(): Promise<ReadonlyMap<string, CellCounts>> {
    const rows = await this.#rows<CellCounts & { readonly name: string }>(
      `select name,
         (select count(*) from cluster.placements where cell = name) as tenants,
         (select count(*) from cluster.moves
          where ended_at is null and name in (from_cell, to_cell)) as moves_under_way
       from cluster.cells`,
    );
    return new Map(rows.map(({ name, ...counts }) => [name, counts]));
  }

  placementsOf(tenants: readonly string[]): Promise<PlacementRow[]> {
    return this.#rows<PlacementRow>(
      `select ${PLACEMENT_COLUMNS} from cluster.placements where tenant_id = any($1::text[])`,
      [tenants],
    );
  }

  async placement(tenant: string): Promise<PlacementRow | undefined> {
    return (await this.placementsOf([tenant]))[0];
  }

  /** One page by tenant; of all cells without `cell`. */
  placements(query: {
    readonly after: string;
    readonly limit: number;
    readonly cell?: string | undefined;
  }): Promise<PlacementRow[]> {
    return this.#rows<PlacementRow>(
      `select ${PLACEMENT_COLUMNS} from cluster.placements
       where tenant_id > $1 and ($3::text is null or cell = $3) order by tenant_id limit $2`,
      [query.after, query.limit, query.cell ?? null],
    );
  }

  /** Placements changed after this position; an empty tenant precedes all others of its revision. */
  placedSince(after: Pick<PlacementRow, 'revision' | 'tenant_id'>, limit: number) {
    return this.#rows<PlacementRow>(
      `select ${PLACEMENT_COLUMNS} from cluster.placements where (revision, tenant_id) > ($1, $2)
       order by revision, tenant_id limit $3`,
      [after.revision, after.tenant_id, limit],
    );
  }

  /**
   * Settles the tenants that have no cell, and returns the cell of each; concurrent callers get the same answer. By
   * hash only while the cell is open and every joined cell has been searched for its tenants: the others are missing
   * in the answer.
   */
  async settle(
    tenants: readonly string[],
    cell: string,
    by: PlacedBy,
  ): Promise<ReadonlyMap<string, string>> {
    const placed = await this.transaction(async (client) => {
      // Separate, so that the next statement sees all commits before this lock.
      await client.query(`with ${RAISED} select from raised`);
      return (await client.query<Settled>(SETTLE, [tenants, cell, by])).rows;
    });
    const found = new Map(placed.map((row) => [row.tenant_id, row.cell]));
    const others = tenants.filter((tenant) => !found.has(tenant));
    const earlier = others.length === 0 ? [] : await this.placementsOf(others);
    for (const row of earlier) found.set(row.tenant_id, row.cell);
    return found;
  }

  /** Newest first, after the move `before`. */
  moves(query: {
    readonly limit: number;
    readonly before?: string | undefined;
    readonly isUnderWay?: boolean;
  }): Promise<MoveRow[]> {
    return this.#rows<MoveRow>(
      `select ${MOVE_COLUMNS} from cluster.moves
       where ($2::uuid is null or id < $2) and (not $3 or ended_at is null) order by id desc limit $1`,
      [query.limit, query.before ?? null, query.isUnderWay ?? false],
    );
  }

  /** The tenants that have a move under way. */
  async movedOf(tenants: readonly string[]): Promise<string[]> {
    const rows = await this.#rows<Pick<MoveRow, 'tenant_id'>>(
      `select tenant_id from cluster.moves where ended_at is null and tenant_id = any($1::text[])`,
      [tenants],
    );
    return rows.map(({ tenant_id }) => tenant_id);
  }

  async report(report: EngineReport): Promise<void> {
    const { id, cell, address, role, version, lag_ms, migration, key_ids } = report;
    const own = [id, cell, address, role, version, lag_ms, migration, key_ids];
    await this.#rows(REPORT, [...own, ENGINE_FORGOTTEN_MS]);
  }

  async forgetEngine(id: string): Promise<void> {
    await this.#rows('delete from cluster.engines where id = $1', [id]);
  }

  engines(): Promise<EngineRow[]> {
    return this.#rows<EngineRow>(
      `select id, cell, address, role, version, lag_ms, migration, key_ids, seen_at,
         greatest(0, extract(epoch from now() - seen_at) * 1000)::bigint as silent_ms
       from cluster.engines order by cell, role, seen_at desc, address`,
    );
  }
}

const CELL_COLUMNS = 'name, database_url, engines, state, created_at, joined_at, found_at';
const PLACEMENT_COLUMNS = 'tenant_id, cell, placed_by, placed_at, revision';
export const MOVE_COLUMNS =
  'id, tenant_id, from_cell, to_cell, state, rows, error, started_at, updated_at, ended_at';

const SETTLE = `insert into cluster.placements (tenant_id, cell, placed_by, revision)
select wanted.tenant_id, $2::text, $3::text, revision.number
from unnest($1::text[]) as wanted (tenant_id), cluster.revision
where exists (select from cluster.cells where name = $2 and ($3 <> 'hash' or state = 'open'))
  and ($3 <> 'hash' or not exists (
    select from cluster.cells where joined_at is not null and found_at is null))
order by 1
on conflict (tenant_id) do nothing
returning tenant_id, cell`;

const REPORT = `with forgotten as (
  delete from cluster.engines where seen_at < now() - $9::int * interval '1 millisecond')
insert into cluster.engines (id, cell, address, role, version, lag_ms, migration, key_ids)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (id) do update set address = excluded.address, role = excluded.role,
  version = excluded.version, lag_ms = excluded.lag_ms, migration = excluded.migration,
  key_ids = excluded.key_ids, seen_at = excluded.seen_at`;
