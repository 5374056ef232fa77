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

/** The command line in words. */
export const FLAGS_HELP = `Usage: durable-workflow-engine [--insecure-auth] [--unsafe-database] [--help] [--version]
In a checkout: npm start -- [--insecure-auth] …

  --insecure-auth     accept every request without a key (for development)
  --unsafe-database   accept a Postgres with fsync or full_page_writes off (for tests)
  --help              print this text
  --version           print the version`;

// ---------------------------------------------------------------- knobs

interface Parse<T> {
  /** @param text without blanks around it; undefined when the variable is not set, or empty */
  (text: string | undefined, name: string): T;
  /** In words; unless said, a text. */
  readonly takes?: string;
  /** As it is written; unless said, none. */
  readonly byDefault?: string;
}

/**
 * The variable, what is made of it, what it means, and its default in words where the value says too little.
 * `--help` and docs/reference/environment.md show them.
 */
const KNOBS = {
  address: ['ENGINE_HTTP_ADDR', address('127.0.0.1:8080'), 'Where it listens, as host:port.'],
  httpBackend: [
    'ENGINE_HTTP_BACKEND',
    choice(['auto', 'uws', 'node'], 'auto'),
    'uWebSockets.js, node:http, or the first of them that loads.',
  ],
  databaseUrl: [
    'DATABASE_URL',
    databaseUrl,
    'A Postgres 15 or later. Without it an embedded one is kept in ENGINE_DATA_DIR.',
  ],
  dataDir: [
    'ENGINE_DATA_DIR',
    (value) => path.resolve(value ?? 'data'),
    'Folder of the embedded database and of the root key that is generated with it.',
    './data',
  ],
  runMigrations: [
    'ENGINE_RUN_MIGRATIONS',
    toggle(true),
    'Whether the start brings the tables of the database up to date.',
  ],
  apiKey: [
    'ENGINE_API_KEY',
    text,
    'The root key, which may do everything. Must be set with DATABASE_URL; generated without it.',
  ],
  requireTenantHeader: [
    'ENGINE_REQUIRE_TENANT_HEADER',
    lenientToggle(true),
    'Whether requests must carry x-tenant-id. Any word but true and 1 is false.',
  ],
  allowNoTenantIsolation: [
    'ENGINE_ALLOW_NO_TENANT_ISOLATION',
    toggle(false),
    'Confirms ENGINE_REQUIRE_TENANT_HEADER=false while keys are asked for.',
  ],
  encryptionKey: [
    'ENGINE_ENCRYPTION_KEY',
    hexKey,
    'What capsules are sealed and signed with: 64 hexadecimal digits. Generated with the embedded database. Without it, what needs it is answered 503.',
  ],
  oldEncryptionKey: [
    'ENGINE_OLD_ENCRYPTION_KEY',
    hexKey,
    'The key before it: what was sealed or signed with that one is still opened and trusted.',
  ],
  trustedSigningKeys: [
    'ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON',
    trustedKeys,
    'Public keys of servers whose capsules, receipts and grants are trusted: a JSON object of key id to Ed25519 key in base64.',
    '{}',
  ],
  shards: [
    'ENGINE_SHARDS',
    integer(Math.max(1, availableParallelism() - 1), 1, 64),
    'Threads that run instances.',
    'one less than there are cores',
  ],
  writerLanes: [
    'ENGINE_WRITER_LANES',
    integer(0, 0, 16),
    'Connections that write to the database. 0: as measured at the start, 1 where the disk is fast, up to 4.',
  ],
  tickIntervalMs: [
    'ENGINE_TICK_INTERVAL_MS',
    integer(100, 10, 60_000),
    'The longest time between two safety scans for due timers.',
  ],
  workerStaleMs: [
    'ENGINE_WORKER_REAPER_STALE_SECS',
    seconds(60, 1, 86_400),
    'A worker that sends no heartbeat for so long loses its task to another one.',
  ],
  workerReaperTickMs: [
    'ENGINE_WORKER_REAPER_TICK_SECS',
    seconds(5, 1, 3_600),
    'How late that may be noticed.',
  ],
  requireClaimEpoch: [
    'ENGINE_REQUIRE_CLAIM_EPOCH',
    toggle(false),
    'Whether workers must send claim_epoch.',
  ],
  unpoliciedRetry: [
    'ENGINE_UNPOLICIED_RETRY',
    choice(['redispatch', 'fail'], 'redispatch'),
    'What a retryable failure of a worker does to a step without retry: it is tried again, or fails.',
  ],
  maxBodyBytes: [
    'ENGINE_MAX_BODY_BYTES',
    bytes(10 * MIB, 1_024, 256 * MIB),
    'Larger bodies of requests are refused with 413.',
  ],
  maxContextBytes: [
    'ENGINE_MAX_CONTEXT_BYTES',
    bytes(MIB / 4, 0, 64 * MIB),
    'Larger contexts are refused with 413. 0: no limit.',
  ],
  maxOutputBytes: [
    'ENGINE_MAX_OUTPUT_BYTES',
    bytes(MIB, 1_024, 64 * MIB),
    'Larger outputs of workers are refused with 413.',
  ],
  allowInternalUrls: [
    'ENGINE_ALLOW_INTERNAL_URLS',
    toggle(undefined),
    'Whether http_request and webhooks may reach private addresses.',
    'false; true with --insecure-auth',
  ],
  corsOrigins: [
    'ENGINE_CORS_ORIGINS',
    list,
    'Origins whose pages may call the API from a browser, separated by commas.',
  ],
  cronTickMs: [
    'ENGINE_CRON_TICK_SECS',
    seconds(10, 1, 3_600),
    'The longest time between two safety scans for due schedules.',
  ],
  protectDocs: [
    'ENGINE_PROTECT_DOCS',
    toggle(false),
    'Whether the OpenAPI document asks for key and tenant.',
  ],
  webhookUrls: [
    'ENGINE_WEBHOOK_URLS',
    urls,
    'Addresses that are told of ended instances, separated by commas.',
  ],
  webhookSecret: [
    'ENGINE_WEBHOOK_SECRET',
    text,
    'Signs what is sent to them. Without it, nothing is signed.',
  ],
  retentionDays: [
    'ENGINE_RETENTION_DAYS',
    integer(0, 0, 36_500),
    'Instances that ended longer ago are removed. 0: never.',
  ],
  logLevel: [
    'ENGINE_LOG_LEVEL',
    choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
    'The least level of lines that are logged.',
  ],
  logFormat: [
    'ENGINE_LOG_FORMAT',
    choice(['auto', 'text', 'json'], 'auto'),
    'How lines are logged. auto: as text on a terminal, else as JSON.',
  ],
} as const satisfies Record<
  string,
  readonly [name: string, parse: Parse<unknown>, meaning: string, byDefault?: string]
>;

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

/** A variable in words. */
export interface Variable {
  readonly name: string;
  readonly meaning: string;
  readonly takes: string;
  readonly byDefault: string;
}

export const VARIABLES: readonly Variable[] = Object.values(KNOBS).map((knob) => {
  const [name, parse, meaning, inWords]: readonly [string, Parse<unknown>, string, string?] = knob;
  const { takes = 'a text', byDefault = 'none' } = parse;
  return { name, meaning, takes, byDefault: inWords ?? byDefault };
});

/** What `--help` prints. */
export const USAGE = [
  FLAGS_HELP,
  'Environment variables:',
  ...VARIABLES.map(({ name, meaning, takes, byDefault }) => {
    return `  ${name}\n      ${meaning}\n      Takes ${takes}. Default: ${byDefault}.`;
  }),
].join('\n\n');

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

/** @param byDefault undefined: none, or told in the row of the knob */
function described<T>(
  parse: (text: string | undefined, name: string) => T,
  takes: string,
  byDefault: string | number | boolean | undefined,
): Parse<T> {
  return Object.assign(parse, {
    takes,
    ...(byDefault === undefined ? {} : { byDefault: String(byDefault) }),
  });
}

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
  const parse = (value: string | undefined, name: string) => {
    if (value === undefined) return byDefault;
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new ConfigError(`${name} must be an integer from ${min} to ${max}, not "${value}"`);
    }
    return number;
  };
  return described(parse, `an integer from ${min} to ${max}`, byDefault);
}

/** In milliseconds. */
function seconds(byDefault: number, min: number, max: number): Parse<number> {
  const parse = integer(byDefault, min, max);
  return described(
    (value, name) => parse(value, name) * 1_000,
    `${parse.takes}, in seconds`,
    byDefault,
  );
}

function bytes(byDefault: number, min: number, max: number): Parse<number> {
  const parse = integer(byDefault, min, max);
  return described(parse, `${parse.takes}, in bytes`, `${byDefault} (${byDefault / MIB} MiB)`);
}

function toggle<Absent extends boolean | undefined>(absent: Absent): Parse<boolean | Absent> {
  const parse = (value: string | undefined, name: string) => {
    const word = value?.toLowerCase();
    if (word === undefined) return absent;
    if (word === 'true' || word === '1') return true;
    if (word === 'false' || word === '0') return false;
    throw new ConfigError(`${name} must be true, false, 1 or 0, not "${word}"`);
  };
  return described(parse, 'true, false, 1 or 0', absent);
}

function lenientToggle(byDefault: boolean): Parse<boolean> {
  const parse = (value: string | undefined) =>
    value === undefined ? byDefault : /^(?:true|1)$/i.test(value);
  return described(parse, 'true, false, 1 or 0', byDefault);
}

function choice<const T extends string>(allowed: readonly T[], byDefault: NoInfer<T>): Parse<T> {
  const parse = (value: string | undefined, name: string) => {
    const found = value === undefined ? byDefault : allowed.find((word) => word === value);
    if (found !== undefined) return found;
    throw new ConfigError(`${name} must be one of ${allowed.join(', ')}, not "${value}"`);
  };
  return described(parse, `one of ${allowed.join(', ')}`, byDefault);
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
  const parse = (value = byDefault, name: string) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
    const port = Number(match?.[3]);
    if (match === null || port > 65_535) {
      throw new ConfigError(`${name} must be host:port, not "${value}"`);
    }
    return { host: match[1] ?? match[2]!, port };
  };
  return described(parse, 'an address and a port', byDefault);
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
