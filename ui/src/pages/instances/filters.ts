/**
 * The filters of the list of instances: how each stands in the address, and what the engine is asked with. All of
 * them are combined by AND. Pure.
 */

import type { InstanceState, InstancesListQuery } from 'durable-workflow-engine-client';
import type { BulkFilter } from '../../components/bulk-dialog.tsx';
import type { Filters } from '../../lib/address.ts';

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

/** Members of the address that go to the engine as they are. */
const AS_THEY_ARE = [
  'sequence_id',
  'parent_instance_id',
  'created_before',
  'updated_after',
  'updated_before',
  'failure',
  'failure_code',
  'failure_block',
  'failure_handler',
  'failure_reason',
] as const;

/** Those that have no field of their own, and are shown to be taken away. */
export const WITHOUT_FIELD = [
  'sequence_id',
  'parent_instance_id',
  'failure_code',
  'failure_block',
  'failure_handler',
  'failure_reason',
  'created_before',
  'updated_before',
] as const;

export function statesOf(filters: Filters): readonly InstanceState[] {
  const words = new Set(filters.state?.split(','));
  return STATES.filter((state) => words.has(state));
}

/**
 * What the list is asked with.
 * @param now milliseconds since the epoch, for times that are said as an age
 */
export function listQueryOf(filters: Filters, now: number): InstancesListQuery {
  const { states, ...rest } = commonOf(filters, now);
  return { ...rest, ...(states.length > 0 && { state: states }) };
}

/** The same selection, for a change of many. */
export function bulkFilterOf(filters: Filters, now: number): BulkFilter {
  const { states, ...rest } = commonOf(filters, now);
  return { ...rest, ...(states.length > 0 && { states }) };
}

function commonOf(filters: Filters, now: number) {
  const { sequence, version, metadata, waiting_for, created } = filters;
  const createdAfter = filters.created_after ?? sinceOf(created, now);
  const labels = metadataOf(metadata);
  const wait = WAITS.find(({ value }) => value === waiting_for)?.value;
  return {
    states: statesOf(filters),
    ...Object.fromEntries(
      AS_THEY_ARE.flatMap((name) => (filters[name] ? [[name, filters[name]]] : [])),
    ),
    ...(sequence && { sequence }),
    ...(sequence && version && { sequence_version: Number(version) }),
    ...(createdAfter && { created_after: createdAfter }),
    ...(wait && { waiting_for: wait }),
    ...(labels && { metadata: labels }),
  };
}

/** The instant of an age such as `24h`, to the minute, so that the same page has the same address for a while. */
export function sinceOf(age: string | undefined, now: number): string | undefined {
  const [, count, unit] = /^(\d{1,4})([mhd])$/.exec(age ?? '') ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const minute = Math.floor(now / 60_000) * 60_000;
  return new Date(minute - Number(count) * (UNIT_MS[unit] ?? 0)).toISOString();
}

/** `customer=4711, channel=web` by name; undefined while no pair is whole. */
export function metadataOf(text: string | undefined): Readonly<Record<string, string>> | undefined {
  const pairs = (text ?? '').split(',').flatMap((part) => {
    const at = part.indexOf('=');
    return at > 0 ? [[part.slice(0, at).trim(), part.slice(at + 1).trim()] as const] : [];
  });
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}
