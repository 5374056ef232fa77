/**
 * Converts whatever a handler logs or throws into text for the server: handles throwing getters, non-string messages,
 * and characters that cannot be stored. Never throws.
 */

/** Characters that the server cannot store: U+0000 and lone surrogates. */
const NOT_KEPT = /[\0\p{Surrogate}]/gu;

/** At most this many characters, as the server counts them; characters that cannot be stored are replaced by U+FFFD. */
export function storable(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text.replace(NOT_KEPT, '\ufffd');
  // A character takes at most two units, and none is split.
  const characters = [...text.slice(0, 2 * charactersMax)].slice(0, charactersMax);
  return characters.join('').replace(NOT_KEPT, '\ufffd');
}

/** Strings as they are, bytes as UTF-8, errors by message, and everything else as JSON if possible. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return (
    attempt(() => decoded(value)) ??
    attempt(() => messageIn(value)) ??
    attempt(() => JSON.stringify(value)) ??
    attempt(() => String(value)) ??
    'a value without a text form'
  );
}

const decoded = (value: unknown) =>
  value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;

/** The message of an error, which some frameworks make a list or an object, or else its name. */
function messageIn(value: unknown): string | undefined {
  if (!(value instanceof Error)) return undefined;
  const message = memberOf(value, 'message');
  if (message !== undefined && message !== null && message !== '') return textOf(message);
  const name = memberOf(value, 'name');
  return typeof name === 'string' && name !== '' ? name : 'Error';
}

/** Undefined if it is missing or cannot be read. */
export function memberOf(value: unknown, name: string): unknown {
  return attempt(() => (value as Readonly<Record<string, unknown>> | null | undefined)?.[name]);
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    // The thrown value may be as unusual as the value itself.
    return undefined;
  }
}
