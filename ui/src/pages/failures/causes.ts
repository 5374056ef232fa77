/** Causes of failures: the groups of the engine, which are by version and block, put together. Pure. */

import type { FailureGroup } from 'durable-workflow-engine-client';

export interface Affected {
  readonly name: string;
  readonly versions: readonly number[];
  readonly blocks: readonly string[];
  readonly count: number;
}

/** Failures with the same code, handler and reason, in any version of any sequence. */
export interface Cause {
  readonly id: string;
  readonly code: FailureGroup['code'];
  readonly handler: string | null;
  readonly reason: string;
  readonly count: number;
  /** By interval; empty without a period. */
  readonly counts: readonly number[];
  /** Undefined if unknown. */
  readonly isNew: boolean | undefined;
  /** Of the finished runs of the affected versions; undefined if unknown. */
  readonly share: number | undefined;
  readonly firstAt: string;
  readonly lastAt: string;
  /** The newest failure. */
  readonly example: { readonly id: string; readonly message: string };
  /** The most affected first. */
  readonly affected: readonly [Affected, ...Affected[]];
  readonly groups: readonly [FailureGroup, ...FailureGroup[]];
}

/** Largest first. */
export function causesOf(groups: readonly FailureGroup[]): Cause[] {
  const byId = grouped(groups, ({ code, handler, reason }) =>
    JSON.stringify([code, handler, reason]),
  );
  return [...byId]
    .map(([id, of]) => causeOf(id, of as [FailureGroup, ...FailureGroup[]]))
    .sort((a, b) => b.count - a.count);
}

function causeOf(id: string, groups: Cause['groups']): Cause {
  const [{ code, handler, reason, counts, new: isNew }] = groups;
  const newest = groups.reduce((one, other) => (other.last_at > one.last_at ? other : one));
  return {
    ...{ id, code, handler, reason, groups },
    count: sum(groups.map((group) => group.count)),
    counts: counts.map((_, at) => sum(groups.map((group) => group.counts[at] ?? 0))),
    isNew: isNew ?? undefined,
    share: shareOf(groups),
    firstAt: groups.map((group) => group.first_at).sort()[0] as string,
    lastAt: newest.last_at,
    example: { id: newest.example_instance_id, message: newest.example_message },
    affected: affectedBy(groups),
  };
}

function affectedBy(groups: Cause['groups']): Cause['affected'] {
  const byName = grouped(groups, ({ sequence_name }) => sequence_name);
  const all = [...byName].map(([name, of]) => ({
    name,
    versions: distinct(of.map(({ version }) => version)).sort((a, b) => a - b),
    blocks: distinct(of.flatMap(({ block_id }) => block_id ?? [])),
    count: sum(of.map(({ count }) => count)),
  }));
  return all.sort((a, b) => b.count - a.count) as readonly Affected[] as Cause['affected'];
}

/** Several groups of one version have the same runs. */
function shareOf(groups: Cause['groups']): number | undefined {
  const runs = new Map(groups.map((group) => [group.sequence_id, group.runs?.finished]));
  const finished = [...runs.values()];
  if (finished.includes(undefined) || sum(finished as number[]) === 0) return undefined;
  const failed = sum(groups.map((group) => group.runs?.failed ?? 0));
  return Math.min(1, failed / sum(finished as number[]));
}

function grouped(groups: readonly FailureGroup[], keyOf: (group: FailureGroup) => string) {
  const byKey = new Map<string, FailureGroup[]>();
  for (const group of groups) {
    const key = keyOf(group);
    byKey.set(key, [...(byKey.get(key) ?? []), group]);
  }
  return byKey;
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);
const distinct = <T>(items: readonly T[]): T[] => [...new Set(items)];
