/** The entry of the thread that compares large definitions, a Piscina task for each pair. */

import { semanticDiffText } from './core/releases/diff.js';

export interface Definitions {
  readonly baseline: string;
  readonly candidate: string;
}

export default function compare({ baseline, candidate }: Definitions): string {
  return semanticDiffText(baseline, candidate);
}
