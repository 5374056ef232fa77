/**
 * JSON values of options: literal, `@file`, or `-` for standard input. A value is stored as it was written, or rejected
 * with the server's message (docs/cli.md).
 */

import { readFileSync, readSync } from 'node:fs';
import { BODY_JSON_LIMITS, parseJson } from '../src/base/json-guard.js';
import { usageError } from './exit.js';

type JsonObject = Record<string, unknown>;

/** @throws CommandError if it cannot be read, is not JSON, or cannot be stored unchanged */
export function jsonOf(text: string, name: string): unknown {
  return parsed(text === '-' ? textIn(0, 'standard input') : fileText(text), name);
}

/** @param name of the text, for messages @throws CommandError */
export function parsed(text: string, name: string): unknown {
  const result = parseJson(text, BODY_JSON_LIMITS);
  if (result.ok) return result.value;
  const { kind, message } = result.problem;
  throw usageError(
    kind === 'syntax' ? `${name} is not valid JSON: ${message}` : `${name}: ${message}`,
  );
}

/** Like `jsonOf`, for an object. */
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

/** UTF-8, or UTF-16 with a byte order mark, as Windows editors write. @throws CommandError */
export function textIn(file: string | number, named: string): string {
  let bytes: Buffer;
  try {
    bytes = file === 0 ? standardInput() : readFileSync(file);
  } catch (error) {
    throw usageError(`${named} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  const encoding = MARKS.find(([mark]) => bytes.indexOf(mark, 0, 'latin1') === 0)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`${named} is not ${encoding.toUpperCase()}${placeIn(bytes, encoding)}`);
  }
}

/** A secret, without the end of line that editors add. @param option names it in messages @throws CommandError */
export function secretIn(file: string, option: string): string {
  const value = textIn(file === '-' ? 0 : file, `${option}: ${file}`).replace(/\r?\n$/, '');
  if (value === '') throw usageError(`${option}: ${file} is empty`);
  return value;
}

const MARKS = [
  ['\xff\xfe', 'utf-16le'],
  ['\xfe\xff', 'utf-16be'],
] as const;

/** The position of the first byte that is not valid UTF-8. */
function placeIn(bytes: Buffer, encoding: string): string {
  if (encoding !== 'utf-8') return '';
  const again = Buffer.from(bytes.toString('utf8'));
  const at = again.findIndex((byte, index) => byte !== bytes[index]);
  const before = bytes.subarray(0, at).toString('utf8').split('\n');
  return `: line ${before.length}, column ${before.at(-1)!.length + 1} (byte ${at})`;
}

const PIECE_BYTES = 65_536;
const PAUSE_MS = 20;

/** Waits for a slow writer: a non-blocking pipe or terminal may have no data yet. */
function standardInput(): Buffer {
  const pieces: Buffer[] = [];
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    try {
      const size = readSync(0, piece);
      if (size === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, size));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EOF') return Buffer.concat(pieces);
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, PAUSE_MS);
    }
  }
}
