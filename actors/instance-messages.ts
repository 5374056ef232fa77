/**
 * What an InstanceActor can be told. Messages with a `request` come from outside and are answered
 * through it; the others are the engine's own, and hints among them may be dropped.
 */

import type { Block } from '../schema/blocks.js';
import type { StepOutcome } from '../src/core/builtin.js';
import type { JsonObject, JsonValue } from '../src/core/json.js';
import type { InstanceState } from '../src/core/states.js';
import type { UnixMs } from '../src/core/time.js';
import type { Change } from './change-many.js';
import type { Order } from './continuity/orders.js';
import type { WorkerLine } from './instance-notes.js';
import type { StepRef } from './turn.js';

/** A caller outside: `tenant` is '' when it named none, and then sees every tenant's instances. */
interface FromOutside {
  readonly request: number;
  readonly tenant: string;
}

/** What every call of a worker about a task says; `epoch` is absent with old clients. */
interface FromWorker extends FromOutside {
  readonly task: string;
  readonly worker: string;
  readonly epoch: number | undefined;
}

export type InstanceRequest =
  | ({ readonly kind: 'get' | 'tree' | 'retry' } & FromOutside)
  | ({
      readonly kind: 'patchState';
      readonly state: InstanceState;
      readonly nextFireAt: UnixMs | null;
    } & FromOutside)
  | ({
      readonly kind: 'patchContext';
      readonly data: JsonObject | undefined;
      readonly config: JsonObject | undefined;
      readonly audit: JsonValue[] | undefined;
    } & FromOutside)
  | ({
      readonly kind: 'signal';
      readonly signalType: string;
      readonly payload: JsonValue;
      readonly traceparent: string | undefined;
    } & FromOutside)
  | ({ readonly kind: 'checkpoint.save'; readonly data: JsonValue } & FromOutside)
  | ({ readonly kind: 'checkpoint.prune'; readonly keep: number } & FromOutside)
  /** For a stream: the state, with the version that it belongs to. */
  | ({ readonly kind: 'look'; readonly version: number } & FromOutside)
  | SurgeryRequest
  /** Of the desk of its execution, see `instance-ownership.ts`. */
  | ({ readonly kind: 'order'; readonly order: Order } & FromOutside)
  | WorkerRequest;

/** What a caller gives along when an instance goes on from a block. */
export interface Amendments {
  /** Merged into context.data. */
  readonly context: JsonObject | undefined;
  readonly signals: readonly { readonly type: string; readonly payload: JsonValue }[];
  readonly traceparent: string | undefined;
}

/** These need rows first, see `preparation.ts`. */
export type SurgeryRequest =
  | ({
      readonly kind: 'injectBlocks';
      readonly blocks: readonly Block[];
      readonly position: number | undefined;
    } & FromOutside)
  | ({ readonly kind: 'resumeFrom'; readonly blockId: string } & Amendments & FromOutside)
  | ({
      readonly kind: 'fork';
      readonly blockId: string;
      readonly dryRun: boolean;
    } & Amendments &
      FromOutside)
  | ({ readonly kind: 'migrate'; readonly sequenceId: string } & FromOutside);

export type WorkerRequest =
  | ({
      readonly kind: 'task.complete';
      readonly output: JsonObject;
      readonly lines: readonly WorkerLine[];
    } & FromWorker)
  | ({
      readonly kind: 'task.fail';
      readonly message: string;
      readonly retryable: boolean;
      readonly lines: readonly WorkerLine[];
    } & FromWorker)
  | ({
      readonly kind: 'task.heartbeat';
      readonly checkpointSeq: number | undefined;
      readonly checkpoint: JsonValue;
    } & FromWorker);

export type InstanceMessage =
  | InstanceRequest
  /** One of many; the shard counts the answers of `group`. */
  | { readonly kind: 'change'; readonly group: number; readonly change: Change }
  /** Look at what is due. `recovered`: steps that ran inside a process that died run again. */
  | { readonly kind: 'wake'; readonly recovered: boolean }
  /** The wish with this number was granted a slot of the concurrency key. */
  | { readonly kind: 'permit.granted'; readonly number: number }
  | {
      readonly kind: 'rate.granted';
      readonly step: StepRef;
      readonly grant: number;
      readonly usableUntil: UnixMs;
    }
  | { readonly kind: 'rate.deferred'; readonly step: StepRef; readonly until: UnixMs }
  | { readonly kind: 'rate.changed'; readonly step: StepRef }
  | { readonly kind: 'step.outcome'; readonly step: StepRef; readonly outcome: StepOutcome }
  /** What the instance did cannot be stored, or makes its actor throw: its step or it itself fails. */
  | {
      readonly kind: 'unit.refused';
      readonly step: StepRef | undefined;
      readonly reason: string;
    }
  | {
      readonly kind: 'claim';
      readonly handler: string;
      readonly poll: number;
      readonly task: string;
      readonly worker: string;
      readonly queueShard: number;
    }
  | { readonly kind: 'unclaim'; readonly task: string; readonly epoch: number }
  /** The task's heartbeat may have been silent for too long. */
  | { readonly kind: 'reap'; readonly task: string };

/** The task that a message is about, if any: it is loaded before the message is handled. */
export function taskOf(message: InstanceMessage): string | undefined {
  return 'task' in message ? message.task : undefined;
}
