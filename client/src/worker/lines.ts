/** The lines that a handler logs, kept within what the contract takes of one try. */

import type { TaskLog } from './handlers.js';

export interface LogLine {
  readonly ts: string;
  readonly level: string;
  readonly message: string;
}

const LINES_MAX = 1_000;
const MESSAGE_LENGTH_MAX = 8_192;

export class Lines {
  readonly #lines: LogLine[] = [];
  #dropped = 0;

  readonly log: TaskLog = {
    debug: (message) => this.add('debug', message),
    info: (message) => this.add('info', message),
    warn: (message) => this.add('warn', message),
    error: (message) => this.add('error', message),
  };

  add(level: string, message: unknown): void {
    const text = String(message).slice(0, MESSAGE_LENGTH_MAX);
    this.#lines.push({ ts: new Date().toISOString(), level, message: text });
    // The end tells more than the beginning; one place is for what says that something is missing.
    if (this.#lines.length < LINES_MAX) return;
    this.#lines.shift();
    this.#dropped += 1;
  }

  /** To be spread into a result: `logs`, unless there are none. */
  get said(): { readonly logs?: readonly LogLine[] } {
    const [first] = this.#lines;
    if (first === undefined) return {};
    if (this.#dropped === 0) return { logs: this.#lines };
    const message = `${this.#dropped} earlier lines were left out`;
    return { logs: [{ ts: first.ts, level: 'warn', message }, ...this.#lines] };
  }
}
