/**
 * A shard's replica of rows of tenants that the first shard owns: read whole at the start and after a new writer, and of
 * a tenant whenever its owner reports a change.
 */

import type { Kernel } from './kernel.js';
import type { PeerMessage } from './protocol.js';
import { Replica } from './replica.js';
import type { Room } from './room.js';

export type TenantReplicaDeps = Pick<Kernel, 'clock' | 'log' | 'release' | 'schedule'>;

export interface TenantRows<Row> {
  /** In the log: `webhook subscriptions`. */
  readonly name: string;
  /** Up to `limit` rows of all tenants after this one, in order. */
  readonly page: (after: Row | undefined, limit: number) => Promise<readonly Row[]>;
  readonly ofTenants: (tenants: string[]) => Promise<readonly Row[]>;
  /** Applies the rows. @param tenants whose rows they are; undefined: all */
  readonly take: (rows: readonly Row[], tenants: ReadonlySet<string> | undefined) => void;
  /** The acknowledgement for the owner. */
  readonly settled: (version: number) => PeerMessage;
}

/** Stands for every tenant in a change report. */
export const EVERY_TENANT = '';
const OWNER = 0;
/** Of one query, about a megabyte. */
const PAGE_ROWS = 2_000;

export class TenantReplica<Row> implements Room {
  readonly #rows: TenantRows<Row>;
  readonly #replica: Replica<string>;

  constructor(deps: TenantReplicaDeps, rows: TenantRows<Row>) {
    this.#rows = rows;
    this.#replica = new Replica(deps, {
      read: (tenants) => this.#read(tenants),
      failed: (err) =>
        deps.log.warn({ rows: rows.name, err }, 'a replica could not be read; trying again'),
      settled: (version) =>
        deps.release([{ kind: 'peer', shard: OWNER, message: rows.settled(version) }]),
    });
  }

  /** Rejects when the rows cannot be read. */
  prepare(): Promise<void> {
    return this.#replica.start([EVERY_TENANT]);
  }

  stop(): void {
    this.#replica.stop();
  }

  writerReady(): void {
    this.reread(EVERY_TENANT);
  }

  /** Resolves when the rows of the tenant were read again. */
  tenantComes(tenant: string): Promise<void> {
    return this.#replica.readAnew([tenant]);
  }

  /** The owner waits until this version is acknowledged. */
  changed(version: number, tenants: readonly string[]): void {
    this.#replica.changed(version, tenants);
  }

  reread(tenant: string): void {
    this.#replica.reread([tenant]);
  }

  async #read(tenants: ReadonlySet<string>): Promise<() => void> {
    const { ofTenants, take } = this.#rows;
    const isAll = tenants.has(EVERY_TENANT);
    const rows = isAll ? await this.#readAll() : await ofTenants([...tenants]);
    return () => take(rows, isAll ? undefined : tenants);
  }

  async #readAll(): Promise<Row[]> {
    const rows: Row[] = [];
    for (;;) {
      const page = await this.#rows.page(rows.at(-1), PAGE_ROWS);
      rows.push(...page);
      if (page.length < PAGE_ROWS) return rows;
    }
  }
}
