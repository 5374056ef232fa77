/**
 * Shapes of what selects or changes many, of what grants rights, and of what is set up once and then acts by itself,
 * such as a schedule: a member that is not one of their own is refused. Ignoring a filter that is misspelt would reach
 * everything that the filter should have left out, and ignoring "metdata" of a schedule shows at each of its fires.
 * What creates or reports a single thing, such as an instance or a task, goes on ignoring what it does not know.
 */

import type { TObject, TSchema } from '@sinclair/typebox';
import { type Finding, findingOf } from './finding.js';
import { suggest } from './suggest.js';

export function strict<T extends TObject>(shape: T): T {
  return { ...shape, additionalProperties: false };
}

export function isStrict(shape: TSchema): boolean {
  return shape.additionalProperties === false;
}

/** A name that is none of those that are known where it stands; without a guess all of them are told. */
export function findingOfStray(field: string, name: string, known: readonly string[]): Finding {
  const guess = suggest(name, known);
  const told = `${field} is unknown`;
  if (guess !== undefined) return findingOf(field, told, guess);
  const list = `there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`;
  return findingOf(field, `${told}: ${list}`);
}
