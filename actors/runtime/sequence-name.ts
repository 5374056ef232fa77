/** A sequence as callers name it. */
export interface SequenceName {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** Null: the version that new executions get (docs/releases.md). */
  readonly version: number | null;
}

/** The id of the sequence; null: none, while its versions are on hold. */
export type NamedId = string | null | undefined;
