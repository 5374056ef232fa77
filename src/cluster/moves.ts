/**
 * Moves of tenants in the directory of the cluster. The session holds an advisory lock on its move, so that one command
 * at a time works on it. Each commit checks the state again, so that a command without its session does no harm.
 */

import { randomInt } from 'node:crypto';
import type pg from 'pg';
import { createIdGenerator } from '../base/ids.js';
import { newestMigration } from '../db/migrate.js';
import { connectCommand, transaction } from './command-sessions.js';
import { MOVE_COLUMNS, type MoveRow, RAISED } from './directory.js';
import { type CellTraits, expectCompatible, MoveError } from './move-plan.js';
import type { Tallies } from './move-rows.js';

const STATEMENT_TIMEOUT_MS = 10_000;

const ids = createIdGenerator(Date.now, () => randomInt(2 ** 32));

export class Moves {
  readonly #client: pg.Client;
  #failure: Error | undefined;

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', (error) => {
      this.#failure = error;
    });
  }

  static async open(url: string): Promise<Moves> {
    const client = await connectCommand({
      connectionString: url,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      queryTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
    return new Moves(client);
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }

  /** @throws the error that ended the session */
  get #session(): pg.Client {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#client;
  }

  async #rows<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[],
  ): Promise<Row[]> {
    return (await this.#session.query<Row>(text, [...values])).rows;
  }

  /** Undefined when no move of the tenant is under way. */
  async underWay(tenant: string): Promise<MoveRow | undefined> {
    const text = `select ${MOVE_COLUMNS} from cluster.moves where tenant_id = $1 and ended_at is null`;
    return (await this.#rows<MoveRow>(text, [tenant]))[0];
  }

  async read(id: string): Promise<MoveRow> {
    const text = `select ${MOVE_COLUMNS} from cluster.moves where id = $1::uuid`;
    const [row] = await this.#rows<MoveRow>(text, [id]);
    if (row === undefined) throw new MoveError(`there is no move ${id}`);
    return row;
  }

  /**
   * Records a move; the tenant is served as before.
   * @throws MoveError when the tenant is settled nowhere, the cell does not exist or takes no tenants, or the two
   * cells and this program are not compatible
   */
  async begin(tenant: string, to: string): Promise<MoveRow> {
    const [found] = await this.#rows<{ home: string | null; state: string | null }>(
      `select (select cell from cluster.placements where tenant_id = $1) as home,
         (select state from cluster.cells where name = $2) as state`,
      [tenant, to],
    );
    const { home = null, state = null } = found ?? {};
    if (home === null) throw new MoveError(`tenant ${tenant} is in no cell yet: use tenants place`);
    if (home === to) throw new MoveError(`tenant ${tenant} is in cell ${to} already`);
    if (state === null) throw new MoveError(`there is no cell ${to}`);
    if (state === 'draining') throw new MoveError(`cell ${to} is being drained`);
    const [source, target] = await Promise.all([this.#traitsOf(home), this.#traitsOf(to)]);
    if (source !== undefined && target !== undefined)
      expectCompatible(source, target, newestMigration());
    const [row] = await this.#rows<MoveRow>(
      // Excludes a removal of the cell: the removal finds the move, or came first.
      `with target as materialized (
         select name from cluster.cells where name = $3 and state <> 'draining' for share)
       insert into cluster.moves (id, tenant_id, from_cell, to_cell, state)
       select $1::uuid, tenant_id, cell, target.name, 'copying' from cluster.placements, target
       where tenant_id = $2 and cell = $4 returning ${MOVE_COLUMNS}`,
      [ids.next(randomInt(2 ** 16)), tenant, to, home],
    );
    if (row === undefined) {
      throw new MoveError(`tenant ${tenant} or cell ${to} has just been changed: run this again`);
    }
    return row;
  }

  async #traitsOf(cell: string): Promise<CellTraits | undefined> {
    const text = `select cell, migration, key_ids from cluster.engines
      where cell = $1 and role = 'owner' order by seen_at desc limit 1`;
    return (await this.#rows<CellTraits>(text, [cell]))[0];
  }

  /** Locks the move until the session ends. @throws MoveError when another command holds the lock */
  async lock({ id, tenant_id }: Pick<MoveRow, 'id' | 'tenant_id'>): Promise<void> {
    const [row] = await this.#rows<{ is: boolean }>(
      "select pg_try_advisory_lock(hashtextextended('tenants move ' || $1, 0)) as is",
      [id],
    );
    if (row?.is !== true) {
      throw new MoveError(`another command is moving tenant ${tenant_id} just now`);
    }
  }

  async note(id: string, tallies: Tallies): Promise<void> {
    const text =
      'update cluster.moves set rows = $2::jsonb, updated_at = now() where id = $1::uuid';
    await this.#rows(text, [id, JSON.stringify(tallies)]);
  }

  async fail(id: string, error: string): Promise<void> {
    const text = 'update cluster.moves set error = $2, updated_at = now() where id = $1::uuid';
    await this.#rows(text, [id, error]);
  }

  /** Settles the tenant in the other cell. @throws MoveError when the move was given up */
  async switchOver(id: string): Promise<void> {
    await transaction(this.#session, async () => {
      // Serialised with `giveUp`.
      const [move] = await this.#rows<MoveRow>(
        `select ${MOVE_COLUMNS} from cluster.moves where id = $1::uuid for update`,
        [id],
      );
      if (move?.state !== 'copying') throw new MoveError('the move was given up');
      const placed = await this.#rows(
        `with ${RAISED} update cluster.placements
         set cell = $2, placed_by = 'move', placed_at = now(), revision = raised.number
         from raised where tenant_id = $1 and cell = $3 returning tenant_id`,
        [move.tenant_id, move.to_cell, move.from_cell],
      );
      if (placed.length === 0) throw new MoveError('the tenant was placed by hand meanwhile');
      const switched = `update cluster.moves set state = 'switched', error = null, updated_at = now()
        where id = $1::uuid`;
      await this.#rows(switched, [id]);
    });
  }

  /** @throws MoveError when the tenant is already settled in the other cell */
  async giveUp(id: string): Promise<void> {
    const rows = await this.#rows(
      `update cluster.moves set state = 'given_up', updated_at = now()
       where id = $1::uuid and state = 'copying' returning id`,
      [id],
    );
    if (rows.length === 0) throw new MoveError('too late: the tenant is settled in the other cell');
  }

  async end(id: string): Promise<void> {
    await this.#rows(
      `update cluster.moves set state = case state when 'switched' then 'done' else state end,
         ended_at = coalesce(ended_at, now()), updated_at = now()
       where id = $1::uuid and state <> 'copying'`,
      [id],
    );
  }
}
