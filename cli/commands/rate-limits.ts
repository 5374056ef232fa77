/** Commands for rate limits. */

import type { RateLimit } from '../../client/src/index.js';
import { type Argument, acting, type Command, listing, showing } from '../command.js';
import { usageError } from '../exit.js';
import { ago, memberText } from '../table.js';

const KEY: Argument = { name: 'key', about: 'A rate_limit_key, or a pattern such as "mail:*".' };

/** @throws CommandError if it is missing */
function countOf(value: number | undefined, name: string): number {
  if (value === undefined) throw usageError(`--${name} is required`);
  return value;
}

export const RATE_LIMIT_COMMANDS: readonly Command[] = [
  acting({
    name: 'rate-limits put',
    summary: 'Set the rate limit of a key, or with * in it of every key that matches.',
    args: [KEY],
    options: [
      { flags: '--max <n>', about: 'The most attempts that begin within a window.' },
      { flags: '--window <seconds>', about: 'The length of the window in seconds.' },
    ],
    ask: ({ client }, given) =>
      client.rateLimits.put(given.arg(), {
        max_count: countOf(given.count('max'), 'max'),
        window_seconds: countOf(given.count('window'), 'window'),
      }),
    said: ({ key, max_count, window_seconds }) =>
      `${memberText(key)}: ${max_count} in ${window_seconds} s.`,
  }),
  listing<RateLimit>({
    name: 'rate-limits list',
    summary: 'List rate limits and patterns by key.',
    columns: [
      { head: 'KEY', text: ({ key }) => key, isWhole: true },
      { head: 'MAX', text: ({ max_count }) => String(max_count) },
      { head: 'WINDOW', text: ({ window_seconds }) => `${window_seconds} s` },
      { head: 'CHANGED', text: ({ updated_at }, now) => ago(updated_at, now) },
    ],
    ask: ({ client }, _given, limit) => client.rateLimits.list({ limit }),
  }),
  showing({
    name: 'rate-limits get',
    summary: 'Show the rate limit that applies to a key, and its pattern.',
    args: [KEY],
    ask: ({ client }, given) => client.rateLimits.get(given.arg()),
  }),
  acting({
    name: 'rate-limits delete',
    summary: 'Delete the rate limit of a key, to which then the best pattern applies, if any.',
    args: [KEY],
    ask: ({ client }, given) => client.rateLimits.delete(given.arg()),
    said: (_, given) => `${memberText(given.arg())} deleted.`,
  }),
];
