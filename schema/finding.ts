/** Findings about a definition: errors, for which it is refused, and warnings, each with the path of its place. */

import * as t from './common.js';
import { suggest } from './suggest.js';

/** Bound for each kind; a last entry counts the rest, so that the response stays smaller than the request. */
export const FINDINGS_MAX = 100;

export const Finding = t.object(
  {
    path: t.text('Such as blocks[2].branches[0][1].retry.initialBackoff.'),
    message: t.text(),
    suggestion: t.optional(t.text('Name or value that was probably meant.')),
  },
  'An error or probable mistake in a definition.',
);
export type Finding = t.Static<typeof Finding>;

/** Warnings about an accepted definition; absent if empty. */
export const Warnings = t.optional(
  t.list(Finding),
  `At most ${FINDINGS_MAX}; the last counts the rest.`,
);

export interface ShapeErrors {
  readonly found: readonly Finding[];
  /**
   * Whether these are all errors. Otherwise the meaning is not checked; after `first`, which is for very large
   * definitions, nothing else is.
   */
  readonly extent: 'all' | 'some' | 'first';
}

/** The message includes the suggestion in the same words everywhere. */
export function findingOf(path: string, message: string, suggestion?: string): Finding {
  if (suggestion === undefined) return { path, message };
  return { path, message: `${message}; did you mean ${suggestion}?`, suggestion };
}

/** For people: begins with the path. */
export function findingText({ path, message }: Finding): string {
  return path === '' || message.startsWith(path) ? message : `${path}: ${message}`;
}

export function findingsText(findings: readonly Finding[]): string {
  const shown = findings.slice(0, SHOWN_MAX).map(findingText).join('; ');
  const left = findings.length - SHOWN_MAX;
  return left > 0 ? `${shown}; and ${left} more` : shown;
}

const SHOWN_MAX = 10;

/** Names in messages are truncated. */
const SHOWN_LENGTH_MAX = 100;

/** The path of a member: `branches` and `0` are `branches[0]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number' || /^\d+$/.test(key)) return `${path}[${key}]`;
  const name = shownName(key);
  return path === '' ? name : `${path}.${name}`;
}

/** A name or word of the caller, quoted in a message. */
export function shownName(key: string): string {
  return key === '' ? '""' : key.slice(0, SHOWN_LENGTH_MAX);
}

/** Whether `path` is `place` or inside it. */
export function isWithin(path: string, place: string): boolean {
  if (!path.startsWith(place)) return false;
  const next = path.charAt(place.length);
  return next === '' || next === '.' || next === '[';
}

/** An unknown name, with a suggestion or all known names. */
export function findingOfStray(field: string, name: string, known: readonly string[]): Finding {
  const guess = suggest(name, known);
  const message = `${field} is unknown`;
  if (guess !== undefined) return findingOf(field, message, guess);
  const list = `there ${known.length === 1 ? 'is' : 'are'} ${known.join(', ')}`;
  return findingOf(field, `${message}: ${list}`);
}
