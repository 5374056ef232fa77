/** Structured logs on standard output: one JSON line per event that matters, never payloads or keys. */

import { type Logger as PinoLogger, pino } from 'pino';

export type Logger = PinoLogger;

/** @param thread names the thread in every line: front, writer, shard-0 … */
export function createLogger(level: string, thread: string): Logger {
  return pino({ level, base: { thread }, timestamp: pino.stdTimeFunctions.isoTime });
}
