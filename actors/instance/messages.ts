/** Messages to instances. Only those with a `request` get a reply; hints may be lost. */

import type { BodyOf, QueryOf, RoutesOf, ShardRouteId } from '../../schema/routes.js';
import type { GateAnswer } from '../../src/core/blocks/gate.js';
import type { StepOutcome } from '../../src/core/builtin.js';
import type { ChildEnd, ChildStart, StepTry } from '../../src/core/progress.js';
import type { StoredSequence } from '../catalog/plans.js';
import type { Call } from '../runtime/operation.js';
import type { FamilyMessage, Parking, PeerMessage } from '../runtime/protocol.js';
import type { Effect } from '../runtime/turn.js';
import type { ChangeMany } from './change-many.js';
import type { Found } from './creation.js';
import type { Order } from './orders.js';
import type { NewInstance } from './record.js';

/** `tenant` is '' for a caller without a tenant, who sees all instances. */
interface FromOutside {
  readonly request: number;
  readonly tenant: string;
}

export type GivenAnswer = Omit<GateAnswer, 'more'>;

interface Called<Kind extends string, Id extends ShardRouteId> extends Call<BodyOf<Id>> {
  readonly kind: Kind;
  readonly waitMs?: Id extends 'instances.signal' ? number | undefined : never;
  readonly part?: Id extends 'instances.tree' ? QueryOf<Id> : never;
}

type CalledBy<Id> = Id extends InstanceRouteId & `instances.${infer Kind}`
  ? Called<Kind, Id>
  : Id extends TaskRouteId & `workers.${infer Kind}`
    ? Called<`task.${Kind}`, Id>
    : never;

/** Routes with the id of an instance or a task; the message kind is the route's name. */
export type InstanceRouteId = Extract<RoutesOf<'by-id'>, `instances.${string}`>;
export type TaskRouteId = Extract<RoutesOf<'by-id'>, `workers.${string}`>;

/** A worker's request about a task. Old clients send no `claim_epoch`. */
export type WorkerRequest = CalledBy<TaskRouteId> & { readonly task: string };

export type InstanceRequest =
  | CalledBy<InstanceRouteId>
  | Called<'migrate', 'sequences.migrateInstance'>
  | WorkerRequest
  /** Reads the state and its version for a stream. */
  | ({ readonly kind: 'look'; readonly version: number } & FromOutside)
  | ({
      readonly kind: 'answer';
      readonly approval: string;
      readonly given: GivenAnswer;
    } & FromOutside)
  /** The result for a request that waits, which waits on if there is none and its time is not over. */
  | ({ readonly kind: 'result'; readonly parking: Parking } & FromOutside)
  | ({ readonly kind: 'standing'; readonly child?: string | undefined } & FromOutside)
  /** An order of its execution, see `ownership.ts`. */
  | ({ readonly kind: 'order'; readonly order: Order } & FromOutside);

/** Messages of queues, keys and limits, without the id of the receiver. */
type Hinted = Unaddressed<Extract<PeerMessage, { kind: HintKind }>>;
type HintKind =
  | 'claim'
  | 'unclaim'
  | 'secret.missing'
  | 'permit.granted'
  | 'permit.denied'
  | 'start.granted'
  | 'event.arrived'
  | 'event.cancel'
  | `rate.${'granted' | 'deferred' | 'changed'}`;
type Unaddressed<Message> = Message extends unknown ? Omit<Message, 'instance'> : never;

export type InstanceMessage =
  | InstanceRequest
  /** A change of many instances; the shard counts the results of `group`. */
  | ({ readonly kind: 'change'; readonly group: number } & Omit<ChangeMany, 'ids'>)
  /** Work may be due. `recovered`: in-process steps whose process died run again. */
  | { readonly kind: 'wake'; readonly recovered: boolean }
  | Hinted
  /** The sequence of a child has been looked up. */
  | { readonly kind: 'child.found'; readonly start: ChildStart; readonly found: Found }
  /** A child has ended. The child reports it, or a block has requested it. */
  | {
      readonly kind: 'child.ended';
      readonly child: string;
      /** Undefined when the child has not ended. */
      readonly end: ChildEnd | undefined;
      readonly received: FamilyMessage | undefined;
      /** The step that requested the report. */
      readonly step: StepTry | undefined;
    }
  | { readonly kind: 'parent.moved'; readonly received: FamilyMessage }
  | { readonly kind: 'step.outcome'; readonly step: StepTry; readonly outcome: StepOutcome }
  /** The database refused a unit, or the actor threw: the step or the instance fails. */
  | {
      readonly kind: 'unit.refused';
      readonly step: StepTry | undefined;
      readonly code: 'data_refused' | 'internal_error';
      readonly reason: string;
    }
  /** The heartbeat of the task may be overdue. */
  | { readonly kind: 'reap'; readonly task: string };

export type MessageOf<Kind extends InstanceMessage['kind']> = Extract<
  InstanceMessage,
  { kind: Kind }
>;

/** With an idempotency key, the instance may exist already. */
export interface Creation {
  readonly kind: 'create';
  readonly request: number;
  readonly instance: NewInstance;
  readonly sequence: StoredSequence;
}

/** A creation that creates nothing, and is answered with `otherwise` unless its instance already exists. */
export interface Repeat {
  readonly kind: 'repeat';
  readonly request: number;
  readonly instance: NewInstance;
  readonly otherwise: readonly Effect[];
}

/** Including creations, which may come before their actor. */
export type Message = InstanceMessage | Creation | Repeat;
