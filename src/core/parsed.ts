/** Results of parsing: a value, or a message that names the invalid field. */

export type Parsed<T> = { readonly ok: true; readonly value: T } | Refused;

export interface Refused {
  readonly ok: false;
  readonly message: string;
}

/** Thrown by readers and caught by `parsing`, which returns its message. */
export class Refusal extends Error {}

/** @throws Refusal always, with the field before the rule */
export function refuse(field: string, rule: string): never {
  throw new Refusal(`${field} ${rule}`);
}

/** Runs a reader. A `Refusal` becomes a message; other errors are rethrown. */
export function parsing<T>(read: () => T): Parsed<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof Refusal) return refused(error.message);
    throw error;
  }
}

export const refused = (message: string): Refused => ({ ok: false, message });
