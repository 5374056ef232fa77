/**
 * What an actor hands to the writer: a commit unit, all of whose mutations are committed together or
 * not at all, in the order in which the actor made its units. A mutation is a kind, the key of its
 * row and the row's JSON text: the actor writes the text once, the writer joins texts into one
 * statement per kind.
 */

/**
 * Every kind of mutation, in the order in which a batch runs its statements. That order makes one
 * statement per kind equal to the units one after the other, because:
 * - a row is inserted before it is updated, and deleted after it was inserted;
 * - of several snapshots of one row the last one wins (`latest` in MUTATION_RULES);
 * - kinds for which neither holds are barriers: their unit is a batch of its own.
 */
export const MUTATION_KINDS = [
  'sequence.insert',
  'sequence.update',
  'sequence.delete',
  'instance.insert',
  'instance.update',
  'instance.context',
  'instance.rebind',
  'instance.trace',
  'instance.delete',
  'injection.set',
  'output.dropErrors',
  'output.dropBlocks',
  'output.insert',
  'snapshot.clear',
  'snapshot.set',
  'signal.insert',
  'audit.insert',
  'stepLog.insert',
  'checkpoint.insert',
  'checkpoint.prune',
  'task.insert',
  'task.update',
  'openTask.insert',
  'openTask.delete',
  'timer.clear',
  'timer.set',
  'deadLetter.clear',
  'deadLetter.set',
  'permitRequest.clear',
  'permitRequest.set',
  'permit.clear',
  'permit.set',
  'rateLimit.clear',
  'rateLimit.set',
  'rateGrant.prune',
  'rateGrant.insert',
  'worker.seen',
  'cron.clear',
  'cron.set',
  'apiKey.insert',
  'apiKey.update',
  'webhook.clear',
  'webhook.set',
  'delivery.insert',
  'delivery.prune',
  'changeMark.set',
  'release.set',
  'releaseDecision.insert',
  'releaseOutcome.clear',
  'releaseOutcome.set',
  'instance.ownership',
  'effect.insert',
  'effectResolution.set',
  'execution.insert',
  'execution.update',
  'location.insert',
  'provenance.insert',
  'runtime.set',
  'placement.insert',
  'handoff.set',
  'artifact.insert',
  'capsuleImport.insert',
  'migration.set',
] as const;

export type MutationKind = (typeof MUTATION_KINDS)[number];

/** `insert`: once per key. `latest`: the last one of its group and key wins. `barrier`: alone. */
export interface MutationRule {
  readonly merge: 'insert' | 'latest' | 'barrier';
  /** Kinds of one group write the same row, such as setting and clearing a timer. */
  readonly group: string;
}

export const MUTATION_RULES: Readonly<Record<MutationKind, MutationRule>> = {
  'sequence.insert': { merge: 'insert', group: 'sequence.insert' },
  'sequence.update': { merge: 'latest', group: 'sequence.update' },
  'sequence.delete': { merge: 'barrier', group: 'sequence.delete' },
  'instance.insert': { merge: 'insert', group: 'instance.insert' },
  'instance.update': { merge: 'latest', group: 'instance.update' },
  'instance.context': { merge: 'latest', group: 'instance.context' },
  'instance.rebind': { merge: 'latest', group: 'instance.rebind' },
  'instance.trace': { merge: 'latest', group: 'instance.trace' },
  'instance.delete': { merge: 'barrier', group: 'instance.delete' },
  'injection.set': { merge: 'latest', group: 'injection' },
  'output.dropErrors': { merge: 'barrier', group: 'output.dropErrors' },
  'output.dropBlocks': { merge: 'barrier', group: 'output.dropBlocks' },
  'output.insert': { merge: 'insert', group: 'output' },
  'snapshot.clear': { merge: 'latest', group: 'snapshot' },
  'snapshot.set': { merge: 'latest', group: 'snapshot' },
  'signal.insert': { merge: 'insert', group: 'signal' },
  'audit.insert': { merge: 'insert', group: 'audit' },
  'stepLog.insert': { merge: 'insert', group: 'stepLog' },
  'checkpoint.insert': { merge: 'insert', group: 'checkpoint' },
  'checkpoint.prune': { merge: 'barrier', group: 'checkpoint.prune' },
  'task.insert': { merge: 'insert', group: 'task.insert' },
  'task.update': { merge: 'latest', group: 'task.update' },
  'openTask.insert': { merge: 'latest', group: 'openTask' },
  'openTask.delete': { merge: 'latest', group: 'openTask' },
  'timer.clear': { merge: 'latest', group: 'timer' },
  'timer.set': { merge: 'latest', group: 'timer' },
  'deadLetter.clear': { merge: 'latest', group: 'deadLetter' },
  'deadLetter.set': { merge: 'latest', group: 'deadLetter' },
  'permitRequest.clear': { merge: 'latest', group: 'permitRequest' },
  'permitRequest.set': { merge: 'latest', group: 'permitRequest' },
  'permit.clear': { merge: 'latest', group: 'permit' },
  'permit.set': { merge: 'latest', group: 'permit' },
  'rateLimit.clear': { merge: 'latest', group: 'rateLimit' },
  'rateLimit.set': { merge: 'latest', group: 'rateLimit' },
  'rateGrant.prune': { merge: 'latest', group: 'rateGrant.prune' },
  'rateGrant.insert': { merge: 'insert', group: 'rateGrant' },
  'worker.seen': { merge: 'latest', group: 'worker.seen' },
  'cron.clear': { merge: 'latest', group: 'cron' },
  'cron.set': { merge: 'latest', group: 'cron' },
  'apiKey.insert': { merge: 'insert', group: 'apiKey.insert' },
  'apiKey.update': { merge: 'latest', group: 'apiKey.update' },
  'webhook.clear': { merge: 'latest', group: 'webhook' },
  'webhook.set': { merge: 'latest', group: 'webhook' },
  'delivery.insert': { merge: 'insert', group: 'delivery.insert' },
  'delivery.prune': { merge: 'latest', group: 'delivery.prune' },
  'changeMark.set': { merge: 'latest', group: 'changeMark' },
  'release.set': { merge: 'latest', group: 'release' },
  'releaseDecision.insert': { merge: 'insert', group: 'releaseDecision' },
  'releaseOutcome.clear': { merge: 'latest', group: 'releaseOutcome' },
  'releaseOutcome.set': { merge: 'latest', group: 'releaseOutcome' },
  'instance.ownership': { merge: 'latest', group: 'instance.ownership' },
  'effect.insert': { merge: 'insert', group: 'effect.insert' },
  'effectResolution.set': { merge: 'latest', group: 'effectResolution.set' },
  'execution.insert': { merge: 'insert', group: 'execution.insert' },
  'execution.update': { merge: 'barrier', group: 'execution.update' },
  'location.insert': { merge: 'insert', group: 'location.insert' },
  'provenance.insert': { merge: 'insert', group: 'provenance.insert' },
  'runtime.set': { merge: 'insert', group: 'runtime.set' },
  'placement.insert': { merge: 'insert', group: 'placement.insert' },
  'handoff.set': { merge: 'latest', group: 'handoff.set' },
  'artifact.insert': { merge: 'insert', group: 'artifact.insert' },
  'capsuleImport.insert': { merge: 'insert', group: 'capsuleImport.insert' },
  'migration.set': { merge: 'latest', group: 'migration.set' },
};

export interface Mutation {
  readonly kind: MutationKind;
  /** The key of the row: snapshots of one group and key replace one another within a batch. */
  readonly key: string;
  /** The row as the text of a JSON object; see `db/statements.ts` for the columns of each kind. */
  readonly row: string;
}

/**
 * How the inserts of a unit treat a row that is there already.
 * - `none`: nothing is inserted that could be there.
 * - `exists`: if its first insert finds its row, nothing of the unit happens and the outcome says so
 *   (an idempotency key, a sequence's id or version).
 * - `births`: each instance is born if it is new and skipped otherwise, with the rows that belong to
 *   it; the outcome names those that were born.
 */
export type UnitGate = 'none' | 'exists' | 'births';

export interface Unit {
  readonly mutations: readonly Mutation[];
  readonly gate: UnitGate;
}

export type UnitOutcome =
  | { readonly kind: 'committed' }
  | { readonly kind: 'exists' }
  | { readonly kind: 'born'; readonly ids: readonly string[] }
  | { readonly kind: 'refused'; readonly sqlState: string; readonly message: string };
