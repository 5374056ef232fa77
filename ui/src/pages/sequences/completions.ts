/** What can be written at a position of a definition: members, values, handlers and expressions. Pure. */

import type { Completion, Completions } from '../../components/completion.ts';

/** As much of JSON Schema as definitions use. */
export interface Schema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly discriminator?: { readonly mapping: Readonly<Record<string, string>> };
  readonly $ref?: string;
}
export type Schemas = Readonly<Record<string, Schema>>;

/** Names that the tenant has. */
export interface KnownNames {
  readonly handlers: readonly string[];
  readonly sequences: readonly string[];
}

interface Level {
  readonly isList: boolean;
  /** The member whose value is being read. */
  key: string | undefined;
  /** Members that are complete before the position, with texts as values. */
  readonly seen: Map<string, string | undefined>;
}

interface Place {
  readonly levels: readonly Level[];
  /** Whether a name of a member is expected, not a value. */
  readonly isName: boolean;
  /** Where the string at the position begins, with its quote; undefined: not within one. */
  readonly quote: number | undefined;
}

const TOKEN = /"(?:[^"\\\n]|\\.)*("?)|[{}[\],:]/g;

/** Reads the text up to the position, which need not be valid there. */
function placeAt(text: string, at: number): Place {
  const levels: Level[] = [];
  let isName = false;
  let quote: number | undefined;
  const before = text.slice(0, at);
  for (const { 0: token, 1: end, index } of before.matchAll(TOKEN)) {
    const level = levels.at(-1);
    if (token.startsWith('"')) {
      const isOpen = end !== '"' || token.length === 1;
      if (isOpen && index + token.length === at) quote = index;
      else if (level !== undefined && isName) level.key = token.slice(1, -1);
      else if (level?.key !== undefined) level.seen.set(level.key, token.slice(1, -1));
    } else if (token === '{' || token === '[') {
      levels.push({ isList: token === '[', key: undefined, seen: new Map() });
      isName = token === '{';
    } else if (token === '}' || token === ']') {
      levels.pop();
      isName = false;
    } else if (level !== undefined) {
      isName = token === ',' && !level.isList;
      if (level.key !== undefined && !level.seen.has(level.key)) {
        level.seen.set(level.key, undefined);
      }
    }
  }
  return { levels, isName, quote };
}

export function completionsAt(
  text: string,
  at: number,
  schemas: Schemas,
  known: KnownNames,
): Completions | undefined {
  const { levels, isName, quote } = placeAt(text, at);
  const inner = levels.at(-1);
  if (inner === undefined) return undefined;
  const typed = text.slice(quote === undefined ? at : quote + 1, at);
  if (quote !== undefined && !isName) {
    const found = expressionsIn(text, typed);
    if (found) return { from: at - found.typed.length, to: at, options: found.options };
  }
  const handlers = [...new Set([...known.handlers, ...textsOf('handler', text)])];
  const parent = schemaAt(levels, schemas);
  if (parent === undefined) return undefined;
  const options = isName
    ? membersOf(parent, inner, schemas)
    : valuesOf(inner.isList ? itemsOf(parent) : memberOf(parent, inner, schemas), inner, schemas, {
        ...known,
        handlers,
      });
  const matching = options.filter(({ label }) => label.startsWith(typed) && label !== typed);
  if (matching.length === 0) return undefined;
  const isClosed = quote !== undefined && text.charAt(at) === '"';
  const hasColon = isClosed && /^"\s*:/.test(text.slice(at));
  return {
    from: quote ?? at,
    to: isClosed ? at + 1 : at,
    options: hasColon
      ? matching.map((one) => ({ ...one, text: one.text.replace(/: $/, '') }))
      : matching,
  };
}

/** Names behind `data.` and `outputs.` at the end of a text. */
function expressionsIn(text: string, typed: string) {
  const [, root, name = ''] = /\b(data|outputs)\.([\w-]*)$/.exec(typed) ?? [];
  if (root === undefined) return undefined;
  const names = root === 'data' ? inputsIn(text) : idsIn(text);
  const options = [...new Set(names)]
    .filter((one) => one.startsWith(name) && one !== name)
    .map((label) => ({ label, text: label }));
  return options.length === 0 ? undefined : { typed: name, options };
}

const idsIn = (text: string) => textsOf('id', text);

/** The texts that a member has anywhere. */
function textsOf(member: string, text: string): string[] {
  const written = new RegExp(`"${member}"\\s*:\\s*"([^"\\\\\\n]+)"`, 'g');
  return [...text.matchAll(written)].map(([, value = '']) => value);
}

const INPUTS = /"input_schema"\s*:\s*\{/;

/** The members of `input_schema.properties`, found by their depth, since the text is not valid while it is written. */
function inputsIn(text: string): string[] {
  const start = INPUTS.exec(text);
  if (start === null) return [];
  const names: string[] = [];
  const path: (string | undefined)[] = [];
  let key: string | undefined;
  for (const { 0: token, index } of text.slice(start.index + start[0].length).matchAll(TOKEN)) {
    const from = start.index + start[0].length + index + token.length;
    if (token.startsWith('"')) {
      if (!/^\s*:/.test(text.slice(from, from + 20))) continue;
      key = token.slice(1, -1);
      if (path.length === 1 && path[0] === 'properties') names.push(key);
    } else if (token === '{' || token === '[') path.push(key);
    else if (token === '}' || token === ']') {
      if (path.length === 0) return names;
      path.pop();
    }
  }
  return names;
}

/** The schema of the innermost object or list. */
function schemaAt(levels: readonly Level[], schemas: Schemas): Schema | undefined {
  let schema: Schema | undefined = schemas.CreateSequence;
  for (const [at, level] of levels.entries()) {
    if (schema === undefined) return undefined;
    schema = resolved(schema, level, schemas);
    if (at === levels.length - 1) return schema;
    schema = level.isList ? itemsOf(schema) : memberOf(schema, level, schemas);
  }
  return undefined;
}

/** Without references, and of alternatives that which the object or list is. */
function resolved(schema: Schema | undefined, level: Level, schemas: Schemas): Schema | undefined {
  if (schema === undefined) return undefined;
  const referred = schema.$ref && schemas[schema.$ref.split('/').at(-1) ?? ''];
  if (referred) return resolved(referred, level, schemas);
  if (schema.discriminator !== undefined) {
    const $ref = schema.discriminator.mapping[level.seen.get('type') ?? ''];
    return $ref === undefined ? schema : resolved({ $ref }, level, schemas);
  }
  const kind = level.isList ? 'array' : 'object';
  const options = (schema.anyOf ?? schema.oneOf)?.map((one) => resolved(one, level, schemas));
  if (options === undefined) return schema;
  return options.find(
    (one) =>
      one !== undefined &&
      (one.discriminator ? kind === 'object' : [one.type].flat().includes(kind)),
  );
}

const itemsOf = (schema: Schema | undefined) => schema?.items;

function memberOf(schema: Schema | undefined, { key }: Level, schemas: Schemas) {
  if (schema?.discriminator !== undefined && key === 'type') {
    return { enum: Object.keys(schema.discriminator.mapping) } satisfies Schema;
  }
  if (schema?.properties?.type?.const !== undefined && key === 'type') {
    const all = schemas.Block?.discriminator?.mapping ?? {};
    if (Object.hasOwn(all, schema.properties.type.const)) return { enum: Object.keys(all) };
  }
  return key === undefined ? undefined : schema?.properties?.[key];
}

/** A block without a type may have any. */
const UNKNOWN_BLOCK = { type: { type: 'string', description: 'Kind of the block.' } } as const;

function membersOf(schema: Schema, { seen }: Level, schemas: Schemas): readonly Completion[] {
  const members: Readonly<Record<string, Schema>> =
    schema.discriminator === undefined ? (schema.properties ?? {}) : UNKNOWN_BLOCK;
  return Object.entries(members)
    .filter(([name]) => !seen.has(name) && !OF_ENGINE.has(name))
    .map(([name, member]) => ({
      label: name,
      text: `${JSON.stringify(name)}: `,
      detail: firstSentence(member.description ?? described(member, schemas)),
    }));
}

/** Generated, or known from elsewhere. */
const OF_ENGINE = new Set(['tenant_id', 'created_at', 'deprecated']);

const described = ({ $ref }: Schema, schemas: Schemas) =>
  schemas[$ref?.split('/').at(-1) ?? '']?.description;

const firstSentence = (text = '') => /^.*?[.](?=\s|$)/.exec(text)?.[0] ?? text;

function valuesOf(
  schema: Schema | undefined,
  { key, isList }: Level,
  schemas: Schemas,
  known: KnownNames,
): readonly Completion[] {
  if (schema === undefined) return [];
  const words = !isList && key === 'handler' ? known.handlers : wordsOf(schema, schemas);
  const names = !isList && key === 'sequence_name' ? known.sequences : words;
  const flags = [schema.type].flat().includes('boolean') ? ['true', 'false'] : [];
  return [
    ...names.map((label) => ({ label, text: JSON.stringify(label) })),
    ...flags.map((label) => ({ label, text: label })),
  ];
}

function wordsOf(schema: Schema, schemas: Schemas): readonly string[] {
  const referred = schema.$ref && schemas[schema.$ref.split('/').at(-1) ?? ''];
  const own = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  const others = [...(schema.anyOf ?? []), ...(referred ? [referred] : [])];
  return [...own, ...others.flatMap((one) => wordsOf(one, schemas))].filter(
    (word) => typeof word === 'string',
  );
}
