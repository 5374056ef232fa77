/** Parses a query string into values for its schema. */

import type { TObject, TSchema } from '@sinclair/typebox';
import { INTEGER_MAX, isStrict } from './common.js';
import { findingOfStray, shownName } from './finding.js';
import type { Checked } from './validators.js';

const METADATA_FILTERS_MAX = 16;
const METADATA_PREFIX = 'metadata.';

/**
 * Converted here, since general coercion would accept ` 5`, `1e2` and `0x10` as numbers. Values of a wrong type stay
 * strings, for the schema to refuse.
 */
export function readQuery(schema: TObject, rawQuery: string): Checked<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  const metadata: Record<string, string> = Object.create(null);
  let metadataCount = 0;
  for (const pair of rawQuery.split('&')) {
    const decoded = decodePair(pair);
    if (decoded === undefined) {
      return { ok: false, message: 'the query is not valid percent-encoded UTF-8 without NUL' };
    }
    const [name, text] = decoded;
    if (name.startsWith(METADATA_PREFIX) && schema.properties.metadata !== undefined) {
      metadataCount += 1;
      metadata[name.slice(METADATA_PREFIX.length)] = text;
      continue;
    }
    const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (property === undefined || property.type === 'object') {
      if (pair === '' || !isStrict(schema)) continue;
      const field = `the parameter ${shownName(name)}`;
      return { ok: false, message: findingOfStray(field, name, names(schema)).message };
    }
    if (values[name] !== undefined && property.type !== 'array') {
      return { ok: false, message: `${name} is given more than once` };
    }
    const value = typedValue(property, text, values[name]);
    if (value !== undefined) values[name] = value;
  }
  if (metadataCount > METADATA_FILTERS_MAX) {
    return { ok: false, message: `at most ${METADATA_FILTERS_MAX} metadata filters are possible` };
  }
  if (metadataCount > 0) values.metadata = metadata;
  for (const [name, property] of Object.entries(schema.properties)) {
    if (values[name] === undefined && property.default !== undefined)
      values[name] = property.default;
  }
  return { ok: true, value: values };
}

function names(schema: TObject): string[] {
  return Object.entries(schema.properties).map(([name, { type }]) =>
    type === 'object' ? `${name}.<key>` : name,
  );
}

/** Empty strings and lists mean an absent parameter; numbers must not be empty. */
function typedValue(property: TSchema, text: string, before: unknown): unknown {
  switch (property.type) {
    case 'integer':
      if (!/^-?\d{1,400}$/.test(text)) return text;
      return Math.max(-INTEGER_MAX, Math.min(Number(text), INTEGER_MAX)) + 0;
    case 'boolean':
      if (text === 'true' || text === '1') return true;
      return text === 'false' || text === '0' ? false : text;
    case 'array': {
      const words = text.split(',').map((word) => word.trim());
      const all = [...((before as string[] | undefined) ?? []), ...words.filter((word) => word)];
      return all.length === 0 ? undefined : all;
    }
    default:
      if (text === '') return undefined;
      // A plus that was not written as %2B was decoded to a space.
      return property.format === 'date-time' ? text.replace(/ (?=\d\d:\d\d$)/, '+') : text;
  }
}

function decodePair(pair: string): readonly [name: string, text: string] | undefined {
  const at = pair.indexOf('=');
  const name = decodeText(at < 0 ? pair : pair.slice(0, at));
  const text = decodeText(at < 0 ? '' : pair.slice(at + 1));
  return name === undefined || text === undefined ? undefined : [name, text];
}

function decodeText(encoded: string): string | undefined {
  try {
    const text = decodeURIComponent(encoded.replaceAll('+', ' '));
    return text.includes('\u0000') ? undefined : text;
  } catch {
    // Not percent-encoded UTF-8: the caller answers 400.
    return undefined;
  }
}
