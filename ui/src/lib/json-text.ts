/**
 * Parses JSON that users type with the engine's own checks, so that the messages are the same and the text is sent
 * unchanged (docs/decisions/0018-request-bodies.md). Pure.
 */

import { BODY_JSON_LIMITS, parseJson } from '../../../src/base/json-guard.ts';

export type JsonRead =
  | { readonly value: unknown; readonly wrong?: undefined }
  | { readonly wrong: string; readonly at: number | undefined };

/** The parsed value, or the reason why it is invalid and the offset if known. */
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

/** The value of a JSON field. @throws SyntaxError with the label of the field */
export function jsonOf(label: string, text: string): unknown {
  const read = readJson(text);
  if (read.wrong !== undefined) throw new SyntaxError(`${label} is not valid: ${read.wrong}`);
  return read.value;
}
