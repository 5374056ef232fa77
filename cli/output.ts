/**
 * What a command writes: results to standard output, everything else to the error stream, so that a pipe gets
 * results only. With `--json` standard output is JSON and nothing else.
 */

import { type Palette, palette, plain, plainJson } from '../src/base/log-text.js';
import { type Column, fitted, type Place, recordLines, tableLines } from './table.js';

/** A stream as the world gives it. */
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

/** Of a terminal that does not say. */
const WIDTH_DEFAULT = 80;

export class Output {
  readonly isJson: boolean;
  /** Of standard output. */
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

  /** As much as fits into so many cells. */
  cut(text: string, cells: number): string {
    return fitted(text, Math.max(1, cells));
  }

  table<T>(columns: readonly Column<T>[], rows: readonly T[]): void {
    if (rows.length === 0) this.note('Nothing.');
    else for (const line of tableLines(columns, rows, this.place)) this.line(line);
  }

  record(record: object): void {
    for (const line of recordLines(record, this.place)) this.line(line);
  }

  /** For programs on one line, for people on a terminal on several. */
  json(value: unknown): void {
    this.line(plainJson(JSON.stringify(value, null, this.#options.stdout.isTTY ? 2 : undefined)));
  }

  /** One of several values, each on a line of its own. */
  jsonLine(value: unknown): void {
    this.line(plainJson(JSON.stringify(value)));
  }

  /** Beside the results, for the person. */
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

  /** How far long work is: on a terminal one line that is written over, elsewhere nothing. */
  progress(text: string): void {
    const { stderr } = this.#options;
    if (!stderr.isTTY) return;
    stderr.write(`\r\x1b[K${text}`);
    this.#hasProgress = true;
  }

  /** The line of the progress is left empty. */
  endProgress(): void {
    if (this.#hasProgress) this.#options.stderr.write('\r\x1b[K');
    this.#hasProgress = false;
  }
}

/** On a terminal that has them, unless NO_COLOR says otherwise. */
function hasColours({ isTTY }: Stream, { NO_COLOR = '', TERM }: OutputOptions['env']): boolean {
  return isTTY === true && NO_COLOR === '' && TERM !== 'dumb';
}
