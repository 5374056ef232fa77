/**
 * The topology that a proxy needs, read from the directory of a cluster: all placements once, and then the later ones.
 * It contains the tenants that are not settled in the cell of their bucket.
 */

import type { Directory, PlacementRow } from '../../src/cluster/directory.js';
import { bucketOf } from '../../src/cluster/routing.js';
import { bucketCells, type ProxyCell, type Topology } from './topology.js';

const PAGE = 10_000;

export class TopologyReader {
  readonly #directory: Pick<Directory, 'cells' | 'placedSince'>;
  readonly #cellOf = new Map<string, string>();
  readonly #strays = new Map<string, string>();
  /** Read since the last topology. */
  #waiting: PlacementRow[] = [];
  #buckets: ReadonlyMap<string, string> = new Map();
  #last: Pick<PlacementRow, 'revision' | 'tenant_id'> = { revision: 0, tenant_id: '' };

  constructor(directory: Pick<Directory, 'cells' | 'placedSince'>) {
    this.#directory = directory;
  }

  async read(): Promise<Topology> {
    await this.#readOn();
    // After the placements: a cell exists as long as a placement names it.
    const found = await this.#directory.cells();
    const cells = found.map(({ name, engines, state }) => ({ name, engines, state }));
    this.#setStrays(cells);
    return { cells, placements: this.#strays };
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const page = await this.#directory.placedSince(this.#last, PAGE);
      for (const row of page) this.#waiting.push(row);
      this.#last = page.at(-1) ?? this.#last;
      if (page.length < PAGE) return;
    }
  }

  /** Tenants in the cell of their bucket need no entry. */
  #setStrays(cells: readonly ProxyCell[]): void {
    for (const { tenant_id, cell } of this.#waiting) this.#cellOf.set(tenant_id, cell);
    const buckets = new Map(bucketCells({ cells }));
    const areSame = [...buckets].every(([bucket, cell]) => this.#buckets.get(bucket) === cell);
    const isSame = areSame && buckets.size === this.#buckets.size;
    this.#buckets = buckets;
    if (isSame) for (const { tenant_id, cell } of this.#waiting) this.#setStray(tenant_id, cell);
    else for (const [tenant, cell] of this.#cellOf) this.#setStray(tenant, cell);
    this.#waiting = [];
  }

  #setStray(tenant: string, cell: string): void {
    if (this.#buckets.get(bucketOf(tenant)) === cell) this.#strays.delete(tenant);
    else this.#strays.set(tenant, cell);
  }
}
