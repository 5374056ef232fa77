/** Bodies of HTML forms as JSON text. */

import { isJsonObject, type JsonValue } from '../base/json.js';
import { BODY_JSON_LIMITS, parseJson } from '../base/json-guard.js';

export function isFormType(contentType: string | undefined): boolean {
  return /^application\/x-www-form-urlencoded\b/i.test(contentType ?? '');
}

/**
 * An object of texts; of a repeated name the last value counts.
 *
 * @param json a member that is an object if its text is the JSON of one
 */
export function formText(text: string, json?: string): string {
  const members = [...new URLSearchParams(text)].map(([name, value]): [string, JsonValue] => [
    name,
    (name === json ? objectIn(value) : undefined) ?? value,
  ]);
  return JSON.stringify(Object.fromEntries(members));
}

function objectIn(text: string): JsonValue | undefined {
  const parsed = parseJson(text, BODY_JSON_LIMITS);
  return parsed.ok && isJsonObject(parsed.value) ? parsed.value : undefined;
}
