/**
 * Strict shapes refuse unknown members: filters and bulk changes, where an ignored misspelt filter would select too
 * much; grants; and resources that act later by themselves, such as schedules. Requests that create or report one thing
 * ignore unknown members.
 */

import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { named } from './common.js';
import { type Finding, findingOf } from './finding.js';
import { suggest } from './suggest.js';

export function strict<T extends TObject>(shape: T): T {
  return { ...shape, additionalProperties: false };
}

export const strictObject = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

export const strictNamed = ((...args: Parameters<typeof named>) =>
  strict(named(...args))) as typeof named;

export function isStrict(shape: TSchema): boolean {
  return shape.additionalProperties === false;
}

/** An unknown name, with a suggestion or all known names. */
export function findingOfStray(field: string, name: string, known: readonly string[]): Finding {
  const guess = suggest(name, known);
  const message = `${field} is unknown`;
  if (guess !== undefined) return findingOf(field, message, guess);
  const list = `there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`;
  return findingOf(field, `${message}: ${list}`);
}
