/** States of executions, handoffs, effects and migrations, and their transitions. */

import { machineOf, words } from './states.js';

/** A migration keeps `owned` and raises the epoch. The last three are states of the instance (`executionView`). */
export const EXECUTION_STATES = words('owned transferring completed failed cancelled');

const HANDOFF = machineOf({
  requested: ['quiescing', 'rejected', 'failed'],
  quiescing: ['exported', 'failed'],
  exported: ['accepted', 'expired', 'revoked', 'failed'],
  accepted: ['resumed', 'failed'],
  resumed: ['completed', 'failed'],
  completed: [],
  rejected: [],
  failed: [],
  expired: [],
  revoked: [],
});
export const HANDOFF_STATES = HANDOFF.states;
export type HandoffState = (typeof HANDOFF_STATES)[number];
export const mayMoveHandoff = HANDOFF.allows;

const EFFECT = machineOf({
  planned: ['prepared', 'abandoned'],
  prepared: ['dispatched', 'abandoned'],
  dispatched: ['committed', 'failed', 'unknown'],
  committed: ['compensated'],
  // A check may show that the effect happened after all, or that nothing was done.
  failed: ['verified', 'compensated', 'abandoned'],
  unknown: ['verified', 'committed', 'failed', 'compensated', 'abandoned'],
  verified: ['compensated'],
  compensated: [],
  abandoned: [],
});
export const EFFECT_STATES = EFFECT.states;
export type EffectState = (typeof EFFECT_STATES)[number];
export const mayMoveEffect = EFFECT.allows;

/** In progress, or with an unknown result. */
const DOUBTFUL_EFFECTS: readonly EffectState[] = ['dispatched', 'unknown'];

/** States of effects of the applied epoch that forbid a rollback. */
const EFFECTS_AGAINST_ROLLBACK: readonly EffectState[] = words(
  'dispatched committed failed unknown verified',
);

const MIGRATION = machineOf({ planned: ['applied'], applied: ['rolled_back'], rolled_back: [] });
export const MIGRATION_STATES = MIGRATION.states;
export type MigrationState = (typeof MIGRATION_STATES)[number];
export const mayMoveMigration = MIGRATION.allows;

/** In these states of a handoff, it controls its execution. */
export function holdsExecution(state: HandoffState): boolean {
  return state === 'quiescing' || state === 'exported';
}

/**
 * Blocks a handoff: a dispatched effect may have happened, and would happen again elsewhere. Unclaimed and failed
 * effects do not block.
 */
export function isEffectInDoubt(state: EffectState): boolean {
  return DOUBTFUL_EFFECTS.includes(state);
}

export function forbidsRollback(state: EffectState): boolean {
  return EFFECTS_AGAINST_ROLLBACK.includes(state);
}

export const EFFECT_KINDS = words(
  'http worker webhook message storage model human_decision custom',
);

export const MIGRATION_VERDICTS = words('automatic approval_required pin incompatible');

const SERVER_PROVENANCE_KINDS = words(
  'execution_created capsule_exported runtime_claimed execution_resumed effect_resolved',
  'migration_applied migration_rolled_back',
);

export const CALLER_PROVENANCE_KINDS = words('package_identity model_selected terminal_outcome');

export const PROVENANCE_KINDS = [...SERVER_PROVENANCE_KINDS, ...CALLER_PROVENANCE_KINDS] as const;
export type ProvenanceKind = (typeof PROVENANCE_KINDS)[number];

export const TRANSFORM_OPERATIONS = ['copy', 'move', 'drop'] as const;
export const TRANSFORMS_MAX = 128;

export const RUNTIME_KINDS = ['server', 'edge', 'mobile', 'desktop', 'browser'] as const;
export type RuntimeKind = (typeof RUNTIME_KINDS)[number];

/** From low to high. */
export const TRUST_LEVELS = ['unverified', 'registered', 'signed', 'attested'] as const;
export type TrustLevel = (typeof TRUST_LEVELS)[number];

/** The other levels need a proof, which a registration does not have. */
export const CLAIMABLE_TRUST = words('unverified registered') satisfies readonly TrustLevel[];

export const CONNECTIVITIES = ['offline', 'metered', 'wifi', 'ethernet'] as const;

/** Bounds of each list of a runtime's facts and of an execution's requirements. */
export const CAPABILITY_FACTS_MAX = 256;
export const REQUIREMENT_FACTS_MAX = 64;
export const POLICY_RULES_MAX = 256;

export const CLASSIFICATIONS = ['public', 'internal', 'confidential', 'restricted'] as const;
export type Classification = (typeof CLASSIFICATIONS)[number];
