/**
 * The log has lines for people on a terminal, and JSON lines anywhere else. Each thread writes to the descriptor
 * itself, so that no line waits for another thread.
 */

import { isatty } from 'node:tty';
import { type DestinationStream, pino } from 'pino';
import { type Palette, palette, textLine } from './log-text.js';

/** `auto` is text on a terminal and JSON elsewhere. */
export type LogFormat = 'auto' | 'json' | 'text';

const STDOUT = 1;

export function isForPeople(format: LogFormat): boolean {
  return format === 'text' || (format === 'auto' && isatty(STDOUT));
}

/** Colours for standard output: on a terminal that has them, unless NO_COLOR says otherwise. */
export function outputPalette(): Palette {
  const { NO_COLOR = '', TERM } = process.env;
  return palette(isatty(STDOUT) && NO_COLOR === '' && TERM !== 'dumb');
}

export function logOutput(format: LogFormat): DestinationStream {
  if (!isForPeople(format)) return pino.destination(STDOUT);
  // At once, so that lines and what else is printed keep their order.
  const out = pino.destination({ dest: STDOUT, sync: true });
  const paint = outputPalette();
  return { write: (line) => void out.write(textLine(line, paint)) };
}
