/**
 * The entry of a shard's thread, a resident Piscina task: it returns when the shard stops. Builds the real
 * dependencies (clock, randomness, database, outbound HTTP) and connects the ports to the shard.
 */

import { randomFillSync } from 'node:crypto';
import { type MessagePort, threadId } from 'node:worker_threads';
import { createLogger } from '../../src/base/log.js';
import { logOutput } from '../../src/base/log-output.js';
import { ManualClock } from '../../src/base/manual-clock.js';
import { type OffloadControl, offloadThrough } from '../../src/base/offload-pool.js';
import { EngineClock, realClock } from '../../src/base/real-clock.js';
import { type ContinuityKeys, keyringOf } from '../../src/core/sealing/keys.js';
import { createPool } from '../../src/db/pool.js';
import { type PackedAck, packedUnit, unpackedAck } from '../../src/db/units.js';
import { CallRate } from '../../src/handlers/call-rate.js';
import type { EgressProxy } from '../../src/handlers/http-agent.js';
import { openHttp } from '../../src/handlers/http-transport.js';
import { type OutboundSettings, outboundPolicy } from '../../src/handlers/outbound-rules.js';
import { createPushSender } from '../../src/handlers/push-sender.js';
import { createRegistry } from '../../src/handlers/registry.js';
import { createWebhookSender } from '../../src/handlers/webhook-sender.js';
import { Meter } from '../../src/metrics/meter.js';
import { findTracer } from '../../src/metrics/tracing.js';
import { ContinuityRows } from '../continuity/rows.js';
import {
  closeAfterReply,
  linkControl,
  receiveAll,
  serveControl,
  type ThreadTask,
} from '../runtime/control.js';
import type { ShardSettings } from '../runtime/kernel.js';
import type { PeerMessage, RequestPost } from '../runtime/protocol.js';
import { Versions } from '../runtime/versions.js';
import type { ShardDeps } from './kernel.js';
import { openLoads } from './loads.js';
import { Shard } from './shard.js';
import type { TenantSuspension } from './tenant-suspension.js';

export interface ShardTask extends ThreadTask {
  readonly settings: ShardSettings;
  readonly outbound: OutboundSettings & {
    readonly proxy: EgressProxy | undefined;
    /** Calls of a tenant per second, and the memory in which all threads count. */
    readonly rate: { readonly perSecond: number; readonly memory: SharedArrayBuffer } | undefined;
  };
  readonly webhookSecret: string | undefined;
  readonly manualClock: boolean;
  readonly continuityKeys: ContinuityKeys;
  readonly front: MessagePort;
  readonly offload: MessagePort;
  readonly versions: SharedArrayBuffer;
}

export interface ShardControl
  extends Pick<Shard, 'peerDied' | 'peerRestarted' | 'writerLost' | 'writerReady'>,
    Pick<Shard, 'databaseAway' | 'drain'>,
    Pick<TenantSuspension, 'suspend' | 'admit' | 'takeUp'> {
  threadId(): number;
  /** @param stampsFrom audit entries get no earlier time */
  attachWriter(port: MessagePort, stampsFrom: number): void;
  attachPeer(shard: number, port: MessagePort): void;
  start(clockOffsetMs: number, suspended: readonly string[]): Promise<void>;
  /** @param clockOffsetMs database time minus the monotonic clock; the time itself for a manual clock */
  setClock(clockOffsetMs: number): void;
  isIdle(): boolean;
  isDrained(): boolean;
  stop(): Promise<void>;
}

/** Connections for loading actors; queries are batched, so few are enough. */
const CONNECTIONS = 3;
/** For a job of the offload pool, including its wait; the pool also limits each job. */
const JOB_DEADLINE_MS = 20 * 60_000;

export default async function runShard(task: ShardTask): Promise<void> {
  const { settings, control, front } = task;
  const tracer = await findTracer();
  const output = logOutput(task.logFormat);
  const log = createLogger(task.logLevel, `shard-${settings.shard}`, output, task.cell);
  const pool = createPool({
    connectionString: task.connectionString,
    applicationName: task.applicationName,
    connectionsMax: CONNECTIONS,
    isPlannedOnce: true,
    onError: (error) => log.debug({ err: error }, 'idle connection lost'),
  });
  const { proxy, rate: limit } = task.outbound;
  const rate = limit && new CallRate(limit.perSecond, limit.memory, realClock);
  const http = openHttp({ isAllowed: outboundPolicy(task.outbound), proxy, rate });
  const peers = new Map<number, MessagePort>();
  let writer: MessagePort | undefined;
  const clock = task.manualClock ? new ManualClock(0) : new EngineClock();
  const offload = linkControl<OffloadControl>(task.offload, JOB_DEADLINE_MS);
  const deps: ShardDeps = {
    settings,
    clock,
    random: randomFraction,
    log,
    loader: openLoads(pool, settings),
    continuityRows: new ContinuityRows(pool),
    keyring: keyringOf(task.continuityKeys),
    offload: offloadThrough(offload.remote),
    handlers: createRegistry({ http }),
    webhookSender: createWebhookSender({
      http,
      secret: task.webhookSecret,
      now: () => clock.now(),
    }),
    pushSender: createPushSender({
      // The claim is kept by heartbeats of this clock until the request ends.
      http: {
        ...http,
        setTimer: (fn, ms) => {
          const timeout = clock.setTimeout(fn, ms);
          return () => clock.clearTimeout(timeout);
        },
      },
      now: () => clock.now(),
    }),
    meter: new Meter(task.meter),
    versions: new Versions(task.versions),
    tracer,
    setImmediate: (fn) => setImmediate(fn),
    ports: {
      toFront: (post) => front.postMessage(post),
      toWriter: (units) => writer?.postMessage(units.map(packedUnit)),
      toPeer: (peer, post) => peers.get(peer)?.postMessage(post),
      drainPeers: () =>
        [...peers.values()].flatMap((port) => receiveAll<PeerMessage[]>(port).flat()),
    },
  };
  const shard = new Shard(deps);

  return new Promise((resolve) => {
    const surface: ShardControl = {
      threadId: () => threadId,
      attachWriter(port, stampsFrom) {
        shard.stampFrom(stampsFrom);
        writer?.close();
        writer = port;
        port.on('message', (acks: PackedAck[]) => shard.receiveAcks(acks.map(unpackedAck)));
      },
      attachPeer(peer, port) {
        peers.get(peer)?.close();
        peers.set(peer, port);
        port.on('message', (messages: PeerMessage[]) => shard.receivePeer(messages));
      },
      start(clockOffsetMs, suspended) {
        clock.setOffset(clockOffsetMs);
        shard.tenants.begin(suspended);
        // Not earlier: without a writer or the time, a decision would be lost or wrong.
        front.on('message', (post: RequestPost) => shard.receiveRequests(post));
        return shard.start();
      },
      suspend: (tenant) => shard.tenants.suspend(tenant),
      admit: (tenant, stampsFrom) => shard.tenants.admit(tenant, stampsFrom),
      takeUp: (tenant) => shard.tenants.takeUp(tenant),
      setClock: (clockOffsetMs) => shard.clockSet(clock.setOffset(clockOffsetMs)),
      peerDied: (peer) => shard.peerDied(peer),
      peerRestarted: (peer) => shard.peerRestarted(peer),
      writerLost: () => shard.writerLost(),
      writerReady: () => shard.writerReady(),
      databaseAway: (isAway) => shard.databaseAway(isAway),
      drain: () => shard.drain(),
      isIdle: () => shard.isIdle,
      isDrained: () => shard.isDrained,
      async stop() {
        shard.stop();
        front.close();
        writer?.close();
        for (const port of peers.values()) port.close();
        offload.close('the shard stops');
        await Promise.allSettled([http.close(), pool.end()]);
        closeAfterReply(control, resolve);
      },
    };
    serveControl(surface, control);
  });
}

/** Fetched in bulk: ids need random numbers on the hot path. */
const POOL_VALUES = 4_096;
const randomValues = new Uint32Array(POOL_VALUES);
let randomLeft = 0;

function randomFraction(): number {
  if (randomLeft === 0) {
    randomFillSync(randomValues);
    randomLeft = POOL_VALUES;
  }
  randomLeft -= 1;
  return (randomValues[randomLeft] as number) / 0x1_0000_0000;
}
