/**
 * Puts the engine together: database, HTTP, ownership, threads, in that order, and takes it apart in
 * the opposite one. It listens before it owns the database, so that a standby is seen to live.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import type { BulkJobs } from '../../actors/bulk/front/jobs.js';
import type { EventFiring } from '../../actors/event/front/firing.js';
import { Changes } from '../../actors/feed/front/changes.js';
import { InstanceStreams } from '../../actors/feed/front/instance-stream.js';
import { ManyInstances } from '../../actors/instance/front/many-instances.js';
import { Retention } from '../../actors/instance/front/retention.js';
import { endedPage } from '../../actors/instance/front/retention-reads.js';
import type { SequenceRemoval } from '../../actors/instance/front/sequence-removal.js';
import { ShardClient } from '../../actors/shard/client.js';
import { Supervisor, writerName } from '../../actors/shard/supervisor.js';
import { BATCH_LANES, LANES_MAX, measuredLanes } from '../../actors/writer/lane-count.js';
import type { BulkJob } from '../../schema/bulk-job.js';
import { PATH_RULES } from '../../schema/route-match.js';
import { Crowd } from '../base/crowd.js';
import { type DatabaseTrouble, stallOf, troubleOf } from '../base/errors.js';
import { LIMITS } from '../base/limits.js';
import type { Logger } from '../base/log.js';
import { EngineClock, realClock, within } from '../base/real-clock.js';
import { type Membership, membershipOf } from '../cluster/membership.js';
import { CellMoves } from '../cluster/moves-of-cell.js';
import { tenantsAfter } from '../cluster/tenants-there.js';
import { type ContinuityKeys, type Keyring, keyringOf } from '../core/continuity/keys.js';
import { readChangeMark } from '../db/change-mark.js';
import { DEFAULT_SCHEMA, inSchema } from '../db/database-url.js';
import { firstContact } from '../db/first-contact.js';
import { acquireLease, type Lease } from '../db/lease.js';
import { reportSealingKey } from '../db/lease-key.js';
import { prepareSchema } from '../db/migrate.js';
import { createPool } from '../db/pool.js';
import { liveKeys } from '../db/reads/key-reads.js';
import { tenantLimitRow, tenantLimitRows } from '../db/reads/tenant-limit-reads.js';
import { createReads, READ_POOL_OPTIONS, type Reads } from '../db/reads.js';
import { prepareRowSecurity } from '../db/row-security.js';
import { AddressRequests } from '../http/address-requests.js';
import { Connections, connectionBounds, descriptorLimit } from '../http/connections.js';
import { expectFreePort } from '../http/free-port.js';
import { Gate } from '../http/gate.js';
import { KeyRegistry } from '../http/key-registry.js';
import { newRequestId } from '../http/request-id.js';
import { type HttpServer, startHttpServer } from '../http/server.js';
import { setLimitsOf, TenantLimitRegistry } from '../http/tenant-limits.js';
import { TrustedProxies } from '../http/trusted-proxies.js';
import { findTracer } from '../metrics/tracing.js';
import type { Config } from './config.js';
import { startEmbedded } from './embedded.js';
import { expectBundledPostgres } from './embedded-files.js';
import type { RoleUrls } from './embedded-roles.js';
import { bulkJobsOf, eventFiringOf, sequenceRemovalOf } from './engine-jobs.js';
import { createFront, type Front } from './front.js';
import { continuityKeysOf, generatedRootKey } from './generated-keys.js';
import { type ReadyFacts, urlOf } from './greeting.js';
import { type Part, stopParts } from './shutdown.js';

export interface EngineOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly version: string;
  /** Aborted when the engine is to stop. */
  readonly signal: AbortSignal;
  /** Called once it serves. */
  readonly onReady: (facts: ReadyFacts) => void;
}

const DAY_MS = 86_400_000;

/** How often a shutdown looks whether everything is answered. */
const DRAIN_POLL_MS = 20;

/**
 * Runs the engine until `signal` is aborted or it loses its database to another engine.
 *
 * @returns the exit code: 0 after a stop that was asked for, 1 otherwise
 * @throws ConfigError, SchemaError, EmbeddedPostgresError, and the errors of files and of the database
 */
export async function startEngine(options: EngineOptions): Promise<number> {
  const engine = new Engine(options);
  const starting = engine.start();
  try {
    // A standby starts for as long as the owner lives, so a signal must be able to end the start.
    return await Promise.race([engine.stopped, starting.then(() => engine.stopped)]);
  } finally {
    await engine.stop(starting);
  }
}

class Engine {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #options: EngineOptions;
  readonly #gate = new Gate(realClock);
  /** Names this process in the lease and in its sessions, so that a take-over can end them. */
  readonly #owner = `engine-${randomUUID().slice(0, 13)}`;
  /** The schema with all of its tables. */
  readonly #cell: string;
  readonly #crowd = new Crowd();
  readonly #client: ShardClient;
  readonly #many: ManyInstances;
  readonly #streams: InstanceStreams;
  readonly #changes: Changes;
  readonly #keys = new KeyRegistry({
    now: () => this.#clock.now(),
    keysMax: LIMITS.apiKeysMax,
    refusal: () => this.#gate.refusal(),
  });
  readonly #limits = new TenantLimitRegistry();
  /** Resolves with the exit code when the engine is to stop. */
  readonly stopped: Promise<number>;
  #end: (code: number) => void = () => undefined;
  /** Aborted at that moment: what of the start is still under way is given up. */
  readonly #stopping = new AbortController();
  /** The time of the database, once that is owned. */
  readonly #clock = new EngineClock();
  /** What was started, in order; stopped in the opposite one. */
  readonly #parts: Part[] = [];
  #server: HttpServer | undefined;
  /** The folder of the embedded database. */
  #embeddedAt: string | undefined;
  #front: Front | undefined;
  #supervisor: Supervisor | undefined;
  #firing: EventFiring | undefined;
  /** In a cluster. */
  readonly #membership: Membership | undefined;
  #isStarted = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#cell = options.config.dbSchema ?? DEFAULT_SCHEMA;
    this.#log = options.log;
    this.stopped = new Promise((resolve) => {
      this.#end = (code) => {
        resolve(code);
        this.#stopping.abort();
      };
    });
    options.signal.addEventListener('abort', () => this.#end(0), { once: true });
    this.#client = new ShardClient({
      shards: options.config.shards,
      clock: realClock,
      setImmediate: (fn) => setImmediate(fn),
      onFires: () => this.#firing?.wake(),
      crowd: this.#crowd,
    });
    const { config, version, log } = options;
    const member = { cell: this.#cell, id: this.#owner, version, clock: realClock, log };
    // Who only changes tables is no engine that others should hear of.
    const url = config.migrateOnly ? undefined : config.clusterUrl;
    this.#membership = membershipOf(url, () => continuityKeysOf(config), member);
    this.#many = new ManyInstances(this.#client);
    this.#streams = new InstanceStreams({ client: this.#client, log: this.#log });
    this.#changes = new Changes({
      client: this.#client,
      shards: options.config.shards,
      clock: realClock,
      now: () => this.#clock.now(),
      log: this.#log,
    });
  }

  /** Nothing is begun once the engine is to stop, so that `stop` finds all that there is. */
  async start(): Promise<void> {
    const { host, port: wantedPort, shards, logLevel, insecureAuth, isUiServed } = this.#config;
    const { version, onReady } = this.#options;
    await this.#unlessStopped(expectFreePort(host, wantedPort));
    if (this.#config.databaseUrl === undefined) expectBundledPostgres();
    const key = generatedRootKey(this.#config);
    const continuityKeys = continuityKeysOf(this.#config);
    this.#log.info({ version, node: process.version, shards, logLevel }, 'starting');
    const { engine: connectionString, owner: ownerUrl } = await this.#databaseUrls();
    const supervisor = this.#launchThreads(connectionString, continuityKeys);
    const pool = this.#openPool(connectionString);
    const reads = createReads(pool, LIMITS.slowReadMs, this.#crowd);
    const beside = { reads, client: this.#client, many: this.#many, log: this.#log };
    const removal = sequenceRemovalOf(beside);
    const bulkJobs = bulkJobsOf(beside);
    for (const job of [removal, bulkJobs]) {
      this.#parts.push({ name: 'jobs', stop: async () => job.stop() });
    }
    const apiKey = key?.value ?? this.#config.apiKey;
    const keyring = keyringOf(continuityKeys);
    const port = await this.#listen({ reads, removal, bulkJobs, apiKey, supervisor, keyring });
    await this.#firstContact(connectionString, ownerUrl);
    await this.#unlessStopped(this.#join(port, supervisor));
    const lease = await this.#own(connectionString);
    this.#follow(lease, supervisor);
    const { runMigrations } = this.#config;
    const schemaUrl = runMigrations ? ownerUrl : connectionString;
    await this.#unlessStopped(prepareSchema(schemaUrl, runMigrations));
    await this.#unlessStopped(this.#wallTenants(reads, connectionString, ownerUrl));
    const sealing = reportSealingKey(connectionString, keyring, this.#log);
    this.#gate.sealingKey = await this.#unlessStopped(sealing);
    if (this.#config.migrateOnly) {
      this.#log.info('the tables are up to date: ending, as --migrate-only says');
      return this.#end(0);
    }
    const lanes =
      this.#config.writerLanes ||
      (await this.#unlessStopped(measuredLanes(connectionString, this.#log)));
    const { epoch, clockOffsetMs } = lease;
    const moves = this.#cellMoves(pool, reads, supervisor, () => {
      for (const job of [removal, bulkJobs, this.#firing]) job?.wake();
    });
    await this.#unlessStopped(moves.begin(epoch));
    // Behind it: a move that is under way may raise the mark until this engine has a say.
    const mark = await this.#unlessStopped(readChangeMark(connectionString));
    this.#changes.watermark.raise(mark);
    await this.#unlessStopped(supervisor.start({ epoch, lanes, clockOffsetMs }));
    const load = this.#keys.load((after, limit) => liveKeys.rows(reads, after, limit));
    await this.#unlessStopped(load);
    const loadLimits = this.#limits.load((after, limit) =>
      tenantLimitRows.rows(reads, after, limit),
    );
    await this.#unlessStopped(loadLimits);
    const tenants = (after: string, limit: number) => tenantsAfter.rows(reads, after, limit);
    await this.#unlessStopped(this.#membership?.own(tenants) ?? Promise.resolve());
    removal.start();
    bulkJobs.start();
    this.#startFiring(reads);
    this.#startRetention(reads);
    moves.start();
    this.#isStarted = true;
    this.#gate.set('serving');
    const url = urlOf(host, port);
    const keyFile = key?.file;
    // Whoever keeps the log quiet has to find the key that was made, too.
    const log = keyFile === undefined ? this.#log : this.#log.child({}, { level: 'info' });
    log.info({ epoch, shards, url, docs: `${url}/swagger-ui`, keyFile }, 'ready');
    const database = this.#config.databaseUrl === undefined ? this.#embeddedAt : undefined;
    onReady({ url, database, keyFile, insecureAuth, hasDashboard: isUiServed });
  }

  /** The work, until the engine is to stop: then it is given up, and nobody waits for its end. */
  async #unlessStopped<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stopping;
    let give: () => void = () => undefined;
    const given = new Promise<never>((_, reject) => {
      give = () => reject(signal.reason);
    });
    signal.addEventListener('abort', give, { once: true });
    try {
      signal.throwIfAborted();
      return await Promise.race([work, given]);
    } finally {
      signal.removeEventListener('abort', give);
      work.catch(() => undefined);
    }
  }

  // ---------------------------------------------------------------- starting

  /** Of the cell in an embedded database, which is started, unless another one is named. */
  async #databaseUrls(): Promise<RoleUrls> {
    const { databaseUrl, migrationUrl } = this.#config;
    const { engine, owner } =
      databaseUrl === undefined
        ? await this.#startEmbedded()
        : { engine: databaseUrl, owner: migrationUrl ?? databaseUrl };
    return { engine: inSchema(engine, this.#cell), owner: inSchema(owner, this.#cell) };
  }

  async #startEmbedded(): Promise<RoleUrls> {
    const { dataDir, unsafeDatabase } = this.#config;
    const { signal } = this.#stopping;
    const isDurable = !unsafeDatabase;
    // Not raced: it ends by itself, and only once nothing of it is left.
    const embedded = await startEmbedded({
      dataDir,
      schema: this.#cell,
      log: this.#log,
      isDurable,
      signal,
    });
    this.#parts.push({ name: 'embedded database', stop: () => embedded.stop() });
    signal.throwIfAborted();
    this.#embeddedAt = embedded.location;
    this.#log.info({ location: embedded.location, port: embedded.port }, 'embedded database runs');
    return embedded.roles;
  }

  #openPool(connectionString: string): pg.Pool {
    const pool = createPool({
      connectionString,
      applicationName: `${this.#owner} reads`,
      ...READ_POOL_OPTIONS,
      onError: (error) => this.#log.debug({ err: error }, 'idle connection lost'),
    });
    this.#parts.push({ name: 'reads', stop: () => pool.end() });
    return pool;
  }

  /** Has the database keep tenants apart in what is read for them, where it can. */
  async #wallTenants(reads: Reads, connectionString: string, ownerUrl: string): Promise<void> {
    const { rowSecurity: mode, runMigrations } = this.#config;
    const without = await prepareRowSecurity({
      mode,
      connectionString,
      ownerUrl: runMigrations ? ownerUrl : undefined,
    });
    if (without === undefined) reads.wallTenants();
    else this.#log.info({ without }, 'row level security of reads is off');
  }

  /** Resolves with the port. */
  async #listen(facts: {
    readonly reads: Reads;
    readonly removal: SequenceRemoval;
    readonly bulkJobs: BulkJobs;
    readonly apiKey: string | undefined;
    readonly supervisor: Supervisor;
    readonly keyring: Keyring | undefined;
  }): Promise<number> {
    const config = this.#config;
    const { reads, removal, bulkJobs, apiKey, supervisor, keyring } = facts;
    const connections = this.#connections();
    const requests = new AddressRequests(config.maxRequestsPerAddress);
    const front = createFront({
      config,
      connections,
      requests,
      apiKey,
      version: this.#options.version,
      cell: this.#cell,
      log: this.#log,
      now: () => this.#clock.now(),
      offload: supervisor.offload,
      gate: this.#gate,
      client: this.#client,
      crowd: this.#crowd,
      reads,
      keys: this.#keys,
      limits: this.#limits,
      membership: this.#membership,
      streams: this.#streams,
      changes: this.#changes,
      many: this.#many,
      beginBulkJob: async (tenant, job) => {
        const reply = await this.#client.ask(0, 'bulkJobs.begin', tenant, '', job);
        bulkJobs.wake();
        return JSON.parse(reply.body) as BulkJob;
      },
      onSequenceDeleted: () => removal.wake(),
      metrics: supervisor.metrics,
      keyring,
      tracer: await findTracer(),
    });
    this.#front = front;
    this.#parts.push({ name: 'front', stop: () => front.stop() });
    const server = await startHttpServer(
      config.httpBackend,
      {
        host: config.host,
        port: config.port,
        maxBodyBytes: config.maxBodyBytes,
        ...PATH_RULES,
        refuseBody: (bytes) => this.#client.refusalOf(bytes),
        maxHeaderBytes: LIMITS.headerBytesMax,
        connections,
        requests,
        proxies: new TrustedProxies(config.trustedProxies),
        corsOrigins: config.corsOrigins,
        newRequestId,
        bodyIdleTimeoutMs: LIMITS.bodyIdleTimeoutMs,
        log: this.#log,
      },
      front.handler,
    );
    this.#server = server;
    this.#parts.push({ name: 'HTTP', stop: () => server.close() });
    this.#stopping.signal.throwIfAborted();
    this.#log.info({ host: config.host, port: server.port }, 'listening');
    if (keyring !== undefined) {
      const { id: keyId, publicKey } = keyring.signing;
      this.#log.info({ keyId, publicKey }, 'capsules and provenance are signed with this key');
    }
    return server.port;
  }

  #connections(): Connections {
    const { maxConnections: max, maxConnectionsPerAddress: perAddressMax } = this.#config;
    const descriptors = descriptorLimit();
    const bounds = connectionBounds({ max, perAddressMax }, descriptors);
    if (bounds.max < max) {
      this.#log.warn(
        { max: bounds.max, wanted: max, descriptors },
        'the limit of open files is low: fewer connections are taken than ENGINE_MAX_CONNECTIONS',
      );
    }
    return new Connections(bounds, this.#log);
  }

  async #firstContact(connectionString: string, ownerUrl: string): Promise<void> {
    const contact = firstContact({
      connectionString,
      ownerUrl,
      cell: {
        name: this.#cell,
        isChosen: this.#config.dbSchema !== undefined,
        mayCreate: this.#config.runMigrations,
      },
      signal: this.#stopping.signal,
      isUnsafeAccepted: this.#config.unsafeDatabase,
      synchronous: this.#config.dbSynchronous,
      log: this.#log,
      onAway: (error, attempts) => {
        const isFirst = attempts === 1;
        if (isFirst) this.#log.warn({ err: error }, 'the database cannot be reached; trying again');
        this.#gate.set('database-away', troubleOf(error));
      },
    });
    await this.#unlessStopped(contact);
    this.#gate.set('starting');
  }

  /** Waits until no other engine owns the database. */
  async #own(connectionString: string): Promise<Lease> {
    let isStandby = false;
    const lease = await acquireLease({
      connectionString,
      owner: this.#owner,
      applicationName: writerName(this.#owner),
      laneCount: Math.max(this.#config.writerLanes, LANES_MAX) + BATCH_LANES,
      clock: realClock,
      log: this.#log,
      onStandby: ({ owner, epoch }) => {
        isStandby = true;
        this.#gate.set('standby');
        this.#log.info({ owner, epoch }, 'another engine owns the database: standing by');
      },
      signal: this.#stopping.signal,
    });
    if (isStandby) this.#log.info({ epoch: lease.epoch }, 'took the database over');
    lease.onLost((reason) => this.#lost(reason));
    this.#parts.push({ name: 'lease', stop: () => lease.release() });
    this.#stopping.signal.throwIfAborted();
    this.#gate.times = lease;
    this.#gate.set('starting');
    return lease;
  }

  /** Engine time goes with the clock of the database from now on, on every thread. */
  #follow(lease: Lease, supervisor: Supervisor): void {
    this.#clock.setOffset(lease.clockOffsetMs);
    lease.onClock((offsetMs) => {
      const jumpMs = Math.round(this.#clock.setOffset(offsetMs));
      supervisor.setClock(offsetMs);
      if (jumpMs !== 0) this.#log.warn({ jumpMs }, 'the clock of the database was set');
    });
  }

  /** Standbys join as well, so that they know who lives in the cell when they take it over. */
  async #join(port: number, { metrics }: Supervisor): Promise<void> {
    const { advertisedAddress, host } = this.#config;
    const address = advertisedAddress ?? `${host}:${port}`;
    this.#parts.push({ name: 'cluster', stop: async () => this.#membership?.stop() });
    await this.#membership?.join(this.#stopping.signal, address, () => ({
      at: realClock.monotonic(),
      backlog: metrics.gauge('engine_writer_backlog_units'),
      committed: metrics.observations('engine_writer_flush_units').sum,
    }));
  }

  #launchThreads(connectionString: string, continuityKeys: ContinuityKeys): Supervisor {
    const supervisor = new Supervisor({
      config: this.#config,
      client: this.#client,
      connectionString,
      continuityKeys,
      owner: this.#owner,
      log: this.#log,
      stampsFrom: () => this.#changes.watermark.highest,
      onDatabase: (trouble) => this.#onDatabase(trouble),
      onFenced: () => this.#lost('another engine took the database over'),
      onComplete: (isComplete) => {
        this.#gate.isComplete = isComplete;
      },
      onHopeless: (reason) => this.#lost(reason),
    });
    this.#supervisor = supervisor;
    return supervisor;
  }

  #onDatabase(trouble: DatabaseTrouble | undefined): void {
    if (trouble === undefined) {
      this.#log.info('the database is back');
      this.#client.stall(undefined);
      this.#gate.set(this.#isStarted ? 'serving' : 'starting');
      return;
    }
    const { kind, sqlState, message: reason } = trouble;
    const isAway = kind === 'unreachable' || !this.#isStarted;
    if (isAway) this.#log.error({ kind, sqlState, reason }, 'the database is away');
    else this.#log.error({ kind, sqlState, reason }, 'the database takes no writes');
    this.#gate.set(isAway ? 'database-away' : 'writes-fail', trouble);
    this.#client.stall(isAway ? undefined : stallOf(trouble));
  }

  /** What can no longer commit must not look alive: the process ends, its successor serves. */
  #lost(reason: string): void {
    this.#log.fatal({ reason }, 'this engine cannot go on');
    this.#gate.set('stopping');
    this.#end(1);
  }

  /** Tenants that are moved to other cells, and from them. */
  #cellMoves(pool: pg.Pool, reads: Reads, shards: Supervisor, wake: () => void): CellMoves {
    const moves = new CellMoves({
      clock: realClock,
      log: this.#log,
      pool,
      shards,
      gate: this.#membership?.residence,
      learn: async (tenant, stampsFrom) => {
        this.#changes.watermark.raise(stampsFrom);
        await this.#keys.reload(tenant, (after, limit) => liveKeys.rows(reads, after, limit));
        const limits = await tenantLimitRow.row(reads, tenant);
        this.#limits.set(tenant, limits && setLimitsOf(limits));
      },
      wake,
    });
    this.#parts.push({ name: 'moves of tenants', stop: async () => moves.stop() });
    return moves;
  }

  /** What was left by the last engine is fired at once. */
  #startFiring(reads: Reads): void {
    this.#firing = eventFiringOf({ reads, client: this.#client, log: this.#log });
    this.#firing.wake();
  }

  #startRetention(reads: Reads): void {
    const { retentionDays } = this.#config;
    if (retentionDays === 0) return;
    const retention = new Retention({
      clock: realClock,
      now: () => this.#clock.now(),
      keepMs: retentionDays * DAY_MS,
      log: this.#log,
      page: (after, before, rows) => endedPage(reads, after, before, rows),
      remove: (ids, before) => this.#many.purge(ids, before),
    });
    this.#parts.push({ name: 'retention', stop: async () => retention.stop() });
    retention.start();
  }

  // ---------------------------------------------------------------- stopping

  /**
   * Streams end, polls and accepted requests are answered as far as time allows. Idempotent.
   * @param starting what the start resolves or rejects with; its parts are known once it has ended
   */
  async stop(starting: Promise<void>): Promise<void> {
    const deadline = realClock.monotonic() + LIMITS.shutdownMs;
    this.#stopping.abort();
    await within(
      deadline,
      starting.catch(() => undefined),
    );
    if (this.#parts.length === 0) return;
    this.#log.info('stopping');
    this.#server?.stopListening();
    this.#gate.set('stopping');
    this.#streams.close();
    this.#changes.close();
    this.#firing?.stop();
    await within(deadline, this.#drain(deadline));
    // The threads first: until they have stopped, what they decided is still being committed.
    const supervisor = this.#supervisor;
    const threads = { name: 'threads', stop: async () => supervisor?.stop() };
    await stopParts([threads, ...this.#parts.splice(0).reverse()], deadline, this.#log);
    this.#client.stop();
    this.#log.info('stopped');
  }

  async #drain(deadline: number): Promise<void> {
    const supervisor = this.#supervisor;
    if (supervisor === undefined || !this.#isStarted) return;
    await Promise.all([supervisor.drain(), this.#front?.drain()]);
    while (realClock.monotonic() < deadline) {
      if (this.#client.inFlight === 0 && (await supervisor.isIdle())) return;
      await pause(DRAIN_POLL_MS);
    }
  }
}
