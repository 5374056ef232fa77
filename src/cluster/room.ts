/** The room of cells, as the server opens it: membership of the cluster, placement of tenants, and their moves. */

import { lookup } from '../db/reads/lookup.js';
import { type TenantRow, tenantsText } from '../db/reads/tenant-reads.js';
import type { Reads } from '../db/reads.js';
import type { Store } from '../db/store.js';
import { CellMoves, type MovingParts } from './cell-moves.js';
import { Membership, type MembershipOptions } from './membership.js';
import { cellsOf } from './overview.js';
import type { CellPlacement } from './placement.js';
import { findingTables } from './tenant-rows.js';
import type { WriterReading } from './writer-lag.js';

/** All tenants with rows in the cell, by name, after `$1`. */
const tenantsWithRows = (store: Store) =>
  lookup<TenantRow>('reads_tenants_there', tenantsText(findingTables(store)));

export class ClusterRoom {
  readonly placement: CellPlacement;
  readonly #options: MembershipOptions;
  readonly #membership: Membership;
  #moves: CellMoves | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#membership = new Membership(options);
    this.placement = this.#membership.placement;
  }

  get lists() {
    const membership = this.#membership;
    return {
      cells: () => membership.asked(cellsOf),
      moves: (asked: { limit: number; before: string | undefined; isUnderWay: boolean }) =>
        membership.asked((directory) => directory.moves(asked)),
    };
  }

  get gauges() {
    const { placement } = this;
    const membership = this.#membership;
    return {
      engine_requests_misdirected_total: () => placement.refused,
      engine_cluster_directory_up: () => (membership.isUp ? 1 : 0),
      engine_cluster_tenants: () => placement.size,
      engine_cluster_held_tenants: () => placement.suspendedCount,
      engine_cluster_held_seconds: () => placement.suspendedMs / 1_000,
      engine_cluster_split_tenants: () => membership.splitCount,
    };
  }

  join(signal: AbortSignal, address: string, writer: () => WriterReading): Promise<void> {
    return this.#membership.join(signal, address, writer);
  }

  async begin(epoch: number, parts: MovingParts): Promise<void> {
    const { clock, log } = this.#options;
    this.#moves = new CellMoves({ ...parts, clock, log, placement: this.placement });
    await this.#moves.begin(epoch);
  }

  own(reads: Reads, store: Store): Promise<void> {
    const tenants = tenantsWithRows(store);
    return this.#membership.own((after, limit) => tenants.rows(reads, after, limit));
  }

  start(): void {
    this.#moves?.start();
  }

  async stop(): Promise<void> {
    this.#moves?.stop();
    await this.#membership.stop();
  }
}
