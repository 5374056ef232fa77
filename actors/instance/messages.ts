/**
 * What an instance can be told. Messages with a `request` come from outside and are answered
 * through it; the others are the engine's own, and hints among them may be dropped.
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
import type { Found } from './child-places.js';
import type { Order } from './orders.js';
import type { NewInstance } from './record.js';

/** A caller outside: `tenant` is '' when it named none, and then sees every tenant's instances. */
interface FromOutside {
  readonly request: number;
  readonly tenant: string;
}

export type GivenAnswer = Omit<GateAnswer, 'more'>;

/** The request of a route, as it came. */
interface Called<Kind extends string, Id extends ShardRouteId> extends Call<BodyOf<Id>> {
  readonly kind: Kind;
  /** Of a tree: what is asked for of it. */
  readonly part?: Id extends 'instances.tree' ? QueryOf<Id> : never;
}

type CalledBy<Id> = Id extends InstanceRouteId & `instances.${infer Kind}`
  ? Called<Kind, Id>
  : Id extends TaskRouteId & `workers.${infer Kind}`
    ? Called<`task.${Kind}`, Id>
    : never;

/** Routes whose path names an instance, or a task: it is told the request, under their name. */
export type InstanceRouteId = Extract<RoutesOf<'by-id'>, `instances.${string}`>;
export type TaskRouteId = Extract<RoutesOf<'by-id'>, `workers.${string}`>;

/** What comes by the routes of instances; some need rows first, see `preparation.ts`. */
export type CalledRequest =
  | CalledBy<InstanceRouteId>
  | Called<'migrate', 'sequences.migrateInstance'>;

/** What a worker calls about a task; `claim_epoch` is absent with old clients. */
export type WorkerRequest = CalledBy<TaskRouteId> & {
  readonly task: string;
  /** The caller does not want the record of the task. */
  readonly isBrief?: true;
};

export type InstanceRequest =
  | CalledRequest
  | WorkerRequest
  /** For a stream: the state, with the version that it belongs to. */
  | ({ readonly kind: 'look'; readonly version: number } & FromOutside)
  /** What a person says at one of its gates. */
  | ({
      readonly kind: 'answer';
      readonly approval: string;
      readonly given: GivenAnswer;
    } & FromOutside)
  /** For its explanation: what it waits for. */
  | ({ readonly kind: 'standing'; readonly child?: string | undefined } & FromOutside)
  /** Of its execution, see `ownership.ts`. */
  | ({ readonly kind: 'order'; readonly order: Order } & FromOutside);

/** What queues, keys and limits say, but for whom they say it to. */
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
  /** One of many; the shard counts the answers of `group`. */
  | ({ readonly kind: 'change'; readonly group: number } & Omit<ChangeMany, 'ids'>)
  /** Look at what is due. `recovered`: steps that ran inside a process that died run again. */
  | { readonly kind: 'wake'; readonly recovered: boolean }
  | Hinted
  /** What was read for a child that could not be made without. */
  | {
      readonly kind: 'child.found';
      readonly start: ChildStart;
      readonly found: Found;
    }
  /** A child has ended, as its note says or as somebody wanted to know. */
  | {
      readonly kind: 'child.ended';
      readonly child: string;
      /** Undefined: it has not. */
      readonly end: ChildEnd | undefined;
      readonly note: FamilyMessage | undefined;
      /** The block that has asked. */
      readonly step: StepTry | undefined;
    }
  /** The instance that started this one has moved. */
  | { readonly kind: 'parent.moved'; readonly note: FamilyMessage }
  | { readonly kind: 'step.outcome'; readonly step: StepTry; readonly outcome: StepOutcome }
  /** What the instance did cannot be stored, or makes its actor throw: its step or it itself fails. */
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

/** A creation that is refused, unless its instance is there already. */
export interface Repeat {
  readonly kind: 'repeat';
  readonly request: number;
  readonly instance: NewInstance;
  readonly otherwise: EngineError;
}

/** What is told to an actor that may not be there yet. */
export type Message = InstanceMessage | Creation | Repeat;
