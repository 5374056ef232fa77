/** Which pages a key may open: one table for the routes, the navigation and the links within pages. */

import type { Allowed } from './allowed.ts';

type Right = keyof Allowed;

/** Any one right of a row is enough. The most specific row counts; a page without a row needs only a valid key. */
const NEEDS: Readonly<Record<string, readonly Right[]>> = {
  '/': ['readAll'],
  '/instances': ['readAll', 'start'],
  '/failures': ['readAll'],
  '/logs': ['readAll'],
  '/approvals': ['readAll', 'approve'],
  '/schedules': ['readAll'],
  '/pending-starts': ['readAll'],
  '/jobs': ['readAll'],
  '/sequences': ['readAll', 'publish', 'start'],
  '/sequences/new': ['publish'],
  '/releases': ['readAll', 'publish'],
  '/workers': ['readAll'],
  '/webhooks': ['readAll'],
  '/triggers': ['readAll'],
  '/keys': ['readAll'],
  '/activity': ['readAll'],
  '/limits': ['readAll'],
  '/server': [],
  '/cells': ['administer'],
};

/** The capability that grants a right, beside `operator`, which grants all but `administer` and `useSecrets`. */
const CAPABILITIES: Readonly<Record<Right, string>> = {
  operate: 'operator',
  start: 'starter',
  publish: 'publisher',
  approve: 'approver',
  readAll: 'auditor',
  readSequences: 'auditor',
  useSecrets: 'secrets',
  administer: 'root',
};

export function isWithin(path: string, section: string): boolean {
  return path === section || (section !== '/' && path.startsWith(`${section}/`));
}

function needsOf(href: string): readonly Right[] {
  const [path = ''] = href.split('?');
  const sections = Object.keys(NEEDS).filter((section) => isWithin(path, section));
  const section = sections.reduce((one, other) => (other.length > one.length ? other : one), '');
  return NEEDS[section] ?? [];
}

/** @param href address of a page, relative to `/ui` */
export function maySee(href: string, allowed: Allowed): boolean {
  const needs = needsOf(href);
  return needs.length === 0 || needs.some((right) => allowed[right]);
}

/** The capabilities of which any one is enough for this page. */
export function capabilitiesFor(href: string): readonly string[] {
  const needs = needsOf(href);
  const words = needs.map((right) => CAPABILITIES[right]);
  return needs.includes('administer') ? words : [...words, 'operator'];
}
