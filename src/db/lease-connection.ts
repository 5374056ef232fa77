/**
 * The session that reads the lease, holds its advisory lock and renews it. The lock belongs to the session:
 * after a lost connection, a new session must take the lock before it renews.
 */

import type pg from 'pg';
import type { ClockReading } from '../base/clock.js';
import type { LeaseOptions, LeaseTiming } from './lease.js';
import { SchemaError } from './migrate.js';
import { createClient } from './pool.js';
import { doubtPrimary, provePrimary } from './primary.js';

export interface LeaseRow {
  readonly epoch: number;
  readonly owner: string;
  /** Changes with each renewal, independent of the database's clock. */
  readonly version: string;
  /** How long a renewal lasts; 0 if the owner released the lease. */
  readonly ttlMs: number;
  /** The lock of the epoch was free; this session holds it now. */
  readonly isFree: boolean;
}

interface Judged extends Pick<LeaseRow, 'epoch' | 'version'> {
  readonly lanesEpoch: number | null;
  /** Empty at epoch 0, which had no owner. */
  readonly applicationName: string;
}

export type Renewal =
  | { readonly kind: 'renewed'; readonly reading: ClockReading }
  /** The row has another epoch or owner. */
  | { readonly kind: 'taken' }
  /** Another session has the epoch's lock. */
  | { readonly kind: 'locked' };

/**
 * The first number of the advisory locks in the schema `public`; the second number is the epoch. Advisory
 * locks belong to a database, so other schemas combine it with their oid.
 */
const LOCK_SPACE = 1_701_734_765;

const SPACE_OF_SCHEMA = `
select case nspname when 'public' then $1::int else $1::int # oid::int end as space
from pg_namespace where nspname = current_schema()`;

/** The client's timeout, for a silent server, exceeds the server's by this. */
const SILENCE_MARGIN_MS = 500;

/** Cheap enough for every standby several times a second. */
const POLL = `
select epoch, owner, xmin::text as version,
  extract(epoch from expires_at - renewed_at)::float8 * 1000 as "ttlMs"
from engine_lease where id = 1`;

/** A renewal does not wait for replicas. A take-over does: a fail-over must not undo it. */
const ALONE = 'set synchronous_commit = local';
const BEGIN_REPLICATED = 'begin; set local synchronous_commit = on';

/** Not in `returning`, where Citus accepts only immutable functions (docs/operate/citus.md). */
const thenReadClock = (change: string) => `
with changed as (${change}
  returning id)
select extract(epoch from clock_timestamp())::float8 * 1000 as "unixMs" from changed`;

const RENEW = thenReadClock(`
  update engine_lease
  set renewed_at = now(), expires_at = now() + $3::int * interval '1 millisecond'
  where id = 1 and epoch = $1::bigint and owner = $2::text`);

const JUDGE = `
select epoch, xmin::text as version, application_name as "applicationName",
  (select max(epoch) from lanes) as "lanesEpoch"
from engine_lease where id = 1 for update`;

/** A committing backend finishes; the others roll back and free their locks. */
const END_SESSIONS = `
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and usename = current_user
  and application_name = $1::text`;

const RAISE_LANES = 'update lanes set epoch = $1::bigint where epoch < $1::bigint';

const ADD_LANES = `
insert into lanes (lane, epoch)
select lane, $1::bigint from generate_series(0, $2::int - 1) as lane
on conflict (lane) do nothing`;

const TAKE = thenReadClock(`
  update engine_lease
  set epoch = $1::bigint, owner = $2::text, application_name = $3::text,
    renewed_at = now(), expires_at = now() + $4::int * interval '1 millisecond'
  where id = 1`);

const GIVE_UP = `
update engine_lease set expires_at = renewed_at
where id = 1 and epoch = $1::bigint and owner = $2::text`;

export class LeaseConnection {
  readonly #options: LeaseOptions;
  readonly #timing: LeaseTiming;
  #client: pg.Client | undefined;
  #connectedAt = 0;
  #lockSpace = LOCK_SPACE;
  #lockedEpochs = new Set<number>();
  #onEnd: () => void = () => undefined;
  /** A warning of the server during the last commit. */
  #warning: string | undefined;

  constructor(options: LeaseOptions, timing: LeaseTiming) {
    this.#options = options;
    this.#timing = timing;
  }

  onEnd(listener: () => void): void {
    this.#onEnd = listener;
  }

  /** @param graceMs a younger session treats the lock as held */
  async poll(graceMs: number): Promise<LeaseRow | undefined> {
    const client = await this.#connected();
    const triesLock = this.#options.clock.monotonic() - this.#connectedAt >= graceMs;
    const query = { name: 'lease_poll', text: POLL };
    const { rows } = await client.query<Omit<LeaseRow, 'isFree'>>(query);
    const row = rows[0];
    if (row === undefined) return undefined;
    // A separate statement: Citus would take the lock on the node of the table, in another session.
    const isFree = triesLock && (await this.#tryLock(client, row.epoch));
    if (isFree) await this.#keepOnly(client, row.epoch);
    return { ...row, isFree };
  }

  /**
   * Takes over if the lease has not changed since `seen`; undefined when another engine was faster.
   * @throws SchemaError when the lease is older than the lanes
   * @throws Error also when the commit's wait for a replica was cancelled
   */
  async takeOver(seen: LeaseRow): Promise<ClockReading | undefined> {
    const client = await this.#connected();
    const epoch = seen.epoch + 1;
    await client.query(BEGIN_REPLICATED);
    const reading = await this.#takeOver(client, seen, epoch);
    await this.#end(client, reading === undefined ? 'rollback' : 'commit');
    // Other standbys would take a session with locks of other epochs for the owner.
    await this.#keepOnly(client, reading === undefined ? undefined : epoch);
    return reading;
  }

  async renew(epoch: number): Promise<Renewal> {
    const client = await this.#connected();
    if (!this.#lockedEpochs.has(epoch) && !(await this.#relock(client, epoch))) {
      return { kind: (await this.#isStillOurs(client, epoch)) ? 'locked' : 'taken' };
    }
    const values = [epoch, this.#options.owner, this.#timing.ttlMs];
    const reading = await this.#read(client, { name: 'lease_renew', text: RENEW, values });
    return reading === undefined ? { kind: 'taken' } : { kind: 'renewed', reading };
  }

  async giveUp(epoch: number): Promise<void> {
    // Without a connection there is no lock; an unavailable database is not waited for.
    if (this.#client === undefined) return;
    await this.#client.query(GIVE_UP, [epoch, this.#options.owner]);
    await this.#keepOnly(this.#client, undefined);
  }

  /** Ends the connection, and with it the lock. */
  drop(): void {
    this.#client?.connection.stream.destroy();
    this.#forget();
  }

  async #takeOver(
    client: pg.Client,
    seen: LeaseRow,
    epoch: number,
  ): Promise<ClockReading | undefined> {
    const { owner, applicationName, laneCount } = this.#options;
    const { rows } = await client.query<Judged>(JUDGE);
    const now = rows[0];
    if (now?.epoch !== seen.epoch || !(seen.isFree || now.version === seen.version)) return;
    if ((now.lanesEpoch ?? 0) > now.epoch) throw leaseBehind(now.epoch, now.lanesEpoch ?? 0);
    if (!(await this.#tryLock(client, epoch))) return;
    // Sessions without a name are not the engine's.
    if (now.applicationName !== '') await client.query(END_SESSIONS, [now.applicationName]);
    await client.query(RAISE_LANES, [epoch]);
    await client.query(ADD_LANES, [epoch, laneCount]);
    const values = [epoch, owner, applicationName, this.#timing.ttlMs];
    return this.#read(client, { text: TAKE, values });
  }

  /** If the replicas do not confirm a commit, the server may not be the primary. */
  async #end(client: pg.Client, how: 'commit' | 'rollback'): Promise<void> {
    this.#warning = undefined;
    try {
      await client.query(how);
      if (this.#warning !== undefined) throw new Error(this.#warning);
    } catch (error) {
      doubtPrimary(client);
      throw error;
    }
    if (how === 'commit') provePrimary(client);
  }

  async #read(client: pg.Client, query: pg.QueryConfig): Promise<ClockReading | undefined> {
    const { clock } = this.#options;
    const sentAt = clock.monotonic();
    const { rows } = await client.query<{ unixMs: number }>(query);
    const receivedAt = clock.monotonic();
    return rows[0] === undefined ? undefined : { unixMs: rows[0].unixMs, sentAt, receivedAt };
  }

  /** After a lost connection, whose session may still hold the lock: terminates it. */
  async #relock(client: pg.Client, epoch: number): Promise<boolean> {
    if (await this.#tryLock(client, epoch)) return true;
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = $1::text and usename = current_user and pid <> pg_backend_pid()`,
      [this.#sessionName],
    );
    return this.#tryLock(client, epoch);
  }

  async #isStillOurs(client: pg.Client, epoch: number): Promise<boolean> {
    const { rows } = await client.query<{ epoch: number; owner: string }>(
      'select epoch, owner from engine_lease where id = 1',
    );
    return rows[0]?.epoch === epoch && rows[0].owner === this.#options.owner;
  }

  async #tryLock(client: pg.Client, epoch: number): Promise<boolean> {
    const { rows } = await client.query<{ locked: boolean }>(
      'select pg_try_advisory_lock($1::int, $2::int) as locked',
      [this.#lockSpace, epoch],
    );
    const isLocked = rows[0]?.locked === true;
    if (isLocked) this.#lockedEpochs.add(epoch);
    return isLocked;
  }

  /** Frees all locks except that of one epoch, which this session holds. */
  async #keepOnly(client: pg.Client, epoch: number | undefined): Promise<void> {
    if (epoch !== undefined) this.#lockedEpochs.add(epoch);
    for (const locked of this.#lockedEpochs) {
      if (locked === epoch) continue;
      await client.query('select pg_advisory_unlock($1::int, $2::int)', [this.#lockSpace, locked]);
      this.#lockedEpochs.delete(locked);
    }
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const { connectionString } = this.#options;
    const { statementMs } = this.#timing;
    const client = createClient({
      connectionString,
      applicationName: this.#sessionName,
      connectTimeoutMs: statementMs,
      statementTimeoutMs: statementMs,
      queryTimeoutMs: statementMs + SILENCE_MARGIN_MS,
      // A standby that is paused during its take-over must not block the others.
      idleInTransactionTimeoutMs: statementMs,
    });
    client.on('error', () => this.#ended(client));
    client.on('end', () => this.#ended(client));
    client.on('notice', ({ message }) => {
      this.#warning = message;
    });
    try {
      await client.connect();
      await client.query(ALONE);
      const { rows } = await client.query<{ space: number }>(SPACE_OF_SCHEMA, [LOCK_SPACE]);
      this.#lockSpace = rows[0]!.space;
    } catch (error) {
      client.connection.stream.destroy();
      throw error;
    }
    this.#client = client;
    this.#connectedAt = this.#options.clock.monotonic();
    return client;
  }

  get #sessionName(): string {
    return `${this.#options.owner} lease`;
  }

  #ended(client: pg.Client): void {
    if (client !== this.#client) return;
    this.#forget();
    this.#onEnd();
  }

  #forget(): void {
    this.#client = undefined;
    this.#lockedEpochs.clear();
  }
}

/** The row is from an older copy of the database: the next owners would be fenced. */
function leaseBehind(epoch: number, lanesEpoch: number): SchemaError {
  return new SchemaError(
    `the row of engine_lease has epoch ${epoch}, but lanes were owned at epoch ${lanesEpoch}: ` +
      'part of the database is from an older copy. Restore one whole copy; or, if only that row ' +
      `is old, stop every engine, run "delete from engine_lease", and start again`,
  );
}
