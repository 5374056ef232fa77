/**
 * Puts the engine together: database, HTTP, ownership, threads, in that order, and takes it apart in
 * the opposite one. It listens before it owns the database, so that a standby is seen to live.
 */

import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { Change, ChangeCounts, ChangeMany } from '../actors/change-many.js';
import { ShardClient } from '../actors/client.js';
import { Supervisor, writerName } from '../actors/supervisor.js';
import { LANES_MAX, measuredLanes } from '../actors/writer-lanes.js';
import { createValidators } from '../schema/validators.js';
import { realClock } from './clock.js';
import { type Config, ConfigError, LIMITS } from './config.js';
import type { TimerHandle } from './core/clock.js';
import { startEmbedded } from './db/embedded.js';
import { acquireLease } from './db/lease.js';
import {
  bootstrapOwnership,
  expectSchema,
  MIGRATIONS_DIR,
  migrate,
  readMigrations,
} from './db/migrate.js';
import { createClient, createPool } from './db/pool.js';
import { createReads, READ_POOL_OPTIONS } from './db/reads.js';
import { createAuth } from './http/auth.js';
import { Gate } from './http/gate.js';
import { bulkOperations } from './http/operations/bulk.js';
import { instanceOperations } from './http/operations/instances.js';
import { rateLimitOperations } from './http/operations/rate-limits.js';
import { sequenceOperations } from './http/operations/sequences.js';
import { InstanceStreams } from './http/operations/stream.js';
import { createProbes } from './http/operations/system.js';
import { workerOperations } from './http/operations/workers.js';
import { createRouter } from './http/router.js';
import { type HttpServer, startHttpServer } from './http/server.js';
import { encryptionKeyIn, rootKeyIn } from './keys.js';
import type { Logger } from './log.js';
import { Metrics } from './metrics.js';

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
  readonly #metrics = new Metrics();
  /** Names this process in the lease and in its sessions, so that a take-over can end them. */
  readonly #owner = `engine-${randomUUID().slice(0, 13)}`;
  readonly #client: ShardClient;
  readonly #streams: InstanceStreams;
  /** Resolves with the exit code when the engine is to stop. */
  readonly stopped: Promise<number>;
  #end: (code: number) => void = () => undefined;
  /** Database time minus this machine's, in ms; known once the database is owned. */
  #clockOffsetMs = 0;
  /** What was started, in order; stopped in the opposite one. */
  readonly #parts: { readonly name: string; readonly stop: () => Promise<void> }[] = [];
  #server: HttpServer | undefined;
  #supervisor: Supervisor | undefined;
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
      onMetrics: (shard, deltas) => this.#metrics.add(shard, deltas),
    });
    this.#streams = new InstanceStreams({ client: this.#client, log: this.#log });
  }

  async start(): Promise<void> {
    const { databaseUrl, insecureAuth, dataDir } = this.#config;
    const embedded = databaseUrl === undefined;
    const rootKey = embedded && !insecureAuth && this.#config.apiKey === undefined;
    const key = rootKey ? rootKeyIn(dataDir) : undefined;
    if (embedded && this.#config.encryptionKey === undefined) encryptionKeyIn(dataDir);
    const connectionString = databaseUrl ?? (await this.#startEmbedded());
    const supervisor = this.#launchThreads(connectionString);
    await this.#listen(connectionString, key?.value ?? this.#config.apiKey);
    await this.#whenReachable(async () => {
      await checkPostgresVersion(connectionString);
      await bootstrapOwnership(connectionString);
    });
    const epoch = await this.#own(connectionString);
    if (this.#config.runMigrations) await migrate(connectionString);
    else await expectSchema(connectionString);
    this.#clockOffsetMs = await clockOffset(connectionString);
    const lanes = this.#config.writerLanes || (await measuredLanes(connectionString, this.#log));
    await supervisor.start({ epoch, lanes, clockOffsetMs: this.#clockOffsetMs });
    this.#isStarted = true;
    this.#gate.set('serving');
    this.#log.info({ epoch, shards: this.#config.shards }, 'ready');
    this.#greet(key?.file);
  }

  // ---------------------------------------------------------------- starting

  async #startEmbedded(): Promise<string> {
    const embedded = await startEmbedded({ dataDir: this.#config.dataDir, log: this.#log });
    this.#parts.push({ name: 'embedded database', stop: () => embedded.stop() });
    this.#log.info({ location: embedded.location, port: embedded.port }, 'embedded database runs');
    return embedded.connectionString;
  }

  async #listen(connectionString: string, apiKey: string | undefined): Promise<void> {
    const config = this.#config;
    const pool = createPool({
      connectionString,
      applicationName: `${this.#owner} reads`,
      ...READ_POOL_OPTIONS,
      onError: (error) => this.#log.debug({ err: error }, 'idle connection lost'),
    });
    this.#parts.push({ name: 'reads', stop: () => pool.end() });
    const validators = createValidators();
    const router = createRouter({
      gate: this.#gate,
      authorise: createAuth({ apiKey, requireTenantHeader: config.requireTenantHeader }),
      validators,
      client: this.#client,
      operations: {
        ...instanceOperations,
        ...bulkOperations,
        ...sequenceOperations,
        ...workerOperations,
        ...rateLimitOperations,
      },
      streams: { 'instances.stream': this.#streams.open },
      probes: createProbes({
        gate: this.#gate,
        version: this.#options.version,
        storageVersion: readMigrations(MIGRATIONS_DIR).length - 1,
      }),
      front: {
        reads: createReads(pool),
        validators,
        now: () => performance.timeOrigin + performance.now() + this.#clockOffsetMs,
        changeMany: (ids, change) => this.#changeMany(ids, change),
      },
      log: this.#log,
    });
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
      router,
    );
    this.#server = server;
    this.#parts.push({ name: 'HTTP', stop: () => server.close() });
    this.#log.info({ host: config.host, port: server.port }, 'listening');
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
    const lease = await acquireLease({
      connectionString,
      owner: this.#owner,
      applicationName: writerName(this.#owner),
      laneCount: Math.max(this.#config.writerLanes, LANES_MAX),
      clock: realClock,
      log: this.#log,
      onStandby: () => this.#gate.set('standby'),
      signal: this.#options.signal,
      // While the database serves nobody, nobody can have taken it over; see the fence.
      unreachableMs: Number.POSITIVE_INFINITY,
    });
    lease.onLost((reason) => this.#lost(reason));
    this.#parts.push({ name: 'lease', stop: () => lease.release() });
    this.#gate.set('starting');
    return lease.epoch;
  }

  #launchThreads(connectionString: string): Supervisor {
    const supervisor = new Supervisor({
      config: this.#config,
      client: this.#client,
      connectionString,
      owner: this.#owner,
      log: this.#log,
      onDatabase: (isUp, reason) => this.#onDatabase(isUp, reason),
      onFenced: () => this.#lost('another engine took the database over'),
      onShardLost: (shard) => this.#metrics.forget(shard),
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

  /** Groups the instances by their shards and adds up what became of them. */
  async #changeMany(ids: readonly string[], change: Change): Promise<ChangeCounts> {
    const byShard = new Map<number, string[]>();
    for (const id of ids) {
      const shard = this.#client.shardOf(id);
      byShard.set(shard, [...(byShard.get(shard) ?? []), id]);
    }
    const counts = await Promise.all(
      [...byShard].map(async ([shard, shardIds]) => {
        const body = JSON.stringify({ ids: shardIds, change } satisfies ChangeMany);
        const reply = await this.#client.ask(shard, 'instances.changeMany', '', '', body);
        return JSON.parse(reply.body) as ChangeCounts;
      }),
    );
    return counts.reduce(
      (sum, { applied, skipped, failed }) => ({
        applied: sum.applied + applied,
        skipped: sum.skipped + skipped,
        failed: sum.failed + failed,
      }),
      { applied: 0, skipped: 0, failed: 0 },
    );
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
    this.#server?.stopListening();
    this.#gate.set('stopping');
    this.#streams.close();
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
    await supervisor.drain();
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
