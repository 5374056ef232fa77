/**
 * Output of a command: results go to standard output, everything else to the error stream. With `--json`, standard
 * output contains only JSON.
 */

import { type Palette, palette, plain, plainJson } from '../src/base/log-text.js';
import { type Column, fitted, type Place, recordLines, tableLines } from './table.js';

/** The part of a stream that is used. */
export interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface OutputOptions {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isJson: boolean;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** For a terminal that does not report its width. */
const WIDTH_DEFAULT = 80;

export class Output {
  readonly isJson: boolean;
  /** Colours of standard output. */
  readonly paint: Palette;
  readonly #options: OutputOptions;
  readonly #errorPaint: Palette;
  #hasProgress = false;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.isJson = options.isJson;
    this.paint = palette(hasColours(options.stdout, options.env));
    this.#errorPaint = palette(hasColours(options.stderr, options.env));
  }

  get place(): Place {
    const { stdout, now } = this.#options;
    const width = stdout.isTTY ? stdout.columns || WIDTH_DEFAULT : undefined;
    return { width, paint: this.paint, now: now() };
  }

  line(text: string): void {
    this.#options.stdout.write(`${text}\n`);
  }

  /** Cut to this many cells. */
  cut(text: string, cells: number): string {
    return fitted(text, Math.max(1, cells));
  }

  table<T>(columns: readonly Column<T>[], rows: readonly T[]): void {
    if (rows.length === 0) this.note('No results.');
    else for (const line of tableLines(columns, rows, this.place)) this.line(line);
  }

  record(record: object): void {
    for (const line of recordLines(record, this.place)) this.line(line);
  }

  /** On one line for programs, on several for people at a terminal. */
  json(value: unknown): void {
    this.line(plainJson(JSON.stringify(value, null, this.#options.stdout.isTTY ? 2 : undefined)));
  }

  /** One of several values, each on its own line. */
  jsonLine(value: unknown): void {
    this.line(plainJson(JSON.stringify(value)));
  }

  /** A remark on the error stream. */
  note(text: string): void {
    this.endProgress();
    this.#options.stderr.write(`${this.#errorPaint.dim(text)}\n`);
  }

  failure(message: string, hint?: string): void {
    this.endProgress();
    const { stderr } = this.#options;
    stderr.write(
      `${this.#errorPaint.red('error:')} ${message.split('\n').map(plain).join('\n')}\n`,
    );
    if (hint !== undefined) stderr.write(`${this.#errorPaint.dim(hint)}\n`);
  }

  /** Progress of long work: one line that is overwritten on a terminal, nothing elsewhere. */
  progress(text: string): void {
    const { stderr } = this.#options;
    if (!stderr.isTTY) return;
    stderr.write(`\r\x1b[K${text}`);
    this.#hasProgress = true;
  }

  /** Clears the line. */
  endProgress(): void {
    if (this.#hasProgress) this.#options.stderr.write('\r\x1b[K');
    this.#hasProgress = false;
  }
}

/** On a terminal that supports them, unless NO_COLOR is set. */
function hasColours({ isTTY }: Stream, { NO_COLOR = '', TERM }: OutputOptions['env']): boolean {
  return isTTY === true && NO_COLOR === '' && TERM !== 'dumb';
}
