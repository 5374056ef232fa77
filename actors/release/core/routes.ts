/**
 * The routing table of creations (docs/releases.md). Routing follows promoted releases up to the first canary and
 * attributes the instance to the last release on this path. Pure.
 */

import type { Variant } from '../../../schema/release-states.js';

export interface RoutingRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly baseline_sequence_id: string;
  readonly candidate_sequence_id: string;
  readonly state: 'canary' | 'promoted';
  readonly canary_percent: number;
  readonly created_at: string;
  /** For a promoted release, the time of its promotion. */
  readonly updated_at: string;
  /** No creation is routed to a deprecated candidate. */
  readonly is_deprecated: boolean;
}

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

interface Path {
  readonly tenant: string;
  /** The last promoted candidate that is not deprecated, or the baseline. */
  readonly target: string;
  readonly promoted: string | undefined;
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
   * Undefined when no release of the tenant routes it.
   * @param keyOf the cohort key, requested only for a canary
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

/** At most one release of a baseline should be routing; if there are two, the newest wins. */
function pathsOf(rows: readonly RoutingRow[]): Map<string, Path> {
  const byBaseline = new Map<string, RoutingRow>();
  const sorted = [...rows].sort(byTime('created_at'));
  for (const row of sorted) byBaseline.set(row.baseline_sequence_id, row);
  breakCycles(byBaseline);
  return new Map([...byBaseline.keys()].map((baseline) => [baseline, walk(byBaseline, baseline)]));
}

function byTime(time: 'created_at' | 'updated_at') {
  return (a: RoutingRow, b: RoutingRow) =>
    Date.parse(a[time]) - Date.parse(b[time]) || (a.id < b.id ? -1 : 1);
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
      const { id, canary_percent: percent, candidate_sequence_id: candidate } = row;
      const canary = { releaseId: id, seed: cohortSeed(id), percent, candidate };
      return { tenant, target, promoted, canary: row.is_deprecated ? undefined : canary };
    }
    at = row.candidate_sequence_id;
    // A superseded version that was deprecated later still leads to its successor.
    if (row.is_deprecated) continue;
    target = at;
    promoted = row.id;
  }
}

/** Removes the oldest promotion of each cycle, such as from 1 to 2 and later from 2 to 1, so that the latest decides. */
function breakCycles(byBaseline: Map<string, RoutingRow>): void {
  const visited = new Set<string>();
  for (const start of [...byBaseline.keys()]) {
    const trail: RoutingRow[] = [];
    const at = new Map<string, number>();
    let row = promotionOf(byBaseline, start);
    while (row !== undefined && !visited.has(row.baseline_sequence_id)) {
      visited.add(row.baseline_sequence_id);
      at.set(row.baseline_sequence_id, trail.length);
      trail.push(row);
      row = promotionOf(byBaseline, row.candidate_sequence_id);
    }
    const entry = row === undefined ? undefined : at.get(row.baseline_sequence_id);
    if (entry === undefined) continue;
    const [oldest] = trail.slice(entry).sort(byTime('updated_at'));
    if (oldest !== undefined) byBaseline.delete(oldest.baseline_sequence_id);
  }
}

function promotionOf(byBaseline: ReadonlyMap<string, RoutingRow>, baseline: string) {
  const row = byBaseline.get(baseline);
  return row?.state === 'promoted' ? row : undefined;
}

/*
 * The bucket of a key in a canary (docs/releases.md): 64-bit FNV-1a over the 16 bytes of the release's id and the UTF-8
 * bytes of the key, modulo 100. The bucket of a key is stable, a higher percentage only adds keys, and releases shuffle
 * independently. The hash is two 32-bit halves, because BigInt is ten times as slow.
 */

/** The hash state after the bytes of a release's id. */
export type CohortSeed = { readonly high: number; readonly low: number };

const OFFSET_BASIS: CohortSeed = { high: 0xcbf29ce4, low: 0x84222325 };
/** The prime is 2^40 + this value. Multiplying by 2^40 shifts the low half into the high half, by 8 bits. */
const PRIME_LOW = 0x1b3;
const HALF = 0x1_0000_0000;
const UTF8 = new TextEncoder();
const SCRATCH = new Uint8Array(256);

export function cohortSeed(releaseId: string): CohortSeed {
  const hex = releaseId.replaceAll('-', '');
  const bytes = Uint8Array.from({ length: 16 }, (_, at) =>
    Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16),
  );
  return mix(OFFSET_BASIS, bytes, bytes.length);
}

/** 0 … 99. */
export function bucketOf(seed: CohortSeed, key: string): number {
  const { high, low } = mixKey(seed, key);
  return ((high % 100) * (HALF % 100) + (low % 100)) % 100;
}

/** Fast path for short ASCII keys, without allocating bytes. */
function mixKey(seed: CohortSeed, key: string): CohortSeed {
  if (key.length <= SCRATCH.length) {
    let at = 0;
    for (; at < key.length; at++) {
      const code = key.charCodeAt(at);
      if (code >= 0x80) break;
      SCRATCH[at] = code;
    }
    if (at === key.length) return mix(seed, SCRATCH, at);
  }
  const bytes = UTF8.encode(key);
  return mix(seed, bytes, bytes.length);
}

function mix({ high, low }: CohortSeed, bytes: Uint8Array, length: number): CohortSeed {
  for (let at = 0; at < length; at++) {
    const mixed = (low ^ (bytes[at] ?? 0)) >>> 0;
    const product = mixed * PRIME_LOW;
    const carry = Math.floor(product / HALF);
    high = (Math.imul(high, PRIME_LOW) + carry + (mixed << 8)) >>> 0;
    low = product >>> 0;
  }
  return { high, low };
}
