/**
 * How evenly tenants lie in cells: by the hash of their bucket alone, and with the largest placed by hand. The hash is
 * that of the product. Pure.
 */

import { allBuckets, bucketOf, cellOfBucket } from '../../src/cluster/routing.js';
import type { Draws } from './draws.js';

export interface Fleet {
  /** The load of each tenant, in any unit. */
  readonly sizes: number[];
  /** The number of the cell of each tenant. */
  readonly cellOf: number[];
  /** The load of each cell. */
  readonly loads: number[];
}

/** The number of the cell of each bucket, of cells named like those of an operator. */
export function cellsOfBuckets(cells: number): ReadonlyMap<string, number> {
  const names = Array.from({ length: cells }, (_, at) => `cell_${String(at).padStart(3, '0')}`);
  const numberOf = new Map(names.map((name, at) => [name, at]));
  return new Map(
    allBuckets().map((bucket) => [bucket, numberOf.get(cellOfBucket(bucket, names) ?? '') ?? 0]),
  );
}

export function sizesOf(draws: Draws, tenants: number, exponent: number): number[] {
  return Array.from({ length: tenants }, () => draws.pareto(exponent));
}

/**
 * @param byHand how many of the largest are placed one by one, the largest first, each in the cell that has least
 */
export function place(
  sizes: readonly number[],
  buckets: ReadonlyMap<string, number>,
  cells: number,
  byHand: number,
): Fleet {
  const largest = sizes.map((_, tenant) => tenant).sort((a, b) => sizes[b]! - sizes[a]!);
  const placed = new Set(largest.slice(0, byHand));
  const loads = Array<number>(cells).fill(0);
  const cellOf = sizes.map((size, tenant) => {
    if (placed.has(tenant)) return 0;
    const cell = cellOfTenant(tenant, buckets);
    loads[cell]! += size;
    return cell;
  });
  for (const tenant of placed) {
    const cell = loads.indexOf(Math.min(...loads));
    cellOf[tenant] = cell;
    loads[cell]! += sizes[tenant]!;
  }
  return { sizes: [...sizes], cellOf, loads };
}

/** Where its bucket leads. */
export function cellOfTenant(tenant: number, buckets: ReadonlyMap<string, number>): number {
  let bucket = bucketsOfTenants[tenant];
  if (bucket === undefined) {
    bucket = bucketOf(`tenant-${tenant}`);
    bucketsOfTenants[tenant] = bucket;
  }
  return buckets.get(bucket)!;
}

/** By the numbers of tenants: a hash costs more than all else here, and each is asked for many times. */
const bucketsOfTenants: string[] = [];

/** The load of the fullest cell, in means. */
export function fullest({ loads }: Pick<Fleet, 'loads'>): number {
  const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
  return Math.max(...loads) / mean;
}
