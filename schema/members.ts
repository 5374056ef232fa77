/**
 * Walks a definition along its schema and reports blocks with their places, unknown members, and strings. Accepts
 * invalid definitions: values of a wrong type are skipped, since the validators report them.
 */

import type { TProperties, TSchema } from '@sinclair/typebox';
import { isJsonObject, type JsonObject } from '../src/base/json.js';
import { BLOCK_TYPES, Block, membersOf } from './blocks.js';
import { isUnsupported } from './common.js';
import { type Finding, findingOf, joinPath, shownName } from './finding.js';
import { misspelt, suggest } from './suggest.js';

export interface BlockPlace {
  readonly block: JsonObject;
  readonly path: string;
  /** Undefined for blocks of the root list. */
  readonly parent: BlockPlace | undefined;
  /** Index of the parent's list, as its kind counts lists, and index in the list. */
  readonly list: number;
  readonly position: number;
  readonly depth: number;
}

export interface Visitor {
  /** In the order of the definition, parents first. */
  block(place: BlockPlace): void;
  unknown(describe: () => Finding): void;
  /** A string in a place known to the schema. */
  text(path: string, text: string): void;
}

/** An object's name in messages, and its members. */
interface Named {
  readonly name: string;
  readonly members: TProperties;
  /** The block that contains the object. */
  readonly around: Named | undefined;
}

/** @param name of the whole, such as `a sequence` */
export function walkDefinition(
  schema: TSchema,
  value: unknown,
  name: string,
  visitor: Visitor,
): void {
  new Walk(visitor).any(schema, value, '', { name, around: undefined, block: undefined });
}

interface Around {
  readonly name: string;
  readonly around: Named | undefined;
  readonly block: { readonly place: BlockPlace; lists: number } | undefined;
}

class Walk {
  readonly #visitor: Visitor;

  constructor(visitor: Visitor) {
    this.#visitor = visitor;
  }

  any(schema: TSchema, value: unknown, path: string, around: Around): void {
    if (typeof value === 'string') this.#visitor.text(path, value);
    else if (schema.if !== undefined) this.#blocksOrOne(schema, value, path, around);
    else if (Array.isArray(value)) this.#list(schema, value, path, around);
    else if (isObject(value)) this.#object(schema, value, path, around);
  }

  #list(schema: TSchema, values: readonly unknown[], path: string, around: Around): void {
    const items: TSchema | undefined = schema.items;
    if (items === undefined) return;
    const isOfBlocks = items.$ref === Block.$id;
    const list = isOfBlocks && around.block !== undefined ? around.block.lists++ : 0;
    for (const [position, value] of values.entries()) {
      const inner = joinPath(path, position);
      if (isOfBlocks) this.#block(value, inner, around, list, position);
      else this.any(items, value, inner, around);
    }
  }

  #blocksOrOne(schema: TSchema, value: unknown, path: string, around: Around): void {
    if (Array.isArray(value)) this.#list(schema.then as TSchema, value, path, around);
    else if (around.block !== undefined) this.#block(value, path, around, around.block.lists++, 0);
  }

  #block(value: unknown, path: string, around: Around, list: number, position: number): void {
    if (!isObject(value)) return;
    const parent = around.block?.place;
    const depth = (parent?.depth ?? 0) + 1;
    const place: BlockPlace = { block: value, path, parent, list, position, depth };
    this.#visitor.block(place);
    const { type } = value;
    const kind = BLOCK_TYPES.find((known) => known === type);
    if (kind === undefined) return;
    const members = membersOf(kind);
    const named = { name: `a ${kind} block`, members, around: undefined };
    this.#members(named, value, path, { place, lists: 0 });
  }

  #object(schema: TSchema, value: JsonObject, path: string, around: Around): void {
    const members: TProperties | undefined = schema.properties;
    if (members === undefined) return;
    this.#members({ name: around.name, members, around: around.around }, value, path, around.block);
  }

  #members(named: Named, value: JsonObject, path: string, block: Around['block']): void {
    const { members } = named;
    // In the order of the schema, in which kinds count their lists.
    for (const [key, schema] of Object.entries<TSchema>(members)) {
      if (!Object.hasOwn(value, key)) continue;
      const around = block === undefined ? undefined : (named.around ?? named);
      const name = PARTS[key] ?? key;
      this.any(schema, value[key], joinPath(path, key), { name, around, block });
    }
    for (const [key, inner] of Object.entries(value)) {
      // Null means absent for every member.
      if (Object.hasOwn(members, key) || inner === null) continue;
      const place = joinPath(path, key);
      this.#visitor.unknown(() => describeUnknown(place, key, named, value));
    }
  }
}

/** Names of the objects in lists. */
const PARTS: Readonly<Record<string, string>> = {
  routes: 'a route',
  steps: 'a step of a saga',
  on_failure: 'a hook',
  on_cancel: 'a hook',
  cancel_on: 'an entry of cancel_on',
  variants: 'a variant',
};

function isObject(value: unknown): value is JsonObject {
  return isJsonObject(value as JsonObject);
}

function describeUnknown(path: string, key: string, named: Named, owner: JsonObject): Finding {
  const { name, members, around } = named;
  const message = `${shownName(key)} is no member of ${name}, and is ignored`;
  const meant = meantBy(key, members);
  if (meant !== undefined) return findingOf(path, message, meant);
  if (around !== undefined && isKnown(key, around.members)) {
    return findingOf(path, `${message}: it stands beside ${name}`);
  }
  const homes = homesOf(key, named, owner);
  return findingOf(
    path,
    homes.length === 0 ? message : `${message}: it belongs to ${homes.join(', ')}`,
  );
}

/** The intended member: an exact member of a part, a misspelling, a misspelling in a part, or the same stem. */
function meantBy(key: string, members: TProperties): string | undefined {
  const names = supported(members);
  const parts = Object.entries<TSchema>(members).flatMap(([part, schema]) =>
    schema.properties === undefined
      ? []
      : supported(schema.properties as TProperties).map((member) => ({ part, member })),
  );
  const inPart = parts.find(({ member }) => member === key);
  if (inPart !== undefined) return `${inPart.part}.${inPart.member}`;
  const slip = misspelt(key, names);
  if (slip !== undefined) return slip;
  const partSlip = misspelt(
    key,
    parts.map(({ member }) => member),
  );
  const found = parts.find(({ member }) => member === partSlip);
  return found === undefined ? suggest(key, names) : `${found.part}.${found.member}`;
}

/** The kinds of blocks with this member; none outside blocks. */
function homesOf(key: string, { around }: Named, owner: JsonObject): string[] {
  if (around !== undefined || typeof owner.type !== 'string') return [];
  return BLOCK_TYPES.filter((kind) => isKnown(key, membersOf(kind)));
}

/** Refused members are no suggestion. */
function isKnown(key: string, members: TProperties): boolean {
  return supported(members).includes(key);
}

/** Without members that are always refused. */
function supported(members: TProperties): string[] {
  return Object.keys(members).filter((name) => !isUnsupported(members[name]?.enum));
}
