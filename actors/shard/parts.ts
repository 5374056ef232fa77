/**
 * What a shard is made of: every actor, queue and index of it, each handed what it needs of the
 * others and of the turn. Nothing happens here; see `shard.ts` for what does.
 */

import type { Clock } from '../../src/base/clock.js';
import { createIdGenerator, routeForShard, routeOf } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Logger } from '../../src/base/log.js';
import { IN_PLACE, type Offload } from '../../src/base/offload.js';
import type { Keyring } from '../../src/core/continuity/keys.js';
import type { EffectHandler } from '../../src/handlers/registry.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import type { NamedCounterName } from '../../src/metrics/catalog.js';
import { Meter } from '../../src/metrics/meter.js';
import { OTHER } from '../../src/metrics/named.js';
import type { Tracer } from '../../src/metrics/tracing.js';
import { Activity } from '../activity/activity.js';
import { BulkJobs } from '../bulk/jobs.js';
import { ApiKeys } from '../catalog/api-keys.js';
import { Catalog } from '../catalog/catalog.js';
import { Names } from '../catalog/names.js';
import { Plans } from '../catalog/plans.js';
import { TenantLimitRows } from '../catalog/tenant-limits.js';
import { Continuity } from '../continuity/operations.js';
import type { ContinuityRows } from '../continuity/rows.js';
import { Credentials } from '../credential/credentials.js';
import { Secrets } from '../credential/secrets.js';
import { Events } from '../event/events.js';
import { ChangeFeed } from '../feed/changes.js';
import { Watchers } from '../feed/watchers.js';
import { ChangeGroups } from '../instance/change-many.js';
import { ChildPlaces } from '../instance/child-places.js';
import { Creations } from '../instance/creations.js';
import { Instances } from '../instance/instances.js';
import { KinNotes } from '../instance/kin-notes.js';
import type { InstanceEnv } from '../instance/live-instance.js';
import { instanceLines, type LineEffect } from '../instance/log-lines.js';
import { tellResult } from '../instance/operations.js';
import { peerMessages } from '../instance/peer-messages.js';
import { type PurgeRequest, purge } from '../instance/purge.js';
import { firstActor } from '../instance/restore.js';
import { TaskIndex } from '../instance/task-index.js';
import { Keys } from '../limits/keys.js';
import { Rates } from '../limits/rates.js';
import { Exchanges } from '../queue/exchanges.js';
import { Queues } from '../queue/queues.js';
import { Releases } from '../release/releases.js';
import { Routing } from '../release/routing.js';
import { CommitLog } from '../runtime/commit-log.js';
import type { Rows } from '../runtime/loader.js';
import { Measures } from '../runtime/measures.js';
import { OwnRequests } from '../runtime/own-requests.js';
import type { Request } from '../runtime/protocol.js';
import type { Effects, Room } from '../runtime/room.js';
import type { DueTimer } from '../runtime/rows.js';
import type { Effect } from '../runtime/turn.js';
import type { Versions } from '../runtime/versions.js';
import { Schedules } from '../schedule/schedules.js';
import { Triggers } from '../trigger/triggers.js';
import { Subscribers } from '../webhook/subscribers.js';
import { Subscriptions } from '../webhook/subscriptions.js';
import { Webhooks } from '../webhook/webhooks.js';
import { HandlerPool } from './handler-pool.js';
import type { Hearing } from './hearing.js';
import { Outbox, type ShardPorts } from './outbox.js';
import { Requests } from './requests.js';
import { ShardTimers } from './timers.js';

/** The settings of a shard; plain data, so that they can cross to its thread. */
export interface ShardSettings {
  readonly shard: number;
  readonly shards: number;
  readonly tickIntervalMs: number;
  readonly cronTickMs: number;
  readonly workerStaleMs: number;
  readonly workerReaperTickMs: number;
  /** After so many lost claims a try has failed for good; 0: never. */
  readonly lostClaimsMax: number;
  /** The longest time that a call inside the process may take. */
  readonly stepTimeoutMaxMs: number;
  readonly maxBodyBytes: number;
  readonly requireClaimEpoch: boolean;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly maxContextBytes: number;
  readonly maxOutputBytes: number;
  /** What the actors of one kind may take in memory; absent: as much as in the largest heap. */
  readonly residentBytesMax?: number;
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
  /** Where heavy work is done; absent: in place. */
  readonly offload?: Offload;
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  readonly webhookSender: WebhookSender;
  /** Where it counts and measures; absent: nobody looks. */
  readonly meter?: Meter;
  /** By which the front knows whether what it keeps still holds; absent: it keeps nothing. */
  readonly versions?: Versions | undefined;
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
  /** The same, in the order in which it was asked for, and for as long as requests leave it time. */
  readonly scheduleSpare: (work: () => void) => void;
  /** Asks for a turn. */
  readonly wakeShard: () => void;
  /** The instance has something to do now. */
  readonly runSoon: (timer: DueTimer) => void;
  /** More instances wait for that than a scan for overdue timers reads. */
  readonly isRunBehind: () => boolean;
  /** From when on workers can be heard. */
  readonly hearing: Hearing;
  /** Runs the function when rows can be trusted: not while a dead writer's units are unsettled. */
  readonly whenWriterKnown: (then: () => void) => void;
  /** More waits for the database than the shard may hold. */
  readonly isBehind: () => boolean;
  /** Takes in what peers have posted and what has not been delivered yet. */
  readonly takeHints: () => void;
  /** A request lines up once more. */
  readonly again: (request: Request) => void;
}

export type ShardParts = ReturnType<typeof createParts>;

export function createParts(deps: ShardDeps, hooks: TurnHooks) {
  const { settings, loader, log, clock, random } = deps;
  const { shard, shards } = settings;
  const { release, schedule, scheduleSpare, wakeShard, whenWriterKnown } = hooks;
  const now = () => clock.now();
  const random32 = () => Math.floor(random() * 0x1_0000_0000);
  const ids = createIdGenerator(now, random32);
  const newId = () => ids.next(routeForShard(shard, shards, random32));
  const commits = new CommitLog(schedule);
  const meter = deps.meter ?? new Meter();
  const measures = new Measures(meter, clock);
  const plans = new Plans(loader);
  const turnedAway = () => hooks.hearing.turnedAway();
  const tasks = new TaskIndex(loader, schedule, turnedAway);
  const changes = new ChangeGroups(release);
  const shared = { commits, loader, log, now, shards, release, schedule };
  const timed = { ...shared, clock, random };
  const { residentBytesMax } = settings;
  const hosted = { ...shared, clock, scheduleSpare, whenWriterKnown, residentBytesMax };
  const routing = new Routing({ ...timed, shard });
  const names = new Names({
    loader,
    since: () => plans.deletions + routing.tables,
    forgotten: (version) =>
      release([{ kind: 'peer', shard: 0, message: { kind: 'names.settled', version, shard } }]),
  });

  const timers = new ShardTimers({
    clock,
    loader,
    log,
    tickIntervalMs: settings.tickIntervalMs,
    wakeShard,
    onOverdue: (timer) => schedule(() => hooks.runSoon(timer)),
    isBehind: hooks.isRunBehind,
    onStoodStill: (ms) => hooks.hearing.stoodStill(ms),
  });
  const feed = new ChangeFeed({ ...timed, shard, whenWriterKnown });
  const watchers = new Watchers({
    ...timed,
    look: (instance, watch, version) =>
      instances.tell(instance, { kind: 'look', ...watch, version }),
  });
  const { webhookSender: sender, keyring } = deps;
  const secrets = new Secrets({ loader, now, keyring });
  const subscribers: Subscribers = new Subscribers({
    ...timed,
    shard,
    urls: settings.webhookUrls,
    gone: (subscriptions) => webhooks.giveUp(subscriptions),
  });
  const webhooks = new Webhooks({ ...hosted, ids, settings, sender, subscribers, keyring });
  const { maxContextBytes } = settings;
  const births = { shard, shards, ids, random32, maxContextBytes, plans, names, routing };
  const places = new ChildPlaces(births);
  const env: InstanceEnv = {
    ...settings,
    now,
    stamp: () => feed.stamp(),
    random,
    ids,
    webhookTargets: (tenant, event) => subscribers.targetsOf(tenant, event),
    readySince: (tenant) => hooks.hearing.since(tenant),
    outageEnd: () => hooks.hearing.outageEnd,
    placeChild: (asked, found) => places.place(asked, found),
    monotonic: () => clock.monotonic(),
    measures,
    versions: deps.versions,
  };
  const instances: Instances = new Instances({
    ...hosted,
    shard,
    env,
    plans,
    turnedAway,
    taskDecided: (task) => queues.decided(task),
    createAgain: ({ request, instance }) => creations.again(request, instance),
    changed: (instance) => {
      watchers.changed(instance);
      schedules.changed(instance);
    },
  });
  const ownRequests = new OwnRequests();
  const creations = new Creations({
    ...shared,
    clock,
    env,
    shard,
    maxContextBytes: settings.maxContextBytes,
    random32,
    ids,
    plans,
    names,
    routing,
    instances,
  });
  const kin = new KinNotes({
    ...hosted,
    maxOutputBytes: settings.maxOutputBytes,
    read: (child, name) => places.read(child, name),
    tell: (instance, message) => instances.tell(instance, message),
  });
  const schedules: Schedules = new Schedules({
    ...hosted,
    ownRequests,
    plans,
    names,
    routing,
    newId,
    ids,
    maxContextBytes: settings.maxContextBytes,
    cronTickMs: settings.cronTickMs,
    tellRun: (run, message) => instances.tell(run, message),
    adoptRun: ({ record, plan, characters }) =>
      instances.adopt(firstActor(env, record, plan), characters),
  });
  const { offload = IN_PLACE } = deps;
  const queues: Queues = new Queues({
    ...shared,
    clock,
    shard,
    secrets,
    expireAt: (request, at) => timers.push(at, { kind: 'expire', request }),
  });
  const exchanges = new Exchanges({
    ...shared,
    shard,
    maxBodyBytes: settings.maxBodyBytes,
    queues,
    ownRequests,
    takeHints: hooks.takeHints,
    tell: (request, tenant, worker, result) =>
      tellResult({ tasks, instances, release }, request, tenant, worker, result),
  });
  const pool = new HandlerPool({
    secrets,
    handlers: deps.handlers,
    callMsMax: settings.stepTimeoutMaxMs,
    measures,
    clock,
    log,
    tracer: deps.tracer,
    wakeShard,
    isHeld: (tenant) => commits.held.has(tenant),
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
    keyring,
    offload,
    unpoliciedRetry: settings.unpoliciedRetry,
    maxContextBytes: settings.maxContextBytes,
    newIdLike: (id) => ids.next(routeOf(id)),
    whenWriterKnown,
  });
  const releases = shard === 0 ? new Releases({ ...hosted, newId, plans }) : undefined;
  const deprecated = async (sequence: string) => releases?.deprecated(sequence);
  const hold = (id: string) => instances.hold(id);
  const letGo = (id: string, isGone: boolean) => instances.letGo(id, isGone);
  const owners = {
    shard,
    now,
    release,
    continuity,
    plans,
    names,
    routing,
    instances,
    kin,
    creations,
    queues,
    exchanges,
    rates: new Rates({ ...hosted, newId, random }),
    events: new Events({ ...hosted, shard, maxOutputBytes: settings.maxOutputBytes }),
    schedules,
    webhooks,
    subscribers,
    subscriptions:
      shard === 0
        ? new Subscriptions({ ...hosted, newId, random, subscribers, sender, keyring })
        : undefined,
    bulkJobs: shard === 0 ? new BulkJobs({ ...hosted, newId }) : undefined,
    credentials: shard === 0 ? new Credentials({ ...hosted, random, sender, keyring }) : undefined,
    triggers: shard === 0 ? new Triggers({ ...hosted, random, keyring }) : undefined,
    purge: (request: number, asked: PurgeRequest) =>
      purge({ ...shared, hold, letGo }, request, asked),
    catalog: shard === 0 ? new Catalog({ ...hosted, ...settings, newId, deprecated }) : undefined,
    apiKeys: shard === 0 ? new ApiKeys(shared) : undefined,
    tenantLimits: shard === 0 ? new TenantLimitRows(shared) : undefined,
    releases,
    tasks,
    changes,
    watchers,
    feed,
  };
  const activity = new Activity({ ...shared, clock, shard, meter });
  const keys = new Keys(hosted);
  const { rates, events, catalog, subscriptions } = owners;
  /** What a shard tells all of them reaches those first that others lean on. */
  const rooms: readonly (Room | undefined)[] = [
    ...[feed, plans, names, routing, subscribers, timers, pool],
    ...[instances, peerMessages({ instances, tasks, ownRequests, release }), tasks, changes],
    ...[creations, keys, rates, events, kin, schedules, webhooks, activity],
    ...[catalog, subscriptions, releases, queues, exchanges, continuity, watchers],
    counting({ meter, plans, writeLine: instanceLines(log, () => clock.monotonic()) }),
  ];
  return {
    ...owners,
    rooms: rooms.filter((room) => room !== undefined),
    ownRequests,
    commits,
    activity,
    out: new Outbox({ shard, ports: deps.ports, commits, log, wakeShard }),
    meter,
    measures,
    timers,
    keys,
    pool,
    requests: new Requests({
      ...shared,
      shard,
      clock,
      offload,
      parts: owners,
      callMsMax: settings.stepTimeoutMaxMs,
      isBehind: hooks.isBehind,
      takeHints: hooks.takeHints,
      again: hooks.again,
    }),
  };
}

/** What effects count, and what the log tells of instances. */
function counting({
  meter,
  plans,
  writeLine,
}: {
  readonly meter: Meter;
  readonly plans: Plans;
  readonly writeLine: (effect: LineEffect) => void;
}): Room {
  // Under no name when the plan has left memory meanwhile: nothing is read for a count.
  const countEnd = (counter: NamedCounterName, sequence: string) =>
    meter.countNamed(counter, plans.get(sequence)?.name ?? OTHER);
  const effects: Effects = {
    completed: ({ sequence }) => countEnd('engine_sequence_instances_completed_total', sequence),
    failed: (effect) => {
      countEnd('engine_sequence_instances_failed_total', effect.sequence);
      writeLine(effect);
    },
    log: writeLine,
    count: ({ counter, by }) => meter.count(counter, by),
  };
  return { effects };
}
