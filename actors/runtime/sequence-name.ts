/** How callers name a sequence, and where a name leads. */

/** A sequence as callers name it. */
export interface SequenceName {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** Null: the version that new executions get (docs/releases.md). */
  readonly version: number | null;
}

/** Where a name leads: to the sequence with this id; null: to none while its versions are on hold. */
export type NamedId = string | null | undefined;
