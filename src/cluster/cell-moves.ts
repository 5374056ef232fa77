/**
 * Follows the rows of `tenant_moves` in the engine of a cell (docs/operate/moving-tenants.md): suspends and admits
 * tenants as the rows say. Acknowledges under the locks of all lanes, which no earlier owner of the cell can hold.
 * Tenants without a row are served.
 */

import type pg from 'pg';
import { BackgroundJob } from '../base/background-job.js';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { UnixMs } from '../base/time.js';
import type { CellMove } from './move-plan.js';
import type { CellPlacement } from './placement.js';

interface MoveRow {
  readonly tenant_id: string;
  readonly move_id: string;
  readonly state: CellMove['state'];
  readonly other_cell: string;
  readonly held_epoch: number | null;
  readonly stamps_from: string | null;
}

export interface MovingParts {
  readonly pool: Pick<pg.Pool, 'query'>;
  readonly shards: {
    beginSuspended(tenants: readonly string[]): void;
    suspend(tenant: string): Promise<void>;
    admit(tenant: string, stampsFrom: UnixMs): Promise<void>;
  };
  /** Reloads the cached rows of the tenant; called before it is admitted. */
  readonly learn: (tenant: string, stampsFrom: UnixMs) => Promise<void>;
  /** Called when a tenant is admitted, so that background jobs find its work. */
  readonly wake: () => void;
}

export interface CellMovesDeps extends MovingParts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined without a cluster. */
  readonly placement:
    | Pick<CellPlacement, 'suspend' | 'endPolls' | 'resume' | 'redirect'>
    | undefined;
}

/** Adds to the time for which a moved tenant is suspended. */
const EVERY_MS = 250;
/** Without a cluster, rows can only remain from an earlier one. */
const ALONE_EVERY_MS = 5_000;

const READ =
  'select tenant_id, move_id, state, other_cell, held_epoch, stamps_from from tenant_moves order by tenant_id';

/** Waits for every flush under way, and is granted at this epoch only: a former owner changes nothing. */
const FENCE = `with fence as (
  select lane from lanes where epoch = $1::bigint order by lane for no key update)`;
const IS_OWNER = '(select count(*) from fence) = (select count(*) from lanes)';

const ACKNOWLEDGE = `${FENCE}
update tenant_moves set held_epoch = $1::bigint, changed_at = now()
where tenant_id = $2 and move_id = $3::uuid and state in ('leaving', 'arriving') and held_epoch is null
  and ${IS_OWNER}`;

const REMOVE = `${FENCE}
delete from tenant_moves where tenant_id = $2 and move_id = $3::uuid and state = 'admitted' and ${IS_OWNER}`;

export class CellMoves {
  readonly #deps: CellMovesDeps;
  /** Suspended tenants, each with the state that was carried out last. */
  readonly #suspended = new Map<string, MoveRow['state']>();
  readonly #job: BackgroundJob;
  #epoch = 0;

  constructor(deps: CellMovesDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    const run = () => this.look();
    const everyMs = deps.placement === undefined ? ALONE_EVERY_MS : EVERY_MS;
    this.#job = new BackgroundJob({ clock, log, name: 'moves of tenants', everyMs, run });
  }

  /** Suspends the moving tenants before the shards load anything. */
  async begin(epoch: number): Promise<void> {
    this.#epoch = epoch;
    const { placement, shards } = this.#deps;
    const rows = await this.#read();
    for (const { tenant_id: tenant, state } of rows) {
      if (state === 'admitted') continue;
      this.#suspended.set(tenant, state);
      // The directory has the current cell of a tenant that left: it may have been moved again.
      if (state !== 'left') placement?.suspend(tenant, state === 'arriving');
    }
    shards.beginSuspended([...this.#suspended.keys()]);
  }

  start(): void {
    this.#job.wake();
  }

  stop(): void {
    this.#job.stop();
  }

  async look(): Promise<void> {
    const rows = await this.#read();
    const listed = new Set<string>();
    for (const row of rows) {
      listed.add(row.tenant_id);
      await this.#follow(row);
    }
    for (const tenant of [...this.#suspended.keys()])
      if (!listed.has(tenant)) await this.#admit(tenant, 0);
  }

  async #follow(row: MoveRow): Promise<void> {
    const { tenant_id: tenant, move_id: moveId, state, other_cell: otherCell } = row;
    const { pool, placement, shards, log } = this.#deps;
    const before = this.#suspended.get(tenant);
    if (state === 'admitted') {
      await this.#admit(tenant, row.stamps_from === null ? 0 : Date.parse(row.stamps_from));
      await pool.query(REMOVE, [this.#epoch, tenant, moveId]);
      return;
    }
    const isMoving = state !== 'left';
    // A tenant that left stays suspended until the shards have released it.
    if (before === undefined || (before !== state && isMoving)) {
      placement?.suspend(tenant, state === 'arriving');
    }
    if (before === undefined) await shards.suspend(tenant);
    // One pass later, so that the shards first answer polls with the tasks that they have claimed.
    if (before === state && isMoving) placement?.endPolls(tenant);
    if (before !== state) {
      this.#suspended.set(tenant, state);
      if (state === 'left' && before !== undefined) placement?.redirect(tenant, otherCell);
      log.info({ tenantId: tenant, moveId, state, otherCell }, 'a tenant is on its way');
    }
    if (!isMoving || row.held_epoch !== null) return;
    await pool.query(ACKNOWLEDGE, [this.#epoch, tenant, moveId]);
  }

  async #admit(tenant: string, stampsFrom: UnixMs): Promise<void> {
    if (!this.#suspended.has(tenant)) return;
    const { placement, shards, learn, wake, log } = this.#deps;
    await learn(tenant, stampsFrom);
    await shards.admit(tenant, stampsFrom);
    this.#suspended.delete(tenant);
    placement?.resume(tenant);
    wake();
    log.info({ tenantId: tenant }, 'the tenant is served here');
  }

  async #read(): Promise<readonly MoveRow[]> {
    return (await this.#deps.pool.query<MoveRow>(READ)).rows;
  }
}
