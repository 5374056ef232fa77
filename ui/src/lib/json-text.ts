/**
 * Texts of JSON that people write, by the entry check of the engine: what it refuses is refused here in its words,
 * and never changed on its way to it (docs/decisions/0018-request-bodies.md). Pure.
 */

import { BODY_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.ts';

export type JsonRead =
  | { readonly value: unknown; readonly wrong?: undefined }
  | { readonly wrong: string; readonly at: number | undefined };

/** What the text holds; or why it is refused, and at which character where that is known. */
export function readJson(text: string): JsonRead {
  const result = parseJson(text, BODY_JSON_LIMITS);
  if (result.ok) return { value: result.value };
  const { message } = result.problem;
  const [, at] = /\(character (\d+)\)$/.exec(message) ?? [];
  return { wrong: message, at: at === undefined ? undefined : Number(at) };
}

/** Why the text of a field is refused; undefined also of none at all. */
export function jsonDoubt(text: string): string | undefined {
  return text.trim() === '' ? undefined : readJson(text).wrong;
}

/** The value of a field of JSON. @throws SyntaxError with the name of the field */
export function jsonOf(label: string, text: string): unknown {
  const read = readJson(text);
  if (read.wrong !== undefined) throw new SyntaxError(`${label} cannot be sent: ${read.wrong}`);
  return read.value;
}
