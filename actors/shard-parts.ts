/**
 * What a shard is made of: every actor, queue and index of it, each handed what it needs of the
 * others and of the turn. Nothing happens here; see `shard.ts` for what does.
 */

import type { CapsuleMill } from '../src/capsule-mill.js';
import { LIMITS } from '../src/config.js';
import type { Clock } from '../src/core/clock.js';
import type { Keyring } from '../src/core/continuity/keys.js';
import { createIdGenerator, routeForShard, routeOf } from '../src/core/ids.js';
import type { UnixMs } from '../src/core/time.js';
import type { EffectHandler } from '../src/handlers/registry.js';
import type { WebhookSender } from '../src/handlers/webhook-sender.js';
import type { Logger } from '../src/log.js';
import { Meter } from '../src/metrics/meter.js';
import { IN_PLACE, type MigrationJudge } from '../src/migration-judge.js';
import type { Tracer } from '../src/tracing.js';
import { Catalog } from './catalog.js';
import { ChangeGroups } from './change-many.js';
import { ChangeFeed } from './changes.js';
import { CommitLog } from './commit-log.js';
import { Continuity } from './continuity/operations.js';
import type { ContinuityRows } from './continuity/rows.js';
import { Creations } from './creations.js';
import { HandlerPool } from './handler-pool.js';
import type { InstanceEnv } from './instance.js';
import { InstanceLines } from './instance-lines.js';
import { Instances } from './instances.js';
import { Keys } from './keys.js';
import type { Rows } from './loader.js';
import { Measures } from './measures.js';
import { Outbox, type ShardPorts } from './outbox.js';
import { OwnRequests } from './own-requests.js';
import { Plans } from './plans.js';
import { Queues } from './queues.js';
import { Rates } from './rates.js';
import { Releases } from './releases.js';
import { Requests } from './requests.js';
import { Routing } from './routing.js';
import { Schedules } from './schedules.js';
import { ShardTimers } from './shard-timers.js';
import { TaskIndex } from './task-index.js';
import type { Effect } from './turn.js';
import { Watchers } from './watchers.js';
import { Webhooks } from './webhooks.js';

/** The settings of a shard; plain data, so that they can cross to its thread. */
export interface ShardSettings {
  readonly shard: number;
  readonly shards: number;
  readonly tickIntervalMs: number;
  readonly cronTickMs: number;
  readonly workerStaleMs: number;
  readonly workerReaperTickMs: number;
  readonly requireClaimEpoch: boolean;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly maxContextBytes: number;
  /** Whom to tell of ended instances. */
  readonly webhookUrls: readonly string[];
}

export interface ShardDeps {
  readonly settings: ShardSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly loader: Rows;
  readonly continuityRows: ContinuityRows;
  /** Undefined without an encryption key. */
  readonly keyring?: Keyring | undefined;
  /** Absent: capsules are sealed and opened in place. */
  readonly mill?: CapsuleMill;
  /** Absent: migrations are judged in place. */
  readonly judge?: MigrationJudge;
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  readonly webhookSender: WebhookSender;
  /** Where it counts and measures; absent: nobody looks. */
  readonly meter?: Meter;
  readonly ports: ShardPorts;
  readonly tracer?: Tracer | undefined;
  /** Runs the function when the events at hand have been seen. */
  readonly setImmediate: (fn: () => void) => void;
}

/** What the parts ask of the turn. */
export interface TurnHooks {
  /** Performs effects whose unit, if any, is committed. */
  readonly release: (effects: readonly Effect[]) => void;
  /** Runs the work in a turn, before requests. */
  readonly schedule: (work: () => void) => void;
  /** Asks for a turn. */
  readonly wakeShard: () => void;
  /** The instance has something to do now. */
  readonly runSoon: (instance: string, rank: number) => void;
  readonly owns: (instance: string) => boolean;
  /** Engine time at which the shard took up its rows. */
  readonly readySince: () => UnixMs;
  /** Runs the function when rows can be trusted: not while a dead writer's units are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
}

export interface ShardParts {
  readonly commits: CommitLog;
  readonly out: Outbox;
  readonly meter: Meter;
  readonly measures: Measures;
  readonly timers: ShardTimers;
  readonly continuity: Continuity;
  readonly plans: Plans;
  readonly routing: Routing;
  readonly instances: Instances;
  readonly creations: Creations;
  readonly queues: Queues;
  readonly keys: Keys;
  readonly rates: Rates;
  readonly schedules: Schedules;
  readonly ownRequests: OwnRequests;
  readonly webhooks: Webhooks;
  /** On the first shard only. */
  readonly catalog: Catalog | undefined;
  readonly releases: Releases | undefined;
  readonly tasks: TaskIndex;
  readonly pool: HandlerPool;
  readonly lines: InstanceLines;
  readonly watchers: Watchers;
  readonly changes: ChangeGroups;
  readonly feed: ChangeFeed;
  readonly requests: Requests;
}

export function createParts(deps: ShardDeps, hooks: TurnHooks): ShardParts {
  const { settings, loader, log, clock, random } = deps;
  const { shard, shards } = settings;
  const { release, schedule, wakeShard, whenWriterKnown } = hooks;
  const now = () => clock.now();
  const random32 = () => Math.floor(random() * 0x1_0000_0000);
  const ids = createIdGenerator(now, random32);
  const newId = () => ids.next(routeForShard(shard, shards, random32));
  const commits = new CommitLog();
  const meter = deps.meter ?? new Meter();
  const measures = new Measures(meter, clock);
  const plans = new Plans(loader);
  const tasks = new TaskIndex(loader, schedule);
  const changes = new ChangeGroups(release);
  const shared = { commits, loader, log, now, shards, release, schedule };
  const timed = { ...shared, clock, random };
  const rowActors = { ...shared, clock, whenWriterKnown };
  const routing = new Routing({ ...timed, shard });

  const timers = new ShardTimers({
    clock,
    loader,
    log,
    tickIntervalMs: settings.tickIntervalMs,
    owns: hooks.owns,
    wakeShard,
    onOverdue: (instance, rank) => schedule(() => hooks.runSoon(instance, rank)),
  });
  const feed = new ChangeFeed({ ...timed, shard, whenWriterKnown });
  const watchers = new Watchers({
    ...timed,
    look: (instance, watch, version) =>
      instances.tell(instance, { kind: 'look', ...watch, version }),
  });
  const env: InstanceEnv = {
    ...settings,
    now,
    stamp: () => feed.stamp(),
    random,
    ids,
    readySince: hooks.readySince,
    monotonic: () => clock.monotonic(),
    measures,
  };
  const instances: Instances = new Instances({
    ...shared,
    env,
    plans,
    createAgain: ({ request, instance }) => creations.again(request, instance),
    changed: (instance) => {
      watchers.changed(instance);
      schedules.changed(instance);
    },
  });
  const ownRequests = new OwnRequests();
  const creations = new Creations({
    ...shared,
    shard,
    maxContextBytes: settings.maxContextBytes,
    random32,
    ids,
    plans,
    routing,
    instances,
  });
  const schedules: Schedules = new Schedules({
    ...rowActors,
    ownRequests,
    shard,
    plans,
    routing,
    newId,
    cronTickMs: settings.cronTickMs,
    tellRun: (run, message) => instances.tell(run, message),
  });
  const queues = new Queues({
    ...shared,
    shard,
    expireAt: (handler, at) => timers.push(at, { kind: 'expire', handler }),
  });
  const pool = new HandlerPool({
    handlers: measures.timed(deps.handlers),
    clock,
    log,
    tracer: deps.tracer,
    wakeShard,
    canTake: (instance) =>
      commits.unackedBytes < LIMITS.unitBytesForOutcomesMax && instances.canTake(instance),
    onOutcome: (instance, step, outcome) =>
      instances.tell(instance, { kind: 'step.outcome', step, outcome }),
  });
  const continuity = new Continuity({
    ...shared,
    shard,
    plans,
    rows: deps.continuityRows,
    keyring: deps.keyring,
    mill: deps.mill,
    judge: deps.judge ?? IN_PLACE,
    unpoliciedRetry: settings.unpoliciedRetry,
    newIdLike: (id) => ids.next(routeOf(id)),
    whenWriterKnown,
  });
  const owners = {
    continuity,
    plans,
    routing,
    instances,
    creations,
    queues,
    rates: new Rates({ ...rowActors, newId, random }),
    schedules,
    webhooks: new Webhooks({ ...rowActors, ids, settings, sender: deps.webhookSender }),
    catalog: shard === 0 ? new Catalog({ ...rowActors, newId }) : undefined,
    releases: shard === 0 ? new Releases({ ...rowActors, newId, plans }) : undefined,
    tasks,
    changes,
    watchers,
    feed,
  };
  return {
    ...owners,
    ownRequests,
    commits,
    out: new Outbox({ shard, ports: deps.ports, commits, wakeShard }),
    meter,
    measures,
    timers,
    keys: new Keys({ ...rowActors, shard }),
    pool,
    lines: new InstanceLines(log, () => clock.monotonic()),
    requests: new Requests({
      ...shared,
      ...owners,
      shard,
    }),
  };
}
