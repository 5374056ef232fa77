/**
 * The files of operations of the Python client: one method for each row of the table of operations, under the name
 * of its row. The blocking and the asynchronous file say the same.
 */

import { fixedMembers } from '../../schema/change-shapes.js';
import { ROUTES, type Route } from '../../schema/routes.js';
import type { JsonObject } from '../../src/base/json.js';
import { fillingOf } from './client-operations.js';
import { described, docstring, MADE_BY } from './python-models.js';
import {
  literal,
  memberName,
  type PythonTypes,
  pascalCase,
  propertiesOf,
  type Shape,
  snakeCase,
} from './python-types.js';
import { isRepeatable } from './repeats.js';

/** What the two files differ in. */
export interface Mode {
  readonly isAsync: boolean;
}

/** Streams are followed by functions that are written by hand. */
const isWritten = ({ owner }: Route) => owner !== 'stream';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Shape;
  readonly description?: string;
}

/** One argument of a method. */
interface Argument {
  readonly name: string;
  readonly wire: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly about: string;
}

/** The text of `_operations.py`, or of its asynchronous twin. */
export function operationsText(document: JsonObject, types: PythonTypes, mode: Mode): string {
  const groups = new Map<string, Route[]>();
  for (const route of Object.values(ROUTES).filter(isWritten)) {
    const [group = ''] = route.id.includes('.') ? route.id.split('.') : [''];
    groups.set(group, [...(groups.get(group) ?? []), route]);
  }
  const prefix = mode.isAsync ? 'Async' : '';
  const classes = [...groups]
    .filter(([group]) => group !== '')
    .map(([group, routes]) => {
      const methods = routes.map((route) => methodText(document, types, mode, route));
      const about = `    """The operations \`${snakeCase(group)}.*\`."""`;
      const name = `${prefix}${pascalCase(group)}Operations`;
      return [`class ${name}(Resource):\n${about}`, ...methods].join('\n\n');
    });
  const names = [...groups.keys()].filter((group) => group !== '').sort();
  const members = names.map(
    (group) => `        self.${snakeCase(group)} = ${prefix}${pascalCase(group)}Operations(caller)`,
  );
  const plain = (groups.get('') ?? []).map((route) => methodText(document, types, mode, route));
  const twin = mode.isAsync ? 'asynchronous' : 'blocking';
  return `"""The ${twin} form of every operation, by the name of its row in the table of operations.

${MADE_BY}
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from . import models
from ._model import Null
from ._resource import Caller, JsonObject, Keyed, Resource, path
from .pages import ${prefix === '' ? 'Page' : 'AsyncPages'}

${classes.map((text) => `\n${text}`).join('\n\n')}


class ${prefix}Operations(Resource):
    """All operations: \`client.<resource>.<operation>(...)\`."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
${members.join('\n')}

${plain.join('\n\n')}
`;
}

function methodText(document: JsonObject, types: PythonTypes, mode: Mode, route: Route): string {
  const paths = document.paths as Record<string, Record<string, JsonObject>>;
  const operation = paths[route.path]?.[route.method.toLowerCase()] ?? {};
  const parameters = (operation.parameters ?? []) as unknown as Parameter[];
  const query = parameters
    .filter((one) => one.in === 'query')
    .map((one) => queryArgument(types, one));
  const isChange = route.body !== undefined && fixedMembers(route.body).length > 0;
  const body = bodyOf(operation, types, isChange);
  const named = [...(body.members ?? []), ...query].sort(
    (a, b) => Number(b.isRequired) - Number(a.isRequired),
  );
  const inPath = parameters
    .filter((one) => one.in === 'path')
    .map((one) => pathArgument(one, route, named));
  checkDistinct([...inPath, ...named], route);
  const isRequired = route.isBodyOptional !== true;
  const whole = body.isFree
    ? [{ name: 'body', wire: '', type: 'JsonObject', isRequired, about: '' }]
    : [];
  const answer = answerOf(operation, types);
  const isList = answer.item !== undefined && query.some(({ wire }) => PLACES.has(wire));
  const result = isList ? listType(mode, answer.item ?? '') : answer.annotation;
  const isAwaited = mode.isAsync && !isList;
  const positional = [...inPath, ...whole].map(argumentText);
  const name = memberName(snakeCase(route.id.split('.').at(-1) ?? ''));
  const head = [
    ...['self', ...positional],
    ...(named.length === 0 ? [] : ['*', ...named.map(argumentText)]),
  ];
  const short = `    ${isAwaited ? 'async ' : ''}def ${name}(${head.join(', ')}) -> ${result}:`;
  const long = `    ${isAwaited ? 'async ' : ''}def ${name}(\n${head
    .map((one) => `        ${wrapped(one)},\n`)
    .join('')}    ) -> ${result}:`;
  const call = isList ? 'self._pages' : `${isAwaited ? 'await ' : ''}self._call`;
  const sent = [
    literal(route.method),
    pathText(route, inPath),
    isList ? `models.${answer.item}` : answer.value,
    ...(isList && answer.member !== undefined ? [`member=${literal(answer.member)}`] : []),
    ...(query.length === 0 ? [] : [`query=${objectText(query, requiredIn(parameters))}`]),
    ...bodyText(route, body, whole.length > 0),
    ...(isRepeatable(route) ? ['repeatable=True'] : []),
  ];
  return [
    short.length <= WIDTH ? short : long,
    aboutText(operation, named),
    `        return ${call}(\n${sent.map((one) => `            ${one},\n`).join('')}        )`,
  ].join('\n');
}

const WIDTH = 100;
/** Of what a method takes. */
const ARGUMENT_INDENT = 8;
/** Of what a method calls with. */
const ARGUMENTS_INDENT = 12;
/** What makes a list one with pages. */
const PLACES: ReadonlySet<string> = new Set(['cursor', 'offset']);

const requiredIn = (parameters: readonly Parameter[]) =>
  parameters.filter(({ required }) => required === true).map(({ name }) => name);

const listType = ({ isAsync }: Mode, item: string) =>
  isAsync ? `AsyncPages[models.${item}]` : `Page[models.${item}]`;

/** `id`, or such as `instance_id` where the body has a member of this name, too. */
function pathArgument({ name }: Parameter, { path }: Route, named: readonly Argument[]): Argument {
  const [, resource = ''] = path.split('/');
  const short = memberName(name);
  const isTaken = named.some((one) => one.name === short);
  const long = `${snakeCase(resource).replace(/s$/, '')}_${short}`;
  return { name: isTaken ? long : short, wire: name, type: 'str', isRequired: true, about: '' };
}

/** Python refuses the whole module for one argument that a method has twice. */
function checkDistinct(named: readonly Argument[], { id }: Route): void {
  const names = named.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`${id}: the argument ${twice} is there twice`);
}

function queryArgument(types: PythonTypes, parameter: Parameter): Argument {
  const { name, schema, required = false } = parameter;
  const type = types.typeOf(schema, `Query.${name}`, 'given');
  const shape = { ...schema, description: parameter.description ?? '' };
  return {
    name: memberName(name),
    wire: name,
    type,
    isRequired: required && !(name in FILLED),
    about: described(shape as Shape),
  };
}

/** What a client knows, so that bodies that ask for it may leave it out. */
const FILLED: Readonly<Record<string, string>> = {
  tenant_id: 'self._tenant',
  namespace: 'self._namespace',
};

interface Body {
  readonly members?: readonly Argument[];
  /** Any object. */
  readonly isFree: boolean;
}

/** @param isChange null takes a value away, which None does not say: it stands for what was not given */
function bodyOf(operation: JsonObject, types: PythonTypes, isChange: boolean): Body {
  const content = (operation.requestBody as JsonObject | undefined)?.content;
  if (content === undefined) return { isFree: false };
  const { schema } = (content as Record<string, JsonObject>)['application/json'] ?? {};
  const { $ref } = schema as Shape;
  if (typeof $ref !== 'string') return { isFree: true };
  const name = $ref.split('/').at(-1) ?? '';
  const shape = types.component(name);
  const required = new Set((shape.required ?? []) as string[]);
  const members = Object.entries(propertiesOf(shape)).map(([member, inner]) => ({
    name: memberName(member),
    wire: member,
    type: types
      .typeOf(inner, `${name}.${member}`, 'given')
      .replace(/ \| None$/, isChange ? ' | Null | None' : ' | None'),
    isRequired: required.has(member) && !(member in FILLED),
    about: described(inner),
  }));
  return { members, isFree: false };
}

function bodyText(route: Route, { members, isFree }: Body, isGiven: boolean): string[] {
  if (isFree) return isGiven ? ['body=body'] : [];
  if (members === undefined) return [];
  const text = objectText(members, route.body?.required as string[] | undefined);
  const { each, key, fills = [] } = fillingOf(route) ?? {};
  if (key === undefined) return [`body=${text}`];
  const given = [literal(key), ...(each === undefined ? [] : [literal(each)])];
  if (each !== undefined && fills.length > 0)
    given.push(`(${fills.map(literal).join(', ')}${fills.length === 1 ? ',' : ''})`);
  return [`body=${text}`, `keyed=Keyed(${given.join(', ')})`];
}

/** @param required of these the client fills in those that it knows */
function objectText(named: readonly Argument[], required: readonly string[] = []): string {
  const lines = named.map(({ name, wire }) => {
    const own = required.includes(wire) ? FILLED[wire] : undefined;
    const value = own === undefined ? name : `${name} or ${own}`;
    return `                ${literal(wire)}: ${value},\n`;
  });
  return `{\n${lines.join('')}            }`;
}

function pathText({ path: route }: Route, inPath: readonly Argument[]): string {
  if (inPath.length === 0) return literal(route);
  const given = [literal(route), ...inPath.map(({ name, wire }) => `${wire}=${name}`)];
  const short = `path(${given.join(', ')})`;
  if (short.length <= WIDTH - ARGUMENTS_INDENT - 1) return short;
  const indent = ' '.repeat(ARGUMENTS_INDENT);
  return `path(\n${given.map((one) => `${indent}    ${one},\n`).join('')}${indent})`;
}

function argumentText({ name, type, isRequired }: Argument): string {
  if (isRequired) return `${name}: ${type}`;
  const isOpen = type === 'Any' || / \| None$|^None$/.test(type);
  return `${name}: ${type}${isOpen ? '' : ' | None'} = None`;
}

/** As its linter asks: the words of a long list stand in lines of their own. */
function wrapped(argument: string): string {
  if (argument.length + ARGUMENT_INDENT + 1 <= WIDTH) return argument;
  const indent = ' '.repeat(ARGUMENT_INDENT);
  return argument.replace(/Literal\[(.+)\] \|/, (_, words: string) => {
    const lines = words.split(', ').map((word) => `${indent}    ${word},\n`);
    return `Literal[\n${lines.join('')}${indent}]\n${indent}|`;
  });
}

/** What a success is read as. */
interface Answer {
  readonly annotation: string;
  readonly value: string;
  /** Of a list. */
  readonly item?: string;
  /** Where the list stands in the answer. */
  readonly member?: string;
}

function answerOf(operation: JsonObject, types: PythonTypes): Answer {
  // A caller who does not ask for it gets no minimal response.
  const replies = Object.entries(operation.responses as Record<string, JsonObject>).filter(
    ([status, { headers }]) =>
      status.startsWith('2') && !('preference-applied' in ((headers ?? {}) as JsonObject)),
  );
  const contents = replies.map(
    ([, { content }]) => Object.entries((content ?? {}) as Record<string, JsonObject>)[0] ?? [],
  );
  const hasJson = contents.some(([type]) => type === 'application/json');
  const shapes = contents.flatMap(([type = '', media]) => {
    if (type === '') return ['None'];
    if (type === 'application/json') return [types.typeOf(media?.schema as Shape, '', 'kept')];
    // Plain text beside JSON is for providers, which do not use the client.
    if (hasJson) return [];
    return [type.startsWith('text/') ? 'str' : 'bytes'];
  });
  const distinct = [...new Set(shapes)].sort((a, b) => Number(a === 'None') - Number(b === 'None'));
  const inModule = distinct.map(qualified);
  const [only = ''] = distinct;
  const item = /^list\[(\w+)\]$/.exec(only)?.[1];
  const paged = pagedMember(types, only);
  return {
    annotation: inModule.join(' | '),
    value: inModule.join(' | '),
    ...(item === undefined ? paged : { item }),
  };
}

/** A page that is an object: its one list, of named shapes. */
function pagedMember(types: PythonTypes, name: string): Partial<Answer> {
  const lists = Object.entries(propertiesOf(types.component(name))).flatMap(([member, shape]) => {
    const item = /^list\[([A-Z]\w*)\]$/.exec(types.typeOf(shape, `${name}.${member}`))?.[1];
    return item === undefined ? [] : [{ member, item }];
  });
  const [only] = lists;
  return lists.length === 1 && only !== undefined ? only : {};
}

/** `builtins`, because a method may be called `list`. */
const qualified = (type: string): string =>
  type
    .replace(/\b(?=[A-Z]\w+)(?!None|Any)/g, 'models.')
    .replace(/\b(list|dict)\[/g, 'builtins.$1[');

function aboutText(operation: JsonObject, named: readonly Argument[]): string {
  const { summary, description } = operation;
  const args = named
    .filter(({ about }) => about !== '')
    .map(({ name, about }) => `    ${name}: ${about.replace(/\n/g, ' ')}`);
  const texts = [String(summary), '', String(description)];
  if (args.length > 0) texts.push('', 'Args:', ...args);
  return docstring(texts.join('\n'), 2);
}
