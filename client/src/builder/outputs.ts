/** Derives the types of outputs from the position of blocks: which are certain, and which may be null. */

import type { Untyped } from './expressions.js';

/** Outputs of blocks that may not have run: each may be null. */
export type Maybe<O> = { readonly [Id in keyof O]: O[Id] | null };

/** Certain, unless the surrounding block has a `when`. */
export type Guarded<G, O> = [G] extends [never] ? O : Maybe<O>;

export type OrNull<G, T> = [G] extends [never] ? T : T | null;

/** The outputs that branches add; for a union of branches, all of them. */
export type Added<All, Before> = {
  readonly [Id in Exclude<NameIn<All>, keyof Before>]: All extends unknown
    ? Id extends keyof All
      ? All[Id]
      : never
    : never;
};
type NameIn<All> = All extends unknown ? keyof All : never;

/** The outputs of a run, without blocks that were not reached. */
export type RunOutputs<O> = {
  readonly [Id in keyof O]: null extends O[Id] ? O[Id] | undefined : O[Id];
};

/** The outputs of the blocks in a list; `object` if there are none. */
export type Values<O> = O[keyof O];

/** An id that differs from those of earlier blocks, as far as known. */
export type NewId<Id extends string, O> = string extends keyof O
  ? Id
  : Id extends keyof O
    ? `${Id} is the id of an earlier block`
    : Id;

/** The output of the step if nobody answered in time. */
export interface Escalated {
  readonly _escalated: true;
  readonly _escalation_handler: string;
  readonly _timeout_seconds: number;
}

/** The answer of an approval by its name; empty without an approval. */
export type Answer<V, Key extends PropertyKey, E, G> = [V] extends [never]
  ? unknown
  : { readonly [Name in Key]: V | ([E] extends [never] ? never : null) | OrNull<G, never> };

/** The output of a step: that of its handler, or a replacement. */
export type StepOutput<T, E, G> = OrNull<G, T | ([E] extends [never] ? never : Escalated)>;

/** The output of a race. */
export interface RaceOutput<T> {
  /** Index of the branch, from 0. */
  readonly winner: number;
  /** The last output in the branch; omitted if larger than 1 MiB. */
  readonly output?: T | null;
  readonly output_omitted?: true;
}

/** The output of a for_each: the last output of each item, or their count if the total exceeds 1 MiB. */
export type ItemOutputs<T> = readonly (T | null)[] | { readonly count: number };

/** The output of a sub_sequence: the outputs of the child in the order in which they were stored. */
export type ChildOutputs<O> =
  | readonly {
      readonly block_id: string;
      readonly output: [keyof O] extends [never] ? Untyped : Values<O>;
    }[]
  | { readonly instance_id: string; readonly truncated: true };
