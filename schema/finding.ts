/**
 * What is told of a definition: mistakes, which refuse it, and what is probably one, each with its
 * place. How places are written is here as well, for everything that names a member.
 */

import { type Static, Type } from '@sinclair/typebox';

/** Of each sort; a last entry says how many more there are. An answer stays smaller than its question. */
export const FINDINGS_MAX = 100;

export const Finding = Type.Object(
  {
    path: Type.String({ description: 'Such as blocks[2].branches[0][1].retry.initialBackoff.' }),
    message: Type.String(),
    suggestion: Type.Optional(Type.String({ description: 'What was probably meant.' })),
  },
  { description: 'Something in a definition that is or may be a mistake.' },
);
export type Finding = Static<typeof Finding>;

/** Of what was accepted; present only when there are any. */
export const Warnings = Type.Optional(
  Type.Array(Finding, {
    description: `At most ${FINDINGS_MAX}; one more says how many are left out.`,
  }),
);

/** What is wrong with the shape of a definition. */
export interface ShapeErrors {
  readonly found: readonly Finding[];
  /**
   * Whether these are all of them. Otherwise little can be said of what the definition means; and nothing
   * else is looked for in one so large that only the first mistake was.
   */
  readonly extent: 'all' | 'some' | 'first';
}

/** The guess, if there is one, stands in the message too, worded here for all of them. */
export function findingOf(path: string, message: string, suggestion?: string): Finding {
  if (suggestion === undefined) return { path, message };
  return { path, message: `${message}; did you mean ${suggestion}?`, suggestion };
}

/** For people: what is told of a place begins with it. */
export function findingText({ path, message }: Finding): string {
  return path === '' || message.startsWith(path) ? message : `${path}: ${message}`;
}

/** The first ones one after the other. */
export function findingsText(findings: readonly Finding[]): string {
  const shown = findings.slice(0, SHOWN_MAX).map(findingText).join('; ');
  const left = findings.length - SHOWN_MAX;
  return left > 0 ? `${shown}; and ${left} more` : shown;
}

/** In one message. */
const SHOWN_MAX = 10;

/** They may be of any length. */
const SHOWN_LENGTH_MAX = 100;

/** The path of a member: `branches` and `0` are `branches[0]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number' || /^\d+$/.test(key)) return `${path}[${key}]`;
  const name = shownName(key);
  return path === '' ? name : `${path}.${name}`;
}

/** A name or word of the caller in a message. */
export function shownName(key: string): string {
  return key === '' ? '""' : key.slice(0, SHOWN_LENGTH_MAX);
}

/** Whether what stands at `path` is `place` or something inside it. */
export function isWithin(path: string, place: string): boolean {
  if (!path.startsWith(place)) return false;
  const next = path.charAt(place.length);
  return next === '' || next === '.' || next === '[';
}
