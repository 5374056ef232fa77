/** States of a release and their transitions (docs/releases.md). Pure. */

import { machineOf } from './states.js';

const RELEASE = machineOf({
  draft: ['validating', 'ready', 'failed'],
  validating: ['ready', 'draft', 'failed'],
  ready: ['canary', 'failed'],
  canary: ['paused', 'promoted', 'rolled_back'],
  promoted: [],
  paused: ['canary', 'rolled_back'],
  rolled_back: [],
  failed: [],
});
export const RELEASE_STATES = RELEASE.states;
export type ReleaseState = (typeof RELEASE_STATES)[number];
export const mayMove = RELEASE.allows;

/** Metrics that gates compare between the two versions (docs/releases.md). */
export const GATE_METRICS = ['error_rate', 'cancel_rate'] as const;
export type GateMetric = (typeof GATE_METRICS)[number];

export const GATE_VERDICTS = ['pass', 'fail', 'inconclusive'] as const;
export type GateVerdict = (typeof GATE_VERDICTS)[number];

/** Neither policy changes running instances at a promotion. */
export const IN_FLIGHT_POLICIES = ['pin', 'operator_decision'] as const;

export const VARIANTS = ['baseline', 'candidate'] as const;
export type Variant = (typeof VARIANTS)[number];
