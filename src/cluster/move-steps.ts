/**
 * Moves a tenant from one cell to another (docs/operate/moving-tenants.md). All state is in rows, so that a new
 * command continues after a crash of the command, an engine or a database (`move-plan.ts`).
 */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { inSchema } from '../db/database-url.js';
import { newestMigration } from '../db/migrate.js';
import { connectCommand, transaction } from './command-sessions.js';
import type { MoveRow } from './directory.js';
import {
  type CellMove,
  expectSameMigration,
  MoveError,
  type MoveFacts,
  nextStep,
  type Step,
} from './move-plan.js';
import {
  beginCopy,
  beginSnapshot,
  copyTable,
  type Deletion,
  deleteRows,
  differences,
  type Tallies,
  type Tally,
  tablesWithRows,
  tallyOf,
} from './move-rows.js';
import type { Moves } from './moves.js';
import type { TenantTable } from './tenant-rows.js';

export interface MoverOptions {
  readonly tables: readonly TenantTable[];
  readonly moves: Moves;
  readonly sourceUrl: string;
  readonly targetUrl: string;
  /** Called before each step; once for a step that waits. */
  readonly onStep: (step: Step) => void;
  /** How long to wait for an engine. */
  readonly patienceMs: number;
  /** For tests. */
  readonly at?: (point: string) => void;
}

/** Between reads of the row of a cell while the command waits for its engine. */
const LOOK_EVERY_MS = 100;
const CONNECT_TIMEOUT_MS = 10_000;

const READ_MOVE = `select move_id as "moveId", state, held_epoch is not null as "isSuspended",
    copied is not null as "isCopied"
  from tenant_moves where tenant_id = $1`;

type Side = 'source' | 'target';

/** The SQLSTATE class of violated constraints. */
const CLASS_CONSTRAINT = '23';

export class TenantMover {
  readonly #options: MoverOptions;
  #move: MoveRow;
  readonly #clients: Partial<Record<Side, pg.Client>> = {};
  #waitsSince: number | undefined;

  constructor(move: MoveRow, options: MoverOptions) {
    this.#move = move;
    this.#options = options;
  }

  /** Resolves with the ended move. @throws MoveError, and the errors of `pg` */
  async run(): Promise<MoveRow> {
    const { moves } = this.#options;
    await moves.lock(this.#move);
    try {
      if (this.#move.state === 'copying') await this.#expectSameSchema();
      for (let last: Step | undefined; ; ) {
        const step = await this.#next();
        if (step === 'nothing') return this.#move;
        if (step !== last) this.#options.onStep(step);
        if (step.startsWith('await')) await this.#wait(step === last, step);
        else {
          this.#options.at?.(`before ${step}`);
          await this.#do(step);
          this.#options.at?.(`behind ${step}`);
        }
        last = step;
      }
    } finally {
      await Promise.allSettled(Object.values(this.#clients).map((client) => client.end()));
    }
  }

  /** Connects on first use: a step that concerns one cell works while the other is lost. */
  async #client(side: Side): Promise<pg.Client> {
    const { sourceUrl, targetUrl } = this.#options;
    const { from_cell, to_cell } = this.#move;
    const [url, cell] = side === 'source' ? [sourceUrl, from_cell] : [targetUrl, to_cell];
    this.#clients[side] ??= await connectCommand({
      connectionString: inSchema(url, cell),
      // The copy of a large table takes long; an operator can end the command.
      statementTimeoutMs: 0,
      idleInTransactionTimeoutMs: 0,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    });
    return this.#clients[side];
  }

  async #next(): Promise<Step> {
    const { moves } = this.#options;
    this.#move = await moves.read(this.#move.id);
    const { id: moveId, state, ended_at, tenant_id } = this.#move;
    const read = async (side: Side) => {
      const client = await this.#client(side);
      return (await client.query<CellMove>(READ_MOVE, [tenant_id])).rows[0];
    };
    const move = { moveId, state, isEnded: ended_at !== null };
    let facts: MoveFacts = { ...move, source: 'unknown', target: 'unknown' };
    for (;;) {
      const step = nextStep(facts);
      if (step === 'ask-source') facts = { ...facts, source: await read('source') };
      else if (step === 'ask-target') facts = { ...facts, target: await read('target') };
      else return step;
    }
  }

  async #wait(isAgain: boolean, step: Step): Promise<void> {
    if (!isAgain) this.#waitsSince = performance.now();
    const waited = performance.now() - (this.#waitsSince ?? 0);
    if (waited > this.#options.patienceMs) {
      const { from_cell, to_cell } = this.#move;
      const isTarget = step === 'await-target' || step === 'await-admission';
      throw new MoveError(
        `the engine of cell ${isTarget ? to_cell : from_cell} does not respond: check that one is running, ` +
          'then run this again, or give the move up',
      );
    }
    await pause(LOOK_EVERY_MS);
  }

  async #do(step: Step): Promise<void> {
    const { moves } = this.#options;
    const { id, from_cell, to_cell } = this.#move;
    const actions: Partial<Record<Step, () => Promise<void>>> = {
      'suspend-source': async () => {
        await this.#expectFreeSlugs();
        await this.#put('source', 'leaving', to_cell);
      },
      'suspend-target': () => this.#put('target', 'arriving', from_cell),
      copy: () => this.#copy(),
      switch: () => moves.switchOver(id),
      'admit-target': () => this.#become('target', 'arriving', 'admitted'),
      'depart-source': () => this.#become('source', 'leaving', 'left'),
      'readmit-source': () => this.#become('source', 'leaving', 'admitted'),
      'clear-source': () => this.#delete('source', 'left').then(() => moves.end(id)),
      'clear-target': () => this.#clearTarget(),
      end: () => moves.end(id),
    };
    const action = actions[step];
    if (action === undefined) throw new MoveError(`${step} cannot be carried out`);
    await action();
  }

  /** Replaces the row of an earlier move. */
  async #put(side: Side, state: CellMove['state'], otherCell: string): Promise<void> {
    const { id, tenant_id } = this.#move;
    const client = await this.#client(side);
    await client.query(
      `insert into tenant_moves (tenant_id, move_id, state, other_cell)
       values ($1, $2::uuid, $3, $4)
       on conflict (tenant_id) do update set move_id = excluded.move_id, state = excluded.state,
         other_cell = excluded.other_cell, stamps_from = null, held_epoch = null, copied = null,
         changed_at = excluded.changed_at
       where tenant_moves.move_id <> excluded.move_id`,
      [tenant_id, id, state, otherCell],
    );
  }

  async #become(side: Side, from: CellMove['state'], to: CellMove['state']): Promise<void> {
    const { id, tenant_id } = this.#move;
    const client = await this.#client(side);
    await client.query(
      `update tenant_moves set state = $4, changed_at = now()
       where tenant_id = $1 and move_id = $2::uuid and state = $3`,
      [tenant_id, id, from, to],
    );
  }

  async #delete(side: Side, state: Deletion['state']): Promise<void> {
    const { id: move, tenant_id: tenant } = this.#move;
    await deleteRows(await this.#client(side), this.#options.tables, { tenant, move, state });
  }

  /** The tables may be newer than the last reports of their owners. */
  async #expectSameSchema(): Promise<void> {
    const { from_cell, to_cell } = this.#move;
    const [source, target] = [await this.#client('source'), await this.#client('target')];
    expectSameMigration(
      { cell: from_cell, migration: await levelOf(source) },
      { cell: to_cell, migration: await levelOf(target) },
      newestMigration(),
    );
  }

  /** Slugs are unique in a cell: another tenant may have taken one. */
  async #expectFreeSlugs(): Promise<void> {
    const { tenant_id, to_cell } = this.#move;
    const [source, target] = [await this.#client('source'), await this.#client('target')];
    const own = await source.query<{ slug: string }>(
      'select slug from triggers where tenant_id = $1',
      [tenant_id],
    );
    const slugs = own.rows.map(({ slug }) => slug);
    const taken = await target.query<{ slug: string }>(
      'select slug from triggers where slug = any($1) and tenant_id <> $2 order by slug',
      [slugs, tenant_id],
    );
    if (taken.rows.length === 0) return;
    throw new MoveError(
      `cell ${to_cell} has triggers of others with these slugs: ` +
        `${taken.rows.map(({ slug }) => slug).join(', ')}; give the move up, or remove those of the tenant`,
    );
  }

  async #copy(): Promise<void> {
    const { moves, at } = this.#options;
    const { id, tenant_id: tenant } = this.#move;
    const [source, target] = [await this.#client('source'), await this.#client('target')];
    // No earlier than any audit entry or cursor of the source, which writes no more entries.
    const latest = await source.query<{ at: string }>(
      'select greatest(clock_timestamp(), (select max(stamps_from) from change_mark)) as at',
    );
    const stampsFrom = latest.rows[0]?.at;
    // Outside the transaction of the copy, because units of all tenants wait for this row.
    await target.query(
      `insert into change_mark (id, stamps_from) values (1, $1::timestamptz)
       on conflict (id) do update set stamps_from = greatest(change_mark.stamps_from, excluded.stamps_from)`,
      [stampsFrom],
    );
    await beginSnapshot(source);
    await beginCopy(target);
    try {
      await this.#expectSameSchema();
      await this.#expectSuspended(source, 'leaving', '');
      // Locks out another command that copies or clears.
      await this.#expectSuspended(target, 'arriving', ' for update');
      const before = await tablesWithRows(target, this.#options.tables, tenant);
      if (before.length > 0) {
        throw new MoveError(
          `cell ${this.#move.to_cell} has rows of tenant ${tenant} that this move has not copied, in ` +
            `${before.map(({ name }) => name).join(', ')}: check whose they are, and remove them`,
        );
      }
      const tables = await tablesWithRows(source, this.#options.tables, tenant);
      for (const table of tables) {
        await copyTable(source, target, table, tenant).catch((error: unknown) => {
          throw this.#copyError(error, table.name);
        });
        at?.('between tables');
      }
      const tally = async (client: pg.Client): Promise<Tallies> => {
        const found: Record<string, Tally> = {};
        for (const table of tables) found[table.name] = await tallyOf(client, table, tenant);
        return found;
      };
      const [there, here] = await Promise.all([tally(source), tally(target)]);
      const different = differences(there, here);
      if (different.length > 0) {
        throw new MoveError(`the copied rows differ from the source, in ${different.join(', ')}`);
      }
      await target.query(
        `update tenant_moves set copied = $2::json, stamps_from = $3::timestamptz, changed_at = now()
         where tenant_id = $1`,
        [tenant, JSON.stringify(there), stampsFrom],
      );
      at?.('before the commit of the copy');
      await target.query('commit');
      await moves.note(id, there);
    } finally {
      await Promise.allSettled([source.query('rollback'), target.query('rollback')]);
    }
  }

  async #expectSuspended(client: pg.Client, state: string, lock: string): Promise<void> {
    const { id, tenant_id } = this.#move;
    const { rows } = await client.query(
      `select from tenant_moves where tenant_id = $1 and move_id = $2::uuid and state = $3
         and held_epoch is not null and copied is null${lock}`,
      [tenant_id, id, state],
    );
    if (rows.length === 0) throw new MoveError(`the tenant is not ${state} any more`);
  }

  /** A violated constraint fails again with every retry. */
  #copyError(error: unknown, table: string): unknown {
    const { code = '', message } = error as { readonly code?: string; readonly message: string };
    if (!code.startsWith(CLASS_CONSTRAINT)) return error;
    return new MoveError(
      `cell ${this.#move.to_cell} does not take the rows of ${table}: ${message}; give the move up`,
    );
  }

  /** Nothing has read the copied rows. */
  async #clearTarget(): Promise<void> {
    const { id, tenant_id: tenant } = this.#move;
    const target = await this.#client('target');
    await transaction(target, async () => {
      const { rowCount } = await target.query(
        `select from tenant_moves where tenant_id = $1 and move_id = $2::uuid and state = 'arriving'
         for update`,
        [tenant, id],
      );
      if (rowCount === 0) return;
      await this.#delete('target', 'arriving');
      await this.#become('target', 'arriving', 'left');
    });
  }
}

async function levelOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ version: number }>(
    'select max(version) as version from schema_migrations',
  );
  return rows[0]?.version ?? -1;
}
