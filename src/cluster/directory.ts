/**
 * The directory of a cluster (docs/operate/cells.md): which cells there are, which tenants are settled where, which
 * moves go on, and what engines last said of themselves. All statements over the schema `cluster` that engines and
 * the command line share are here. Every change of cells and placements raises the revision in its own transaction
 * and tells who listens, so that what is cached elsewhere can follow.
 */

import { readFileSync } from 'node:fs';
import type pg from 'pg';
import type { CELL_STATES, MOVE_STATES } from '../../schema/cell.js';
import type { JsonValue } from '../base/json.js';
import { packageFile } from '../base/package-files.js';
import { type ConnectionOptions, createClient, createPool, withClient } from '../db/pool.js';
import { inTransaction, statementsIn } from '../db/sql-script.js';

export type CellState = (typeof CELL_STATES)[number];

export interface CellRow {
  readonly name: string;
  /** Of its database, without a password. */
  readonly database_url: string;
  /** Where proxies find its engines: host:port. */
  readonly engines: readonly string[];
  readonly state: CellState;
  readonly created_at: string;
  /** Of its first engine. Null: none was ever heard of. */
  readonly joined_at: string | null;
  /** Since then all tenants that it has rows of are settled. Null: it was not looked through yet. */
  readonly found_at: string | null;
}

/** hand: an operator placed it. hash: its bucket led there. move: it was moved. found: it was there before. */
export const PLACED_BY = ['hand', 'hash', 'move', 'found'] as const;
export type PlacedBy = (typeof PLACED_BY)[number];

/** Where a tenant is settled. */
export interface Settled {
  readonly tenant_id: string;
  readonly cell: string;
}

export interface PlacementRow extends Settled {
  readonly placed_by: PlacedBy;
  readonly placed_at: string;
  /** The number that was raised for it. */
  readonly revision: number;
}

export type MoveState = (typeof MOVE_STATES)[number];

export interface MoveRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly from_cell: string;
  readonly to_cell: string;
  readonly state: MoveState;
  /** By table, what was copied. Null before it was. */
  readonly rows: JsonValue;
  readonly error: string | null;
  readonly started_at: string;
  readonly updated_at: string;
  readonly ended_at: string | null;
}

/** What an engine says of itself every few seconds. */
export interface EngineSays {
  /** Of one process. */
  readonly id: string;
  readonly cell: string;
  /** host:port */
  readonly address: string;
  readonly role: 'owner' | 'standby';
  readonly version: string;
  /** Null: it does not write. */
  readonly lag_ms: number | null;
  /** The latest of the cell's tables. */
  readonly migration: number;
  /** Of the encryption keys by which it reads what is sealed. */
  readonly key_ids: readonly string[];
}

export interface EngineRow extends EngineSays {
  readonly seen_at: string;
  /** By the clock of the directory. */
  readonly silent_ms: number;
}

/** Thrown when the directory is not there, or not the one that this program knows; the message says what to do. */
export class DirectoryError extends Error {
  override readonly name = 'DirectoryError';
}

/** Of the tables in `schema.sql`. */
const SCHEMA_VERSION = 2;

/** What is told on it is the revision. */
const CHANNEL = 'engine_cluster';

/** Small statements: an engine asks while a request waits. */
const STATEMENT_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const CONNECTIONS_MAX = 2;
/** What one engine may hold: these, and the one that listens. */
export const PROCESS_CONNECTIONS = CONNECTIONS_MAX + 1;

/** An engine that says nothing for so long is taken for gone: some of its beats. */
export const ENGINE_SILENT_MS = 15_000;

/** Rows of engines that are gone for so long are removed. */
const ENGINE_FORGOTTEN_MS = 86_400_000;

/**
 * Begins each statement that changes cells or placements. The row of the revision stays locked until the
 * commit: changes come one after the other, and whoever sees a number sees all that was changed up to it.
 */
export const RAISED = `raised as (
  update cluster.revision set number = number + 1
  returning number, pg_notify('${CHANNEL}', number::text) as told)`;

const connection = (url: string, applicationName: string): ConnectionOptions => ({
  connectionString: url,
  applicationName,
  statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  queryTimeoutMs: STATEMENT_TIMEOUT_MS,
  connectTimeoutMs: CONNECT_TIMEOUT_MS,
});

/** While it is on, Citus distributes every schema that the session creates. */
const SHARDS = 'citus.enable_schema_based_sharding';

/** Makes the tables of the directory where they are missing. */
export async function makeDirectory(url: string): Promise<void> {
  const text = readFileSync(packageFile('src/cluster/schema.sql'), 'utf8');
  const statements = [
    // Two at a time could both begin to make the schema.
    `select pg_advisory_xact_lock(hashtext('${CHANNEL}'))`,
    // Engines listen for notifications, which do not leave the node they were sent on (docs/operate/citus.md).
    `select set_config('${SHARDS}', 'off', true) where current_setting('${SHARDS}', true) is not null`,
    ...statementsIn(text),
  ];
  await withClient(connection(url, 'cluster'), (client) => inTransaction(client, statements));
}

/** Rejects with the errors of `pg`. */
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

  /** For a session of its own. */
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

  /** Several statements in one transaction: what `work` rejects with takes all of them back. */
  async transaction<Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      await client.query('begin');
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      failure = error as Error;
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      client.release(failure);
    }
  }

  // ---------------------------------------------------------------- the directory itself

  /**
   * Brings a directory of an earlier program up to date, if the role may.
   *
   * @throws DirectoryError when it is missing or of another version
   */
  async check(): Promise<void> {
    const [there] = await this.#rows<{ readonly is: boolean }>(
      "select to_regclass('cluster.revision') is not null as is",
    );
    if (there?.is !== true) {
      throw new DirectoryError('the database has no directory of a cluster: cells create makes it');
    }
    let version = await this.#version();
    if (version < SCHEMA_VERSION) {
      // Who may not is told what to do below.
      await makeDirectory(this.#url).catch(() => undefined);
      version = await this.#version();
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

  async #version(): Promise<number> {
    const [row] = await this.#rows<{ readonly version: number }>(
      'select schema_version as version from cluster.revision',
    );
    return row?.version ?? 0;
  }

  async revision(): Promise<number> {
    const [row] = await this.#rows<{ readonly number: number }>(
      'select number from cluster.revision',
    );
    return row?.number ?? 0;
  }

  /**
   * Tells of changes until `end` is called or the connection breaks; whoever listens looks at the
   * revision as well, since what is told in between is lost.
   *
   * @param onRaised with the new revision
   * @param onBroken nothing is told from now on
   */
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

  // ---------------------------------------------------------------- cells

  /** By their names. */
  cells(): Promise<CellRow[]> {
    return this.#rows<CellRow>(`select ${CELL_COLUMNS} from cluster.cells order by name`);
  }

  async cell(name: string): Promise<CellRow | undefined> {
    const rows = await this.#rows<CellRow>(
      `select ${CELL_COLUMNS} from cluster.cells where name = $1`,
      [name],
    );
    return rows[0];
  }

  /** @returns undefined when there is one of this name already */
  async createCell(
    cell: Pick<CellRow, 'name' | 'database_url' | 'engines' | 'state'>,
  ): Promise<CellRow | undefined> {
    const rows = await this.#rows<CellRow>(
      `with ${RAISED} insert into cluster.cells (name, database_url, engines, state)
       select $1, $2, $3, $4 from raised on conflict do nothing returning ${CELL_COLUMNS}`,
      [cell.name, cell.database_url, cell.engines, cell.state],
    );
    return rows[0];
  }

  /** @returns undefined when there is no such cell. @param changed what is absent stays */
  async changeCell(
    name: string,
    changed: Partial<Pick<CellRow, 'database_url' | 'engines'>>,
  ): Promise<CellRow | undefined> {
    const rows = await this.#rows<CellRow>(
      `with ${RAISED} update cluster.cells set database_url = coalesce($2, database_url),
         engines = coalesce($3::text[], engines) from raised where name = $1 returning ${CELL_COLUMNS}`,
      [name, changed.database_url ?? null, changed.engines ?? null],
    );
    return rows[0];
  }

  /** @returns undefined when there is no such cell */
  async setState(name: string, state: CellState): Promise<CellRow | undefined> {
    const rows = await this.#rows<CellRow>(
      `with ${RAISED} update cluster.cells set state = $2 from raised where name = $1
       returning ${CELL_COLUMNS}`,
      [name, state],
    );
    return rows[0];
  }

  /** The first engine of the cell is heard of. */
  async noteJoined(name: string): Promise<void> {
    await this.#rows(
      `with ${RAISED} update cluster.cells set joined_at = now() from raised
       where name = $1 and joined_at is null`,
      [name],
    );
  }

  /** It is to be looked through again. */
  async noteUnfound(name: string): Promise<void> {
    await this.#rows(
      `with ${RAISED} update cluster.cells set joined_at = coalesce(joined_at, now()), found_at = null
       from raised where name = $1`,
      [name],
    );
  }

  /** All tenants that the cell has rows of are settled. */
  async noteFound(name: string): Promise<void> {
    await this.#rows(
      `with ${RAISED} update cluster.cells set found_at = now() from raised
       where name = $1 and found_at is null`,
      [name],
    );
  }

  /**
   * Removes a cell that nothing refers to any more. Its engines that are gone are forgotten with it.
   *
   * @returns why it was not removed; undefined: it was
   */
  removeCell(
    name: string,
  ): Promise<'missing' | 'has tenants' | 'has engines' | 'is moved' | undefined> {
    return this.transaction(async (client) => {
      // The lock that every change takes: nobody is placed there meanwhile.
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
      if (found?.cell !== true) return 'missing';
      if (found.moves) return 'is moved';
      if (found.tenants) return 'has tenants';
      if (found.engines) return 'has engines';
      await client.query('delete from cluster.engines where cell = $1', [name]);
      await client.query('delete from cluster.cells where name = $1', [name]);
      return undefined;
    });
  }

  /** Tenants that are settled there, by cell. */
  async tenantCounts(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#rows<{ readonly cell: string; readonly count: number }>(
      'select cell, count(*) as count from cluster.placements group by cell',
    );
    return new Map(rows.map(({ cell, count }) => [cell, count]));
  }

  // ---------------------------------------------------------------- placements

  /** Of those of the tenants that are settled. */
  placementsOf(tenants: readonly string[]): Promise<Settled[]> {
    return this.#rows<Settled>(
      'select tenant_id, cell from cluster.placements where tenant_id = any($1::text[])',
      [tenants],
    );
  }

  async placement(tenant: string): Promise<PlacementRow | undefined> {
    const rows = await this.#rows<PlacementRow>(
      `select ${PLACEMENT_COLUMNS} from cluster.placements where tenant_id = $1`,
      [tenant],
    );
    return rows[0];
  }

  /** In the order of the tenants' names, from the one after `after` on. @param cell absent: of all cells */
  placements(asked: {
    readonly after: string;
    readonly limit: number;
    readonly cell?: string | undefined;
  }): Promise<PlacementRow[]> {
    return this.#rows<PlacementRow>(
      `select ${PLACEMENT_COLUMNS} from cluster.placements
       where tenant_id > $1 and ($3::text is null or cell = $3) order by tenant_id limit $2`,
      [asked.after, asked.limit, asked.cell ?? null],
    );
  }

  /**
   * What was placed later, one row for a tenant, as it stands now. Many may have one revision.
   *
   * @param after the last one that is known; an empty tenant comes before all of its revision
   */
  placedSince(
    after: Pick<PlacementRow, 'revision' | 'tenant_id'>,
    limit: number,
  ): Promise<PlacementRow[]> {
    return this.#rows<PlacementRow>(
      `select ${PLACEMENT_COLUMNS} from cluster.placements where (revision, tenant_id) > ($1, $2)
       order by revision, tenant_id limit $3`,
      [after.revision, after.tenant_id, limit],
    );
  }

  /**
   * Settles those of the tenants that are settled nowhere, and says where each of them is: two cells that meet
   * one at the same time are told the same. A tenant is settled by its hash only while the cell is open, and while
   * no cell has engines and was not looked through for the tenants that it has.
   *
   * @returns by tenant; who is missing is still settled nowhere, because the cell takes nobody or is gone
   */
  async settle(
    tenants: readonly string[],
    cell: string,
    by: PlacedBy,
  ): Promise<ReadonlyMap<string, string>> {
    const placed = await this.transaction(async (client) => {
      // A statement of its own: the next one sees what was committed before this one had the lock.
      await client.query(`with ${RAISED} select from raised`);
      return (await client.query<Settled>(SETTLE, [tenants, cell, by])).rows;
    });
    const found = new Map(placed.map((row) => [row.tenant_id, row.cell]));
    const others = tenants.filter((tenant) => !found.has(tenant));
    // In a statement of its own, which sees what stood in the way.
    const theirs = others.length === 0 ? [] : await this.placementsOf(others);
    for (const row of theirs) found.set(row.tenant_id, row.cell);
    return found;
  }

  // ---------------------------------------------------------------- moves

  /** Newest first. @param asked.before the id of the last one of the page before */
  moves(asked: {
    readonly limit: number;
    readonly before?: string | undefined;
    readonly isUnderWay?: boolean;
  }): Promise<MoveRow[]> {
    return this.#rows<MoveRow>(
      `select ${MOVE_COLUMNS} from cluster.moves
       where ($2::uuid is null or id < $2) and (not $3 or ended_at is null) order by id desc limit $1`,
      [asked.limit, asked.before ?? null, asked.isUnderWay ?? false],
    );
  }

  /** Those of the tenants that are being moved, or whose old rows are still there. */
  async movedOf(tenants: readonly string[]): Promise<string[]> {
    const rows = await this.#rows<{ readonly tenant_id: string }>(
      `select tenant_id from cluster.moves where ended_at is null and tenant_id = any($1::text[])`,
      [tenants],
    );
    return rows.map(({ tenant_id }) => tenant_id);
  }

  /** How many go on, by cell: from or to it. */
  async moveCounts(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#rows<{ readonly cell: string; readonly count: number }>(
      `select cell, count(*) as count from cluster.moves, unnest(array[from_cell, to_cell]) as cell
       where ended_at is null group by cell`,
    );
    return new Map(rows.map(({ cell, count }) => [cell, count]));
  }

  // ---------------------------------------------------------------- engines

  /** Takes what an engine says of itself in the place of what it said before. */
  async say(says: EngineSays): Promise<void> {
    const { id, cell, address, role, version, lag_ms, migration, key_ids } = says;
    const values = [id, cell, address, role, version, lag_ms, migration, key_ids];
    await this.#rows(SAY, [...values, ENGINE_FORGOTTEN_MS]);
  }

  /** An engine that stops in order is gone at once. */
  async forgetEngine(id: string): Promise<void> {
    await this.#rows('delete from cluster.engines where id = $1', [id]);
  }

  /** Owners first, then by address. */
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
select asked.tenant_id, $2::text, $3::text, revision.number
from unnest($1::text[]) as asked (tenant_id), cluster.revision
where exists (select from cluster.cells where name = $2 and ($3 <> 'hash' or state = 'open'))
  and ($3 <> 'hash' or not exists (
    select from cluster.cells where joined_at is not null and found_at is null))
order by 1
on conflict (tenant_id) do nothing
returning tenant_id, cell`;

const SAY = `with gone as (
  delete from cluster.engines where seen_at < now() - $9::int * interval '1 millisecond')
insert into cluster.engines (id, cell, address, role, version, lag_ms, migration, key_ids)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (id) do update set address = excluded.address, role = excluded.role,
  version = excluded.version, lag_ms = excluded.lag_ms, migration = excluded.migration,
  key_ids = excluded.key_ids, seen_at = excluded.seen_at`;
