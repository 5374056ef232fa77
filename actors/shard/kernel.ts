/** The inputs of a shard, and the kernel that it gives to its rooms. */

import type { Clock } from '../../src/base/clock.js';
import { createIdGenerator, routeForShard } from '../../src/base/ids.js';
import type { Logger } from '../../src/base/log.js';
import type { Offload } from '../../src/base/offload.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { PushSender } from '../../src/handlers/push-sender.js';
import type { EffectHandler } from '../../src/handlers/registry.js';
import type { WebhookSender } from '../../src/handlers/webhook-sender.js';
import { Meter } from '../../src/metrics/meter.js';
import type { Tracer } from '../../src/metrics/tracing.js';
import type { ContinuityRows } from '../continuity/rows.js';
import type { InstancesDeps } from '../instance/instances.js';
import { CommitLog } from '../runtime/commit-log.js';
import { InternalRequests } from '../runtime/internal-requests.js';
import type { Kernel, ShardSettings } from '../runtime/kernel.js';
import { Measures } from '../runtime/measures.js';
import type { PeerMessage, Reply, Request } from '../runtime/protocol.js';
import type { Reachability } from '../runtime/reachability.js';
import type { Room } from '../runtime/room.js';
import type { DueTimer } from '../runtime/timer.js';
import type { Versions } from '../runtime/versions.js';
import type { Loads } from './loads.js';
import type { ShardPorts } from './outbox.js';
import { ShardTimers } from './timers.js';

export interface ShardDeps {
  readonly settings: ShardSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly loader: Loads;
  readonly continuityRows: ContinuityRows;
  readonly keyring?: Keyring | undefined;
  /** Runs heavy work; absent: it runs on this thread. */
  readonly offload?: Offload;
  readonly handlers: ReadonlyMap<string, EffectHandler>;
  readonly webhookSender: WebhookSender;
  readonly pushSender: PushSender;
  readonly meter?: Meter;
  /** Lets the front thread validate its cache; absent: it caches nothing. */
  readonly versions?: Versions | undefined;
  readonly ports: ShardPorts;
  readonly tracer?: Tracer | undefined;
  /** Runs the function after the pending events have been handled. */
  readonly setImmediate: (fn: () => void) => void;
}

/** The functions of the shard that the kernel, the rooms and the timers call. */
export interface ShardHooks
  extends Pick<Kernel, 'release' | 'schedule' | 'scheduleSpare' | 'whenWriterKnown' | 'takeHints'>,
    Pick<InstancesDeps, 'changed' | 'taskDecided'> {
  readonly wakeShard: () => void;
  /** The instance has work now. */
  readonly runSoon: (timer: DueTimer) => void;
  /** Whether more instances wait than a scan for overdue timers reads. */
  readonly isRunBehind: () => boolean;
  readonly reachability: Reachability;
  readonly takeUp: (request: Request) => void;
  /** Handles a message of the shard to itself. */
  readonly receive: (message: PeerMessage) => void;
  readonly reply: (reply: Reply) => void;
  readonly hint: (shard: number, message: PeerMessage) => void;
  readonly eachRoom: (notify: (room: Room) => void) => void;
}

export interface ShardKernel extends Kernel<Loads>, ShardHooks {
  readonly timers: ShardTimers;
  readonly reachability: Reachability;
}

export function openKernel(deps: ShardDeps, hooks: ShardHooks): ShardKernel {
  const { settings, loader, log, clock, random } = deps;
  const { shard, shards, residentBytesMax, tickIntervalMs } = settings;
  const { schedule, runSoon, isRunBehind, wakeShard, reachability } = hooks;
  const now = () => clock.now();
  const random32 = () => Math.floor(random() * 0x1_0000_0000);
  const ids = createIdGenerator(now, random32);
  const meter = deps.meter ?? new Meter();
  return {
    ...hooks,
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
    newId: () => ids.next(routeForShard(shard, shards, random32)),
    timers: new ShardTimers({
      clock,
      loader,
      log,
      tickIntervalMs,
      wakeShard,
      onOverdue: (timer) => schedule(() => runSoon(timer)),
      isBehind: isRunBehind,
      onStoodStill: (ms) => reachability.stoodStill(ms),
    }),
    commits: new CommitLog(schedule),
    meter,
    measures: new Measures(meter, clock),
    internalRequests: new InternalRequests(),
  };
}
