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
import { Plans } from '../catalog/plans.js';
import { openCatalog } from '../catalog/room.js';
import { Continuity } from '../continuity/operations.js';
import type { ContinuityRows } from '../continuity/rows.js';
import { openCredentials } from '../credential/room.js';
import type { Secrets } from '../credential/secrets.js';
import { Events } from '../event/events.js';
import { ChangeFeed } from '../feed/changes.js';
import { Watchers } from '../feed/watchers.js';
import type { Instances } from '../instance/instances.js';
import { instanceLines, type LineEffect } from '../instance/log-lines.js';
import { type InstanceRoom, openInstances } from '../instance/room.js';
import { Keys } from '../limits/keys.js';
import { Rates } from '../limits/rates.js';
import { openQueues } from '../queue/room.js';
import { openReleases } from '../release/room.js';
import { CommitLog } from '../runtime/commit-log.js';
import { type Kernel, onFirstShard, type ShardSettings } from '../runtime/kernel.js';
import type { Rows } from '../runtime/loader.js';
import { Measures } from '../runtime/measures.js';
import { OwnRequests } from '../runtime/own-requests.js';
import type { Request } from '../runtime/protocol.js';
import type { Effects, Room } from '../runtime/room.js';
import type { DueTimer } from '../runtime/rows.js';
import type { Effect } from '../runtime/turn.js';
import type { Versions } from '../runtime/versions.js';
import { openSchedules } from '../schedule/room.js';
import type { Schedules } from '../schedule/schedules.js';
import { Triggers } from '../trigger/triggers.js';
import { openWebhooks } from '../webhook/room.js';
import { HandlerPool } from './handler-pool.js';
import type { Hearing } from './hearing.js';
import { Outbox, type ShardPorts } from './outbox.js';
import { Requests } from './requests.js';
import { ShardTimers } from './timers.js';

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
  const kernel = kernelOf(deps, hooks);
  const { settings, loader, log, clock, shard, now, release, commits, meter, measures } = kernel;
  const { keyring, webhookSender: sender, offload = IN_PLACE } = deps;
  const plans = new Plans(loader);
  const { routing, releases } = openReleases(kernel, plans);
  const { names, ...ofCatalog } = openCatalog(kernel, {
    plans,
    routeTables: () => routing.tables,
    deprecated: async (sequence) => releases?.deprecated(sequence),
  });
  const feed = new ChangeFeed(kernel);
  const watchers = new Watchers({
    ...kernel,
    look: (instance, watch, version) =>
      instances.tell(instance, { kind: 'look', ...watch, version }),
  });
  const ofWebhooks = openWebhooks(kernel, { sender, keyring });
  const ofInstances: InstanceRoom = openInstances(kernel, {
    ...{ plans, names, routing, versions: deps.versions },
    stamp: () => feed.stamp(),
    webhookTargets: (tenant, event) => ofWebhooks.subscribers.targetsOf(tenant, event),
    taskDecided: (task) => ofQueues.queues.decided(task),
    changed: (instance) => {
      watchers.changed(instance);
      schedules.changed(instance);
    },
  });
  const { instances } = ofInstances;
  const schedules: Schedules = openSchedules(kernel, { ...ofInstances, plans, names, routing });
  const { secrets, credentials } = openCredentials(kernel, { sender, keyring });
  const timers = timersOf(kernel, hooks);
  const ofQueues: QueueRoom = openQueues(kernel, {
    ...ofInstances,
    secrets,
    expireAt: (request, at) => timers.push(at, { kind: 'expire', request }),
  });
  const pool = poolOf(kernel, deps, hooks.wakeShard, instances, secrets);
  const continuity = new Continuity({
    ...kernel,
    ...{ plans, keyring, offload, rows: deps.continuityRows },
    unpoliciedRetry: settings.unpoliciedRetry,
    maxContextBytes: settings.maxContextBytes,
    newIdLike: (id) => kernel.ids.next(routeOf(id)),
  });
  const owners = {
    ...{ shard, now, release, plans, names, routing, releases, schedules, credentials, continuity },
    ...{ ...ofCatalog, ...ofInstances, ...ofWebhooks, ...ofQueues, watchers, feed },
    rates: new Rates(kernel),
    events: new Events({ ...kernel, maxOutputBytes: settings.maxOutputBytes }),
    bulkJobs: onFirstShard(kernel, () => new BulkJobs(kernel)),
    triggers: onFirstShard(kernel, () => new Triggers({ ...kernel, keyring })),
  };
  const activity = new Activity(kernel);
  const keys = new Keys(kernel);
  const { subscribers, webhooks, subscriptions, queues, exchanges, rates, events } = owners;
  /** What a shard tells all of them reaches those first that others lean on. */
  const rooms: readonly (Room | undefined)[] = [
    ...[feed, plans, names, routing, subscribers, timers, pool],
    ...[instances, ofInstances.toldByPeers, ofInstances.tasks, ofInstances.changes],
    ...[ofInstances.creations, keys, rates, events, ofInstances.kin, schedules, webhooks, activity],
    ...[ofCatalog.catalog, subscriptions, releases, queues, exchanges, continuity, watchers],
    counting({ meter, plans, writeLine: instanceLines(log, () => clock.monotonic()) }),
  ];
  return {
    ...owners,
    rooms: rooms.filter((room) => room !== undefined),
    ownRequests: kernel.ownRequests,
    ...{ commits, activity, meter, measures, timers, keys, pool },
    out: new Outbox({ shard, ports: deps.ports, commits, log, wakeShard: hooks.wakeShard }),
    requests: new Requests({
      ...{ ...kernel, offload, parts: owners, again: hooks.again, isBehind: hooks.isBehind },
      callMsMax: settings.stepTimeoutMaxMs,
    }),
  };
}

type QueueRoom = ReturnType<typeof openQueues>;

function kernelOf(
  { settings, loader, log, clock, random, meter: given }: ShardDeps,
  hooks: TurnHooks,
): Kernel {
  const { shard, shards, residentBytesMax } = settings;
  const { release, schedule, scheduleSpare, whenWriterKnown, hearing, takeHints } = hooks;
  const now = () => clock.now();
  const random32 = () => Math.floor(random() * 0x1_0000_0000);
  const ids = createIdGenerator(now, random32);
  const meter = given ?? new Meter();
  return {
    settings,
    shard,
    shards,
    residentBytesMax,
    loader,
    log,
    clock,
    now,
    random,
    random32,
    ids,
    release,
    schedule,
    scheduleSpare,
    whenWriterKnown,
    hearing,
    takeHints,
    meter,
    newId: () => ids.next(routeForShard(shard, shards, random32)),
    commits: new CommitLog(schedule),
    measures: new Measures(meter, clock),
    ownRequests: new OwnRequests(),
  };
}

function timersOf({ clock, loader, log, settings, schedule }: Kernel, hooks: TurnHooks) {
  return new ShardTimers({
    clock,
    loader,
    log,
    tickIntervalMs: settings.tickIntervalMs,
    wakeShard: hooks.wakeShard,
    onOverdue: (timer) => schedule(() => hooks.runSoon(timer)),
    isBehind: hooks.isRunBehind,
    onStoodStill: (ms) => hooks.hearing.stoodStill(ms),
  });
}

function poolOf(
  { commits, measures, clock, log, settings }: Kernel,
  { handlers, tracer }: ShardDeps,
  wakeShard: () => void,
  instances: Instances,
  secrets: Secrets,
): HandlerPool {
  return new HandlerPool({
    secrets,
    handlers,
    callMsMax: settings.stepTimeoutMaxMs,
    measures,
    clock,
    log,
    tracer,
    wakeShard,
    isHeld: (tenant) => commits.held.has(tenant),
    canTake: (instance) =>
      commits.unackedBytes < LIMITS.unitBytesForOutcomesMax && instances.canTake(instance),
    onOutcome: (instance, step, outcome) =>
      instances.tell(instance, { kind: 'step.outcome', step, outcome }),
  });
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
