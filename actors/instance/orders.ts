/**
 * Orders of an execution to its instance, which checks that it has not changed since the decision.
 * Its changes and the execution's mutations are one unit; the answer follows its commit.
 */

import type { MigrationFinding } from '../../schema/continuity.js';
import type { Execution } from '../../schema/execution.js';
import type { InstanceState } from '../../schema/states.js';
import type { ErrorData } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { ItemOutputs } from '../../src/core/loop-items.js';
import type { KeptOutput } from '../../src/core/progress.js';

export interface Fence {
  /** `transferring`: being handed over; `moved`: handed over; `imported`: not owned yet. */
  readonly reason: 'transferring' | 'moved' | 'imported';
  /** RFC 3339: when the instance asks its execution whether the fence still stands; null: never. */
  readonly until: string | null;
}

/** The state that the instance must still have. Absent members are not checked. */
export interface Expectations {
  readonly states?: readonly InstanceState[];
  readonly sequenceId?: string;
  readonly epoch?: number;
  readonly fence?: Fence['reason'] | 'none';
  /** No handler of this process executes a step. */
  readonly isAtRest?: true;
  readonly placeSha256?: string;
  readonly checkpointId?: string;
}

export type OrderedChange =
  /** Adds the instance to an execution. */
  | { readonly kind: 'enrol'; readonly continuityId: string; readonly epoch: number }
  | { readonly kind: 'fence'; readonly fence: Fence }
  /** Lifts the fence and sets the epoch. */
  | { readonly kind: 'own'; readonly epoch: number }
  | { readonly kind: 'capture'; readonly checkpointId: string }
  | { readonly kind: 'resume' }
  /** Changes nothing. The answer lists the obstacles of a migration. */
  | ({ readonly kind: 'foresee' } & ToVersion)
  | OrderedMigration
  | OrderedRestore;

export interface ToVersion {
  readonly sequenceId: string;
  readonly data: JsonObject;
}

/** Migrates the instance to another version; its waits are carried over. */
export interface OrderedMigration extends ToVersion {
  readonly kind: 'migrate';
  readonly continuityId: string;
  readonly epoch: number;
  /** Whether to pause the instance afterwards. A failed instance stays failed. */
  readonly pauses: boolean;
}

export interface OrderedRestore {
  readonly kind: 'restore';
  readonly sequenceId: string;
  readonly context: JsonObject;
  readonly execution: Execution;
  readonly dropped: readonly string[];
  /** The latest outputs of the dropped blocks before the migration. */
  readonly outputs: readonly (readonly [block: string, output: KeptOutput])[];
  /** The item lists of for_each blocks, by their keys. */
  readonly items: readonly (readonly [key: string, items: readonly JsonValue[]])[];
  readonly itemOutputs: Readonly<Record<string, ItemOutputs>>;
  readonly state: InstanceState;
  readonly nextFireAt: string | null;
  readonly epoch: number;
}

export interface Order {
  readonly ticket: number;
  /** The shard that receives the answer. */
  readonly replyTo: number;
  readonly tenant: string;
  readonly expect: Expectations;
  /** Applied in this order. Empty: only the view is requested. */
  readonly changes: readonly OrderedChange[];
  /** Mutations of the execution, as in a unit: index of the kind, key, row, … */
  readonly mutations: readonly (string | number)[];
}

export interface OrderView {
  readonly state: InstanceState;
  readonly sequenceId: string;
  readonly currentStep: string | null;
  readonly nextFireAt: string | null;
  /** Findings of `foresee`, also in `lost`. */
  readonly obstacles?: readonly MigrationFinding[];
  readonly lost?: readonly MigrationFinding[];
}

export type OrderAnswer =
  | { readonly ok: true; readonly view: OrderView }
  | { readonly ok: false; readonly error: ErrorData };
