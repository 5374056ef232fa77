/**
 * Shapes of changes of one thing (docs/decisions/0017-unknown-fields.md): a member that is absent
 * stays as it is, null gives back what a creation without it has, and a member that no change reaches, or that the
 * thing has not at all, is refused, because ignoring it would do something else than was asked.
 */

import type { TObject, TProperties, TSchema } from '@sinclair/typebox';
import { named, noted, optional, Timestamp } from './common.js';

/**
 * @param thing as it is shown
 * @param members that a change may have; those that a creation must have are not `optional`, and so never null
 */
export function changeOf<P extends TProperties>(
  name: string,
  thing: TObject,
  members: P,
): TObject<P> {
  const shape = named(
    name,
    'Absent members stay as they are; null gives back what a creation without the member has.',
    members,
  );
  const fixed = Object.keys(thing.properties).filter((member) => !(member in members));
  return { ...shape, additionalProperties: false, 'x-fixed': fixed };
}

/** Of changes of what was looked at before (`src/base/unchanged-since.ts`). */
export const UNCHANGED = {
  if_unchanged_since: optional(
    noted(
      Timestamp,
      'The updated_at that was read: 409 when it was changed since. When absent: whatever is there is changed.',
    ),
  ),
};

/** The members of a change that are refused. */
export function fixedMembers(shape: TSchema): readonly string[] {
  return shape['x-fixed'] ?? [];
}

/** What a member is after a change that was checked. */
export function changedTo<T>(given: T | null | undefined, before: T, atFirst: T): T {
  return given === undefined ? before : (given ?? atFirst);
}
