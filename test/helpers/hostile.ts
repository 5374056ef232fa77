/** What is sent, logged, thrown and returned at its worst: one table, which lies with the tests that are copied. */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './docs.js';

/** Its parts one behind the other; a pair is a text and how often it comes. */
type Text = readonly (string | readonly [text: string, times: number])[];

/** The members of rows; `told` is a pattern of what is said. */
interface Hostile {
  readonly lines: readonly { name: string; text: Text; stored: Text }[];
  readonly floods: readonly { name: string; lines: number; text: Text; bodyBytes: number }[];
  readonly errors: readonly { kind: string; told: string }[];
  /** What comes back as it went in, by every way. */
  readonly kept: Readonly<Record<string, unknown>>;
  /** What every way refuses in these words; `is_text`: a value of the language cannot be that. */
  readonly refused: readonly { json: Text; told: string; is_text?: true }[];
  readonly outputs: readonly { kind: string; told: string }[];
  /** After which a request is sent again: any, or one that may be done twice. */
  readonly answers: readonly {
    status: number;
    code: string;
    message?: string;
    again: 'always' | 'repeatable' | 'never';
  }[];
  readonly tenants: readonly { tenant: string; is_sent: boolean }[];
}

const FILE = path.join(ROOT, 'clients/python/tests/hostile.json');

export const HOSTILE = JSON.parse(readFileSync(FILE, 'utf8')) as Hostile;

export const whole = (text: Text) =>
  text.map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1]))).join('');
