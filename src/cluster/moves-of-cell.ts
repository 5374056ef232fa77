/**
 * What an engine does about tenants that leave its cell or arrive in it (docs/operate/moving-tenants.md). The rows
 * of `tenant_moves` say what is to be so; here it is made so, and said to be so in a way that no earlier owner of the
 * cell can. Who is not in these rows lives here as ever.
 */

import type pg from 'pg';
import { BackgroundJob } from '../base/background-job.js';
import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { UnixMs } from '../base/time.js';

export interface MoveRowHere {
  readonly tenant_id: string;
  readonly move_id: string;
  readonly state: 'leaving' | 'arriving' | 'left' | 'admitted';
  readonly other_cell: string;
  readonly held_epoch: number | null;
  readonly stamps_from: string | null;
}

/** What requests of tenants are told; see `Placement`. */
export interface TenantGate {
  hold(tenant: string, isArriving: boolean): void;
  endPolls(tenant: string): void;
  release(tenant: string): void;
  depart(tenant: string, cell: string): void;
}

export interface CellMovesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly pool: Pick<pg.Pool, 'query'>;
  /** Of the cell's tables. */
  readonly shards: {
    beginHeld(tenants: readonly string[]): void;
    hold(tenant: string): Promise<void>;
    admit(tenant: string, stampsFrom: UnixMs): Promise<void>;
  };
  /** Undefined without a directory of a cluster. */
  readonly gate: TenantGate | undefined;
  /** Before the tenant is admitted: what is known by heart of tenants is read anew. */
  readonly learn: (tenant: string, stampsFrom: UnixMs) => Promise<void>;
  /** It has been admitted: what looks for work looks for its. */
  readonly wake: () => void;
}

/** How soon a new row is seen: a part of the pause of a tenant that is moved. */
const EVERY_MS = 250;
/** Without a cluster there is nobody who would write one, unless there was one before. */
const ALONE_EVERY_MS = 5_000;

/** So many failures in a row are told of, once. */
const FAILURES_TOLD = 20;

const READ =
  'select tenant_id, move_id, state, other_cell, held_epoch, stamps_from from tenant_moves order by tenant_id';

/**
 * The locks wait for every flush under way, and nobody else gets one at this epoch: what an engine commits that
 * has lost the cell fails as a whole, and so does what is said with them.
 */
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
  /** Of whom nothing is done here, by what was last done about them. */
  readonly #held = new Map<string, MoveRowHere['state']>();
  readonly #job: BackgroundJob;
  #epoch = 0;
  /** Looks that failed since the last one that did not. */
  #failures = 0;

  constructor(deps: CellMovesDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    const run = async () => {
      try {
        await this.look();
        this.#failures = 0;
      } catch (error) {
        this.#failures += 1;
        // One may be a database that is away, of which others say enough.
        if (this.#failures === FAILURES_TOLD) {
          log.warn({ err: error }, 'moves of tenants cannot be followed; trying again');
        } else log.debug({ err: error }, 'moves of tenants were not read');
      }
    };
    const everyMs = deps.gate === undefined ? ALONE_EVERY_MS : EVERY_MS;
    this.#job = new BackgroundJob({ clock, log, name: 'moves of tenants', everyMs, run });
  }

  /** Tenants of whom nothing is done here, but those that have left. */
  get held(): number {
    let held = 0;
    for (const state of this.#held.values()) if (state !== 'left') held += 1;
    return held;
  }

  /**
   * To be called by the owner before its shards load anything: its predecessor cannot have said anything since.
   *
   * @param epoch of the owner
   */
  async begin(epoch: number): Promise<void> {
    this.#epoch = epoch;
    const { gate, shards } = this.#deps;
    const rows = await this.#read();
    for (const { tenant_id: tenant, state } of rows) {
      if (state === 'admitted') continue;
      this.#held.set(tenant, state);
      // Where one that has left is now the directory knows better: it may have been moved on.
      if (state !== 'left') gate?.hold(tenant, state === 'arriving');
    }
    shards.beginHeld([...this.#held.keys()]);
  }

  /** Follows the rows from now on. */
  start(): void {
    this.#job.wake();
  }

  stop(): void {
    this.#job.stop();
  }

  /** Makes so what the rows say. */
  async look(): Promise<void> {
    const rows = await this.#read();
    const named = new Set<string>();
    for (const row of rows) {
      named.add(row.tenant_id);
      await this.#follow(row);
    }
    for (const tenant of [...this.#held.keys()])
      if (!named.has(tenant)) await this.#admit(tenant, 0);
  }

  async #follow(row: MoveRowHere): Promise<void> {
    const { tenant_id: tenant, move_id: moveId, state, other_cell: otherCell } = row;
    const { pool, gate, shards, log } = this.#deps;
    const before = this.#held.get(tenant);
    if (state === 'admitted') {
      await this.#admit(tenant, row.stamps_from === null ? 0 : Date.parse(row.stamps_from));
      await pool.query(REMOVE, [this.#epoch, tenant, moveId]);
      return;
    }
    const isHeld = state !== 'left';
    // One that has left is held for the moment that shards need to hear of it.
    if (before === undefined || (before !== state && isHeld)) {
      gate?.hold(tenant, state === 'arriving');
    }
    if (before === undefined) await shards.hold(tenant);
    // Not at once: shards answer polls with the tasks that these have claimed.
    if (before === state && isHeld) gate?.endPolls(tenant);
    if (before !== state) {
      this.#held.set(tenant, state);
      if (state === 'left' && before !== undefined) gate?.depart(tenant, otherCell);
      log.info({ tenantId: tenant, moveId, state, otherCell }, 'a tenant is on its way');
    }
    if (!isHeld || row.held_epoch !== null) return;
    await pool.query(ACKNOWLEDGE, [this.#epoch, tenant, moveId]);
  }

  async #admit(tenant: string, stampsFrom: UnixMs): Promise<void> {
    if (!this.#held.has(tenant)) return;
    const { gate, shards, learn, wake, log } = this.#deps;
    await learn(tenant, stampsFrom);
    await shards.admit(tenant, stampsFrom);
    this.#held.delete(tenant);
    gate?.release(tenant);
    wake();
    log.info({ tenantId: tenant }, 'the tenant is served here');
  }

  async #read(): Promise<readonly MoveRowHere[]> {
    return (await this.#deps.pool.query<MoveRowHere>(READ)).rows;
  }
}
