/**
 * Puts the engine together: database, HTTP, ownership, threads, in that order, and takes it apart in
 * the opposite one. It listens before it owns the database, so that a standby is seen to live.
 */

import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { ShardClient } from '../actors/client.js';
import { Supervisor, writerName } from '../actors/supervisor.js';
import { LANES_MAX, measuredLanes } from '../actors/writer-lanes.js';
import { realClock } from './clock.js';
import { type Config, ConfigError, LIMITS } from './config.js';
import { type ContinuityKeys, keyringOf } from './continuity-keys.js';
import type { TimerHandle } from './core/clock.js';
import type { UnixMs } from './core/time.js';
import { readChangeMark } from './db/change-mark.js';
import { startEmbedded } from './db/embedded.js';
import { acquireLease } from './db/lease.js';
import { bootstrapOwnership, expectSchema, migrate } from './db/migrate.js';
import { createClient, createPool } from './db/pool.js';
import { createReads, READ_POOL_OPTIONS, type Reads } from './db/reads.js';
import { createFront, type Front } from './front.js';
import { Gate } from './http/gate.js';
import { KeyRegistry } from './http/key-registry.js';
import { Changes } from './http/operations/changes.js';
import { InstanceStreams } from './http/operations/stream.js';
import { type HttpServer, startHttpServer } from './http/server.js';
import { encryptionKeyIn, rootKeyIn } from './keys.js';
import type { Logger } from './log.js';
import { ManyInstances } from './many-instances.js';
import { Retention } from './retention.js';
import { findTracer } from './tracing.js';

export interface EngineOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly version: string;
  /** Aborted when the engine is to stop. */
  readonly signal: AbortSignal;
}

/** The oldest Postgres that the tests run against. */
const POSTGRES_VERSION_MIN = 15;

/** How often a database that was not there at the start is tried again. */
const DATABASE_RETRY_MS = 500;

const DAY_MS = 86_400_000;

/** How often a shutdown looks whether everything is answered. */
const DRAIN_POLL_MS = 20;

/**
 * Runs the engine until `signal` is aborted or it loses its database to another engine.
 *
 * @returns the exit code: 0 after a stop that was asked for, 1 otherwise
 * @throws ConfigError, SchemaError, EmbeddedPostgresError, and the errors of a port that is taken
 */
export async function startEngine(options: EngineOptions): Promise<number> {
  const engine = new Engine(options);
  try {
    // A standby starts for as long as the owner lives, so a signal must be able to end the start.
    return await Promise.race([engine.stopped, engine.start().then(() => engine.stopped)]);
  } finally {
    await engine.stop();
  }
}

class Engine {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #options: EngineOptions;
  readonly #gate = new Gate(realClock);
  /** Names this process in the lease and in its sessions, so that a take-over can end them. */
  readonly #owner = `engine-${randomUUID().slice(0, 13)}`;
  readonly #client: ShardClient;
  readonly #many: ManyInstances;
  readonly #streams: InstanceStreams;
  readonly #changes: Changes;
  readonly #keys = new KeyRegistry({
    now: () => this.#now(),
    keysMax: LIMITS.apiKeysMax,
    refusal: () => this.#gate.refusal(),
  });
  /** Resolves with the exit code when the engine is to stop. */
  readonly stopped: Promise<number>;
  #end: (code: number) => void = () => undefined;
  /** Database time minus this machine's, in ms; known once the database is owned. */
  #clockOffsetMs = 0;
  /** What was started, in order; stopped in the opposite one. */
  readonly #parts: { readonly name: string; readonly stop: () => Promise<void> }[] = [];
  #server: HttpServer | undefined;
  #front: Front | undefined;
  #supervisor: Supervisor | undefined;
  #reads: Reads | undefined;
  #isStarted = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#config = options.config;
    this.#log = options.log;
    this.stopped = new Promise((resolve) => {
      this.#end = resolve;
    });
    options.signal.addEventListener('abort', () => this.#end(0), { once: true });
    this.#client = new ShardClient({
      shards: options.config.shards,
      clock: realClock,
      setImmediate: (fn) => setImmediate(fn),
    });
    this.#many = new ManyInstances(this.#client);
    this.#streams = new InstanceStreams({ client: this.#client, log: this.#log });
    this.#changes = new Changes({
      client: this.#client,
      shards: options.config.shards,
      clock: realClock,
      now: () => this.#now(),
      log: this.#log,
    });
  }

  async start(): Promise<void> {
    const { shards, logLevel } = this.#config;
    const { version } = this.#options;
    this.#log.info({ version, node: process.version, shards, logLevel }, 'starting');
    const { databaseUrl, insecureAuth, dataDir } = this.#config;
    const embedded = databaseUrl === undefined;
    const rootKey = embedded && !insecureAuth && this.#config.apiKey === undefined;
    const key = rootKey ? rootKeyIn(dataDir) : undefined;
    const continuityKeys = this.#continuityKeys();
    const connectionString = databaseUrl ?? (await this.#startEmbedded());
    const supervisor = this.#launchThreads(connectionString, continuityKeys);
    const apiKey = key?.value ?? this.#config.apiKey;
    await this.#listen({ connectionString, apiKey, supervisor, continuityKeys });
    await this.#whenReachable(async () => {
      await checkPostgresVersion(connectionString);
      await bootstrapOwnership(connectionString);
    });
    const epoch = await this.#own(connectionString);
    if (this.#config.runMigrations) await migrate(connectionString);
    else await expectSchema(connectionString);
    this.#clockOffsetMs = await clockOffset(connectionString);
    this.#changes.watermark.raise(await readChangeMark(connectionString));
    const lanes = this.#config.writerLanes || (await measuredLanes(connectionString, this.#log));
    await supervisor.start({ epoch, lanes, clockOffsetMs: this.#clockOffsetMs });
    if (this.#reads !== undefined) await this.#keys.load(this.#reads.keys);
    this.#startRetention();
    this.#isStarted = true;
    this.#gate.set('serving');
    this.#log.info({ epoch, shards: this.#config.shards }, 'ready');
    this.#greet(key?.file);
  }

  // ---------------------------------------------------------------- starting

  /** With the embedded database a key is generated where none is set (spec/06 row 32). */
  #continuityKeys(): ContinuityKeys {
    const { databaseUrl, dataDir, encryptionKey, oldEncryptionKey } = this.#config;
    const generated = () =>
      databaseUrl === undefined ? encryptionKeyIn(dataDir).value : undefined;
    return {
      master: encryptionKey ?? generated(),
      former: oldEncryptionKey,
      trusted: this.#config.trustedSigningKeys,
    };
  }

  async #startEmbedded(): Promise<string> {
    const embedded = await startEmbedded({ dataDir: this.#config.dataDir, log: this.#log });
    this.#parts.push({ name: 'embedded database', stop: () => embedded.stop() });
    this.#log.info({ location: embedded.location, port: embedded.port }, 'embedded database runs');
    return embedded.connectionString;
  }

  async #listen({
    connectionString,
    apiKey,
    supervisor,
    continuityKeys,
  }: {
    readonly connectionString: string;
    readonly apiKey: string | undefined;
    readonly supervisor: Supervisor;
    readonly continuityKeys: ContinuityKeys;
  }): Promise<void> {
    const config = this.#config;
    const pool = createPool({
      connectionString,
      applicationName: `${this.#owner} reads`,
      ...READ_POOL_OPTIONS,
      onError: (error) => this.#log.debug({ err: error }, 'idle connection lost'),
    });
    this.#parts.push({ name: 'reads', stop: () => pool.end() });
    this.#reads = createReads(pool);
    const keyring = keyringOf(continuityKeys);
    const front = createFront({
      config,
      apiKey,
      version: this.#options.version,
      log: this.#log,
      now: () => this.#now(),
      gate: this.#gate,
      client: this.#client,
      reads: this.#reads,
      keys: this.#keys,
      streams: this.#streams,
      changes: this.#changes,
      many: this.#many,
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
        maxHeaderBytes: LIMITS.headerBytesMax,
        corsOrigins: config.corsOrigins,
        newRequestId: randomUUID,
        bodyIdleTimeoutMs: LIMITS.bodyIdleTimeoutMs,
        log: this.#log,
      },
      front.handler,
    );
    this.#server = server;
    this.#parts.push({ name: 'HTTP', stop: () => server.close() });
    this.#log.info({ host: config.host, port: server.port }, 'listening');
    if (keyring !== undefined) {
      const { id: keyId, publicKey } = keyring.signing;
      this.#log.info({ keyId, publicKey }, 'capsules and provenance are signed with this key');
    }
  }

  /** A database that is not there yet is waited for; a wrong name or password is not. */
  async #whenReachable(work: () => Promise<void>): Promise<void> {
    for (let isTold = false; !this.#options.signal.aborted; isTold = true) {
      try {
        await work();
        this.#gate.set('starting');
        return;
      } catch (error) {
        if (!isAway(error)) throw error;
        if (!isTold) this.#log.warn({ err: error }, 'the database cannot be reached; trying again');
        this.#gate.set('database-away');
        await pause(DATABASE_RETRY_MS);
      }
    }
  }

  /** Waits until no other engine owns the database. */
  async #own(connectionString: string): Promise<number> {
    let isStandby = false;
    const lease = await acquireLease({
      connectionString,
      owner: this.#owner,
      applicationName: writerName(this.#owner),
      laneCount: Math.max(this.#config.writerLanes, LANES_MAX),
      clock: realClock,
      log: this.#log,
      onStandby: ({ owner, epoch }) => {
        isStandby = true;
        this.#gate.set('standby');
        this.#log.info({ owner, epoch }, 'another engine owns the database: standing by');
      },
      signal: this.#options.signal,
      // While the database serves nobody, nobody can have taken it over; see the fence.
      unreachableMs: Number.POSITIVE_INFINITY,
    });
    if (isStandby) this.#log.info({ epoch: lease.epoch }, 'took the database over');
    lease.onLost((reason) => this.#lost(reason));
    this.#parts.push({ name: 'lease', stop: () => lease.release() });
    this.#gate.set('starting');
    return lease.epoch;
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
      onDatabase: (isUp, reason) => this.#onDatabase(isUp, reason),
      onFenced: () => this.#lost('another engine took the database over'),
      onComplete: (isComplete) => {
        this.#gate.isComplete = isComplete;
      },
      onHopeless: (reason) => this.#lost(reason),
    });
    this.#supervisor = supervisor;
    return supervisor;
  }

  #onDatabase(isUp: boolean, reason: string): void {
    if (isUp) this.#log.info('the database is back');
    else this.#log.error({ reason }, 'the database is away');
    this.#gate.set(!isUp ? 'database-away' : this.#isStarted ? 'serving' : 'starting');
  }

  /** What can no longer commit must not look alive: the process ends, its successor serves. */
  #lost(reason: string): void {
    this.#log.fatal({ reason }, 'this engine cannot go on');
    this.#gate.set('stopping');
    this.#end(1);
  }

  #startRetention(): void {
    const { retentionDays } = this.#config;
    const reads = this.#reads?.retention;
    if (retentionDays === 0 || reads === undefined) return;
    const retention = new Retention({
      clock: realClock,
      now: () => this.#now(),
      keepMs: retentionDays * DAY_MS,
      log: this.#log,
      page: (after, before, rows) => reads.page(after, before, rows),
      remove: (ids, before) => this.#many.purge(ids, before),
    });
    this.#parts.push({ name: 'retention', stop: async () => retention.stop() });
    retention.start();
  }

  /** Engine time. */
  #now(): UnixMs {
    return performance.timeOrigin + performance.now() + this.#clockOffsetMs;
  }

  /** The lines a newcomer needs: where it listens, where the key is, and a call that works. */
  #greet(keyFile: string | undefined): void {
    const { host, insecureAuth } = this.#config;
    const address = `http://${host.includes(':') ? `[${host}]` : host}:${this.#server?.port}`;
    const key = keyFile === undefined ? '' : ` -H "x-api-key: $(cat '${keyFile}')"`;
    const lines = [
      `Listening on ${address}`,
      ...(keyFile === undefined ? [] : [`Root key in ${keyFile}`]),
      ...(insecureAuth ? ['No key is checked: --insecure-auth'] : []),
      `Try: curl -s${key} -H 'x-tenant-id: demo' ${address}/api/v1/instances`,
    ];
    process.stdout.write(`${lines.join('\n')}\n`);
  }

  // ---------------------------------------------------------------- stopping

  /** Streams end, polls and accepted requests are answered as far as time allows. Idempotent. */
  async stop(): Promise<void> {
    const deadline = realClock.monotonic() + LIMITS.shutdownMs;
    this.#log.info('stopping');
    this.#server?.stopListening();
    this.#gate.set('stopping');
    this.#streams.close();
    this.#changes.close();
    await within(deadline, this.#drain(deadline));
    // The threads first: until they have stopped, what they decided is still being committed.
    const parts = this.#parts.splice(0).reverse();
    if (this.#supervisor !== undefined) {
      const supervisor = this.#supervisor;
      parts.unshift({ name: 'threads', stop: () => supervisor.stop() });
    }
    for (const part of parts) {
      await within(deadline + STOP_GRACE_MS, part.stop()).catch((error: unknown) =>
        this.#log.warn({ err: error, part: part.name }, 'did not stop cleanly'),
      );
    }
    this.#client.stop();
    this.#log.info('stopped');
  }

  async #drain(deadline: number): Promise<void> {
    const supervisor = this.#supervisor;
    if (supervisor === undefined) return;
    await Promise.all([supervisor.drain(), this.#front?.drain()]);
    while (realClock.monotonic() < deadline) {
      if (this.#client.inFlight === 0 && (await supervisor.isIdle())) return;
      await pause(DRAIN_POLL_MS);
    }
  }
}

/** Refused, timed out or cut connections, and a server that is starting or stopping. */
function isAway(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code !== 'string')
    return error instanceof Error && /connection|timeout/i.test(error.message);
  return /^(E[A-Z]+|08...|57P0[123])$/.test(code);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    realClock.setTimeout(resolve, ms);
  });
}

/** Every part may take this much longer than the shutdown as a whole, so that none hangs it. */
const STOP_GRACE_MS = 400;

async function within(deadline: number, work: Promise<void>): Promise<void> {
  let timer: TimerHandle;
  const timeout = new Promise<void>((resolve) => {
    timer = realClock.setTimeout(resolve, Math.max(0, deadline - realClock.monotonic()));
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    realClock.clearTimeout(timer);
  }
}

/** @throws ConfigError when the server is older than what the statements are written for */
async function checkPostgresVersion(connectionString: string): Promise<void> {
  const client = createClient({ connectionString, applicationName: 'engine start' });
  await client.connect();
  try {
    const { rows } = await client.query<{ version: string }>(
      "select current_setting('server_version_num') as version",
    );
    const version = Number(rows[0]?.version);
    if (version < POSTGRES_VERSION_MIN * 10_000) {
      throw new ConfigError(
        `DATABASE_URL names a Postgres ${Math.floor(version / 10_000)}; ` +
          `this program needs ${POSTGRES_VERSION_MIN} or later`,
      );
    }
  } finally {
    await client.end();
  }
}

/** Database time minus this machine's, taken as read in the middle of the round trip. */
async function clockOffset(connectionString: string): Promise<number> {
  const client = createClient({ connectionString, applicationName: 'engine clock' });
  await client.connect();
  try {
    const before = performance.now();
    const { rows } = await client.query<{ now: string }>(
      'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
    );
    const middle = performance.timeOrigin + (before + performance.now()) / 2;
    return Number(rows[0]?.now) - middle;
  } finally {
    await client.end();
  }
}
