/**
 * Every knob and every limit. Knobs come from flags and the environment, are checked once at start
 * and frozen; a bad value stops the start with a message that names the variable. Limits are named
 * constants with their reason beside them, and reaching one has a defined answer.
 */

import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseTrustedKeys } from './core/continuity/keys.js';

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly httpBackend: 'auto' | 'uws' | 'node';
  /** Absent: the embedded Postgres under `dataDir`. */
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly runMigrations: boolean;
  /** The root key; undefined under --insecure-auth, or until the embedded set-up makes one. */
  readonly apiKey: string | undefined;
  readonly insecureAuth: boolean;
  /** A database that may lose what it acknowledged, when its machine dies, is accepted. */
  readonly unsafeDatabase: boolean;
  readonly requireTenantHeader: boolean;
  readonly encryptionKey: string | undefined;
  /** The one before it, during a rotation. */
  readonly oldEncryptionKey: string | undefined;
  /** JSON: public keys of other servers and earlier ones of this, in base64 by key id. */
  readonly trustedSigningKeys: string;
  readonly shards: number;
  /** 0: measured at start. */
  readonly writerLanes: number;
  readonly tickIntervalMs: number;
  readonly workerStaleMs: number;
  readonly workerReaperTickMs: number;
  readonly requireClaimEpoch: boolean;
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  readonly maxBodyBytes: number;
  readonly maxContextBytes: number;
  readonly allowInternalUrls: boolean;
  readonly corsOrigins: readonly string[];
  /** Upper bound between two scans for schedules whose instant was missed. */
  readonly cronTickMs: number;
  /** The OpenAPI document asks for key and tenant. */
  readonly protectDocs: boolean;
  readonly webhookUrls: readonly string[];
  /** Signs what is sent to them; undefined: unsigned. */
  readonly webhookSecret: string | undefined;
  /** Instances that ended longer ago are removed; 0: never. */
  readonly retentionDays: number;
  readonly logLevel: string;
}

/** Limits that no one needs to turn; those that the wire contract states are in `schema/`. */
export const LIMITS = {
  /** Requests that wait for a reply, over all connections. Past it: 503, so that memory is bounded. */
  requestsInFlightMax: 20_000,
  /** Bytes of the bodies of those requests. */
  requestBytesInFlightMax: 256 * 1024 * 1024,
  /** A request that has no reply by then gets a 503; what it asked for may still happen. */
  requestTimeoutMs: 30_000,
  /**
   * How long requests wait for an engine that is starting
   * (docs/decisions/0016-health-standby-and-downtime.md).
   */
  startWaitMs: 10_000,
  /**
   * A database that has answered nothing for this long counts as away for readiness. The lease is
   * renewed every second, and a renewal may take two.
   */
  databaseSilenceMs: 3_000,
  /** Keys of tenants that are not revoked: the front thread has all of them in memory, 20 MB. */
  apiKeysMax: 100_000,
  /** Request lines and headers together. */
  headerBytesMax: 16 * 1024,
  /** A body that does not arrive is given up, so that slow clients hold no memory. */
  bodyIdleTimeoutMs: 30_000,
  /** Lists and polls stop here and say so (docs/limits.md). */
  responseBytesMax: 8 * 1024 * 1024,
  /** A list that takes longer is answered 503. */
  slowReadMs: 10_000,
  /** Actors kept by a shard; beyond it idle ones are passivated: old objects cost collections. */
  residentActorsMax: 10_000,
  /** JSON text held by the actors of a shard, estimated; the same answer. */
  residentBytesMax: 256 * 1024 * 1024,
  /** Units of one actor that are not acknowledged: beyond it its messages wait. */
  unitsPerActorMax: 16,
  /** Their JSON text, though one may be larger: neighbours share the way to the database. */
  unitBytesPerActorMax: 4 * 1024 * 1024,
  /** Units of one shard that are not acknowledged: beyond it new outside requests get a 503. */
  unitsPerShardMax: 20_000,
  unitBytesPerShardMax: 128 * 1024 * 1024,
  /** Outputs, items and parameters that one actor keeps, as JSON: an instance with more fails. */
  keptCharactersMax: 128 * 1024 * 1024,
  /** Messages that one loading or busy actor keeps; beyond it requests get a 503. */
  stashPerActorMax: 10_000,
  /** Leaf executions of one actor per turn: a long loop is many units, and neighbours run between. */
  stepsPerTurn: 250,
  outputBytesPerTurn: 1024 * 1024,
  /**
   * A turn of a shard ends after this long, so that messages and timers are seen in between; and so
   * does the part of one actor in it, should its steps be costly ones.
   */
  turnMs: 8,
  /** In-process steps with an outside effect that one shard runs at once; others wait their turn. */
  handlersPerShardMax: 256,
  /** Those of one instance, so that one whose handlers hang leaves room for the others. */
  handlersPerInstanceMax: 100,
  /** One that hangs is cut off: a day is the most that http_request may be given, once it began. */
  handlerMsMax: 25 * 60 * 60 * 1_000,
  /** Text on its way to the database beyond which outcomes wait, so that requests need not. */
  unitBytesForOutcomesMax: 32 * 1024 * 1024,
  /** Timers are read ahead this far; later ones stay in their table. */
  timerHorizonMs: 60_000,
  /** Rows taken at a time from what is read when a shard starts. */
  recoveryPageRows: 5_000,
  /**
   * Waiting tasks that a shard keeps in memory, 300 bytes each, and those of them that polls of one
   * kind (a handler, with a tenant and a queue name or without) may get. The rest is read when these
   * run low: few at first, because most polls find all there is, then four times as many each time.
   */
  readyTasksMax: 100_000,
  windowTasksMax: 20_000,
  readyPageRowsMin: 200,
  readyPageRowsMax: 5_000,
  /** Kinds of polls that a shard remembers; of others it reads the tasks when they come again. */
  pollWindowsMax: 10_000,
  /** Parked long polls of one handler. Beyond it a poll is answered at once. */
  parkedPollsMax: 10_000,
  pollWaitMsMax: 60_000,
  /** Entries of a task's history. */
  taskHistoryMax: 100,
  checkpointBytesMax: 262_144,
  /** JSON of the blocks that one instance runs beside its sequence's: it is loaded with its row. */
  injectedBytesMax: 1024 * 1024,
  /** Outputs that a fork copies: they are one unit, and in memory until it is committed. */
  forkBytesMax: 16 * 1024 * 1024,
  /** Compiled plans per shard, by the bytes of their definitions. */
  planCacheBytes: 64 * 1024 * 1024,
  /** How often a poll of the same worker writes its registry row. */
  workerSeenEveryMs: 15_000,
  /** Addresses that are told of ended instances: each is one row more with the end of an instance. */
  webhookUrlsMax: 32,
  /** From the signal to the exit; what is not finished by then runs again after the restart. */
  shutdownMs: 2_500,
} as const;

export class ConfigError extends Error {}

/** What `--help` prints. */
export const USAGE = `Usage: npm start -- [--insecure-auth] [--unsafe-database] [--help] [--version]

  --insecure-auth     accept every request without a key (for development)
  --unsafe-database   accept a Postgres with fsync or full_page_writes off (for tests)
  --help              print this text
  --version           print the version

The environment variables are listed in README.md.`;

/** The names that are understood; any other ENGINE_* name is reported by `unknownNames`. */
const NAMES = [
  'ENGINE_HTTP_ADDR',
  'ENGINE_DATA_DIR',
  'ENGINE_RUN_MIGRATIONS',
  'ENGINE_API_KEY',
  'ENGINE_REQUIRE_TENANT_HEADER',
  'ENGINE_ALLOW_NO_TENANT_ISOLATION',
  'ENGINE_ENCRYPTION_KEY',
  'ENGINE_OLD_ENCRYPTION_KEY',
  'ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON',
  'ENGINE_SHARDS',
  'ENGINE_WRITER_LANES',
  'ENGINE_TICK_INTERVAL_MS',
  'ENGINE_WORKER_REAPER_STALE_SECS',
  'ENGINE_WORKER_REAPER_TICK_SECS',
  'ENGINE_REQUIRE_CLAIM_EPOCH',
  'ENGINE_UNPOLICIED_RETRY',
  'ENGINE_MAX_BODY_BYTES',
  'ENGINE_MAX_CONTEXT_BYTES',
  'ENGINE_ALLOW_INTERNAL_URLS',
  'ENGINE_CORS_ORIGINS',
  'ENGINE_CRON_TICK_SECS',
  'ENGINE_PROTECT_DOCS',
  'ENGINE_WEBHOOK_URLS',
  'ENGINE_WEBHOOK_SECRET',
  'ENGINE_RETENTION_DAYS',
  'ENGINE_LOG_LEVEL',
  'ENGINE_HTTP_BACKEND',
] as const;

type Name = (typeof NAMES)[number];

export function unknownNames(env: NodeJS.ProcessEnv): string[] {
  const known = new Set<string>(NAMES);
  return Object.keys(env).filter((name) => name.startsWith('ENGINE_') && !known.has(name));
}

/**
 * @param env the process's environment
 * @param args the command line after the script: `FLAGS` only
 * @throws ConfigError naming the variable or flag that is wrong
 */
export function readConfig(env: NodeJS.ProcessEnv, args: readonly string[]): Config {
  const flags = readFlags(args);
  const insecureAuth = flags.has('--insecure-auth');
  const read = reader(env);
  const [host, port] = read.address('ENGINE_HTTP_ADDR', '127.0.0.1:8080');
  const databaseUrl = env.DATABASE_URL?.trim() || undefined;
  const apiKey = insecureAuth ? undefined : read.text('ENGINE_API_KEY');
  const requireTenantHeader = read.switch('ENGINE_REQUIRE_TENANT_HEADER', true, 'lenient');
  const allowNoIsolation = read.switch('ENGINE_ALLOW_NO_TENANT_ISOLATION', false);
  if (!insecureAuth && !requireTenantHeader && !allowNoIsolation) {
    throw new ConfigError(
      'ENGINE_REQUIRE_TENANT_HEADER=false lets every key reach every tenant; set ' +
        'ENGINE_ALLOW_NO_TENANT_ISOLATION=true to confirm it',
    );
  }
  if (!insecureAuth && databaseUrl !== undefined && apiKey === undefined) {
    throw new ConfigError(
      'ENGINE_API_KEY is not set: set it to the root key that clients will send in x-api-key, ' +
        'or start with --insecure-auth for development',
    );
  }
  const corsOrigins = read.list('ENGINE_CORS_ORIGINS');
  if (!insecureAuth && corsOrigins.includes('*')) {
    throw new ConfigError('ENGINE_CORS_ORIGINS must not contain * while keys are required');
  }
  return Object.freeze({
    host,
    port,
    httpBackend: read.choice('ENGINE_HTTP_BACKEND', ['auto', 'uws', 'node'], 'auto'),
    databaseUrl,
    dataDir: path.resolve(read.text('ENGINE_DATA_DIR') ?? 'data'),
    runMigrations: read.switch('ENGINE_RUN_MIGRATIONS', true),
    apiKey,
    insecureAuth,
    unsafeDatabase: flags.has('--unsafe-database'),
    requireTenantHeader,
    encryptionKey: read.hexKey('ENGINE_ENCRYPTION_KEY'),
    oldEncryptionKey: read.hexKey('ENGINE_OLD_ENCRYPTION_KEY'),
    trustedSigningKeys: read.trustedKeys('ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON'),
    shards: read.integer('ENGINE_SHARDS', Math.max(1, availableParallelism() - 1), 1, 64),
    writerLanes: read.integer('ENGINE_WRITER_LANES', 0, 0, 16),
    tickIntervalMs: read.integer('ENGINE_TICK_INTERVAL_MS', 100, 10, 60_000),
    workerStaleMs: read.integer('ENGINE_WORKER_REAPER_STALE_SECS', 60, 1, 86_400) * 1_000,
    workerReaperTickMs: read.integer('ENGINE_WORKER_REAPER_TICK_SECS', 5, 1, 3_600) * 1_000,
    requireClaimEpoch: read.switch('ENGINE_REQUIRE_CLAIM_EPOCH', false),
    unpoliciedRetry: read.choice('ENGINE_UNPOLICIED_RETRY', ['redispatch', 'fail'], 'redispatch'),
    maxBodyBytes: read.integer('ENGINE_MAX_BODY_BYTES', 10 * 1024 * 1024, 1_024, 256 * 1024 * 1024),
    maxContextBytes: read.integer('ENGINE_MAX_CONTEXT_BYTES', 262_144, 0, 64 * 1024 * 1024),
    allowInternalUrls: read.switch('ENGINE_ALLOW_INTERNAL_URLS', insecureAuth),
    corsOrigins,
    cronTickMs: read.integer('ENGINE_CRON_TICK_SECS', 10, 1, 3_600) * 1_000,
    protectDocs: read.switch('ENGINE_PROTECT_DOCS', false),
    webhookUrls: read.urls('ENGINE_WEBHOOK_URLS'),
    webhookSecret: read.text('ENGINE_WEBHOOK_SECRET'),
    retentionDays: read.integer('ENGINE_RETENTION_DAYS', 0, 0, 36_500),
    logLevel: read.choice(
      'ENGINE_LOG_LEVEL',
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'info',
    ),
  });
}

const FLAGS: ReadonlySet<string> = new Set(['--insecure-auth', '--unsafe-database']);

function readFlags(args: readonly string[]): ReadonlySet<string> {
  const unknown = args.find((arg) => !FLAGS.has(arg));
  if (unknown !== undefined) throw new ConfigError(`unknown flag ${unknown}\n\n${USAGE}`);
  return new Set(args);
}

function reader(env: NodeJS.ProcessEnv) {
  const text = (name: Name): string | undefined => env[name]?.trim() || undefined;
  return {
    text,
    integer(name: Name, fallback: number, min: number, max: number): number {
      const value = text(name);
      if (value === undefined) return fallback;
      const number = Number(value);
      if (!/^\d+$/.test(value) || number < min || number > max) {
        throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${value}"`);
      }
      return number;
    },
    /** `lenient`: any word that is not true or 1 is false. */
    switch(name: Name, fallback: boolean, mode: 'strict' | 'lenient' = 'strict'): boolean {
      const value = text(name)?.toLowerCase();
      if (value === undefined) return fallback;
      if (value === 'true' || value === '1') return true;
      if (mode === 'lenient' || value === 'false' || value === '0') return false;
      throw new ConfigError(`${name} must be true, false, 1 or 0, not "${value}"`);
    },
    choice<T extends string>(name: Name, allowed: readonly T[], fallback: T): T {
      const value = text(name);
      if (value === undefined) return fallback;
      const found = allowed.find((word) => word === value);
      if (found === undefined) {
        throw new ConfigError(`${name} must be one of ${allowed.join(', ')}, not "${value}"`);
      }
      return found;
    },
    list(name: Name): readonly string[] {
      return (text(name) ?? '')
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '');
    },
    /** Absolute http or https addresses, without repetitions. The message keeps what may be secret. */
    urls(name: Name): readonly string[] {
      const urls = this.list(name).map((item, index) => {
        const url = URL.canParse(item) ? new URL(item) : undefined;
        if (url === undefined || !/^https?:$/.test(url.protocol)) {
          throw new ConfigError(`${name}: address ${index + 1} is not an http or https URL`);
        }
        if (url.username !== '' || url.password !== '') {
          throw new ConfigError(`${name}: address ${index + 1} must not contain credentials`);
        }
        return item;
      });
      const distinct = [...new Set(urls)];
      if (distinct.length > LIMITS.webhookUrlsMax) {
        throw new ConfigError(`${name} must name at most ${LIMITS.webhookUrlsMax} addresses`);
      }
      return distinct;
    },
    address(name: Name, fallback: string): [string, number] {
      const value = text(name) ?? fallback;
      const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
      const port = Number(match?.[3]);
      if (match === null || port > 65_535) {
        throw new ConfigError(`${name} must be host:port, not "${value}"`);
      }
      return [match[1] ?? match[2]!, port];
    },
    hexKey(name: Name): string | undefined {
      const value = text(name);
      if (value !== undefined && !/^[0-9a-fA-F]{64}$/.test(value)) {
        throw new ConfigError(`${name} must be 64 hexadecimal digits`);
      }
      return value;
    },
    trustedKeys(name: Name): string {
      const value = text(name) ?? '';
      const parsed = parseTrustedKeys(value);
      if (!parsed.ok) throw new ConfigError(`${name}: ${parsed.message}`);
      return value;
    },
  };
}
