/** The tone of each state: successful, in progress, failed, or inactive. */

import type { Tone } from './table.js';

const TONES: Readonly<Record<string, Tone>> = {
  completed: 'good',
  running: 'busy',
  waiting: 'busy',
  failed: 'bad',
  cancelled: 'quiet',
  skipped: 'quiet',
  // Of releases.
  promoted: 'good',
  canary: 'busy',
  rolled_back: 'bad',
};

export const toneOf = (state: string): Tone | undefined => TONES[state];
