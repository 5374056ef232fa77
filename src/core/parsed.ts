/** Refusals with the one message that names the field that is wrong. */

export type Parsed<T> = { readonly ok: true; readonly value: T } | Refused;

export interface Refused {
  readonly ok: false;
  readonly message: string;
}

/** Ends what runs in `parsing`, with the message. */
export class Refusal extends Error {}

/** Ends the reading: `field` is where the caller finds what is wrong. */
export function refuse(field: string, rule: string): never {
  throw new Refusal(`${field} ${rule}`);
}

/** Runs a reader; what it refuses becomes a message, any other error stays an error. */
export function parsing<T>(read: () => T): Parsed<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof Refusal) return refused(error.message);
    throw error;
  }
}

export function refused(message: string): Refused {
  return { ok: false, message };
}
