/** The log lines of a handler, within the limits of an attempt and of a request body. */

import { byteLength } from '../client/json.js';
import type { TaskLog } from './handlers.js';
import { storable, textOf } from './texts.js';

export interface LogLine {
  readonly ts: string;
  readonly level: string;
  readonly message: string;
}

const LINES_MAX = 1_000;
const MESSAGE_LENGTH_MAX = 8_192;
/** Bytes reserved for the line about dropped lines, including brackets. */
const NOTE_BYTES = 128;

export class Lines {
  readonly #lines: LogLine[] = [];
  #dropped = 0;

  readonly log: TaskLog = {
    debug: (message) => this.add('debug', message),
    info: (message) => this.add('info', message),
    warn: (message) => this.add('warn', message),
    error: (message) => this.add('error', message),
  };

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  add(level: string, message: unknown): void {
    const text = storable(textOf(message), MESSAGE_LENGTH_MAX);
    this.#lines.push({ ts: new Date().toISOString(), level, message: text });
    // One line is reserved for the note about dropped lines.
    if (this.#lines.length < LINES_MAX) return;
    this.#lines.shift();
    this.#dropped += 1;
  }

  /**
   * As a JSON list of limited size; '' without lines. The oldest lines are dropped, since the last ones are more
   * informative.
   */
  json(bytesMax: number): string {
    const kept: string[] = [];
    let bytes = NOTE_BYTES;
    for (const line of this.#lines.toReversed()) {
      const text = JSON.stringify(line);
      bytes += byteLength(text) + 1;
      if (bytes > bytesMax) break;
      kept.push(text);
    }
    const dropped = this.#dropped + this.#lines.length - kept.length;
    if (dropped > 0 && NOTE_BYTES <= bytesMax) {
      const ts = this.#lines.at(-kept.length)?.ts;
      const message = `${dropped} earlier lines were dropped`;
      kept.push(JSON.stringify({ ts, level: 'warn', message }));
    }
    return kept.length === 0 ? '' : `[${kept.reverse().join(',')}]`;
  }
}
