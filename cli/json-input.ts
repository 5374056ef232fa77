/** JSON that a person gives: as it stands, `@file`, or `-` for the standard input. */

import { readFileSync } from 'node:fs';
import { usageError } from './exit.js';

type JsonObject = Record<string, unknown>;

/** @throws CommandError when it cannot be read or is no JSON */
export function jsonOf(text: string, name: string): unknown {
  const source = text === '-' ? textIn(0, 'the standard input') : fileText(text);
  try {
    return JSON.parse(source);
  } catch (error) {
    throw usageError(`${name} is no JSON: ${(error as Error).message}`);
  }
}

/** The same, of an object. */
export function objectOf(text: string | undefined, name: string): JsonObject | undefined {
  if (text === undefined) return undefined;
  const value = jsonOf(text, name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usageError(`${name} must be a JSON object`);
  }
  return value as JsonObject;
}

const fileText = (text: string) =>
  text.startsWith('@') ? textIn(text.slice(1), text.slice(1)) : text;

/** @throws CommandError */
export function textIn(file: string | number, named: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw usageError(`${named} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
