/**
 * Every knob and every limit. Knobs come from flags and the environment, are checked once at start
 * and frozen; a bad value stops the start with a message that names the variable. Limits are named
 * constants with their reason beside them, and reaching one has a defined answer.
 */

import { availableParallelism } from 'node:os';
import path from 'node:path';
import { parseTrustedKeys } from './core/continuity/keys.js';

const MIB = 1024 * 1024;

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
export const USAGE = `Usage: durable-workflow-engine [--insecure-auth] [--unsafe-database] [--help] [--version]
In a checkout: npm start -- [--insecure-auth] …

  --insecure-auth     accept every request without a key (for development)
  --unsafe-database   accept a Postgres with fsync or full_page_writes off (for tests)
  --help              print this text
  --version           print the version

The environment variables are listed in README.md.`;

// ---------------------------------------------------------------- knobs

/** @param text without blanks around it; undefined when the variable is not set, or empty */
type Parse<T> = (text: string | undefined, name: string) => T;

/** The variable, and what is made of it. A row more here is a row more in README.md. */
const KNOBS = {
  address: ['ENGINE_HTTP_ADDR', address('127.0.0.1:8080')],
  httpBackend: ['ENGINE_HTTP_BACKEND', choice(['auto', 'uws', 'node'], 'auto')],
  /** Absent: the embedded Postgres under `dataDir`. */
  databaseUrl: ['DATABASE_URL', databaseUrl],
  dataDir: ['ENGINE_DATA_DIR', (value) => path.resolve(value ?? 'data')],
  runMigrations: ['ENGINE_RUN_MIGRATIONS', toggle(true)],
  /** The root key; undefined under --insecure-auth, or until the embedded set-up makes one. */
  apiKey: ['ENGINE_API_KEY', text],
  /** Any word that is not true or 1 is false. */
  requireTenantHeader: ['ENGINE_REQUIRE_TENANT_HEADER', lenientToggle(true)],
  allowNoTenantIsolation: ['ENGINE_ALLOW_NO_TENANT_ISOLATION', toggle(false)],
  encryptionKey: ['ENGINE_ENCRYPTION_KEY', hexKey],
  /** The one before it, during a rotation. */
  oldEncryptionKey: ['ENGINE_OLD_ENCRYPTION_KEY', hexKey],
  /** JSON: public keys of other servers and earlier ones of this, in base64 by key id. */
  trustedSigningKeys: ['ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON', trustedKeys],
  shards: ['ENGINE_SHARDS', integer(Math.max(1, availableParallelism() - 1), 1, 64)],
  /** 0: measured at start. */
  writerLanes: ['ENGINE_WRITER_LANES', integer(0, 0, 16)],
  tickIntervalMs: ['ENGINE_TICK_INTERVAL_MS', integer(100, 10, 60_000)],
  workerStaleMs: ['ENGINE_WORKER_REAPER_STALE_SECS', seconds(60, 1, 86_400)],
  workerReaperTickMs: ['ENGINE_WORKER_REAPER_TICK_SECS', seconds(5, 1, 3_600)],
  requireClaimEpoch: ['ENGINE_REQUIRE_CLAIM_EPOCH', toggle(false)],
  unpoliciedRetry: ['ENGINE_UNPOLICIED_RETRY', choice(['redispatch', 'fail'], 'redispatch')],
  maxBodyBytes: ['ENGINE_MAX_BODY_BYTES', integer(10 * MIB, 1_024, 256 * MIB)],
  /** 0: no limit. */
  maxContextBytes: ['ENGINE_MAX_CONTEXT_BYTES', integer(MIB / 4, 0, 64 * MIB)],
  /** Of what one worker gives. */
  maxOutputBytes: ['ENGINE_MAX_OUTPUT_BYTES', integer(MIB, 1_024, 64 * MIB)],
  /** Undefined: as `insecureAuth`. */
  allowInternalUrls: ['ENGINE_ALLOW_INTERNAL_URLS', toggle(undefined)],
  corsOrigins: ['ENGINE_CORS_ORIGINS', list],
  /** Upper bound between two scans for schedules whose instant was missed. */
  cronTickMs: ['ENGINE_CRON_TICK_SECS', seconds(10, 1, 3_600)],
  /** The OpenAPI document asks for key and tenant. */
  protectDocs: ['ENGINE_PROTECT_DOCS', toggle(false)],
  webhookUrls: ['ENGINE_WEBHOOK_URLS', urls],
  /** Signs what is sent to them; undefined: unsigned. */
  webhookSecret: ['ENGINE_WEBHOOK_SECRET', text],
  /** Instances that ended longer ago are removed; 0: never. */
  retentionDays: ['ENGINE_RETENTION_DAYS', integer(0, 0, 36_500)],
  logLevel: [
    'ENGINE_LOG_LEVEL',
    choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
  ],
  /** Auto: text on a terminal, JSON elsewhere. */
  logFormat: ['ENGINE_LOG_FORMAT', choice(['auto', 'text', 'json'], 'auto')],
} as const satisfies Record<string, readonly [name: string, parse: Parse<unknown>]>;

type Knobs = {
  readonly [Knob in keyof typeof KNOBS]: ReturnType<(typeof KNOBS)[Knob][1]>;
};

export interface Config extends Omit<Knobs, 'address' | 'allowNoTenantIsolation'> {
  readonly host: string;
  readonly port: number;
  readonly insecureAuth: boolean;
  /** A database that may lose what it acknowledged, when its machine dies, is accepted. */
  readonly unsafeDatabase: boolean;
  readonly allowInternalUrls: boolean;
}

/** Those that begin like ours and mean nothing. */
export function unknownNames(env: NodeJS.ProcessEnv): string[] {
  const known = new Set<string>(Object.values(KNOBS).map(([name]) => name));
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
  const { address, allowNoTenantIsolation, ...knobs } = readKnobs(env);
  if (!insecureAuth) checkAccess({ ...knobs, allowNoTenantIsolation });
  return Object.freeze({
    ...knobs,
    host: address.host,
    port: address.port,
    insecureAuth,
    unsafeDatabase: flags.has('--unsafe-database'),
    apiKey: insecureAuth ? undefined : knobs.apiKey,
    allowInternalUrls: knobs.allowInternalUrls ?? insecureAuth,
  });
}

function readKnobs(env: NodeJS.ProcessEnv): Knobs {
  const values = Object.entries(KNOBS).map(([knob, [name, parse]]) => {
    return [knob, parse(env[name]?.trim() || undefined, name)];
  });
  return Object.fromEntries(values) as Knobs;
}

/** What would open the server further than was probably meant. */
function checkAccess(knobs: Omit<Knobs, 'address'>): void {
  if (!knobs.requireTenantHeader && !knobs.allowNoTenantIsolation) {
    throw new ConfigError(
      'ENGINE_REQUIRE_TENANT_HEADER=false lets every key reach every tenant; set ' +
        'ENGINE_ALLOW_NO_TENANT_ISOLATION=true to confirm it',
    );
  }
  if (knobs.databaseUrl !== undefined && knobs.apiKey === undefined) {
    throw new ConfigError(
      'ENGINE_API_KEY is not set: set it to the root key that clients will send in x-api-key, ' +
        'or start with --insecure-auth for development',
    );
  }
  if (knobs.corsOrigins.includes('*')) {
    throw new ConfigError('ENGINE_CORS_ORIGINS must not contain * while keys are required');
  }
}

const FLAGS: ReadonlySet<string> = new Set(['--insecure-auth', '--unsafe-database']);

function readFlags(args: readonly string[]): ReadonlySet<string> {
  const unknown = args.find((arg) => !FLAGS.has(arg));
  if (unknown !== undefined)
    throw new ConfigError(`unknown flag ${unknown}; --help lists the flags`);
  return new Set(args);
}

// ---------------------------------------------------------------- parsers

function text(value: string | undefined): string | undefined {
  return value;
}

/** What `pg` would take without a word: another scheme for the right one, any word for a host. */
const DATABASE_URL_EXAMPLE = 'postgresql://user:password@host:5432/database';

/** A URL of Postgres. The messages leave its text out, which may hold a password. */
function databaseUrl(value: string | undefined, name: string): string | undefined {
  if (value === undefined) return undefined;
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(value)?.[1]?.toLowerCase();
  if (scheme === 'postgres' || scheme === 'postgresql') {
    // A missing host is that of the machine; `URL` alone does not take it.
    if (URL.canParse(value.replace('@/', '@localhost/'))) return value;
    throw new ConfigError(
      `${name} is no URL: write it as ${DATABASE_URL_EXAMPLE}, with %2F for / and %40 for @ in the password`,
    );
  }
  const given = scheme === undefined ? 'has no scheme' : `begins with ${scheme}:`;
  throw new ConfigError(
    `${name} ${given}, not with postgresql:; write it as ${DATABASE_URL_EXAMPLE}`,
  );
}

function integer(byDefault: number, min: number, max: number): Parse<number> {
  return (value, name) => {
    if (value === undefined) return byDefault;
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${value}"`);
    }
    return number;
  };
}

/** In milliseconds. */
function seconds(byDefault: number, min: number, max: number): Parse<number> {
  const parse = integer(byDefault, min, max);
  return (value, name) => parse(value, name) * 1_000;
}

function toggle<Absent extends boolean | undefined>(absent: Absent): Parse<boolean | Absent> {
  return (value, name) => {
    const word = value?.toLowerCase();
    if (word === undefined) return absent;
    if (word === 'true' || word === '1') return true;
    if (word === 'false' || word === '0') return false;
    throw new ConfigError(`${name} must be true, false, 1 or 0, not "${word}"`);
  };
}

function lenientToggle(byDefault: boolean): Parse<boolean> {
  return (value) => (value === undefined ? byDefault : /^(?:true|1)$/i.test(value));
}

function choice<const T extends string>(allowed: readonly T[], byDefault: NoInfer<T>): Parse<T> {
  return (value, name) => {
    const found = value === undefined ? byDefault : allowed.find((word) => word === value);
    if (found !== undefined) return found;
    throw new ConfigError(`${name} must be one of ${allowed.join(', ')}, not "${value}"`);
  };
}

function list(value: string | undefined): readonly string[] {
  const items = (value ?? '').split(',').map((item) => item.trim());
  return items.filter((item) => item !== '');
}

/** Absolute http or https addresses, without repetitions. The message keeps what may be secret. */
function urls(value: string | undefined, name: string): readonly string[] {
  const distinct = new Set<string>();
  for (const [index, item] of list(value).entries()) {
    const url = URL.canParse(item) ? new URL(item) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      throw new ConfigError(`${name}: address ${index + 1} is not an http or https URL`);
    }
    if (url.username !== '' || url.password !== '') {
      throw new ConfigError(`${name}: address ${index + 1} must not contain credentials`);
    }
    distinct.add(item);
  }
  if (distinct.size > LIMITS.webhookUrlsMax) {
    throw new ConfigError(`${name} must name at most ${LIMITS.webhookUrlsMax} addresses`);
  }
  return [...distinct];
}

function address(byDefault: string): Parse<{ readonly host: string; readonly port: number }> {
  return (value = byDefault, name) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
    const port = Number(match?.[3]);
    if (match === null || port > 65_535) {
      throw new ConfigError(`${name} must be host:port, not "${value}"`);
    }
    return { host: match[1] ?? match[2]!, port };
  };
}

function hexKey(value: string | undefined, name: string): string | undefined {
  if (value !== undefined && !/^[0-9a-fA-F]{64}$/.test(value)) {
    throw new ConfigError(`${name} must be 64 hexadecimal digits`);
  }
  return value;
}

function trustedKeys(value = '', name = ''): string {
  const parsed = parseTrustedKeys(value);
  if (!parsed.ok) throw new ConfigError(`${name}: ${parsed.message}`);
  return value;
}
