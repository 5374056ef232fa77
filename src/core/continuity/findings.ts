/** What was found for or against a runtime, and what follows from it. */

export const FINDING_STATUSES = ['pass', 'fail', 'unknown'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

export interface Finding {
  readonly code: string;
  readonly status: FindingStatus;
  /** For people. */
  readonly summary: string;
}

export const OUTCOMES = ['allow', 'deny', 'unknown'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** A single failure denies; without one, a single doubt leaves it unknown. */
export function outcomeOf(findings: readonly Finding[]): Outcome {
  if (findings.some(({ status }) => status === 'fail')) return 'deny';
  return findings.some(({ status }) => status === 'unknown') ? 'unknown' : 'allow';
}
