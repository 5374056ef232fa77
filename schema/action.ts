/** Actions: what people and keys have changed by requests (docs/actions.md). */

import * as t from './common.js';
import { ACTION_KINDS, type ActionMark, get, type RouteRow } from './route-row.js';

const Details = t.JsonObjectSchema;

export const Action = t.named('Action', 'A change by a request of a person or a program.', {
  id: t.Uuid,
  tenant_id: t.text(),
  at: t.Timestamp,
  by: t.text(
    'Name of the key, or its id if it has none; root: the root key or none; of a link: the recipient.',
  ),
  key_id: t.nullable(t.text(), 'Id of the key; null: the root key, no key or a link.'),
  operation: t.text('Operation of the request, such as sequences.deprecate.'),
  kind: t.text('Kind of the changed object, one of those of the filter.'),
  target: t.text('Id of the changed object, or its name if it has no id.'),
  name: t.nullable(
    t.text(),
    'Name and version of the sequence of the object; block of an approval; null: none, or deleted.',
  ),
  instance_id: t.nullable(t.Uuid, 'The instance, for an instance or an approval.'),
  details: t.noted(Details, 'Some members of the request, and in changed the names of others.'),
  summary: t.text('The action as a sentence without subject.'),
});
export type Action = t.Static<typeof Action>;

export const ActionListQuery = t.object({
  tenant_id: t.optional(t.text()),
  by: t.optional(t.text(), 'Name of the key.'),
  kind: t.optional(t.oneOf(ACTION_KINDS)),
  operation: t.optional(t.text()),
  target: t.optional(t.text(), 'Id or name of the changed object.'),
  since: t.optional(t.Timestamp, 'Only actions after this time.'),
  until: t.optional(t.Timestamp, 'Only actions before this time.'),
  ...t.pageOf(),
});

export const ACTION_ROWS = {
  'actions.list': get(
    '/actions',
    'List what people and keys have changed, newest first.',
    t.list(Action),
    { query: ActionListQuery },
  ),
} as const satisfies Record<string, RouteRow>;

type Members = Readonly<Record<string, unknown>>;
type Said = Pick<Action, 'kind' | 'target' | 'name' | 'details'>;

/** They name the object. */
const NAMES = ['namespace', 'name', 'version'];
const SHOWN_LENGTH_MAX = 200;
const SHOWN_ITEMS_MAX = 20;

/** Whether the request is an action: a dry run, for example, is none. */
export function isAction({ unless, words, isOnlyOfWords }: ActionMark, body: Members): boolean {
  if (unless.some((member) => body[member] != null && body[member] !== false)) return false;
  return isOnlyOfWords !== true || verbIn(words, body) !== undefined;
}

export function actionDetails(
  { shows, isChange }: ActionMark,
  body: Members,
  path: Members,
): Members {
  const members = { ...body, ...path };
  const shown = shows
    .filter((name) => members[name] !== undefined)
    .map((name) => [name, shownValue(members[name])] as const);
  const others = Object.keys(body).filter(
    (name) => !shows.includes(name) && name !== 'if_unchanged_since' && body[name] !== undefined,
  );
  const changed = isChange === true && others.length > 0 && { changed: others };
  return { ...Object.fromEntries(shown), ...changed };
}

function shownValue(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, SHOWN_LENGTH_MAX);
  return Array.isArray(value) ? value.slice(0, SHOWN_ITEMS_MAX).map(shownValue) : value;
}

/** @param mark undefined: an operation that this version does not know */
export function actionSummary(mark: ActionMark | undefined, action: Said): string {
  const { kind, target, name, details } = action;
  const verb = mark && (verbIn(mark.words, details) ?? mark.did);
  const isNamed = nameIn(details) !== undefined;
  const isTold = (member: string, value: unknown) =>
    value === null ||
    (Array.isArray(value) && value.length === 0) ||
    (isNamed && NAMES.includes(member)) ||
    mark?.words[member]?.[String(value)] !== undefined;
  const rest = Object.entries(details).filter(([member, value]) => !isTold(member, value));
  const more = rest.map(([member, value]) => `${member}: ${[value].flat().join(', ')}`).join('; ');
  const noun = kind.replaceAll('_', ' ');
  const thing = `${noun} ${thingOf({ kind, target, name, details })}`;
  return `${verb ?? 'changed'} ${thing}${more === '' ? '' : ` (${more})`}`;
}

function thingOf({ kind, target, name, details }: Said): string {
  if (kind === 'sequence' || kind === 'approval') return name ?? nameIn(details) ?? target;
  if (kind === 'api_key') return nameIn(details) ?? target;
  return name === null ? target : `${target} of ${name}`;
}

function nameIn({ name, version }: Members): string | undefined {
  if (typeof name !== 'string' || name === '') return undefined;
  return typeof version === 'number' ? `${name} v${version}` : name;
}

function verbIn(words: ActionMark['words'], members: Members): string | undefined {
  for (const [member, verbs] of Object.entries(words)) {
    const value = members[member];
    if (value == null) continue;
    const verb = Object.hasOwn(verbs, String(value)) ? verbs[String(value)] : undefined;
    if (verb !== undefined) return verb;
  }
  return undefined;
}
