/** By what instances are selected: the options of lists and of changes of many, and what is sent for them. */

import type { InstancesListQuery } from '../../client/src/index.js';
import { toUnixMs } from '../../schema/common.js';
import { INSTANCE_STATES, type InstanceState } from '../../schema/states.js';
import type { Given, Option } from '../command.js';
import { usageError } from '../exit.js';

/** Where none is named. */
export const NAMESPACE_DEFAULT = 'default';

export const STATE_OPTION: Option = {
  flags: '--state <states>',
  about: 'In one of these states.',
  choices: INSTANCE_STATES,
  isMany: true,
};

export const NAMESPACE_OPTION: Option = {
  flags: '--namespace <name>',
  about: 'In this namespace.',
};

/** Of changes of many. */
export const AGREED_OPTIONS: readonly Option[] = [
  { flags: '--dry-run', about: 'Count only.' },
  { flags: '--yes', about: 'Do not ask.' },
];

/** Of migrations. */
export const APPROVED_OPTION: Option = {
  flags: '--approved',
  about: 'Also migrate those whose verdict requires approval.',
};

/** Within one sequence. */
export const NARROWING_OPTIONS: readonly Option[] = [
  { flags: '--metadata <name=value>', about: 'With this metadata; may be repeated.', isMany: true },
  { flags: '--failure <text>', about: 'With this in the message or code of its failure.' },
  { flags: '--created-after <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
  { flags: '--created-before <time>', about: 'The same.' },
  { flags: '--updated-after <time>', about: 'The same.' },
  { flags: '--updated-before <time>', about: 'The same.' },
];

export const SELECTION_OPTIONS: readonly Option[] = [
  { flags: '--sequence <name>', about: 'Of any version of this sequence.' },
  { flags: '--sequence-id <id>', about: 'Of this version, by its id.' },
  NAMESPACE_OPTION,
  ...NARROWING_OPTIONS,
];

/** What was selected, without the states. */
export function selectionOf(
  given: Given,
  now: number,
): Omit<InstancesListQuery, 'state' | 'offset' | 'limit' | 'cursor'> {
  const times = ['created-after', 'created-before', 'updated-after', 'updated-before'].map(
    (name) => [name.replace('-', '_'), timeOf(given.text(name), name, now)],
  );
  const all = {
    sequence_name: given.text('sequence'),
    sequence_id: given.text('sequence-id'),
    namespace: given.text('namespace'),
    metadata: given.pairs('metadata'),
    failure: given.text('failure'),
    ...Object.fromEntries(times),
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

export function statesOf(given: Given): InstanceState[] | undefined {
  const states = given.texts('state') as readonly InstanceState[];
  return states.length === 0 ? undefined : [...states];
}

/** Of `Date`. */
const TIME_MS_MAX = 8.64e15;

const SPAN = /^(\d{1,9})([smhd])$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * @param direction in which a length of time is meant: -1 ago, 1 from now on
 * @throws CommandError when it is neither a length of time nor an instant
 */
export function timeOf(
  text: string | undefined,
  name: string,
  now: number,
  direction: -1 | 1 = -1,
): string | undefined {
  if (text === undefined) return undefined;
  const [, count, unit] = SPAN.exec(text) ?? [];
  const spanMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const at = count === undefined ? toUnixMs(text) : now + direction * spanMs;
  // A length of time may lead beyond what a time can be.
  if (at !== undefined && Math.abs(at) <= TIME_MS_MAX) return new Date(at).toISOString();
  const span = direction < 0 ? '2h (ago)' : '2h (from now)';
  throw usageError(`--${name} takes a time, as 2026-01-31T12:00:00Z or ${span}, not ${text}`);
}
