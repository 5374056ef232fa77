/**
 * What the service of an execution asks of an instance. The instance checks that it is still what was
 * decided on, changes itself, and commits that together with the execution's own mutations as one
 * unit: either both happen or neither does, wherever the two live. The answer leaves when the unit is
 * durable. This and the fence are all that instances know of executions.
 */

import type { MigrationFinding } from '../../schema/continuity.js';
import type { Execution } from '../../schema/execution.js';
import type { InstanceState } from '../../schema/states.js';
import type { ErrorData } from '../../src/base/errors.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import type { ItemOutputs } from '../../src/core/loop-items.js';
import type { KeptOutput } from '../../src/core/progress.js';

/** Why an instance must not be run here. */
export interface Fence {
  /**
   * `transferring`: it is being handed over; `moved`: it has been; `imported`: it was brought here
   * and is not owned yet.
   */
  readonly reason: 'transferring' | 'moved' | 'imported';
  /** RFC 3339: when the instance asks whether the fence still stands; null: it stands. */
  readonly until: string | null;
}

/** What the instance must still be; what is absent is not looked at. */
export interface Expectations {
  readonly states?: readonly InstanceState[];
  readonly sequenceId?: string;
  readonly epoch?: number;
  readonly fence?: Fence['reason'] | 'none';
  /** No step of it is inside a handler of this process. */
  readonly isAtRest?: true;
  /** Of its context and its progress: nothing has happened to it. */
  readonly placeSha256?: string;
  /** Of the newest checkpoint. */
  readonly checkpointId?: string;
}

export type OrderedChange =
  /** It belongs to an execution from now on. */
  | { readonly kind: 'enrol'; readonly continuityId: string; readonly epoch: number }
  /** It is not to be run until the fence is lifted. */
  | { readonly kind: 'fence'; readonly fence: Fence }
  /** The fence is over: it goes on as the instance of that epoch. */
  | { readonly kind: 'own'; readonly epoch: number }
  /** Saves a checkpoint of the live state; the answer names it. */
  | { readonly kind: 'capture'; readonly checkpointId: string }
  /** From paused to scheduled now. */
  | { readonly kind: 'resume' }
  /** Nothing is changed: the answer says what keeps the instance from going over. */
  | ({ readonly kind: 'foresee' } & ToVersion)
  | OrderedMigration
  | OrderedRestore;

export interface ToVersion {
  readonly sequenceId: string;
  /** context.data there. */
  readonly data: JsonObject;
}

/** Goes over to another version; what it waits for is carried over. */
export interface OrderedMigration extends ToVersion {
  readonly kind: 'migrate';
  readonly continuityId: string;
  readonly epoch: number;
  /** It stays paused there; otherwise in the state that it has. One that failed stays failed. */
  readonly pauses: boolean;
}

/** Goes back to what it was before a migration. */
export interface OrderedRestore {
  readonly kind: 'restore';
  readonly sequenceId: string;
  /** All of its sections. */
  readonly context: JsonObject;
  readonly execution: Execution;
  /** Blocks whose outputs are no longer what they were. */
  readonly dropped: readonly string[];
  /** The latest output of those of them that had one. */
  readonly outputs: readonly (readonly [block: string, output: KeptOutput])[];
  /** The items of for_each blocks, by their keys. */
  readonly items: readonly (readonly [key: string, items: readonly JsonValue[]])[];
  /** What those items had given. */
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
  /** In this order; none: it is only asked what it is. */
  readonly changes: readonly OrderedChange[];
  /** Of the execution, as a unit takes them: index of the kind, key, row, … */
  readonly mutations: readonly (string | number)[];
}

/** What the instance is after the order. */
export interface OrderView {
  readonly state: InstanceState;
  readonly sequenceId: string;
  /** The id of the step it is at, if it is at one. */
  readonly currentStep: string | null;
  readonly nextFireAt: string | null;
  /** What `foresee` has found. */
  readonly obstacles?: readonly MigrationFinding[];
  readonly lost?: readonly MigrationFinding[];
}

export type OrderAnswer =
  | { readonly ok: true; readonly view: OrderView }
  | { readonly ok: false; readonly error: ErrorData };
