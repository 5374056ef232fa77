/** Tables of the members of schemas: type, bounds, default and description. */

import type { TSchema } from '@sinclair/typebox';
import { DURATION_MS_MAX, isUnsupported } from '../../schema/common.js';
import { HTTP_TIMEOUT_MS_MAX } from '../../schema/handlers.js';
import type { JsonValue } from '../../src/base/json.js';
import { code, flatJson, table } from './markdown.js';
import { said } from './rows.js';

const HEADS = ['member', 'type', 'default', 'meaning'];

/** Numbers that read better in words. */
const SPOKEN = new Map<number, string>([
  [DURATION_MS_MAX, '100 years'],
  [HTTP_TIMEOUT_MS_MAX, 'a day'],
]);

export interface Members {
  /** An object. */
  readonly schema: TSchema;
  /** Sections with the members of a member. */
  readonly links?: Readonly<Record<string, string>>;
  readonly head?: string;
}

/**
 * One row for each member, followed by its own members unless it has a link.
 * @throws Error when a member has no description
 */
export function memberTable({ schema, links = {}, head = 'member' }: Members): string {
  const rows = memberRows(schema, '', links);
  const refused = refusedMembers(schema);
  const members = table([head, ...HEADS.slice(1)], rows);
  if (refused.length === 0) return members;
  const names = refused.map(code).join(', ');
  return `${members}\n\nNot supported, and refused with 400 unless null or false: ${names}.`;
}

function memberRows(
  schema: TSchema,
  prefix: string,
  links: Readonly<Record<string, string>>,
): string[][] {
  const required = new Set<string>(schema.required ?? []);
  return Object.entries<TSchema>(schema.properties).flatMap(([name, member]) => {
    if (isUnsupported(member.enum)) return [];
    const path = prefix + name;
    const meaning = said(member.description, path);
    const link = links[path];
    const more = link === undefined ? meaning : `${meaning} See ${link}.`;
    const row = [code(path), typeText(member), defaultText(member, required.has(name)), more];
    return link === undefined ? [row, ...innerRows(member, path, links)] : [row];
  });
}

function innerRows(
  member: TSchema,
  path: string,
  links: Readonly<Record<string, string>>,
): string[][] {
  if (member.properties !== undefined) return memberRows(member, `${path}.`, links);
  const items: TSchema | undefined = member.items;
  return items?.properties === undefined ? [] : memberRows(items, `${path}[].`, links);
}

function refusedMembers(schema: TSchema): string[] {
  const members = Object.entries<TSchema>(schema.properties);
  return members.flatMap(([name, member]) => (isUnsupported(member.enum) ? [name] : []));
}

function defaultText(member: TSchema, isRequired: boolean): string {
  if (member.default !== undefined) return code(flatJson(member.default as JsonValue));
  return isRequired ? 'required' : 'none';
}

/** @throws Error for an unknown kind of schema */
export function typeText(schema: TSchema): string {
  if (schema.const !== undefined) return code(flatJson(schema.const as JsonValue));
  if (schema.enum !== undefined) {
    const words = (schema.enum as (string | null)[]).filter((word) => word !== null);
    return words.map((word) => code(word)).join(', ');
  }
  if (schema.$ref === 'Block') return 'block';
  if (schema.if !== undefined) return `${typeText(schema.else)} or ${typeText(schema.then)}`;
  const type = [schema.type].flat().find((word) => word !== 'null');
  switch (type) {
    case undefined:
      return 'any JSON';
    case 'boolean':
      return 'boolean';
    case 'integer':
      return `integer${boundsText(schema)}`;
    case 'number':
      return `number${boundsText(schema)}`;
    case 'string':
      return stringText(schema);
    case 'array':
      return arrayText(schema);
    case 'object':
      return schema.patternProperties === undefined ? 'object' : 'object of strings';
    default:
      throw new Error(`no words for the type ${type}`);
  }
}

function boundsText(schema: TSchema): string {
  const { minimum, exclusiveMinimum, maximum } = schema;
  const isWhole = [schema.type].flat().includes('integer');
  const from =
    exclusiveMinimum === undefined
      ? minimum
      : isWhole
        ? exclusiveMinimum + 1
        : `more than ${exclusiveMinimum}`;
  if (from === undefined) return '';
  if (typeof from === 'string') return `, ${from}`;
  return maximum === undefined ? `, at least ${from}` : `, ${spoken(from)} to ${spoken(maximum)}`;
}

function spoken(count: number): string {
  return SPOKEN.get(count) ?? count.toLocaleString('en');
}

function stringText({ format, maxLength }: TSchema): string {
  if (format === 'time-zone') return 'time zone';
  if (format === 'calendar-day') return 'day, YYYY-MM-DD';
  return maxLength === undefined ? 'string' : `string, at most ${spoken(maxLength)} characters`;
}

function arrayText({ items, minItems, maxItems }: TSchema): string {
  const bounds = [
    ...(minItems === undefined ? [] : [`at least ${minItems}`]),
    ...(maxItems === undefined ? [] : [`at most ${spoken(maxItems)}`]),
  ];
  const inside = items as TSchema;
  const of = inside.$ref === 'Block' ? 'blocks' : `(${typeText(inside)})`;
  return [`list of ${of}`, ...bounds].join(', ');
}
