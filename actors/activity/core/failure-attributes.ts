/** What failed instances of one cause have in common, compared with the runs of the same sequences. Pure. */

import type { FailureAttribute } from '../../../schema/statistics.js';

/** A failed instance, or a run that it is compared with. */
export interface AttributeRow {
  readonly version: string;
  readonly block: string | null;
  readonly attempt: number | null;
  /** True, or null: it had no task at the blocks that are compared. */
  readonly has_task: true | null;
  readonly queue: string | null;
  readonly worker: string | null;
  readonly worker_version: string | null;
  /** JSON. */
  readonly metadata: string;
}

/** Most frequent values of an attribute. */
const VALUES_MAX = 5;
/** Attributes of metadata that differ most from other runs. */
const METADATA_MAX = 10;
/** Longer values are texts, which nobody groups by. */
const VALUE_LENGTH_MAX = 120;

/** Those of metadata last, most telling first. An attribute that no instance has is omitted. */
export function attributesOf(
  failed: readonly AttributeRow[],
  runs: readonly AttributeRow[],
): FailureAttribute[] {
  const [ours, others] = [failed.map(valuesOf), runs.map(valuesOf)];
  const tasked = runs.filter(({ has_task }) => has_task).map(valuesOf);
  const names = new Set(ours.flatMap((values) => [...values.keys()]));
  const comparedBy = (name: string) =>
    ONLY_OF_FAILURES.has(name) ? [] : OF_TASKS.has(name) ? tasked : others;
  const attributes = [...names].flatMap((name) => {
    const one = attributeOf(name, ours, comparedBy(name));
    return one === undefined ? [] : [one];
  });
  const isOwn = ({ name }: FailureAttribute) => !name.startsWith(METADATA);
  const metadata = attributes.filter((one) => !isOwn(one));
  metadata.sort((a, b) => excessOf(b) - excessOf(a));
  return [...attributes.filter(isOwn), ...metadata.slice(0, METADATA_MAX)];
}

const METADATA = 'metadata.';
const FREQUENT_SHARE = 0.05;
/** Runs that have not failed have neither. */
const ONLY_OF_FAILURES: ReadonlySet<string> = new Set(['block', 'attempt']);
/** Runs that have not come to the block say nothing about them. */
const OF_TASKS: ReadonlySet<string> = new Set(['queue', 'worker', 'worker_version']);

function valuesOf({ metadata, has_task: _, ...row }: AttributeRow): Map<string, string> {
  const values = new Map<string, string>();
  const put = (name: string, value: unknown) => {
    if (!['string', 'number', 'boolean'].includes(typeof value)) return;
    const text = String(value);
    if (text !== '' && text.length <= VALUE_LENGTH_MAX) values.set(name, text);
  };
  for (const [name, value] of Object.entries(row)) put(name, value);
  const members = JSON.parse(metadata) as Readonly<Record<string, unknown>> | null;
  for (const [name, value] of Object.entries(members ?? {})) put(`${METADATA}${name}`, value);
  return values;
}

type Values = readonly ReadonlyMap<string, string>[];

/** Undefined for metadata without a frequent value, such as the number of an order. */
function attributeOf(name: string, failed: Values, runs: Values): FailureAttribute | undefined {
  const counts = countsOf(name, failed);
  const having = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const most = Math.max(...counts.values());
  const isRare = having > 1 && (most === 1 || most < having * FREQUENT_SHARE);
  if (name.startsWith(METADATA) && isRare) return undefined;
  const all = countsOf(name, runs);
  const values = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, VALUES_MAX)
    .map(([value, count]) => ({
      value,
      count,
      share: count / failed.length,
      share_of_runs: runs.length === 0 ? null : (all.get(value) ?? 0) / runs.length,
    }));
  return { name, distinct: counts.size, values };
}

function countsOf(name: string, rows: Values): Map<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = row.get(name);
    if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

/** By how much the most telling value is more frequent among the failed. */
function excessOf({ values }: FailureAttribute): number {
  return Math.max(...values.map(({ share, share_of_runs }) => share - (share_of_runs ?? 0)));
}
