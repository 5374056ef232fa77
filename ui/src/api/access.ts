/** Which pages a key may see: one table for the routes, the navigation and the links within pages. */

import type { Allowed } from './allowed.ts';

type Right = keyof Allowed;

/** Any of the rights of a row is enough. Of several rows the most specific one counts; of none, whoever has a key. */
const NEEDS: Readonly<Record<string, readonly Right[]>> = {
  '/': ['readAll'],
  '/instances': ['readAll', 'start'],
  '/failures': ['readAll'],
  '/approvals': ['readAll', 'approve'],
  '/schedules': ['readAll'],
  '/jobs': ['readAll'],
  '/sequences': ['readAll', 'publish', 'start'],
  '/sequences/new': ['publish'],
  '/releases': ['readAll', 'publish'],
  '/workers': ['readAll'],
  '/webhooks': ['readAll'],
  '/triggers': ['readAll'],
  '/keys': ['readAll'],
  '/limits': ['readAll'],
  '/server': [],
  '/cells': ['administer'],
};

/** What a key has that is given a right, beside `operator`, which has all but one of them. */
const CAPABILITIES: Readonly<Record<Right, string>> = {
  operate: 'operator',
  start: 'starter',
  publish: 'publisher',
  approve: 'approver',
  readAll: 'auditor',
  readSequences: 'auditor',
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

/** @param href of a page, below `/ui` */
export function maySee(href: string, allowed: Allowed): boolean {
  const needs = needsOf(href);
  return needs.length === 0 || needs.some((right) => allowed[right]);
}

/** The capabilities of which one is enough. */
export function capabilitiesFor(href: string): readonly string[] {
  const needs = needsOf(href);
  const words = needs.map((right) => CAPABILITIES[right]);
  return needs.includes('administer') ? words : [...words, 'operator'];
}
