/** What was found for or against a runtime, and what follows from it. */

import type { HandoffPreview, PlacementDecision } from '../../../schema/handoff.js';

export type Finding = HandoffPreview['findings'][number];
export type Outcome = PlacementDecision['candidates'][number]['outcome'];

/** A single failure denies; without one, a single doubt leaves it unknown. */
export function outcomeOf(findings: readonly Finding[]): Outcome {
  if (findings.some(({ status }) => status === 'fail')) return 'deny';
  return findings.some(({ status }) => status === 'unknown') ? 'unknown' : 'allow';
}
