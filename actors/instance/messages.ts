/**
 * The messages to instances. Messages with a `request` come from outside and are answered; the others are the
 * engine's own, and hints among them may be dropped.
 */

import type { BodyOf, QueryOf, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import type { EngineError } from '../../src/base/errors.js';
import type { GateAnswer } from '../../src/core/blocks/gate.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import type { ChildEnd, ChildStart, StepTry } from '../../src/core/progress.js';
import type { StoredSequence } from '../catalog/plans.js';
import type { Call } from '../runtime/operation.js';
import type { FamilyMessage, PeerMessage } from '../runtime/protocol.js';
import type { ChangeMany } from './change-many.js';
import type { Found } from './creation.js';
import type { Order } from './orders.js';
import type { NewInstance } from './record.js';

/** `tenant` is '' when the caller named none, and sees every tenant's instances. */
interface FromOutside {
  readonly request: number;
  readonly tenant: string;
}

export type GivenAnswer = Omit<GateAnswer, 'more'>;

/** The request of a route. */
interface Called<Kind extends string, Id extends ShardRouteId> extends Call<BodyOf<Id>> {
  readonly kind: Kind;
  /** Of a tree: the requested part. */
  readonly part?: Id extends 'instances.tree' ? QueryOf<Id> : never;
}

type CalledBy<Id> = Id extends InstanceRouteId & `instances.${infer Kind}`
  ? Called<Kind, Id>
  : Id extends TaskRouteId & `workers.${infer Kind}`
    ? Called<`task.${Kind}`, Id>
    : never;

/** Routes whose path names an instance or a task, which receives the request under their name. */
export type InstanceRouteId = Extract<RoutesOf<'by-id'>, `instances.${string}`>;
export type TaskRouteId = Extract<RoutesOf<'by-id'>, `workers.${string}`>;

/** A worker's request about a task; `claim_epoch` is absent with old clients. */
export type WorkerRequest = CalledBy<TaskRouteId> & {
  readonly task: string;
  /** The reply does not include the record of the task. */
  readonly isBrief?: true;
};

export type InstanceRequest =
  | CalledBy<InstanceRouteId>
  | Called<'migrate', 'sequences.migrateInstance'>
  | WorkerRequest
  /** For a stream: the state and its version. */
  | ({ readonly kind: 'look'; readonly version: number } & FromOutside)
  /** The answer of a person at one of its gates. */
  | ({
      readonly kind: 'answer';
      readonly approval: string;
      readonly given: GivenAnswer;
    } & FromOutside)
  /** For its explanation: its waits. */
  | ({ readonly kind: 'standing'; readonly child?: string | undefined } & FromOutside)
  /** Of its execution, see `ownership.ts`. */
  | ({ readonly kind: 'order'; readonly order: Order } & FromOutside);

/** Messages of queues, keys and limits, without their receiver. */
type Hinted = Unaddressed<Extract<PeerMessage, { kind: HintKind }>>;
type HintKind =
  | 'claim'
  | 'unclaim'
  | 'secret.missing'
  | 'permit.granted'
  | 'event.arrived'
  | `rate.${'granted' | 'deferred' | 'changed'}`;
type Unaddressed<Message> = Message extends unknown ? Omit<Message, 'instance'> : never;

export type InstanceMessage =
  | InstanceRequest
  /** One instance of many; the shard counts the results of `group`. */
  | ({ readonly kind: 'change'; readonly group: number } & Omit<ChangeMany, 'ids'>)
  /** Something may be due. `recovered`: steps that ran inside a process that died run again. */
  | { readonly kind: 'wake'; readonly recovered: boolean }
  | Hinted
  /** The place of a child was read. */
  | {
      readonly kind: 'child.found';
      readonly start: ChildStart;
      readonly found: Found;
    }
  /** A child has ended, as it reported or as a block requested to know. */
  | {
      readonly kind: 'child.ended';
      readonly child: string;
      /** Undefined: it has not ended. */
      readonly end: ChildEnd | undefined;
      readonly note: FamilyMessage | undefined;
      /** The block that requested it. */
      readonly step: StepTry | undefined;
    }
  /** The state of the parent changed. */
  | { readonly kind: 'parent.moved'; readonly note: FamilyMessage }
  | { readonly kind: 'step.outcome'; readonly step: StepTry; readonly outcome: StepOutcome }
  /** A unit cannot be stored, or its actor throws: the step or the instance fails. */
  | {
      readonly kind: 'unit.refused';
      readonly step: StepTry | undefined;
      readonly code: 'data_refused' | 'internal_error';
      readonly reason: string;
    }
  /** The task's heartbeat may have been silent for too long. */
  | { readonly kind: 'reap'; readonly task: string };

export type MessageOf<Kind extends InstanceMessage['kind']> = Extract<
  InstanceMessage,
  { kind: Kind }
>;

/** A creation. With an idempotency key the actor may exist already. */
export interface Creation {
  readonly kind: 'create';
  readonly request: number;
  readonly instance: NewInstance;
  readonly sequence: StoredSequence;
}

/** A creation that is refused unless its instance exists already. */
export interface Repeat {
  readonly kind: 'repeat';
  readonly request: number;
  readonly instance: NewInstance;
  readonly otherwise: EngineError;
}

/** With creations, whose actor may not exist yet. */
export type Message = InstanceMessage | Creation | Repeat;
