/**
 * Text for the server, made of whatever a handler logs or throws: getters that throw, messages that are no text,
 * characters that no row can hold. Nothing in here throws.
 */

/** What no text of the server holds: U+0000, and halves of characters. */
const NOT_KEPT = /[\0\p{Surrogate}]/gu;

/** Of so many characters at most, as the server counts them; what it cannot store is replaced by U+FFFD. */
export function storable(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text.replace(NOT_KEPT, '\ufffd');
  // A character takes two units at most, and none is cut into halves.
  const characters = [...text.slice(0, 2 * charactersMax)].slice(0, charactersMax);
  return characters.join('').replace(NOT_KEPT, '\ufffd');
}

/** A text as it is, bytes as UTF-8, an error by its message, and all else as JSON where it has a form in it. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return (
    attempt(() => decoded(value)) ??
    attempt(() => messageIn(value)) ??
    attempt(() => JSON.stringify(value)) ??
    attempt(() => String(value)) ??
    'a value that has no text'
  );
}

const decoded = (value: unknown) =>
  value instanceof Uint8Array ? new TextDecoder().decode(value) : undefined;

/** Of an error: its message, which some frameworks make a list or an object, or else its name. */
function messageIn(value: unknown): string | undefined {
  if (!(value instanceof Error)) return undefined;
  const message = memberOf(value, 'message');
  if (message !== undefined && message !== null && message !== '') return textOf(message);
  const name = memberOf(value, 'name');
  return typeof name === 'string' && name !== '' ? name : 'Error';
}

/** Undefined where there is none, or it cannot be read. */
export function memberOf(value: unknown, name: string): unknown {
  return attempt(() => (value as Readonly<Record<string, unknown>> | null | undefined)?.[name]);
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    // Whatever it threw may be as odd as the value itself.
    return undefined;
  }
}
