/** The options that select instances, for lists and bulk changes, and the filter they stand for. */

import type { InstancesListQuery } from '../../client/src/index.js';
import { toUnixMs } from '../../schema/common.js';
import { INSTANCE_STATES, type InstanceState } from '../../schema/states.js';
import type { Given, Option } from '../command.js';
import { usageError } from '../exit.js';
import type { Session } from '../session.js';

export const STATE_OPTION: Option = {
  flags: '--state <states>',
  about: 'Only instances in one of these states.',
  choices: INSTANCE_STATES,
  isMany: true,
};

/** Options of bulk changes. */
export const AGREED_OPTIONS: readonly Option[] = [
  { flags: '--dry-run', about: 'Count the instances without changing them.' },
  { flags: '--yes', about: 'Do not ask for confirmation.' },
];

/** Option of migrations. */
export const APPROVED_OPTION: Option = {
  flags: '--approved',
  about: 'Also migrate instances whose verdict requires approval.',
};

/** Options within one sequence. */
export const NARROWING_OPTIONS: readonly Option[] = [
  {
    flags: '--metadata <name=value>',
    about: 'Only instances with this metadata; may be repeated.',
    isMany: true,
  },
  {
    flags: '--failure <text>',
    about: 'Only instances whose failure message or code contains this text.',
  },
  { flags: '--created-after <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
  { flags: '--created-before <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
  { flags: '--updated-after <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
  { flags: '--updated-before <time>', about: 'RFC 3339, or an age such as 2h or 7d.' },
];

export const SELECTION_OPTIONS: readonly Option[] = [
  { flags: '--sequence <name>', about: 'Only instances of this sequence, in any version.' },
  { flags: '--sequence-id <id>', about: 'Only instances of this version, by its id.' },
  ...NARROWING_OPTIONS,
];

/** The filter, without states. */
export function selectionOf(
  { namespace }: Pick<Session, 'namespace'>,
  given: Given,
  now: number,
): Omit<InstancesListQuery, 'state' | 'offset' | 'limit' | 'cursor'> {
  const times = ['created-after', 'created-before', 'updated-after', 'updated-before'].map(
    (name) => [name.replace('-', '_'), timeOf(given.text(name), name, now)],
  );
  const all = {
    sequence_name: given.text('sequence'),
    sequence_id: given.text('sequence-id'),
    namespace,
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

/** The limit of `Date`. */
const TIME_MS_MAX = 8.64e15;

const SPAN = /^(\d{1,9})([smhd])$/;
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * @param direction of a duration: -1 for the past, 1 for the future
 * @throws CommandError unless it is a duration or an instant
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
  // A duration may lead outside the range of dates.
  if (at !== undefined && Math.abs(at) <= TIME_MS_MAX) return new Date(at).toISOString();
  const span = direction < 0 ? '2h (ago)' : '2h (from now)';
  throw usageError(
    `--${name} must be a time, such as 2026-01-31T12:00:00Z or ${span}, not ${text}`,
  );
}
