/** How the types of outputs follow from where blocks stand: which of them are certain, and which may be null. */

import type { Untyped } from './expressions.js';

/** What may not have run: null in the place of each. */
export type Maybe<O> = { readonly [Id in keyof O]: O[Id] | null };

/** Certain, unless the block around has a `when`. */
export type Guarded<G, O> = [G] extends [never] ? O : Maybe<O>;

export type OrNull<G, T> = [G] extends [never] ? T : T | null;

/** What a branch adds to what was there; of a union of branches, all of it. */
export type Added<All, Before> = {
  readonly [Id in Exclude<NameIn<All>, keyof Before>]: All extends unknown
    ? Id extends keyof All
      ? All[Id]
      : never
    : never;
};
type NameIn<All> = All extends unknown ? keyof All : never;

/** What a run gives: nothing of a block that was not reached. */
export type RunOutputs<O> = {
  readonly [Id in keyof O]: null extends O[Id] ? O[Id] | undefined : O[Id];
};

/** The outputs of the blocks in a list; `object` when there are none. */
export type Values<O> = O[keyof O];

/** An id that none of the blocks before has, as far as these are known. */
export type NewId<Id extends string, O> = string extends keyof O
  ? Id
  : Id extends keyof O
    ? `${Id} is the id of a block before`
    : Id;

/** What the step gives instead of its output when nobody answered in time. */
export interface Escalated {
  readonly _escalated: true;
  readonly _escalation_handler: string;
  readonly _timeout_seconds: number;
}

/** The answer of a gate by its name; nothing without a gate. */
export type Answer<V, Key extends PropertyKey, E, G> = [V] extends [never]
  ? unknown
  : { readonly [Name in Key]: V | ([E] extends [never] ? never : null) | OrNull<G, never> };

/** What a step gives: that of its handler, or what stands for it. */
export type StepOutput<T, E, G> = OrNull<G, T | ([E] extends [never] ? never : Escalated)>;

/** Of a race that was won. */
export interface RaceOutput<T> {
  /** The branch, from 0. */
  readonly winner: number;
  /** Of the last block in it that has one; left out when it is larger than 1 MiB. */
  readonly output?: T | null;
  readonly output_omitted?: true;
}

/** Of a for_each: of each item the last output, or how many there were when all are larger than 1 MiB. */
export type ItemOutputs<T> = readonly (T | null)[] | { readonly count: number };

/** Of a sub_sequence: the outputs of the child in the order in which they were stored. */
export type ChildOutputs<O> =
  | readonly {
      readonly block_id: string;
      readonly output: [keyof O] extends [never] ? Untyped : Values<O>;
    }[]
  | { readonly instance_id: string; readonly truncated: true };
