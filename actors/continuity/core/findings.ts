/** Findings about a runtime, and their outcome. */

import type { HandoffPreview, PlacementDecision } from '../../../schema/handoff.js';

export type Finding = HandoffPreview['findings'][number];
export type Outcome = PlacementDecision['candidates'][number]['outcome'];

export function outcomeOf(findings: readonly Finding[]): Outcome {
  if (findings.some(({ status }) => status === 'fail')) return 'deny';
  return findings.some(({ status }) => status === 'unknown') ? 'unknown' : 'allow';
}
