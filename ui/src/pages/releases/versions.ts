/** Which sequences a release can be created for: those with several versions. Pure. */

import type { SequenceSummary } from '../../api/sequences.ts';

export interface Releasable {
  readonly key: string;
  /** The name, with its namespace if several namespaces have it. */
  readonly label: string;
  /** Newest first; at least two. */
  readonly versions: readonly SequenceSummary[];
}

/** Grouped by name and namespace. The input may contain duplicates. */
export function releasable(sequences: readonly SequenceSummary[]): Releasable[] {
  const groups = new Map<string, SequenceSummary[]>();
  for (const sequence of new Map(sequences.map((one) => [one.id, one])).values()) {
    const key = JSON.stringify([sequence.name, sequence.namespace]);
    groups.set(key, [...(groups.get(key) ?? []), sequence]);
  }
  const several = [...groups].filter(([, { length }]) => length > 1);
  const names = several.map(([key]) => nameIn(key));
  return several
    .map(([key, group]) => {
      const { name, namespace } = group[0]!;
      const isShared = names.filter((other) => other === name).length > 1;
      return {
        key,
        label: isShared ? `${name} (${namespace})` : name,
        versions: group.toSorted((a, b) => b.version - a.version),
      };
    })
    .sort((a, b) => a.label.localeCompare(b.label));
}

/** The version that new instances run now, as far as known: the newest before the candidate that is not on hold. */
export function baselineFor(
  versions: readonly SequenceSummary[],
  candidate: string,
): SequenceSummary | undefined {
  const others = versions.filter(({ id }) => id !== candidate);
  const older = versions.slice(versions.findIndex(({ id }) => id === candidate) + 1);
  return [...older, ...others].find(({ hold }) => !hold) ?? older[0] ?? others[0];
}

function nameIn(key: string): string {
  return (JSON.parse(key) as [string])[0];
}
