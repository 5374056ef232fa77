/**
 * What an actor holds of one instance: plain data, which the functions of this room take and change.
 * It is ahead of the database until the units under way are acknowledged; if one is refused, all of
 * it is discarded and built from rows anew.
 */

import { type IdGenerator, routeOf } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { GatePlan } from '../../src/core/blocks/gate.js';
import type { Plan } from '../../src/core/plan.js';
import type { StepTry } from '../../src/core/progress.js';
import type { WebhookEvent } from '../../src/core/webhook.js';
import type { Measures } from '../runtime/measures.js';
import type { Versions } from '../runtime/versions.js';
import type { WebhookTarget } from '../webhook/loads.js';
import type { Found } from './child-places.js';
import { LazyMap } from './lazy-map.js';
import type { StoredTimer } from './loads.js';
import { KeptValues, TaskCache } from './memory.js';
import type { InstanceRecord, NewInstance } from './record.js';

/** What an instance's actor is handed: settings, time, randomness, ids. */
export interface InstanceEnv {
  readonly now: () => UnixMs;
  /** The time of audit entries: never earlier than what a reader of the change feed has seen. */
  readonly stamp: () => UnixMs;
  readonly random: () => number;
  readonly ids: IdGenerator;
  readonly shards: number;
  /** The longest time that the server gives a call inside the process. */
  readonly stepTimeoutMaxMs: number;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly requireClaimEpoch: boolean;
  readonly workerStaleMs: number;
  /** After so many lost claims a try has failed for good; 0: never. */
  readonly lostClaimsMax: number;
  readonly maxContextBytes: number;
  readonly maxOutputBytes: number;
  /** Whom to tell of an event of the tenant. */
  readonly webhookTargets: (tenant: string, event: WebhookEvent) => readonly WebhookTarget[];
  /** Heartbeat silence counts from here at the earliest: while the engine was away none could come. */
  readonly readySince: (tenant: string) => UnixMs;
  /** When the last outage ended, in which no worker could be heard; now while it lasts, 0 when there was none. */
  readonly outageEnd: () => UnixMs;
  /**
   * Where a child goes, as decided for the unit that makes it.
   *
   * @param found what was read for it
   * @returns undefined when its sequence has to be read first
   * @throws EngineError why it cannot be made
   */
  readonly placeChild: (asked: NewInstance, found: Found | undefined) => NewInstance | undefined;
  /** Milliseconds from an arbitrary origin. */
  readonly monotonic: () => number;
  /** Absent: nobody measures. */
  readonly measures?: Measures;
  /** Absent: nobody keeps what is read. */
  readonly versions?: Versions | undefined;
}

/** What the row of an open gate says that may change while it is open. */
export interface KnownGate {
  readonly gate: GatePlan;
  readonly deadline: number | undefined;
}

export interface LiveInstance {
  readonly record: InstanceRecord;
  /** Of its sequence and of the blocks that are its own. */
  plan: Plan;
  readonly env: InstanceEnv;
  /** Open tasks, and those that ended lately; the others are in their table. */
  readonly tasks: TaskCache;
  readonly kept: KeptValues;
  /** In-process steps whose outcome has not come back, by node and iteration. */
  readonly running: LazyMap<string, StepTry>;
  /** When the latest grants of rate limits were used: one that comes twice is not taken for unused. */
  readonly usedGrants: LazyMap<number, UnixMs>;
  /** Its open waits for events, each with the id of the key that they are of. */
  readonly eventWaits: LazyMap<string, string>;
  /** Open gates that have rows, by their ids; undefined: it has had none. */
  gates: Map<string, KnownGate> | undefined;
  timer: StoredTimer | undefined;
  /** Collects the audit of the unit that creates the instance, which its row carries: JSON, with commas. */
  creationAudit: string | undefined;
  /** Of its ids: those of its tasks and rows lead to it, too. */
  readonly route: number;
}

export function liveInstance(record: InstanceRecord, plan: Plan, env: InstanceEnv): LiveInstance {
  return {
    record,
    plan,
    env,
    tasks: new TaskCache(),
    kept: new KeptValues(record.snapshot),
    running: new LazyMap(),
    usedGrants: new LazyMap(),
    eventWaits: new LazyMap(),
    gates: undefined,
    timer: undefined,
    creationAudit: undefined,
    route: routeOf(record.id),
  };
}

export function nextId({ env, route }: LiveInstance): string {
  return env.ids.next(route);
}

/** Whether the caller may know of this instance. */
export function isSeenBy({ record }: LiveInstance, tenant: string): boolean {
  return tenant === '' || tenant === record.tenant_id;
}

export function stepKey(step: { readonly node: number; readonly iteration: string }): string {
  return `${step.node}/${step.iteration}`;
}
