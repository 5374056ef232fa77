/** A finding of `doctor`: what was checked, the result, and what to do about it. */

export type Health = 'ok' | 'warn' | 'bad' | 'unknown';

export interface Check {
  readonly about: string;
  readonly health: Health;
  readonly found: string;
  /** What to do; for `unknown`, how to find out. */
  readonly todo?: string;
}

export const ok = (about: string, found: string): Check => ({ about, health: 'ok', found });

export const check = (health: Health, about: string, found: string, todo: string): Check => ({
  about,
  health,
  found,
  todo,
});
