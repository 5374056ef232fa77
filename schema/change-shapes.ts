/**
 * Shapes of changes of one resource (docs/decisions/0017-unknown-fields.md). An absent member stays unchanged, null
 * resets it to the default of a creation, and a member that cannot be changed or does not exist is refused: ignoring it
 * would not do what was asked.
 */

import type { TObject, TProperties, TSchema } from '@sinclair/typebox';
import { nullish, strictNamed, Timestamp } from './common.js';

/** @param members that can be changed; those that a creation requires are never null */
export function changeOf<P extends TProperties>(
  name: string,
  thing: TObject,
  members: P,
): TObject<P> {
  const note = 'Absent members stay unchanged; null resets a member to its default.';
  const fixed = Object.keys(thing.properties).filter((member) => !(member in members));
  return { ...strictNamed(name, note, members), 'x-fixed': fixed };
}

/** For changes that depend on what was read (`src/base/unchanged-since.ts`). */
export const UNCHANGED = {
  if_unchanged_since: nullish(Timestamp, 'The updated_at that was read: 409 if it has changed.'),
};

export function fixedMembers(shape: TSchema): readonly string[] {
  return shape['x-fixed'] ?? [];
}

/** The value of a member after a checked change. */
export function changedTo<T>(given: T | null | undefined, before: T, atFirst: T): T {
  return given === undefined ? before : (given ?? atFirst);
}
