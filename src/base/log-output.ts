/** Chooses the log format. Each thread writes to the descriptor itself, and waits for no other thread. */

import { isatty } from 'node:tty';
import { type DestinationStream, pino } from 'pino';
import { type Palette, palette, textLine } from './log-text.js';

export type LogFormat = 'auto' | 'json' | 'text';
const STDOUT = 1;

export function isForPeople(format: LogFormat): boolean {
  return format === 'text' || (format === 'auto' && isatty(STDOUT));
}

/** Colours on a terminal that supports them, unless NO_COLOR is set. */
export function outputPalette(): Palette {
  const { NO_COLOR = '', TERM } = process.env;
  return palette(isatty(STDOUT) && NO_COLOR === '' && TERM !== 'dumb');
}

export function logOutput(format: LogFormat): DestinationStream {
  if (!isForPeople(format)) return pino.destination(STDOUT);
  // Synchronous, to keep the order of log lines and other output.
  const out = pino.destination({ dest: STDOUT, sync: true });
  const paint = outputPalette();
  return { write: (line) => void out.write(textLine(line, paint)) };
}
