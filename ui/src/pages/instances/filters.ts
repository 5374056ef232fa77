/**
 * The filters of the list of instances: their form in the address, and the query to the engine. All are combined by
 * AND. Pure.
 */

import type {
  InstanceCounts,
  InstanceState,
  InstancesListQuery,
} from 'durable-workflow-engine-client';
import type { BulkFilter } from '../../components/bulk-dialog.tsx';
import type { Filters } from '../../lib/address.ts';
import { formatCount, formatInstant, wordsOf } from '../../lib/format.ts';
import { VIEW_PARAMETERS } from './views.ts';

export const STATES: readonly InstanceState[] = [
  'scheduled',
  'running',
  'waiting',
  'paused',
  'completed',
  'failed',
  'cancelled',
];

export type WaitKind = NonNullable<InstancesListQuery['waiting_for']>;

export const WAITS: readonly { readonly value: WaitKind | ''; readonly label: string }[] = [
  { value: '', label: 'Any' },
  { value: 'task', label: 'A worker' },
  { value: 'approval', label: 'A person' },
  { value: 'event', label: 'An event' },
  { value: 'sleep', label: 'A sleep' },
  { value: 'delay', label: 'A delay' },
  { value: 'retry', label: 'A retry' },
  { value: 'child', label: 'A child instance' },
  { value: 'rate_limit', label: 'A rate limit' },
  { value: 'slot', label: 'A free slot' },
  { value: 'handler', label: 'A built-in handler' },
];

/** Maximum age, by its value in the address. */
export const AGES: readonly { readonly value: string; readonly label: string }[] = [
  { value: '', label: 'Any time' },
  { value: '15m', label: 'Last 15 minutes' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
];

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parameters that are passed to the engine unchanged, which rejects invalid ones. */
const AS_THEY_ARE = [
  'namespace',
  'sequence',
  'sequence_id',
  'parent_instance_id',
  'failure',
  'failure_code',
  'failure_block',
  'failure_handler',
  'failure_reason',
] as const;

/** Instants, in the address in the form that the engine accepts. */
export const TIMES = [
  'created_after',
  'created_before',
  'updated_after',
  'updated_before',
  'failed_after',
  'failed_before',
] as const;

/** Filters by age, and the filter by an instant that they stand for. */
export const AGE_FILTERS = {
  created: 'created',
  changed: 'updated',
  failed: 'failed',
} as const;
export type AgeFilter = keyof typeof AGE_FILTERS;

/** Filters with a field on the page; all others are shown as removable chips. */
const WITH_FIELD: ReadonlySet<string> = new Set([
  ...['state', 'sequence', 'version', 'failure', 'metadata', 'waiting_for'],
  ...Object.keys(AGE_FILTERS),
  ...TIMES,
]);

export function statesOf(filters: Filters): readonly InstanceState[] {
  const words = new Set(filters.state?.split(','));
  return STATES.filter((state) => words.has(state));
}

/** With a plus if there may be more among older instances. */
export function countIn({ complete }: Pick<InstanceCounts, 'complete'>, count: number): string {
  return `${formatCount(count)}${complete ? '' : '+'}`;
}

/** Matches in the states that are chosen; all states if none is. */
export function totalIn(counts: InstanceCounts, states: readonly InstanceState[]): string {
  const chosen = states.length === 0 ? STATES : states;
  return countIn(
    counts,
    chosen.reduce((sum, state) => sum + counts[state], 0),
  );
}

/** Messages by the name in the address. */
export type Wrong = Readonly<Record<string, string>>;

export interface Selection {
  /** The query for the list. */
  readonly query: InstancesListQuery;
  /** The same filter for a bulk change. */
  readonly bulk: BulkFilter;
  /** Filters in the address that cannot be applied: ignoring them would match more than intended. */
  readonly wrong: Wrong;
}

/** @param now milliseconds since the epoch, for filters by age */
export function selectionOf(filters: Filters, now: number): Selection {
  const wrong: Record<string, string> = {};
  /** The value of a filter; undefined if it is absent or invalid. */
  const read = <Value>(name: string, of: (text: string) => Value | string): Value | undefined => {
    const text = filters[name];
    if (!text) return undefined;
    const value = of(text);
    if (typeof value !== 'string') return value;
    wrong[name] = value;
    return undefined;
  };
  const version = read('version', (text) =>
    filters.sequence ? versionOf(text) : 'Choose a sequence, or remove the filter by version',
  );
  const ages = Object.entries(AGE_FILTERS).map(([name, member]) => {
    const since = read(name, (text) => sinceOf(text, now) ?? 'Not a valid age');
    return [`${member}_after`, since] as const;
  });
  const metadata = read('metadata', metadataOf);
  const wait = read('waiting_for', (text) => WAITS.find(is(text)) ?? 'Not a kind of wait');
  read('state', (text) => text.split(',').every(isState) || 'Not all of these are valid states');
  const times = TIMES.flatMap((name) => {
    const at = read(name, instantIn);
    return at === undefined ? [] : [[name, at] as const];
  });
  for (const name of Object.keys(filters)) {
    if (!KNOWN.has(name)) wrong[name] = 'Unknown filter';
  }
  const states = statesOf(filters);
  const between = new Map<string, Date>(times);
  for (const [name, since] of ages) {
    const at = latest(since, between.get(name));
    if (at !== undefined) between.set(name, at);
  }
  const asked = {
    ...Object.fromEntries(
      AS_THEY_ARE.flatMap((name) => (filters[name] ? [[name, filters[name]]] : [])),
    ),
    ...Object.fromEntries([...between].map(([name, at]) => [name, at.toISOString()])),
    ...(version && { sequence_version: version.number }),
    ...(wait?.value && { waiting_for: wait.value }),
    ...(metadata && { metadata }),
  };
  return {
    query: { ...asked, ...(states.length > 0 && { state: states }) },
    bulk: { ...asked, ...(states.length > 0 && { states }) },
    wrong,
  };
}

const KNOWN: ReadonlySet<string> = new Set([...AS_THEY_ARE, ...WITH_FIELD, ...VIEW_PARAMETERS]);

/** Filters shown as removable chips: those without a field, or whose field cannot show the invalid value. */
export function chipsOf(filters: Filters, wrong: Wrong): readonly string[] {
  return Object.keys(filters).filter((name) => {
    if (VIEW_PARAMETERS.has(name)) return false;
    if (!WITH_FIELD.has(name)) return true;
    if (name === 'version') return !filters.sequence;
    return (name === 'state' || isTime(name)) && wrong[name] !== undefined;
  });
}

/** A bulk change's filters in words, for its confirmation. */
export function filterWords(filters: Filters): readonly (readonly [name: string, value: string])[] {
  return Object.entries(filters).flatMap(([name, value]) =>
    VIEW_PARAMETERS.has(name) || value === ''
      ? []
      : [[wordsOf(name), shownOf(name, value)] as const],
  );
}

/** The filters that an instance still matches after it was changed. */
export function lasting(filters: Filters): Filters {
  const kept = Object.entries(filters).filter(
    ([name]) => !/^(?:state|waiting_for|updated_|changed|failure|failed|cursor)/.test(name),
  );
  return Object.fromEntries(kept);
}

/** Instants are shown in the viewer's time zone. */
export function shownOf(name: string, text = ''): string {
  const at = new Date(text);
  return isTime(name) && !Number.isNaN(at.getTime()) ? formatInstant(at) : text;
}

const isTime = (name: string) => (TIMES as readonly string[]).includes(name);

const is = (text: string) => (option: { readonly value: string }) => option.value === text;

const isState = (word: string) => (STATES as readonly string[]).includes(word);

const INT32_MAX = 2 ** 31 - 1;

function versionOf(text: string): { readonly number: number } | string {
  const number = Number(text);
  const isVersion = /^-?\d+$/.test(text) && Math.abs(number) <= INT32_MAX;
  return isVersion ? { number } : 'A version must be a whole number, such as 2';
}

function instantIn(text: string): Date | string {
  const at = new Date(text);
  return at.getTime() >= 0 ? at : 'Not a valid time';
}

/** Filters on the same member are combined by AND, too. */
function latest(...times: readonly (Date | undefined)[]): Date | undefined {
  return times.reduce((max, at) => (max && at && max > at ? max : (at ?? max)), undefined);
}

/** The instant of an age such as `24h`, to the minute, so that the query stays the same for a while. */
export function sinceOf(age: string, now: number): Date | undefined {
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(age) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const minute = Math.floor(now / 60_000) * 60_000;
  return new Date(minute - Number(count) * (UNIT_MS[unit] ?? 0));
}

/** The pairs of `customer=4711, channel=web`, or the error message. */
export function metadataOf(text: string): Readonly<Record<string, string>> | string {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  const pairs = parts.map((part) => part.split(/=(.*)/s).map((side) => side.trim()));
  const names = new Set(pairs.map(([name]) => name));
  if (pairs.length === 0 || names.has('') || pairs.some(([, value]) => value === undefined)) {
    return 'Enter name=value, separated by commas';
  }
  return names.size < pairs.length
    ? 'A name occurs twice'
    : Object.fromEntries(pairs.map(([name, value]) => [name, value]));
}
