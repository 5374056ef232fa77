/** The room of cells: membership of the cluster, placement of tenants, and their moves. */

import { lookup } from '../db/reads/lookup.js';
import { type TenantRow, tenantsText } from '../db/reads/tenant-reads.js';
import type { Reads } from '../db/reads.js';
import type { Store } from '../db/store.js';
import { CellMoves, type MovingParts } from './cell-moves.js';
import { Membership } from './membership.js';
import { cellsOf } from './overview.js';
import { findingTables } from './tenant-rows.js';

export class ClusterRoom extends Membership {
  #moves: CellMoves | undefined;

  get lists() {
    return {
      cells: () => this.query(cellsOf),
      moves: (page: { limit: number; before: string | undefined; isUnderWay: boolean }) =>
        this.query((directory) => directory.moves(page)),
    };
  }

  get gauges() {
    const { placement } = this;
    return {
      engine_requests_misdirected_total: () => placement.refused,
      engine_cluster_directory_up: () => (this.isUp ? 1 : 0),
      engine_cluster_tenants: () => placement.size,
      engine_cluster_held_tenants: () => placement.suspendedCount,
      engine_cluster_held_seconds: () => placement.suspendedMs / 1_000,
      engine_cluster_split_tenants: () => this.splitCount,
    };
  }

  async begin(epoch: number, parts: MovingParts): Promise<void> {
    const { clock, log } = this.options;
    this.#moves = new CellMoves({ ...parts, clock, log, placement: this.placement });
    await this.#moves.begin(epoch);
  }

  own(reads: Reads, store: Store): Promise<void> {
    const text = tenantsText(findingTables(store));
    const tenants = lookup<TenantRow>('reads_tenants_there', text);
    return this.takeOver((after, limit) => tenants.rows(reads, after, limit));
  }

  start(): void {
    this.#moves?.start();
  }

  override async stop(): Promise<void> {
    this.#moves?.stop();
    await super.stop();
  }
}
