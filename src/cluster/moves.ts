/**
 * Moves of tenants in the directory of the cluster: what begins, switches and ends them, each in one commit. The
 * session holds a lock of its move, so that one command at a time works on it; what a command does that has lost
 * its session is harmless, because every commit looks at the state again.
 */

import { randomInt } from 'node:crypto';
import type pg from 'pg';
import { createIdGenerator } from '../base/ids.js';
import { newestMigration } from '../db/migrate.js';
import { connectCommand } from './command-sessions.js';
import { MOVE_COLUMNS, type MoveRow, RAISED } from './directory.js';
import { type CellTraits, expectAlike, MoveError } from './move-plan.js';
import type { Tallies } from './move-rows.js';

/** Small statements. */
const STATEMENT_TIMEOUT_MS = 10_000;

const ids = createIdGenerator(Date.now, () => randomInt(2 ** 32));

export class Moves {
  readonly #client: pg.Client;
  #failure: Error | undefined;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** @param url of the database with the directory */
  static async open(url: string): Promise<Moves> {
    const timeouts = {
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      queryTimeoutMs: STATEMENT_TIMEOUT_MS,
    };
    let moves: Moves | undefined;
    const client = await connectCommand({ connectionString: url, ...timeouts }, (error) => {
      if (moves !== undefined) moves.#failure = error;
    });
    moves = new Moves(client);
    return moves;
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }

  async #rows<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[],
  ): Promise<Row[]> {
    if (this.#failure !== undefined) throw this.#failure;
    return (await this.#client.query<Row>(text, [...values])).rows;
  }

  /** The one that is under way; undefined: none is. */
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
   * Writes down that the tenant is to be moved. That changes nothing for it yet.
   *
   * @throws MoveError when it lives nowhere, when there is no such cell or one that takes nobody, and when the two
   *   cells differ in what they must have in common with each other and with this program, as far as their owners
   *   were ever heard of
   */
  async begin(tenant: string, to: string): Promise<MoveRow> {
    const [found] = await this.#rows<{ home: string | null; state: string | null }>(
      `select (select cell from cluster.placements where tenant_id = $1) as home,
         (select state from cluster.cells where name = $2) as state`,
      [tenant, to],
    );
    const { home = null, state = null } = found ?? {};
    if (home === null) throw new MoveError(`tenant ${tenant} lives in no cell yet: tenants place`);
    if (home === to) throw new MoveError(`tenant ${tenant} lives in cell ${to} already`);
    if (state === null) throw new MoveError(`there is no cell ${to}`);
    if (state === 'draining') throw new MoveError(`cell ${to} is being drained`);
    const [source, target] = await Promise.all([this.#traitsOf(home), this.#traitsOf(to)]);
    if (source !== undefined && target !== undefined)
      expectAlike(source, target, newestMigration());
    const [row] = await this.#rows<MoveRow>(
      // Locked: whoever removes the cell meanwhile has had it, or finds the move.
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

  /** Until the session ends. @throws MoveError when another command has it */
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

  /**
   * In one commit the tenant lives in the other cell.
   *
   * @throws MoveError when the move was given up
   */
  async switchOver(id: string): Promise<void> {
    await this.#rows('begin', []);
    try {
      // Whoever gives the move up waits for this lock, or has had it before.
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
      await this.#rows(
        `update cluster.moves set state = 'switched', error = null, updated_at = now()
         where id = $1::uuid`,
        [id],
      );
      await this.#rows('commit', []);
    } catch (error) {
      await this.#client.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  /** The tenant stays where it is. @throws MoveError when it lives in the other cell already */
  async giveUp(id: string): Promise<void> {
    const rows = await this.#rows(
      `update cluster.moves set state = 'given_up', updated_at = now()
       where id = $1::uuid and state = 'copying' returning id`,
      [id],
    );
    if (rows.length === 0) throw new MoveError('too late: the tenant lives in the other cell');
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
