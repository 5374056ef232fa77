/**
 * How many tenants have to be moved so that no cell gets fuller than a bound, while loads drift, tenants leave and new
 * ones come where their bucket leads. Pure.
 */

import { assumed } from './assumptions.js';
import type { Draws } from './draws.js';
import { cellOfTenant, type Fleet } from './placement.js';

export interface Moved {
  /** On the day on which the bound begins to hold. */
  readonly atFirst: number;
  readonly perDay: number;
  /** The largest number on one of the later days. */
  readonly dayMax: number;
  /** The part of all load that is moved on a day, at the mean. */
  readonly loadPerDay: number;
  /** Days in whose end a cell was above the bound all the same: no tenant could be moved to mend it. */
  readonly daysAbove: number;
}

/** @param bound of the fullest cell, in means; the fleet is changed */
export function moves(
  fleet: Fleet,
  buckets: ReadonlyMap<string, number>,
  draws: Draws,
  bound: number,
): Moved {
  const days = assumed('days');
  const most = largestOf(fleet);
  const first = rebalance(fleet, bound);
  let [count, dayMax, load, daysAbove] = [0, 0, 0, 0];
  for (let day = 0; day < days; day++) {
    drift(fleet, buckets, draws, most);
    const today = rebalance(fleet, bound);
    count += today.count;
    dayMax = Math.max(dayMax, today.count);
    load += today.share;
    if (!today.isBelow) daysAbove++;
  }
  return {
    atFirst: first.count,
    perDay: count / days,
    dayMax,
    loadPerDay: load / days,
    daysAbove,
  };
}

/** The size beyond which a tenant is no matter of moves. */
export function largestOf({ sizes, loads }: Pick<Fleet, 'sizes' | 'loads'>): number {
  const mean = sizes.reduce((sum, size) => sum + size, 0) / loads.length;
  return assumed('largestMoved') * mean;
}

/** A day: the mean of what a tenant wants stays, and what it wants does not. */
function drift(
  fleet: Fleet,
  buckets: ReadonlyMap<string, number>,
  draws: Draws,
  most: number,
): void {
  const deviation = assumed('driftPerDay');
  const exponent = assumed('tailExponent');
  const { sizes, cellOf, loads } = fleet;
  const coming = draws.poisson(assumed('comingPerDay') * sizes.length);
  // The sizes are in no order, so the next ones are as good as any.
  const from = draws.poisson(sizes.length / 2);
  for (let at = 0; at < coming; at++) {
    const tenant = (from + at) % sizes.length;
    sizes[tenant] = Math.min(most, draws.pareto(exponent));
    cellOf[tenant] = cellOfTenant(tenant, buckets);
  }
  loads.fill(0);
  for (let tenant = 0; tenant < sizes.length; tenant++) {
    const changed = sizes[tenant]! * Math.exp(deviation * draws.normal() - deviation ** 2 / 2);
    sizes[tenant] = Math.min(most, changed);
    loads[cellOf[tenant]!]! += sizes[tenant]!;
  }
}

/** As an operator would: from the fullest cell to the emptiest, the tenant that levels the two best. */
function rebalance({ sizes, cellOf, loads }: Fleet, bound: number) {
  const total = loads.reduce((sum, load) => sum + load, 0);
  const most = (bound * total) / loads.length;
  let [count, moved] = [0, 0];
  for (;;) {
    const from = loads.indexOf(Math.max(...loads));
    const to = loads.indexOf(Math.min(...loads));
    if (loads[from]! <= most) return { count, share: moved / total, isBelow: true };
    const wanted = (loads[from]! - loads[to]!) / 2;
    let best: number | undefined;
    for (let tenant = 0; tenant < sizes.length; tenant++) {
      if (cellOf[tenant] !== from || sizes[tenant]! > wanted) continue;
      if (best === undefined || sizes[tenant]! > sizes[best]!) best = tenant;
    }
    if (best === undefined) return { count, share: moved / total, isBelow: false };
    loads[from]! -= sizes[best]!;
    loads[to]! += sizes[best]!;
    cellOf[best] = to;
    moved += sizes[best]!;
    count++;
  }
}
