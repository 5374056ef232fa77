/** The file of models of the Python client: one class for each shape of the OpenAPI document. */

import {
  literal,
  type Model,
  memberName,
  type PythonTypes,
  propertiesOf,
  type Shape,
} from './python-types.js';

/** How long a line of Python is, as its linter has it. */
const WIDTH = 100;
const QUOTES = 3;

export const MADE_BY = 'Written by `npm run generate` from docs/openapi.json.';

/** The text of `models.py`. */
export function modelsText(types: PythonTypes): string {
  const words = types.words.map(
    ([name, list]) => `${name} = Annotated[${listed(list.split(', '))}    Open,\n]`,
  );
  const unions = types.unions.map(([name, members, tag]) => {
    const short = members.join(' | ');
    const either = short.length < WIDTH - 5 ? short : members.join('\n    | ');
    return `${name} = Annotated[\n    ${either},\n    Field(discriminator=${literal(tag)}),\n]`;
  });
  const parts = [
    ...words,
    ...types.models.map((model) => `\n\n${classText(types, model)}`),
    `\n\n${unions.join('\n')}`,
  ];
  return `"""Every shape of the API, by the name that it has in docs/openapi.json.

Requests may be given as these or as plain mappings; answers are these.
${MADE_BY}
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from ._model import Model, Open

${parts.join('\n')}
`;
}

/** The first argument of an `Annotated`: a line for each of its words. */
function listed(members: readonly string[]): string {
  return `\n    Literal[\n${members.map((member) => `        ${member},\n`).join('')}    ],\n`;
}

function classText(types: PythonTypes, { name, shape }: Model): string {
  const required = new Set((shape.required ?? []) as string[]);
  const members = Object.entries(propertiesOf(shape)).map(([member, inner]) =>
    memberText(types, name, member, inner, required.has(member)),
  );
  const about = docstring(described(shape), 1);
  const body = [...(about === '' ? [] : [about]), ...(about && members[0] ? [''] : []), ...members];
  return [`class ${name}(Model):`, ...(body.length === 0 ? ['    pass'] : body)].join('\n');
}

/** What has to be there comes without a default, and what may be left out is None. */
function memberText(
  types: PythonTypes,
  parent: string,
  name: string,
  shape: Shape,
  isRequired: boolean,
): string {
  const type = types.typeOf(shape, `${parent}.${name}`);
  const own = memberName(name);
  const byDefault = types.isTag(parent, name) ? tagOf(shape) : isRequired ? undefined : 'None';
  const value =
    own === name
      ? byDefault
      : `Field(${byDefault === undefined ? '' : `default=${byDefault}, `}alias=${literal(name)})`;
  const isOpen = isRequired || type === 'Any' || type.endsWith('None');
  const line = `    ${own}: ${type}${isOpen ? '' : ' | None'}${value === undefined ? '' : ` = ${value}`}`;
  const about = docstring(described(shape), 1);
  return about === '' ? line : `${line}\n${about}`;
}

/** It says which class of a union it is, so that nobody has to repeat it. */
const tagOf = ({ const: word, enum: words = [] }: Shape): string =>
  literal(word ?? (words as string[])[0] ?? null);

/** The description, with the default that the server takes. */
export function described(shape: Shape): string {
  const { description, default: byDefault } = shape;
  const text = typeof description === 'string' ? description : '';
  if (byDefault === undefined || byDefault === null) return text;
  return `${text} Default: ${literal(byDefault)}.`.trim();
}

/** @param depth of indentation; the text is empty when there is nothing to say */
export function docstring(text: string, depth: number): string {
  if (text === '') return '';
  const indent = '    '.repeat(depth);
  const escaped = text.replace(/\\/g, '\\\\').replace(/"""/g, '\\"\\"\\"');
  const one = `${indent}"""${escaped}"""`;
  if (one.length <= WIDTH && !escaped.includes('\n') && !escaped.endsWith('"')) return one;
  const [first = '', ...rest] = escaped
    .split('\n')
    .flatMap((line) => wrapped(line, WIDTH - indent.length - 2 * QUOTES));
  const lines = [`${indent}"""${first}`, ...rest.map((line) => (line === '' ? '' : indent + line))];
  return [...lines, `${indent}"""`].join('\n');
}

/** Lines that go on are indented further than an indented first one. */
function wrapped(text: string, width: number): string[] {
  const [indent = ''] = /^ */.exec(text) ?? [];
  const lines: string[] = [];
  let line = indent;
  for (const word of text.trimStart().split(' ')) {
    if (line.trim() !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent === '' ? '' : `${indent}    `;
    }
    line = line.trim() === '' ? line + word : `${line} ${word}`;
  }
  return [...lines, line];
}
