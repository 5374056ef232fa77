/** Markdown out of values: tables, code and JSON that fits a page. */

import type { JsonValue } from '../../src/base/json.js';

/** An empty cell repeats nothing: it continues the row above. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(heads), `|${heads.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/** A bar would end the cell, in code too. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

export function code(text: string): string {
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``;
}

export function jsonBlock(value: JsonValue): string {
  return `\`\`\`json\n${prettyJson(value)}\n\`\`\``;
}

const WIDTH = 100;

/** What fits stands on one line; the rest is indented. */
export function prettyJson(value: JsonValue, indent = ''): string {
  const flat = flatJson(value);
  const isSimple = typeof value !== 'object' || value === null || Object.keys(value).length === 0;
  if (isSimple || indent.length + flat.length <= WIDTH) return flat;
  const inner = `${indent}  `;
  const [open, parts, close] = Array.isArray(value)
    ? ['[', value.map((item) => prettyJson(item, inner)), ']']
    : ['{', Object.entries(value).map(([key, item]) => memberJson(key, item, inner)), '}'];
  return `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`;
}

function memberJson(key: string, value: JsonValue, indent: string): string {
  return `${JSON.stringify(key)}: ${prettyJson(value, indent)}`;
}

/** On one line, with the spaces that people write. */
export function flatJson(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flatJson).join(', ')}]`;
  const members = Object.entries(value).map(([key, item]) => {
    return `${JSON.stringify(key)}: ${flatJson(item)}`;
  });
  return `{${members.join(', ')}}`;
}
