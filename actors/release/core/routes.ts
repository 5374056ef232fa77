/**
 * The table of routes: where creations of a sequence go by the releases that route
 * (docs/releases.md). Promoted releases are followed one after the other, a canary ends the walk,
 * and the release of the last hop is the one that an instance is attributed to. Pure.
 */

import type { Variant } from '../../../schema/release-states.js';
import { bucketOf, type CohortSeed, cohortSeed } from './cohort.js';

/** What a route needs of a release, as it is selected; times are RFC 3339. */
export interface RoutingRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
  readonly state: 'canary' | 'promoted';
  readonly canary_percent: number;
  readonly created_at: string;
  /** Of a promoted release the time of its promotion, which is its last move. */
  readonly updated_at: string;
  /** Of its candidate, which gets no creations then. */
  readonly is_deprecated: boolean;
}

/** Where one creation goes, and by which release. */
export interface Route {
  readonly releaseId: string;
  readonly variant: Variant;
  readonly sequenceId: string;
}

interface Canary {
  readonly releaseId: string;
  readonly seed: CohortSeed;
  readonly percent: number;
  readonly candidate: string;
}

/** From one baseline. */
interface Path {
  readonly tenant: string;
  /** Where promoted releases lead that is not deprecated; the baseline itself when there is none. */
  readonly target: string;
  /** The last promoted release on the way. */
  readonly promoted: string | undefined;
  /** The release that splits what has come there. */
  readonly canary: Canary | undefined;
}

export class RouteTable {
  readonly #paths: ReadonlyMap<string, Path>;
  readonly #canaries: ReadonlySet<string>;

  constructor(rows: readonly RoutingRow[]) {
    this.#paths = pathsOf(rows);
    this.#canaries = new Set(rows.filter(({ state }) => state === 'canary').map(({ id }) => id));
  }

  isCanary(release: string): boolean {
    return this.#canaries.has(release);
  }

  /**
   * @param tenant of the creation: releases of others do not concern it
   * @param keyOf the cohort key; asked for only when a canary splits the creations
   * @returns undefined when no release routes it
   */
  route(sequenceId: string, tenant: string, keyOf: () => string): Route | undefined {
    const path = this.#paths.get(sequenceId);
    if (path === undefined || path.tenant !== tenant) return undefined;
    const { canary, promoted, target } = path;
    if (canary !== undefined) return splitBy(canary, target, keyOf);
    if (promoted === undefined) return undefined;
    return { releaseId: promoted, variant: 'candidate', sequenceId: target };
  }
}

function splitBy(
  { releaseId, seed, percent, candidate }: Canary,
  baseline: string,
  keyOf: () => string,
): Route {
  return percent >= 100 || (percent > 0 && bucketOf(seed, keyOf()) < percent)
    ? { releaseId, variant: 'candidate', sequenceId: candidate }
    : { releaseId, variant: 'baseline', sequenceId: baseline };
}

function pathsOf(rows: readonly RoutingRow[]): Map<string, Path> {
  const byBaseline = new Map<string, RoutingRow>();
  for (const row of [...rows].sort(byCreation)) byBaseline.set(row.baseline_sequence_id, row);
  breakCycles(byBaseline);
  return new Map([...byBaseline.keys()].map((baseline) => [baseline, walk(byBaseline, baseline)]));
}

/** At most one release of a baseline routes; were there two, the newest would win. */
function byCreation(a: RoutingRow, b: RoutingRow): number {
  return Date.parse(a.created_at) - Date.parse(b.created_at) || (a.id < b.id ? -1 : 1);
}

function walk(byBaseline: ReadonlyMap<string, RoutingRow>, from: string): Path {
  const tenant = byBaseline.get(from)?.tenant_id ?? '';
  let at = from;
  let target = from;
  let promoted: string | undefined;
  for (;;) {
    const row = byBaseline.get(at);
    if (row?.tenant_id !== tenant) return { tenant, target, promoted, canary: undefined };
    if (row.state === 'canary') {
      return { tenant, target, promoted, canary: row.is_deprecated ? undefined : canaryOf(row) };
    }
    at = row.candidate_sequence_id;
    // A version that was superseded and then deprecated still leads on to what came after it.
    if (row.is_deprecated) continue;
    target = at;
    promoted = row.id;
  }
}

function canaryOf(row: RoutingRow): Canary {
  return {
    releaseId: row.id,
    seed: cohortSeed(row.id),
    percent: row.canary_percent,
    candidate: row.candidate_sequence_id,
  };
}

/**
 * Promotions that lead in a circle, such as from 1 to 2 and later back from 2 to 1: the oldest of
 * them counts no more, so that the latest word does.
 */
function breakCycles(byBaseline: Map<string, RoutingRow>): void {
  const isLooked = new Set<string>();
  for (const start of [...byBaseline.keys()]) {
    const trail: RoutingRow[] = [];
    const at = new Map<string, number>();
    let row = promotionOf(byBaseline, start);
    while (row !== undefined && !isLooked.has(row.baseline_sequence_id)) {
      isLooked.add(row.baseline_sequence_id);
      at.set(row.baseline_sequence_id, trail.length);
      trail.push(row);
      row = promotionOf(byBaseline, row.candidate_sequence_id);
    }
    const entry = row === undefined ? undefined : at.get(row.baseline_sequence_id);
    if (entry === undefined) continue;
    const [oldest] = trail.slice(entry).sort(byPromotion);
    if (oldest !== undefined) byBaseline.delete(oldest.baseline_sequence_id);
  }
}

function promotionOf(
  byBaseline: ReadonlyMap<string, RoutingRow>,
  baseline: string,
): RoutingRow | undefined {
  const row = byBaseline.get(baseline);
  return row?.state === 'promoted' ? row : undefined;
}

function byPromotion(a: RoutingRow, b: RoutingRow): number {
  return Date.parse(a.updated_at) - Date.parse(b.updated_at) || (a.id < b.id ? -1 : 1);
}
