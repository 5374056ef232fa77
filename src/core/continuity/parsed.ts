/**
 * Refusals with the one message that names the field that is wrong, and the reading of what came out
 * of a capsule: bodies have schemas, and what was sealed in a payload has not. A field that is null
 * counts as absent.
 */

import { toUnixMs } from '../../../schema/common.js';
import { isUuid } from '../../../schema/formats.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.js';

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string };

class Refusal extends Error {}

/** Ends the reading: `field` is where the caller finds what is wrong. */
export function refuse(field: string, rule: string): never {
  throw new Refusal(`${field} ${rule}`);
}

/** Runs a reader; what it refuses becomes a message, any other error stays an error. */
export function parsing<T>(read: () => T): Parsed<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, message: error.message };
    throw error;
  }
}

/** The fields of one object, read by name. */
export class Fields {
  readonly #object: JsonObject;
  readonly #path: string;

  /** @param path where the object stands */
  constructor(value: JsonValue | undefined, path: string) {
    if (!isJsonObject(value)) refuse(path, 'must be an object');
    this.#object = value;
    this.#path = path;
  }

  name(field: string): string {
    return `${this.#path}.${field}`;
  }

  /** The own value of the field; undefined when it is absent or null. */
  value(field: string): JsonValue | undefined {
    return ownValue(this.#object, field) ?? undefined;
  }

  refuse(field: string, rule: string): never {
    refuse(this.name(field), rule);
  }

  /** A field that must be there. */
  required<T>(field: string, value: T | undefined): T {
    if (value === undefined) this.refuse(field, 'is required');
    return value;
  }

  text(field: string): string | undefined {
    const value = this.value(field);
    if (value === undefined) return undefined;
    if (typeof value !== 'string') this.refuse(field, 'must be a string');
    return value;
  }

  /** In lower case. */
  uuid(field: string): string | undefined {
    const value = this.text(field);
    if (value !== undefined && !isUuid(value)) this.refuse(field, 'must be a UUID');
    return value?.toLowerCase();
  }

  /** RFC 3339, as it was sent. */
  timestamp(field: string): string | undefined {
    const value = this.text(field);
    if (value !== undefined && toUnixMs(value) === undefined) {
      this.refuse(field, 'must be an RFC 3339 time');
    }
    return value;
  }

  /** An object, which must be there. */
  object(field: string): JsonObject {
    const value = this.value(field);
    if (!isJsonObject(value)) this.refuse(field, 'must be an object');
    return value;
  }

  /** The fields of an object, which must be there. */
  inner(field: string): Fields {
    return new Fields(this.value(field), this.name(field));
  }

  integer(field: string, min: number, max: number = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.value(field);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
      const range = max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `from ${min} to ${max}`;
      this.refuse(field, `must be an integer, ${range}`);
    }
    return value;
  }

  word<W extends string>(field: string, words: readonly W[]): W | undefined {
    const value = this.value(field);
    if (value === undefined) return undefined;
    const word = words.find((known) => known === value);
    if (word === undefined) this.refuse(field, `must be one of ${words.join(', ')}`);
    return word;
  }

  uuids(field: string, mostEntries: number): string[] {
    return this.list(field, mostEntries).map((entry, i) => {
      if (typeof entry !== 'string' || !isUuid(entry)) {
        this.refuse(`${field}[${i}]`, 'must be a UUID');
      }
      return entry.toLowerCase();
    });
  }

  /** The entries of an array; none when it is absent. */
  list(field: string, mostEntries: number): readonly JsonValue[] {
    const value = this.value(field) ?? [];
    if (!Array.isArray(value)) this.refuse(field, 'must be an array');
    if (value.length > mostEntries) this.refuse(field, `must have at most ${mostEntries} entries`);
    return value;
  }
}
