/**
 * The filters of the list of instances: how each stands in the address, and what the engine is asked with. All of
 * them are combined by AND. Pure.
 */

import type { InstanceState, InstancesListQuery } from 'durable-workflow-engine-client';
import type { BulkFilter } from '../../components/bulk-dialog.tsx';
import type { Filters } from '../../lib/address.ts';
import { formatInstant, wordsOf } from '../../lib/format.ts';

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
  { value: '', label: 'Anything or nothing' },
  { value: 'task', label: 'A worker' },
  { value: 'approval', label: 'A person' },
  { value: 'event', label: 'An event' },
  { value: 'sleep', label: 'A sleep' },
  { value: 'delay', label: 'A delay' },
  { value: 'retry', label: 'Its next try' },
  { value: 'child', label: 'A child instance' },
  { value: 'rate_limit', label: 'A rate limit' },
  { value: 'slot', label: 'A free slot' },
  { value: 'handler', label: 'A handler of the server' },
];

/** How long ago, by the word that stands in the address. */
export const AGES: readonly { readonly value: string; readonly label: string }[] = [
  { value: '', label: 'Any time' },
  { value: '15m', label: 'Last 15 minutes' },
  { value: '1h', label: 'Last hour' },
  { value: '24h', label: 'Last 24 hours' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
];

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Members of the address that go to the engine as they are, which refuses what it cannot read. */
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

/** Instants, in the address as the engine is asked with them. */
export const TIMES = [
  'created_after',
  'created_before',
  'updated_after',
  'updated_before',
] as const;

/** Those that can be changed on the page; all others are shown to be taken away. */
const WITH_FIELD: ReadonlySet<string> = new Set([
  ...['state', 'sequence', 'version', 'failure', 'metadata', 'waiting_for', 'created'],
]);

/** Where the list stands is no filter. */
const CURSOR = 'cursor';

export function statesOf(filters: Filters): readonly InstanceState[] {
  const words = new Set(filters.state?.split(','));
  return STATES.filter((state) => words.has(state));
}

/** By the name that it has in the address. */
export type Wrong = Readonly<Record<string, string>>;

export interface Selection {
  /** What the list is asked with. */
  readonly query: InstancesListQuery;
  /** The same, for a change of many. */
  readonly bulk: BulkFilter;
  /** What cannot be asked for as it stands in the address: it would match more than was meant. */
  readonly wrong: Wrong;
}

/** @param now milliseconds since the epoch, for times that are said as an age */
export function selectionOf(filters: Filters, now: number): Selection {
  const wrong: Record<string, string> = {};
  /** The value of a filter; undefined where there is none, and where it cannot be read. */
  const read = <Value>(name: string, of: (text: string) => Value | string): Value | undefined => {
    const text = filters[name];
    if (!text) return undefined;
    const value = of(text);
    if (typeof value !== 'string') return value;
    wrong[name] = value;
    return undefined;
  };
  const version = read('version', (text) =>
    filters.sequence ? versionOf(text) : 'Of which sequence? Choose one, or take this away',
  );
  const created = read('created', (text) => sinceOf(text, now) ?? 'No such age');
  const metadata = read('metadata', metadataOf);
  const wait = read('waiting_for', (text) => WAITS.find(is(text)) ?? 'Nothing waits for that');
  read('state', (text) => text.split(',').every(isState) || 'Not all of these are states');
  const times = TIMES.flatMap((name) => {
    const at = read(name, instantIn);
    return at === undefined ? [] : [[name, at] as const];
  });
  for (const name of Object.keys(filters)) {
    if (!KNOWN.has(name)) wrong[name] = 'There is no such filter';
  }
  const states = statesOf(filters);
  const { created_after, ...between } = Object.fromEntries(times) as Partial<
    Record<(typeof TIMES)[number], Date>
  >;
  const since = latest(created, created_after);
  const asked = {
    ...Object.fromEntries(
      AS_THEY_ARE.flatMap((name) => (filters[name] ? [[name, filters[name]]] : [])),
    ),
    ...Object.fromEntries(Object.entries(between).map(([name, at]) => [name, at.toISOString()])),
    ...(version && { sequence_version: version.number }),
    ...(since && { created_after: since.toISOString() }),
    ...(wait?.value && { waiting_for: wait.value }),
    ...(metadata && { metadata }),
  };
  return {
    query: { ...asked, ...(states.length > 0 && { state: states }) },
    bulk: { ...asked, ...(states.length > 0 && { states }) },
    wrong,
  };
}

const KNOWN: ReadonlySet<string> = new Set([...AS_THEY_ARE, ...TIMES, ...WITH_FIELD, CURSOR]);

/** What is shown to be taken away: what has no field, or none where it is wrong. */
export function chipsOf(filters: Filters, wrong: Wrong): readonly string[] {
  return Object.keys(filters).filter((name) => {
    if (name === CURSOR) return false;
    if (!WITH_FIELD.has(name)) return true;
    return (name === 'state' && wrong.state) || (name === 'version' && !filters.sequence);
  });
}

/** What a change of many is about, filter by filter, for whoever is asked once more. */
export function filterWords(filters: Filters): readonly (readonly [name: string, value: string])[] {
  return Object.entries(filters).flatMap(([name, value]) =>
    name === CURSOR || value === '' ? [] : [[wordsOf(name), shownOf(name, value)] as const],
  );
}

/** Those of the filters that an instance matches still when it was changed. */
export function lasting(filters: Filters): Filters {
  const kept = Object.entries(filters).filter(
    ([name]) => !/^(?:state|waiting_for|updated_|failure|cursor)/.test(name),
  );
  return Object.fromEntries(kept);
}

/** Instants are read in the zone of the viewer. */
export function shownOf(name: string, text = ''): string {
  const at = new Date(text);
  const isTime = (TIMES as readonly string[]).includes(name) && !Number.isNaN(at.getTime());
  return isTime ? formatInstant(at) : text;
}

const is = (text: string) => (option: { readonly value: string }) => option.value === text;

const isState = (word: string) => (STATES as readonly string[]).includes(word);

const INT32_MAX = 2 ** 31 - 1;

function versionOf(text: string): { readonly number: number } | string {
  const number = Number(text);
  const isVersion = /^-?\d+$/.test(text) && Math.abs(number) <= INT32_MAX;
  return isVersion ? { number } : 'A version is a whole number, such as 2';
}

function instantIn(text: string): Date | string {
  const at = new Date(text);
  return at.getTime() >= 0 ? at : 'No such time';
}

/** All filters must match, those about the same member, too. */
function latest(...times: readonly (Date | undefined)[]): Date | undefined {
  return times.reduce((max, at) => (max && at && max > at ? max : (at ?? max)), undefined);
}

/** The instant of an age such as `24h`, to the minute, so that the same page has the same address for a while. */
export function sinceOf(age: string, now: number): Date | undefined {
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(age) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const minute = Math.floor(now / 60_000) * 60_000;
  return new Date(minute - Number(count) * (UNIT_MS[unit] ?? 0));
}

/** `customer=4711, channel=web` by name, or what is wrong with it. */
export function metadataOf(text: string): Readonly<Record<string, string>> | string {
  const parts = text.split(',').filter((part) => part.trim() !== '');
  const pairs = parts.map((part) => part.split(/=(.*)/s).map((side) => side.trim()));
  const names = new Set(pairs.map(([name]) => name));
  if (pairs.length === 0 || names.has('') || pairs.some(([, value]) => value === undefined)) {
    return 'Write name=value, with commas between several';
  }
  return names.size < pairs.length
    ? 'A name stands there twice'
    : Object.fromEntries(pairs.map(([name, value]) => [name, value]));
}
