/**
 * How the list of instances is shown: columns and order, in the address so that a link has them, and saved views, which
 * are named addresses. Pure.
 */

import type { TaskInstance } from 'durable-workflow-engine-client';
import type { Filters } from '../../lib/address.ts';

/** Before the name of a member of the metadata. */
export const METADATA = 'metadata.';

export const DEFAULT_COLUMNS: readonly string[] = ['sequence', 'state', 'created', 'changed'];
/** More would not fit next to each other. */
export const COLUMNS_MAX = 9;

const SORT_KEYS = ['duration', 'changed'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export interface Sort {
  readonly key: SortKey;
  readonly isAscending: boolean;
}

/** Parameters of the address that are no filters. */
export const VIEW_PARAMETERS: ReadonlySet<string> = new Set(['cursor', 'columns', 'sort']);

export function columnsIn(filters: Filters, kept: readonly string[]): readonly string[] {
  const asked = filters.columns?.split(',').filter(Boolean) ?? kept;
  return [...new Set(asked)].slice(0, COLUMNS_MAX);
}

/** `duration` or `-duration`; anything else is no order. */
export function sortIn({ sort = '' }: Filters): Sort | undefined {
  const isAscending = !sort.startsWith('-');
  const key = SORT_KEYS.find((one) => one === (isAscending ? sort : sort.slice(1)));
  return key && { key, isAscending };
}

/** The next order when a head is pressed: largest first, smallest first, that of the engine. */
export function nextSort(sort: Sort | undefined, key: SortKey): string | undefined {
  if (sort?.key !== key) return `-${key}`;
  return sort.isAscending ? undefined : key;
}

/** The engine has no index by duration or by the last change, so that neither costs a step anything. */
export const SORTED_MAX = 200;

/** @param hasMore there are further matches, which are not sorted */
export function titleOf(sort: Sort | undefined, hasMore = false): string {
  if (sort === undefined) return 'Instances, newest first';
  return `${hasMore ? `The newest ${SORTED_MAX} instances` : 'Instances'} by ${sort.key}`;
}

/** Members of the metadata of these rows, for columns. Names that begin with `_` are the engine's own. */
export function membersOf(rows: readonly Pick<TaskInstance, 'metadata'>[]): readonly string[] {
  const names = new Set(rows.flatMap(({ metadata }) => Object.keys(metadata)));
  return [...names].filter((name) => !name.startsWith('_') && !name.includes(',')).sort();
}

export interface View {
  readonly name: string;
  /** The query string, without the page. */
  readonly search: string;
}

export function viewsIn(stored: unknown): readonly View[] {
  if (!Array.isArray(stored)) return [];
  return stored.filter(
    (view): view is View => typeof view?.name === 'string' && typeof view.search === 'string',
  );
}

/** What a view keeps of the address: filters, columns and order. */
export function searchOf(filters: Filters, columns: readonly string[]): string {
  const { cursor: _, ...kept } = filters;
  return new URLSearchParams({ ...kept, columns: columns.join(',') }).toString();
}

/** A row of CSV. A spreadsheet would run a text that looks like a formula. */
export function csvLine(cells: readonly (string | number)[]): string {
  const quoted = cells.map((cell) => {
    if (typeof cell === 'number') return String(cell);
    const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${quoted.join(',')}\r\n`;
}
