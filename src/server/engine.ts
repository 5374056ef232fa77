/**
 * Starts the parts of the engine, and stops them in reverse order. HTTP is served before the engine owns the
 * database, so that a standby can be probed.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { readChangeMark } from '../../actors/feed/front/change-reads.js';
import { ShardClient } from '../../actors/shard/client.js';
import { STORE } from '../../actors/shard/store.js';
import { Supervisor } from '../../actors/shard/supervisor.js';
import { measuredLanes } from '../../actors/writer/lane-count.js';
import { LIMITS } from '../base/limits.js';
import type { Logger } from '../base/log.js';
import { ManualClock } from '../base/manual-clock.js';
import { TenantActivity } from '../base/quota/tenant-activity.js';
import { EngineClock, realClock, within } from '../base/real-clock.js';
import type { UnixMs } from '../base/time.js';
import { type ContinuityKeys, type Keyring, keyringOf } from '../core/sealing/keys.js';
import type { Lease } from '../db/lease.js';
import { reportSealingKey } from '../db/lease-key.js';
import { expectSchema, migrate } from '../db/migrate.js';
import { createReads, type Reads } from '../db/reads.js';
import { type DatabaseTrouble, stallOf } from '../db/trouble.js';
import { expectFreePort } from '../http/free-port.js';
import type { HttpServer } from '../http/server.js';
import { findTracer } from '../metrics/tracing.js';
import type { Config } from './config.js';
import { checkDatabase, findDatabase, isolateTenants, openReadPool, own } from './database.js';
import { expectBundledPostgres } from './embedded-files.js';
import type { RoleUrls } from './embedded-roles.js';
import { Front, type FrontOptions } from './front.js';
import { continuityKeysOf, type GeneratedKey, generatedRootKey } from './generated-keys.js';
import { boundsOf, listen } from './listening.js';
import { followOrders, ManualTime } from './manual-time.js';
import { openPlacement, type PlacementRoom } from './placement.js';
import { type ReadyFacts, Startup, stopParts, urlOf } from './startup.js';

export interface EngineOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly onReady: (facts: ReadyFacts) => void;
}

const DRAIN_POLL_MS = 20;

/**
 * @returns the exit code: 0 after a requested stop, 1 when the engine lost its database
 * @throws ConfigError, SchemaError, EmbeddedPostgresError, and the errors of files and of the database
 */
export async function startEngine(options: EngineOptions): Promise<number> {
  const engine = new Engine(options);
  const starting = engine.start();
  try {
    // The start of a standby lasts as long as the owner lives, so a signal must be able to end it.
    return await Promise.race([engine.stopped, starting.then(() => engine.stopped)]);
  } finally {
    await engine.stop(starting);
  }
}

interface FrontFacts extends Pick<FrontOptions, 'reads' | 'apiKey' | 'keyring' | 'placement'> {
  readonly supervisor: Supervisor;
}

interface OwnedFacts extends FrontFacts {
  readonly urls: RoleUrls;
  readonly pool: pg.Pool;
  readonly front: Front;
  readonly lease: Lease;
}

class Engine {
  readonly #options: EngineOptions;
  readonly #startup: Startup;
  readonly #activity = new TenantActivity();
  readonly #client: ShardClient;
  readonly stopped: Promise<number>;
  #end: (code: number) => void = () => undefined;
  /** Follows the clock of the database once it is owned. */
  readonly #clock: EngineClock;
  #server: HttpServer | undefined;
  #front: Front | undefined;
  #supervisor: Supervisor | undefined;
  #isStarted = false;

  constructor(options: EngineOptions) {
    const { config } = options;
    this.#options = options;
    this.#clock = config.manualClock ? new ManualClock(Date.now()) : new EngineClock();
    const startup = new Startup(options);
    this.#startup = startup;
    this.stopped = new Promise((resolve) => {
      this.#end = (code) => {
        resolve(code);
        startup.giveUp();
      };
    });
    options.signal.addEventListener('abort', () => this.#end(0), { once: true });
    this.#client = new ShardClient({
      shards: config.shards,
      clock: realClock,
      setImmediate: (fn) => setImmediate(fn),
      onFires: () => this.#front?.eventsFired(),
      activity: this.#activity,
    });
  }

  /** Starts nothing more once the engine is to stop, so that `stop` finds all parts. */
  async start(): Promise<void> {
    const { config, log, version } = this.#options;
    const startup = this.#startup;
    const { shards, logLevel } = config;
    await startup.unlessStopped(expectFreePort(config.host, config.port));
    if (config.databaseUrl === undefined) expectBundledPostgres();
    const key = generatedRootKey(config);
    const continuityKeys = continuityKeysOf(config);
    log.info({ version, node: process.version, shards, logLevel }, 'starting');
    const { urls, folder } = await findDatabase(startup);
    const supervisor = this.#launchThreads(urls, continuityKeys);
    const pool = openReadPool(startup, urls);
    const reads = createReads(pool, LIMITS.slowReadMs, this.#activity);
    const keyring = keyringOf(continuityKeys);
    const apiKey = key?.value ?? config.apiKey;
    const placement = await this.#openPlacement(keyring);
    const facts = { reads, apiKey, keyring, supervisor, placement };
    const { front, port } = await this.#openFront(facts);
    await checkDatabase(startup, urls);
    await startup.unlessStopped(this.#join(placement, port, supervisor));
    const lease = await own(startup, urls, (reason) => this.#lost(reason));
    this.#follow(lease, supervisor);
    await this.#prepareTables(urls, reads, keyring);
    if (config.migrateOnly) {
      log.info('the tables are up to date: ending, as --migrate-only says');
      return this.#end(0);
    }
    await this.#serve({ ...facts, urls, pool, front, lease });
    this.#reportReady(lease.epoch, port, key, folder);
  }

  #launchThreads({ engine }: RoleUrls, continuityKeys: ContinuityKeys): Supervisor {
    const { config, log, owner, gate } = this.#startup;
    const supervisor = new Supervisor({
      config,
      client: this.#client,
      connectionString: engine,
      continuityKeys,
      owner,
      log,
      stampsFrom: () => this.#front?.watermark.highest ?? 0,
      onDatabase: (trouble) => this.#onDatabase(trouble),
      onFenced: () => this.#lost('another engine took the database over'),
      onComplete: (isComplete) => {
        gate.isComplete = isComplete;
      },
      onHopeless: (reason) => this.#lost(reason),
    });
    this.#supervisor = supervisor;
    return supervisor;
  }

  async #openFront({ reads, apiKey, keyring, supervisor, placement }: FrontFacts) {
    const { config, log, schema, gate, parts } = this.#startup;
    const { offload, metrics } = supervisor;
    const bounds = boundsOf(this.#startup, this.#client);
    const front = new Front({
      ...{ config, log, schema, gate, reads, apiKey, keyring, offload, metrics, placement },
      version: this.#options.version,
      now: () => this.#clock.now(),
      clock: config.manualClock ? this.#clock : realClock,
      client: this.#client,
      activity: this.#activity,
      connections: bounds.connections,
      requests: bounds.requests,
      tracer: await findTracer(),
    });
    this.#front = front;
    parts.push({ name: 'front', stop: () => front.stop() });
    const server = await listen(this.#startup, bounds, front.handler);
    this.#server = server;
    if (keyring !== undefined) {
      const { id: keyId, publicKey } = keyring.signing;
      log.info({ keyId, publicKey }, 'capsules and provenance are signed with this key');
    }
    return { front, port: server.port };
  }

  /** A server that only migrates does not join a cluster. */
  #openPlacement(keyring: Keyring | undefined): Promise<PlacementRoom> {
    const { config, log, owner, schema } = this.#startup;
    return openPlacement(config.migrateOnly ? undefined : config.clusterUrl, {
      cell: schema,
      id: owner,
      version: this.#options.version,
      keyIds: keyring?.opening.map(({ id }) => id) ?? [],
      clock: realClock,
      log,
    });
  }

  async #join(placement: PlacementRoom, port: number, { metrics }: Supervisor): Promise<void> {
    const { config, parts, signal } = this.#startup;
    const address = config.advertisedAddress ?? `${config.host}:${port}`;
    parts.push({ name: 'placement', stop: () => placement.stop() });
    await placement.join(signal, address, () => ({
      at: realClock.monotonic(),
      backlog: metrics.gauge('engine_writer_backlog_units'),
      committed: metrics.observations('engine_writer_flush_units').sum,
    }));
  }

  /** From then on engine time follows the clock of the database, on every thread. */
  #follow(lease: Lease, supervisor: Supervisor): void {
    if (this.#options.config.manualClock) return;
    this.#clock.setOffset(lease.clockOffsetMs);
    lease.onClock((offsetMs) => {
      const jumpMs = Math.round(this.#clock.setOffset(offsetMs));
      supervisor.setClock(offsetMs);
      if (jumpMs !== 0) this.#options.log.warn({ jumpMs }, 'the clock of the database was set');
    });
  }

  async #prepareTables(urls: RoleUrls, reads: Reads, keyring: Keyring | undefined): Promise<void> {
    const startup = this.#startup;
    const { config, gate, log } = startup;
    const isMigrated = config.runMigrations ? migrate(urls.owner) : expectSchema(urls.engine);
    await startup.unlessStopped<unknown>(isMigrated);
    await startup.unlessStopped(isolateTenants(startup, urls, reads));
    gate.sealingKey = await startup.unlessStopped(reportSealingKey(urls.engine, keyring, log));
  }

  async #serve(facts: OwnedFacts): Promise<void> {
    const { urls, pool, reads, supervisor, front, lease, placement } = facts;
    const startup = this.#startup;
    const { config, log } = startup;
    const { epoch } = lease;
    const clockOffsetMs = config.manualClock ? this.#clock.now() : lease.clockOffsetMs;
    const lanes =
      config.writerLanes || (await startup.unlessStopped(measuredLanes(urls.engine, log)));
    const moving = {
      pool,
      shards: supervisor,
      learn: (tenant: string, stampsFrom: UnixMs) => front.tenantComes(tenant, stampsFrom),
      wake: () => front.wake(),
    };
    await startup.unlessStopped(placement.begin(epoch, moving));
    // After `begin`, because a move may raise the mark until then.
    front.watermark.raise(await startup.unlessStopped(readChangeMark(urls.engine)));
    await startup.unlessStopped(supervisor.start({ epoch, lanes, clockOffsetMs }));
    await startup.unlessStopped(front.prepare());
    await startup.unlessStopped(placement.own(reads, STORE));
    front.start();
    placement.start();
    this.#isStarted = true;
    if (this.#clock instanceof ManualClock) this.#openManualTime(this.#clock, urls, supervisor);
    startup.gate.set('serving');
  }

  #openManualTime(clock: ManualClock, { engine }: RoleUrls, supervisor: Supervisor): void {
    const { config, log, parts } = this.#startup;
    const { workerStaleMs, workerReaperTickMs } = config;
    const time = new ManualTime({
      ...{ clock, supervisor, client: this.#client, connectionString: engine },
      claimMs: workerStaleMs + workerReaperTickMs,
    });
    const orders = followOrders(time);
    const stop = () => {
      orders.stop();
      return time.stop();
    };
    parts.push({ name: 'manual time', stop });
    log.warn('the clock stands still until the parent process moves it: this server is for tests');
  }

  #reportReady(epoch: number, port: number, key: GeneratedKey | undefined, folder?: string): void {
    const { config, onReady } = this.#options;
    const { host, shards, insecureAuth, isUiServed } = config;
    const url = urlOf(host, port);
    const keyFile = key?.file;
    // The file of a generated key is logged whatever the level.
    const log =
      keyFile === undefined ? this.#options.log : this.#options.log.child({}, { level: 'info' });
    log.info({ epoch, shards, url, docs: `${url}/swagger-ui`, keyFile }, 'ready');
    onReady({ url, database: folder, keyFile, insecureAuth, hasDashboard: isUiServed });
  }

  #onDatabase(trouble: DatabaseTrouble | undefined): void {
    const { gate, log } = this.#startup;
    if (trouble === undefined) {
      log.info('the database is back');
      this.#client.stall(undefined);
      gate.set(this.#isStarted ? 'serving' : 'starting');
      return;
    }
    const { kind, sqlState, message: reason } = trouble;
    const isAway = kind === 'unreachable' || !this.#isStarted;
    if (isAway) log.error({ kind, sqlState, reason }, 'the database is away');
    else log.error({ kind, sqlState, reason }, 'the database takes no writes');
    gate.set(isAway ? 'database-unavailable' : 'writes-fail', trouble);
    this.#client.stall(isAway ? undefined : stallOf(trouble));
  }

  /** An engine that can no longer commit must not look alive: the process exits, and its successor serves. */
  #lost(reason: string): void {
    this.#options.log.fatal({ reason }, 'this engine cannot go on');
    this.#startup.gate.set('stopping');
    this.#end(1);
  }

  /** Answers accepted requests as far as time allows. Idempotent. @param starting when settled, all parts are known */
  async stop(starting: Promise<void>): Promise<void> {
    const { log, gate, parts } = this.#startup;
    const deadline = realClock.monotonic() + LIMITS.shutdownMs;
    this.#startup.giveUp();
    await within(
      deadline,
      starting.catch(() => undefined),
    );
    if (parts.length === 0) return;
    log.info('stopping');
    this.#server?.stopListening();
    gate.set('stopping');
    await within(deadline, this.#drain(deadline));
    // The threads first: until they have stopped, their changes are still being committed.
    const supervisor = this.#supervisor;
    const threads = { name: 'threads', stop: async () => supervisor?.stop() };
    await stopParts([threads, ...parts.splice(0).reverse()], deadline, log);
    this.#client.stop();
    log.info('stopped');
  }

  async #drain(deadline: number): Promise<void> {
    const supervisor = this.#supervisor;
    if (supervisor === undefined || !this.#isStarted) return;
    await Promise.all([this.#front?.drain(), supervisor.drain()]);
    while (realClock.monotonic() < deadline) {
      if (this.#client.inFlight === 0 && (await supervisor.isDrained())) return;
      await pause(DRAIN_POLL_MS);
    }
  }
}
