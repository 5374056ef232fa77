/**
 * Every setting, from flags and the environment. They are checked once at start and frozen; a bad value stops the
 * start with a message that names the variable.
 */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { ConfigError } from '../base/config-error.js';
import { weaknessOf } from '../core/weak-secret.js';
import { isOwnMachine } from '../http/insecure-guard.js';
import {
  address,
  addressRanges,
  bytes,
  choice,
  color,
  databaseUrl,
  hexKey,
  integer,
  label,
  lenientToggle,
  list,
  MIB,
  outboundRules,
  type Parse,
  proxyUrl,
  schemaName,
  seconds,
  secret,
  text,
  toggle,
  trustedKeys,
  urls,
  webAddress,
} from './config-values.js';

/** The command line in words. */
export const FLAGS_HELP = `Usage: durable-workflow-engine start [--insecure-auth | --insecure-auth-anywhere] [--unsafe-database] [--migrate-only] [--help] [--version]
In a checkout: npm start -- [--insecure-auth] …

  --insecure-auth     accept every request without a key (for development), from this machine only
  --insecure-auth-anywhere
                      the same from any address, as a container needs it
  --unsafe-database   accept a Postgres with fsync or full_page_writes off, and run the embedded one
                      so (for tests)
  --migrate-only      wait until no engine owns the database, migrate it, and exit
  --help              print this help
  --version           print the version`;

/**
 * The variable, its parser, its meaning, and its default in words where the value says too little. `--help` and
 * docs/reference/environment.md show them.
 */
const KNOBS = {
  address: ['ENGINE_HTTP_ADDR', address('127.0.0.1:8080'), 'Where it listens, as host:port.'],
  httpBackend: [
    'ENGINE_HTTP_BACKEND',
    choice(['auto', 'uws', 'node'], 'auto'),
    'uWebSockets.js, node:http, or the first of them that loads.',
  ],
  maxConnections: [
    'ENGINE_MAX_CONNECTIONS',
    integer(10_000, 1, 1_000_000),
    'Concurrent client connections; fewer if the limit of open files is low. Others get 503.',
  ],
  maxConnectionsPerAddress: [
    'ENGINE_MAX_CONNECTIONS_PER_ADDRESS',
    integer(0, 0, 1_000_000),
    'The same per address that is not a trusted proxy; others get 429. 0: three quarters of all.',
  ],
  maxRequestsPerAddress: [
    'ENGINE_MAX_REQUESTS_PER_ADDRESS',
    integer(0, 0, 1_000_000),
    'Requests in flight per client address, including waiting polls and streams; others get 429. 0: 15000, three quarters of all.',
  ],
  trustedProxies: [
    'ENGINE_TRUSTED_PROXIES',
    addressRanges,
    'Proxies whose x-forwarded-for has the client address, and whose connections are not limited per address.',
  ],
  databaseUrl: [
    'DATABASE_URL',
    secret(databaseUrl),
    'A Postgres 15 or later. Without it, an embedded one in ENGINE_DATA_DIR.',
  ],
  migrationUrl: [
    'DATABASE_MIGRATION_URL',
    secret(databaseUrl),
    'The same database with the role that owns and migrates its tables; by default that of DATABASE_URL.',
  ],
  dbSchema: [
    'ENGINE_DB_SCHEMA',
    schemaName,
    'The database schema with the tables of this engine: its cell. Other cells may share the database.',
    'public',
  ],
  clusterUrl: [
    'ENGINE_CLUSTER_URL',
    secret(databaseUrl),
    'The Postgres with the directory of a cluster, which has the cell of each tenant. Without it there are no other cells.',
  ],
  advertisedAddress: [
    'ENGINE_ADVERTISED_ADDR',
    text,
    'The address at which others reach this engine, as host:port, for the directory of the cluster.',
    'ENGINE_HTTP_ADDR',
  ],
  dataDir: [
    'ENGINE_DATA_DIR',
    (value) => path.resolve(value ?? 'data'),
    'Folder of the embedded database and its generated root key.',
    './data',
  ],
  runMigrations: [
    'ENGINE_RUN_MIGRATIONS',
    toggle(true),
    'Whether the start migrates the database.',
  ],
  rowSecurity: [
    'ENGINE_ROW_SECURITY',
    choice(['auto', 'required', 'off'], 'auto'),
    'Whether row level security restricts reads of a tenant: auto, if the database roles allow it; required, or the start fails.',
  ],
  dbSynchronous: [
    'ENGINE_DB_SYNCHRONOUS',
    choice(['auto', 'required', 'off'], 'auto'),
    'Whether commits must be on a replica before they are acknowledged. auto: a warning if they are not; required: the start fails; off: no check.',
  ],
  apiKey: [
    'ENGINE_API_KEY',
    secret(text),
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
    'Confirms ENGINE_REQUIRE_TENANT_HEADER=false while keys are required.',
  ],
  encryptionKey: [
    'ENGINE_ENCRYPTION_KEY',
    secret(hexKey),
    'Seals secrets, and seals and signs capsules: 64 hexadecimal digits. Generated with the embedded database. Without it, requests that need it get 503.',
  ],
  oldEncryptionKey: [
    'ENGINE_OLD_ENCRYPTION_KEY',
    secret(hexKey),
    'The former key, which still opens and verifies.',
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
    'Connections that write to the database. 0: 1 on one or two cores or with a fast disk, else up to 4, as measured at the start.',
  ],
  tickIntervalMs: [
    'ENGINE_TICK_INTERVAL_MS',
    integer(100, 10, 60_000),
    'The longest time between two safety scans for due timers.',
  ],
  workerStaleMs: [
    'ENGINE_WORKER_REAPER_STALE_SECS',
    seconds(60, 1, 86_400),
    'A worker without a heartbeat for this long loses its claim.',
  ],
  workerReaperTickMs: [
    'ENGINE_WORKER_REAPER_TICK_SECS',
    seconds(5, 1, 3_600),
    'How often lost claims are looked for.',
  ],
  lostClaimsMax: [
    'ENGINE_WORKER_LOST_CLAIMS_MAX',
    integer(10, 0, 1_000_000),
    'An attempt that lost this many claims fails permanently (claims_lost). 0: never.',
  ],
  stepTimeoutMaxMs: [
    'ENGINE_STEP_TIMEOUT_MAX_SECS',
    seconds(300, 1, 86_400),
    'The longest time of a call in the server (http_request), whatever its timeout_ms.',
  ],
  requireClaimEpoch: [
    'ENGINE_REQUIRE_CLAIM_EPOCH',
    toggle(false),
    'Whether workers must send claim_epoch.',
  ],
  unpoliciedRetry: [
    'ENGINE_UNPOLICIED_RETRY',
    choice(['redispatch', 'fail'], 'redispatch'),
    'Whether a retryable worker failure of a step without retry is retried, or fails the step.',
  ],
  maxBodyBytes: [
    'ENGINE_MAX_BODY_BYTES',
    bytes(10 * MIB, 1_024, 256 * MIB),
    'Larger request bodies get 413. Most routes have a lower limit.',
  ],
  maxContextBytes: [
    'ENGINE_MAX_CONTEXT_BYTES',
    bytes(MIB / 4, 0, 64 * MIB),
    'Larger contexts get 413. 0: no limit.',
  ],
  maxOutputBytes: [
    'ENGINE_MAX_OUTPUT_BYTES',
    bytes(MIB, 1_024, 64 * MIB),
    'Larger outputs of workers get 413.',
  ],
  allowInternalUrls: [
    'ENGINE_ALLOW_INTERNAL_URLS',
    toggle(undefined),
    'Whether http_request and webhooks may reach private addresses.',
    'false; true with --insecure-auth',
  ],
  httpAllow: [
    'ENGINE_HTTP_ALLOW',
    outboundRules,
    'Non-public addresses that http_request and webhooks may reach.',
  ],
  httpDeny: [
    'ENGINE_HTTP_DENY',
    outboundRules,
    'Addresses that they may not reach, whatever else is allowed.',
  ],
  httpRatePerTenant: [
    'ENGINE_HTTP_RATE_PER_TENANT',
    integer(0, 0, 1_000_000),
    'http_request calls and webhooks per tenant and second; further ones wait. 0: no limit.',
  ],
  httpProxy: [
    'ENGINE_HTTP_PROXY',
    secret(proxyUrl),
    'A proxy for them, which must accept CONNECT.',
  ],
  httpNoProxy: [
    'ENGINE_HTTP_NO_PROXY',
    list,
    'Hosts, with their subdomains, that are reached without the proxy, separated by commas.',
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
    'Whether the OpenAPI document requires key and tenant.',
  ],
  isUiServed: ['ENGINE_UI', toggle(true), 'Whether the dashboard is served, below /ui/.'],
  envLabel: [
    'ENGINE_ENV_LABEL',
    label,
    'The environment, such as production; public in /info, and on every page of the dashboard.',
  ],
  envColor: ['ENGINE_ENV_COLOR', color, 'Its colour in the dashboard.'],
  webhookUrls: [
    'ENGINE_WEBHOOK_URLS',
    secret(urls),
    'Addresses that receive a webhook for each ended instance, separated by commas.',
  ],
  webhookSecret: [
    'ENGINE_WEBHOOK_SECRET',
    secret(text),
    'Signs these webhooks. Without it, they are unsigned.',
  ],
  retentionDays: [
    'ENGINE_RETENTION_DAYS',
    integer(0, 0, 36_500),
    'Instances that ended longer ago are deleted. 0: never.',
  ],
  publicUrl: [
    'ENGINE_PUBLIC_URL',
    webAddress,
    'The public URL of the server, with any path that a proxy puts before /api/v1; links begin with it.',
    'the address of the request, with http',
  ],
  logLevel: [
    'ENGINE_LOG_LEVEL',
    choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
    'The lowest level that is logged.',
  ],
  logFormat: [
    'ENGINE_LOG_FORMAT',
    choice(['auto', 'text', 'json'], 'auto'),
    'The format of log lines. auto: text on a terminal, else JSON.',
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
  /** Without keys and reachable by others than this machine. */
  readonly insecureAuthAnywhere: boolean;
  /** A database that may lose what it acknowledged, when its machine dies, is accepted. */
  readonly unsafeDatabase: boolean;
  /** It ends once the tables are up to date, and serves nothing. */
  readonly migrateOnly: boolean;
  readonly allowInternalUrls: boolean;
}

/** A variable in words. */
export interface Variable {
  readonly name: string;
  /** The one that may name a file with its value instead. */
  readonly fileName: string | undefined;
  readonly meaning: string;
  readonly takes: string;
  readonly byDefault: string;
}

export const VARIABLES: readonly Variable[] = Object.values(KNOBS).map((knob) => {
  const [name, parse, meaning, inWords]: readonly [string, Parse<unknown>, string, string?] = knob;
  const { takes = 'a text', byDefault = 'none', isSecret } = parse;
  const fileName = isSecret ? fileNameOf(name) : undefined;
  return { name, fileName, meaning, takes, byDefault: inWords ?? byDefault };
});

/** What `--help` prints. */
export const USAGE = [
  FLAGS_HELP,
  'Environment variables:',
  ...VARIABLES.map(({ name, fileName, meaning, takes, byDefault }) => {
    const names = fileName === undefined ? name : `${name}, or ${fileName} with the path of a file`;
    return `  ${names}\n      ${meaning}\n      Takes ${takes}. Default: ${byDefault}.`;
  }),
].join('\n\n');

/** What tells the command line which server to ask (docs/cli.md). */
const OF_THE_COMMAND_LINE = ['ENGINE_URL', 'ENGINE_TENANT', 'ENGINE_PROFILE'];

/** Those that begin like ours and mean nothing. */
export function unknownNames(env: NodeJS.ProcessEnv): string[] {
  const ours = VARIABLES.flatMap(({ name, fileName }) => [name, fileName]);
  const known = new Set([...ours, ...OF_THE_COMMAND_LINE]);
  return Object.keys(env).filter((name) => name.startsWith('ENGINE_') && !known.has(name));
}

/**
 * @param args the command line after the script: `FLAGS` only
 * @throws ConfigError naming the variable or flag that is wrong
 */
export function readConfig(env: NodeJS.ProcessEnv, args: readonly string[]): Config {
  const flags = readFlags(args);
  const insecureAuthAnywhere = flags.has('--insecure-auth-anywhere');
  const insecureAuth = insecureAuthAnywhere || flags.has('--insecure-auth');
  const migrateOnly = flags.has('--migrate-only');
  const unsafeDatabase = flags.has('--unsafe-database');
  const read = readKnobs(env);
  const settings = { ...read, insecureAuth, insecureAuthAnywhere, migrateOnly };
  for (const problemIn of PROBLEMS) {
    const problem = problemIn(settings);
    if (problem !== false) throw new ConfigError(problem);
  }
  const { address, allowNoTenantIsolation: _, ...knobs } = read;
  return Object.freeze({
    ...knobs,
    ...{ host: address.host, port: address.port },
    ...{ insecureAuth, insecureAuthAnywhere, unsafeDatabase, migrateOnly },
    apiKey: insecureAuth ? undefined : knobs.apiKey,
    allowInternalUrls: knobs.allowInternalUrls ?? insecureAuth,
  });
}

function readKnobs(env: NodeJS.ProcessEnv): Knobs {
  const values = Object.entries(KNOBS).map(([knob, [name, parse]]) => {
    return [knob, parse(knobText(env, name, parse), name)];
  });
  return Object.fromEntries(values) as Knobs;
}

const GUESSED = ['apiKey', 'encryptionKey', 'oldEncryptionKey', 'webhookSecret'] as const;

/** The settings whose secrets could be guessed, and what is wrong with each. */
export function weakSettings(
  config: Readonly<Pick<Knobs, (typeof GUESSED)[number]>>,
): { readonly setting: string; readonly why: string }[] {
  return GUESSED.flatMap((knob) => {
    const why = weaknessOf(config[knob] ?? '');
    return config[knob] === undefined || why === undefined
      ? []
      : [{ setting: KNOBS[knob][0], why }];
  });
}

function fileNameOf(name: string): string {
  return `${name}_FILE`;
}

/** What the variable says, or the file that is named in its place. */
function knobText(
  env: NodeJS.ProcessEnv,
  name: string,
  { isSecret }: Parse<unknown>,
): string | undefined {
  const given = env[name]?.trim() || undefined;
  const fileName = fileNameOf(name);
  const file = isSecret ? env[fileName]?.trim() : undefined;
  if (!file) return given;
  if (given !== undefined) throw new ConfigError(`${name} and ${fileName} are both set: unset one`);
  const value = textIn(file, fileName).trim();
  if (value === '') throw new ConfigError(`${fileName}: the file ${file} is empty`);
  return value;
}

function textIn(file: string, fileName: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${fileName}: the file ${file} cannot be read (${code})`, {
      cause: error,
    });
  }
}

type Settings = Knobs & Pick<Config, 'insecureAuth' | 'insecureAuthAnywhere' | 'migrateOnly'>;

/** Settings that exclude one another, or would open the server further than was probably meant. */
const PROBLEMS: readonly ((settings: Settings) => string | false)[] = [
  ({ migrationUrl, databaseUrl }) =>
    migrationUrl !== undefined &&
    databaseUrl === undefined &&
    'DATABASE_MIGRATION_URL is set and DATABASE_URL is not: set both, or none',
  ({ migrateOnly, runMigrations }) =>
    migrateOnly &&
    !runMigrations &&
    '--migrate-only and ENGINE_RUN_MIGRATIONS=false exclude one another',
  ({ clusterUrl, requireTenantHeader }) =>
    clusterUrl !== undefined &&
    !requireTenantHeader &&
    'ENGINE_REQUIRE_TENANT_HEADER=false and ENGINE_CLUSTER_URL exclude one another: in a cluster ' +
      'requests have to name their tenant',
  ({ insecureAuth, requireTenantHeader, allowNoTenantIsolation }) =>
    !insecureAuth &&
    !requireTenantHeader &&
    !allowNoTenantIsolation &&
    'ENGINE_REQUIRE_TENANT_HEADER=false lets every key reach every tenant; set ' +
      'ENGINE_ALLOW_NO_TENANT_ISOLATION=true to confirm it',
  ({ insecureAuth, databaseUrl, apiKey }) =>
    !insecureAuth &&
    databaseUrl !== undefined &&
    apiKey === undefined &&
    'ENGINE_API_KEY is not set: set it to the root key that clients will send in x-api-key, ' +
      'or start with --insecure-auth for development',
  ({ insecureAuth, corsOrigins }) =>
    !insecureAuth &&
    corsOrigins.includes('*') &&
    'ENGINE_CORS_ORIGINS must not contain * while keys are required',
  ({ insecureAuth, insecureAuthAnywhere, address: { host } }) =>
    insecureAuth &&
    !insecureAuthAnywhere &&
    !isOwnMachine(host) &&
    `--insecure-auth asks for no keys, and ENGINE_HTTP_ADDR=${host}:… lets others than this machine in; ` +
      'listen on 127.0.0.1, or give --insecure-auth-anywhere instead where only you can reach the ' +
      'address, as in a container published with -p 127.0.0.1:8080:8080',
];

const FLAGS: ReadonlySet<string> = new Set([
  '--insecure-auth',
  '--insecure-auth-anywhere',
  '--unsafe-database',
  '--migrate-only',
]);

function readFlags(args: readonly string[]): ReadonlySet<string> {
  const unknown = args.find((arg) => !FLAGS.has(arg));
  if (unknown !== undefined)
    throw new ConfigError(`unknown flag ${unknown}; --help lists the flags`);
  return new Set(args);
}
