/** What an examination finds: what was looked at, how it stands, and what to do if it does not stand well. */

export type Health = 'ok' | 'warn' | 'bad' | 'unknown';

export interface Check {
  readonly about: string;
  readonly health: Health;
  readonly found: string;
  /** What to do; with `unknown`, how to get to know. */
  readonly todo?: string;
}

export const ok = (about: string, found: string): Check => ({ about, health: 'ok', found });

export const check = (health: Health, about: string, found: string, todo: string): Check => ({
  about,
  health,
  found,
  todo,
});
