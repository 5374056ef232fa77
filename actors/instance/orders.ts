/**
 * Orders of the service of an execution to an instance. The instance checks that it has not changed since the
 * decision, changes itself, and commits that with the execution's own mutations as one unit. The answer is sent when
 * the unit is durable.
 */

import type { MigrationFinding } from '../../schema/continuity.js';
import type { Execution } from '../../schema/execution.js';
import type { InstanceState } from '../../schema/states.js';
import type { ErrorData } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { ItemOutputs } from '../../src/core/loop-items.js';
import type { KeptOutput } from '../../src/core/progress.js';

/** Why an instance must not run here. */
export interface Fence {
  /** `transferring`: it is being handed over; `moved`: it has been; `imported`: it is not owned yet. */
  readonly reason: 'transferring' | 'moved' | 'imported';
  /** RFC 3339: when the instance asks whether the fence still stands; null: it stands. */
  readonly until: string | null;
}

/** The state that the instance must still have; absent members are not checked. */
export interface Expectations {
  readonly states?: readonly InstanceState[];
  readonly sequenceId?: string;
  readonly epoch?: number;
  readonly fence?: Fence['reason'] | 'none';
  /** No step runs in a handler of this process. */
  readonly isAtRest?: true;
  /** Of its context and its progress. */
  readonly placeSha256?: string;
  /** Of the newest checkpoint. */
  readonly checkpointId?: string;
}

export type OrderedChange =
  /** Adds it to an execution. */
  | { readonly kind: 'enrol'; readonly continuityId: string; readonly epoch: number }
  /** Stops it until the fence is lifted. */
  | { readonly kind: 'fence'; readonly fence: Fence }
  /** Lifts the fence, with that epoch. */
  | { readonly kind: 'own'; readonly epoch: number }
  /** Saves a checkpoint of the live state. */
  | { readonly kind: 'capture'; readonly checkpointId: string }
  /** From paused to scheduled now. */
  | { readonly kind: 'resume' }
  /** Changes nothing: the answer has the obstacles of a migration. */
  | ({ readonly kind: 'foresee' } & ToVersion)
  | OrderedMigration
  | OrderedRestore;

export interface ToVersion {
  readonly sequenceId: string;
  /** context.data there. */
  readonly data: JsonObject;
}

/** Migrates to another version; its waits are carried over. */
export interface OrderedMigration extends ToVersion {
  readonly kind: 'migrate';
  readonly continuityId: string;
  readonly epoch: number;
  /** Paused after the migration; otherwise its state stays. A failed instance stays failed. */
  readonly pauses: boolean;
}

/** Rolls a migration back. */
export interface OrderedRestore {
  readonly kind: 'restore';
  readonly sequenceId: string;
  /** All of its sections. */
  readonly context: JsonObject;
  readonly execution: Execution;
  /** Blocks whose outputs have changed. */
  readonly dropped: readonly string[];
  /** Their latest outputs before. */
  readonly outputs: readonly (readonly [block: string, output: KeptOutput])[];
  /** The items of for_each blocks, by their keys. */
  readonly items: readonly (readonly [key: string, items: readonly JsonValue[]])[];
  /** The outputs of those items. */
  readonly itemOutputs: Readonly<Record<string, ItemOutputs>>;
  readonly state: InstanceState;
  readonly nextFireAt: string | null;
  readonly epoch: number;
}

export interface Order {
  /** Numbers the order at its sender. */
  readonly ticket: number;
  /** The shard of the execution. */
  readonly replyTo: number;
  readonly tenant: string;
  readonly expect: Expectations;
  /** In this order; none: only the view is requested. */
  readonly changes: readonly OrderedChange[];
  /** Of the execution, as in a unit: index of the kind, key, row, … */
  readonly mutations: readonly (string | number)[];
}

/** The instance after the order. */
export interface OrderView {
  readonly state: InstanceState;
  readonly sequenceId: string;
  /** The id of its present step. */
  readonly currentStep: string | null;
  readonly nextFireAt: string | null;
  /** Findings of `foresee`. */
  readonly obstacles?: readonly MigrationFinding[];
  readonly lost?: readonly MigrationFinding[];
}

export type OrderAnswer =
  | { readonly ok: true; readonly view: OrderView }
  | { readonly ok: false; readonly error: ErrorData };
