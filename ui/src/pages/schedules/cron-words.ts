/**
 * A cron expression in words, by cronstrue, in the dialect of the server (docs/cron.md), which checks expressions and
 * computes their times. Pure.
 */

import cronstrue from 'cronstrue';

/** @returns undefined for an expression that cannot be read */
export function cronWords(expression: string): string | undefined {
  const text = expression.trim().toLowerCase();
  try {
    return cronstrue.toString(text, {
      use24HourTimeFormat: true,
      // Weekdays count from 0 with five fields, and from 1 with more.
      dayOfWeekStartIndexZero: text.split(/\s+/).length < 6,
    });
  } catch {
    return undefined;
  }
}
