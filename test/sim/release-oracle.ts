/**
 * What releases ought to do, worked out a second time from the rows alone and in the plainest way
 *: which version a creation goes to, and what gates say of what has ended.
 */

import type { Row } from './memory-tables.js';

/** Where a creation goes; without a release it is left alone. */
export interface Routed {
  readonly sequence: string;
  readonly release: string | null;
  readonly variant: 'baseline' | 'candidate' | null;
}

export interface Rates {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** `unsure`: so near the limit that rounding decides. */
export type Verdict = 'pass' | 'fail' | 'inconclusive' | 'unsure';

/**
 * From and to, and who may decide it. Whoever begins with `gate:` is a `gate`. Only a
 * validation can find that a release cannot work.
 */
export const MOVES: Readonly<Record<string, readonly string[]>> = {
  'draft validating': ['operator'],
  'draft ready': ['operator'],
  'validating ready': ['validation'],
  'validating draft': ['validation'],
  'ready canary': ['operator'],
  'canary paused': ['operator', 'deprecation'],
  'canary promoted': ['operator'],
  'canary rolled_back': ['operator', 'gate'],
  'paused canary': ['operator'],
  'paused rolled_back': ['operator'],
  'validating failed': ['validation'],
};

export const isRouting = ({ state }: Row): boolean => state === 'canary' || state === 'promoted';

const MASK = (1n << 64n) - 1n;

/** FNV-1a of 64 bits over the bytes of the id and then those of the key. */
export function bucketOf(release: string, key: string): number {
  const bytes = [...Buffer.from(release.replaceAll('-', ''), 'hex'), ...Buffer.from(key, 'utf8')];
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100_0000_01b3n) & MASK;
  return Number(hash % 100n);
}

/** The releases that route, of all tenants, at one time. */
export class Routes {
  readonly #byBaseline = new Map<string, Row>();
  readonly #deprecated: ReadonlySet<unknown>;

  /** @param deprecated versions that nothing leads to, though promotions lead on from them */
  constructor(releases: Iterable<Row>, deprecated: ReadonlySet<unknown> = new Set()) {
    this.#deprecated = deprecated;
    for (const row of releases) {
      if (isRouting(row))
        this.#byBaseline.set(nameOf(row.tenant_id, row.baseline_sequence_id), row);
    }
    for (const name of [...this.#byBaseline.keys()]) this.#breakCycle(name);
  }

  /** @param cohort undefined: drawn at random, so that both variants may come of it */
  possible(tenant: string, asked: string, cohort: string | undefined): readonly Routed[] {
    let routed: Routed = { sequence: asked, release: null, variant: null };
    for (let at = asked; ; ) {
      const row = this.#byBaseline.get(nameOf(tenant, at));
      const isDeprecated = this.#deprecated.has(row?.candidate_sequence_id);
      if (row === undefined || (row.state === 'canary' && isDeprecated)) return [routed];
      const baseline = { ...routed, release: String(row.id), variant: 'baseline' } as const;
      const candidate = {
        sequence: String(row.candidate_sequence_id),
        release: String(row.id),
        variant: 'candidate',
      } as const;
      if (row.state === 'canary') {
        const percent = Number(row.canary_percent);
        if (percent === 100) return [candidate];
        if (cohort === undefined) return [baseline, candidate];
        return [bucketOf(String(row.id), cohort) < percent ? candidate : baseline];
      }
      at = candidate.sequence;
      if (!isDeprecated) routed = candidate;
    }
  }

  /** The oldest promotion of a cycle of them does not count. */
  #breakCycle(name: string): void {
    const cycle = new Map<string, Row>();
    let at = name;
    for (;;) {
      const row = this.#byBaseline.get(at);
      if (row?.state !== 'promoted') return;
      if (cycle.has(at)) break;
      cycle.set(at, row);
      at = nameOf(row.tenant_id, row.candidate_sequence_id);
    }
    if (at !== name) return;
    const [oldest] = [...cycle].sort(([, a], [, b]) => (a.updated_at! < b.updated_at! ? -1 : 1));
    this.#byBaseline.delete(oldest![0]);
  }
}

/** What has ended of both versions since the canary was started last. */
export function evidenceOf(
  release: Row,
  outcomes: Iterable<Row>,
): { readonly baseline: Rates; readonly candidate: Rates } {
  const since = (release.canary_started_at ?? release.created_at) as string;
  const counted = [...outcomes].filter(
    (row) => row.release_id === release.id && (row.created_at as string) >= since,
  );
  const ratesOf = (sequence: unknown): Rates => {
    const states = counted.filter((row) => row.sequence_id === sequence).map((row) => row.state);
    const count = (state: string) => states.filter((one) => one === state).length;
    return {
      total: states.length,
      completed: count('completed'),
      failed: count('failed'),
      cancelled: count('cancelled'),
    };
  };
  return {
    baseline: ratesOf(release.baseline_sequence_id),
    candidate: ratesOf(release.candidate_sequence_id),
  };
}

interface Gate {
  readonly metric: 'error_rate' | 'cancel_rate';
  readonly max_regression: number;
  readonly min_sample: number;
}

/** Whether the instance may stand beside the canary as a run of its baseline from before. */
export function isHistoryOf(release: Row, instance: Row): boolean {
  const { state, runtime, sequence_id, created_at } = instance;
  const since = (release.canary_started_at ?? release.created_at) as string;
  const isEnded = state === 'completed' || state === 'failed' || state === 'cancelled';
  const isReal = (runtime as { dry_run?: boolean }).dry_run !== true;
  // No run of the simulation lasts for thirty days.
  const isBefore = (created_at as string) < since;
  return isEnded && isReal && isBefore && sequence_id === release.baseline_sequence_id;
}

/** In the order of the release's gates. */
export function verdictsOf(
  release: Row,
  outcomes: Iterable<Row>,
  instances: Iterable<Row>,
): readonly { readonly metric: string; readonly verdict: Verdict }[] {
  const { baseline, candidate } = evidenceOf(release, outcomes);
  const gates = release.gates as unknown as readonly Gate[];
  const leastOf = (gate: Gate) => Math.max(1, gate.min_sample);
  const missing = Math.max(0, ...gates.map(leastOf)) - baseline.total;
  const placeOf = ({ created_at, id }: Row) => `${created_at} ${id}`;
  const history = [...instances]
    .filter((row) => isHistoryOf(release, row))
    .sort((a, b) => (placeOf(a) < placeOf(b) ? 1 : -1))
    .slice(0, Math.max(0, missing));
  return gates.map((gate) => {
    const { metric } = gate;
    const counted = metric === 'error_rate' ? 'failed' : 'cancelled';
    const least = leastOf(gate);
    const older = baseline.total < least ? history : [];
    const total = baseline.total + older.length;
    const ended = baseline[counted] + older.filter(({ state }) => state === counted).length;
    const isCompared = total >= least;
    if (candidate.total < least || (!isCompared && metric === 'cancel_rate')) {
      return { metric, verdict: 'inconclusive' };
    }
    const usual = isCompared ? ended / total : 0;
    const excess = candidate[counted] / candidate.total - usual - gate.max_regression;
    if (Math.abs(excess) < 1e-9) return { metric, verdict: 'unsure' };
    if (excess > 0) return { metric, verdict: 'fail' };
    return { metric, verdict: isCompared ? 'pass' : 'inconclusive' };
  });
}

const nameOf = (tenant: unknown, sequence: unknown) => `${tenant}: ${sequence}`;
