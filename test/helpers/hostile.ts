/** What handlers log, throw and return at their worst: one table for the clients of both languages. */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './docs.js';

/** Its parts one behind the other; a pair is a text and how often it comes. */
type Text = readonly (string | readonly [text: string, times: number])[];

interface Hostile {
  readonly lines: readonly { readonly name: string; readonly text: Text; readonly stored: Text }[];
  readonly floods: readonly {
    readonly name: string;
    readonly lines: number;
    readonly text: Text;
    readonly bodyBytes: number;
  }[];
  readonly errors: readonly Odd[];
  readonly outputs: readonly Odd[];
  /** After which a request is sent again: any, or one that may be done twice. */
  readonly answers: readonly {
    readonly status: number;
    readonly code: string;
    readonly message?: string;
    readonly again: 'always' | 'repeatable' | 'never';
  }[];
  readonly tenants: readonly { readonly tenant: string; readonly is_sent: boolean }[];
}

interface Odd {
  readonly kind: string;
  /** A pattern of what the step says. */
  readonly told: string;
}

export const HOSTILE_FILE = path.join(ROOT, 'test/client/hostile.json');

export const HOSTILE = JSON.parse(readFileSync(HOSTILE_FILE, 'utf8')) as Hostile;

export const whole = (text: Text) =>
  text.map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1]))).join('');
