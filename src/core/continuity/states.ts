/** The states of executions, handoffs, effects and migrations, and which may follow which. */

/** Of a continuity execution. A migration moves it from owned to owned, with the next epoch. */
export const EXECUTION_STATES = ['owned', 'transferring', 'completed'] as const;

export const HANDOFF_STATES = [
  'requested',
  'quiescing',
  'exported',
  'accepted',
  'resumed',
  'completed',
  'rejected',
  'failed',
  'expired',
  'revoked',
] as const;
export type HandoffState = (typeof HANDOFF_STATES)[number];

const HANDOFF_MOVES: Readonly<Record<HandoffState, readonly HandoffState[]>> = {
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
};

export const EFFECT_STATES = [
  'planned',
  'prepared',
  'dispatched',
  'committed',
  'unknown',
  'verified',
  'compensated',
  'abandoned',
] as const;
export type EffectState = (typeof EFFECT_STATES)[number];

const EFFECT_MOVES: Readonly<Record<EffectState, readonly EffectState[]>> = {
  planned: ['prepared', 'abandoned'],
  prepared: ['dispatched', 'abandoned'],
  dispatched: ['committed', 'unknown'],
  unknown: ['verified', 'committed', 'compensated', 'abandoned'],
  committed: ['compensated'],
  verified: ['compensated'],
  compensated: [],
  abandoned: [],
};

const RESOLVED_EFFECTS: readonly EffectState[] = [
  'committed',
  'verified',
  'compensated',
  'abandoned',
];

/** What an effect of the applied epoch may not have become if its migration is to be undone. */
const EFFECTS_AGAINST_ROLLBACK: readonly EffectState[] = [
  'dispatched',
  'committed',
  'unknown',
  'verified',
];

export const MIGRATION_STATES = ['planned', 'applied', 'rolled_back'] as const;
export type MigrationState = (typeof MIGRATION_STATES)[number];

const MIGRATION_MOVES: Readonly<Record<MigrationState, readonly MigrationState[]>> = {
  planned: ['applied'],
  applied: ['rolled_back'],
  rolled_back: [],
};

export function mayMoveHandoff(from: HandoffState, to: HandoffState): boolean {
  return HANDOFF_MOVES[from].includes(to);
}

/** While a handoff is in one of these states, its execution belongs to it. */
export function holdsExecution(state: HandoffState): boolean {
  return state === 'quiescing' || state === 'exported';
}

export function mayMoveEffect(from: EffectState, to: EffectState): boolean {
  return EFFECT_MOVES[from].includes(to);
}

/** It is known what became of the effect; every other state stands in the way of a handoff. */
export function isResolvedEffect(state: EffectState): boolean {
  return RESOLVED_EFFECTS.includes(state);
}

export function forbidsRollback(state: EffectState): boolean {
  return EFFECTS_AGAINST_ROLLBACK.includes(state);
}

export function mayMoveMigration(from: MigrationState, to: MigrationState): boolean {
  return MIGRATION_MOVES[from].includes(to);
}
