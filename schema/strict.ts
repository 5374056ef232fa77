/**
 * Shapes of what selects or changes many, and of what grants rights: a member that is not one of their
 * own is refused. Ignoring a filter that is misspelt would reach everything that the filter should
 * have left out. Whatever creates a single thing goes on ignoring what it does not know.
 */

import type { TObject, TSchema } from '@sinclair/typebox';
import { suggest } from '../src/core/suggest.js';

export function strict<T extends TObject>(shape: T): T {
  return { ...shape, additionalProperties: false };
}

export function isStrict(shape: TSchema): boolean {
  return shape.additionalProperties === false;
}

/** A sentence about a name that is none of those that are known where it stands. */
export function describeStray(field: string, name: string, known: readonly string[]): string {
  const meant = suggest(name, known);
  if (meant !== undefined) return `${field} is unknown: did you mean ${meant}?`;
  return `${field} is unknown: there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`;
}
