/** How states look: what goes well, is at work, failed, or is over. */

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
