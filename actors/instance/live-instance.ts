/**
 * The state of one instance in memory: plain data, which the functions of this room change. It is ahead of the
 * database until the units in flight are acknowledged; if one is refused, the state is rebuilt from rows.
 */

import { routeOf } from '../../src/base/ids.js';
import type { UnixMs } from '../../src/base/time.js';
import type { GatePlan } from '../../src/core/blocks/gate.js';
import type { Plan } from '../../src/core/plan.js';
import type { Progress, StepTry } from '../../src/core/progress.js';
import type { WebhookEvent } from '../../src/core/webhook.js';
import type { Plans } from '../catalog/plans.js';
import type { Kernel, ShardSettings } from '../runtime/kernel.js';
import type { Measures } from '../runtime/measures.js';
import type { Turn } from '../runtime/turn.js';
import type { Versions } from '../runtime/versions.js';
import type { WebhookTarget } from '../webhook/loads.js';
import type { Found } from './creation.js';
import type { InstanceLoads, StoredTimer } from './loads.js';
import { KeptValues, LazyMap, TaskCache } from './memory.js';
import type { InstanceMessage, MessageOf } from './messages.js';
import type { InstanceRecord, NewInstance } from './record.js';

/** The surroundings of the instances of a shard. */
export interface InstanceEnv
  extends Pick<Kernel, 'ids' | 'now' | 'random'>,
    Pick<
      ShardSettings,
      | 'lostClaimsMax'
      | 'maxContextBytes'
      | 'maxOutputBytes'
      | 'requireClaimEpoch'
      | 'shards'
      | 'stepTimeoutMaxMs'
      | 'unpoliciedRetry'
      | 'workerStaleMs'
    > {
  /** The time of audit entries: never earlier than what a reader of the change feed has seen. */
  readonly stamp: () => UnixMs;
  readonly webhookTargets: (tenant: string, event: WebhookEvent) => readonly WebhookTarget[];
  /** Heartbeat silence counts from here at the earliest: none could arrive while the engine was away. */
  readonly readySince: (tenant: string) => UnixMs;
  /** When the last outage ended, in which no report could arrive; now while it lasts, 0 when there was none. */
  readonly outageEnd: () => UnixMs;
  /**
   * The child with its sequence and route, as decided for the unit that creates it.
   *
   * @param found what was read for it
   * @returns undefined when its sequence has to be read first
   * @throws EngineError why it cannot be created
   */
  readonly placeChild: (
    requested: NewInstance,
    found: Found | undefined,
  ) => NewInstance | undefined;
  /** Milliseconds from an arbitrary origin. */
  readonly monotonic: () => number;
  /** Absent: nothing is measured. */
  readonly measures?: Measures;
  /** Absent: reads are not cached. */
  readonly versions?: Versions | undefined;
}

/** Columns of an open gate's row that may change while it is open. */
export interface KnownGate {
  readonly gate: GatePlan;
  readonly deadline: number | undefined;
}

export interface LiveInstance {
  readonly record: InstanceRecord;
  /** Of its sequence, and of its injected blocks. */
  plan: Plan;
  readonly env: InstanceEnv;
  /** Open tasks, and some that ended recently. */
  readonly tasks: TaskCache;
  readonly kept: KeptValues;
  /** In-process steps whose outcome has not come back, by node and iteration. */
  readonly running: LazyMap<string, StepTry>;
  /** When the latest grants of rate limits were used: a repeated grant is not reported as unused. */
  readonly usedGrants: LazyMap<number, UnixMs>;
  /** Its open waits for events, each with the id of its key. */
  readonly eventWaits: LazyMap<string, string>;
  /** Open gates that have rows, by their ids; undefined: there were none. */
  gates: Map<string, KnownGate> | undefined;
  timer: StoredTimer | undefined;
  /** Collects the audit of the unit that creates the instance, which its row carries: JSON, with commas. */
  creationAudit: string | undefined;
  /** The routing bits of its id, and of the ids of its tasks and rows. */
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

// ---------------------------------------------------------------- handlers of its messages

/** The progress of the evaluator; `'touched'` when only the row changed, undefined for neither. */
export type Came = Progress | 'touched' | undefined;

type Kind = InstanceMessage['kind'];

/** Throws the EngineError for a wrong request before the first change. */
export type Handler<K extends Kind> = (
  actor: LiveInstance,
  turn: Turn,
  message: MessageOf<K>,
) => Came;

/**
 * Changes the instance; everything that can be refused is refused before.
 *
 * @param before the result of the earlier actions of the same message
 */
export type Action = (turn: Turn, before?: Came) => Came;

export interface Sources {
  readonly rows: InstanceLoads;
  readonly plans: Plans;
  /** Creates another instance on the same shard; `begin` fills its first unit. */
  readonly createBeside: (child: LiveInstance, begin: (turn: Turn) => void) => void;
}

/**
 * Reads the rows that a message needs and an actor does not hold. `Instances` lets the units before such a
 * message settle, and keeps back the messages behind it meanwhile. Rejects with the EngineError that is the
 * answer, or because the rows cannot be read.
 */
export type Preparation<K extends Kind> = (
  actor: LiveInstance,
  sources: Sources,
  message: MessageOf<K>,
) => Promise<Action>;

/** Resolves with undefined when the actor can handle the message now. */
export type Prepare = (actor: LiveInstance, sources: Sources) => Promise<Action | undefined>;
