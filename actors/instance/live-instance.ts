/**
 * The state of one instance in memory: plain data, changed by the functions of this folder. It is
 * ahead of the database until its units in flight are acknowledged; if one is refused, the state is
 * rebuilt from rows.
 */

import { routeOf } from '../../src/base/ids.js';
import { LazyMap } from '../../src/base/lazy-map.js';
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
import { KeptValues, TaskCache } from './memory.js';
import type { InstanceMessage, MessageOf } from './messages.js';
import type { InstanceRecord, NewInstance } from './record.js';

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
  /** The time of audit entries, never earlier than the position of a reader of the change feed. */
  readonly stamp: () => UnixMs;
  readonly webhookTargets: (tenant: string, event: WebhookEvent) => readonly WebhookTarget[];
  /** Heartbeat silence counts from here at the earliest: none could arrive before. */
  readonly readySince: (tenant: string) => UnixMs;
  /** The end of the last outage, in which no report could arrive; 0 without one. */
  readonly outageEnd: () => UnixMs;
  /** Undefined when rows have to be read first; throws EngineError when it cannot be created. */
  readonly placeChild: (
    requested: NewInstance,
    found: Found | undefined,
  ) => PlacedChild | undefined;
  readonly monotonic: () => number;
  readonly measures?: Measures;
  readonly versions?: Versions | undefined;
}

export interface PlacedChild {
  readonly instance: NewInstance;
  readonly plan: Plan;
}

/** The columns of an open gate's row that can change. */
export interface KnownGate {
  readonly gate: GatePlan;
  readonly deadline: number | undefined;
}

export interface LiveInstance {
  readonly record: InstanceRecord;
  plan: Plan;
  readonly env: InstanceEnv;
  /** Open tasks, and some that ended recently. */
  readonly tasks: TaskCache;
  readonly kept: KeptValues;
  /** In-process steps without an outcome yet, by node and iteration. */
  readonly running: LazyMap<string, StepTry>;
  /** Use times of the latest rate-limit grants, to recognise repeated ones. */
  readonly usedGrants: LazyMap<number, UnixMs>;
  /** Open waits for events, each with the id of its event key. */
  readonly eventWaits: LazyMap<string, string>;
  /** Whether events that cancel it find it. */
  awaitsCancel: boolean;
  /** The event that has cancelled it, if that was recently. */
  cancelledBy?: string | undefined;
  /** Open gates that have rows, by id; undefined when there were none. */
  gates: Map<string, KnownGate> | undefined;
  timer: StoredTimer | undefined;
  /** While an instance is being created whose creator waits: its outputs as JSON, by block. */
  shown: Map<string, string> | undefined;
  /** While the instance is being created: its audit entries as JSON. */
  creationAudit: string[] | undefined;
  /** The routing bits of its id, shared by the ids of its tasks and rows. */
  readonly route: number;
}

export function liveInstance(record: InstanceRecord, plan: Plan, env: InstanceEnv): LiveInstance {
  // All instances of a plan share one string.
  if (record.sequence_id === plan.sequenceId) record.sequence_id = plan.sequenceId;
  return {
    record,
    plan,
    env,
    tasks: new TaskCache(),
    kept: new KeptValues(record.snapshot),
    running: new LazyMap(),
    usedGrants: new LazyMap(),
    eventWaits: new LazyMap(),
    awaitsCancel: false,
    gates: undefined,
    timer: undefined,
    shown: undefined,
    creationAudit: undefined,
    route: routeOf(record.id),
  };
}

export function nextId({ env, route }: LiveInstance): string {
  return env.ids.next(route);
}

/** Whether the caller's tenant may see this instance; '' sees all. */
export function isSeenBy({ record }: LiveInstance, tenant: string): boolean {
  return tenant === '' || tenant === record.tenant_id;
}

export function stepKey(step: { readonly node: number; readonly iteration: string }): string {
  return `${step.node}/${step.iteration}`;
}

/** `'touched'` when only the row changed, undefined when nothing did. */
export type Handled = Progress | 'touched' | undefined;

type Kind = InstanceMessage['kind'];

/** Throws EngineError for an invalid request, before the first change. */
export type Handler<K extends Kind> = (
  actor: LiveInstance,
  turn: Turn,
  message: MessageOf<K>,
) => Handled;

/** Changes the instance after all checks; `before` is the result of earlier actions. */
export type Action = (turn: Turn, before?: Handled) => Handled;

export interface Sources {
  readonly rows: InstanceLoads;
  readonly plans: Plans;
  /** Creates another instance on the same shard; `begin` fills its first unit. */
  readonly createBeside: (child: LiveInstance, begin: (turn: Turn) => void) => void;
}

/** Reads rows while later messages wait. Rejects with the error of the reply. */
export type Preparation<K extends Kind> = (
  actor: LiveInstance,
  sources: Sources,
  message: MessageOf<K>,
) => Promise<Action>;

/** Resolves with undefined when the regular handler can continue. */
export type Prepare = (actor: LiveInstance, sources: Sources) => Promise<Action | undefined>;
