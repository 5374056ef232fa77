/**
 * What the directory of a cluster says for a proxy, read again and again: the placements are read whole once, and from
 * then on those that have come since. A proxy is told of the tenants that it would not find without it.
 */

import type { Directory, PlacementRow } from '../directory.js';
import { bucketOf } from '../routing.js';
import { bucketCells, type ProxyCell, type Topology } from './topology.js';

const PAGE = 10_000;

export class TopologyReader {
  readonly #directory: Pick<Directory, 'cells' | 'placedSince'>;
  readonly #cellOf = new Map<string, string>();
  readonly #told = new Map<string, string>();
  /** Read, and not told yet. */
  #waiting: PlacementRow[] = [];
  #buckets: ReadonlyMap<string, string> = new Map();
  #last: Pick<PlacementRow, 'revision' | 'tenant_id'> = { revision: 0, tenant_id: '' };

  constructor(directory: Pick<Directory, 'cells' | 'placedSince'>) {
    this.#directory = directory;
  }

  async read(): Promise<Topology> {
    await this.#readOn();
    // Behind the placements: a cell that one of them names is there until it has none.
    const found = await this.#directory.cells();
    const cells = found.map(({ name, engines, state }) => ({ name, engines, state }));
    this.#tellStrays(cells);
    return { cells, placements: this.#told };
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const page = await this.#directory.placedSince(this.#last, PAGE);
      for (const row of page) this.#waiting.push(row);
      this.#last = page.at(-1) ?? this.#last;
      if (page.length < PAGE) return;
    }
  }

  /** Who lives in the cell of its bucket is found there. */
  #tellStrays(cells: readonly ProxyCell[]): void {
    for (const { tenant_id, cell } of this.#waiting) this.#cellOf.set(tenant_id, cell);
    const buckets = new Map(bucketCells({ cells }));
    const areSame = [...buckets].every(([bucket, cell]) => this.#buckets.get(bucket) === cell);
    const isSame = areSame && buckets.size === this.#buckets.size;
    this.#buckets = buckets;
    if (isSame) for (const { tenant_id, cell } of this.#waiting) this.#tellStray(tenant_id, cell);
    else for (const [tenant, cell] of this.#cellOf) this.#tellStray(tenant, cell);
    this.#waiting = [];
  }

  #tellStray(tenant: string, cell: string): void {
    if (this.#buckets.get(bucketOf(tenant)) === cell) this.#told.delete(tenant);
    else this.#told.set(tenant, cell);
  }
}
