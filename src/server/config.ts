/**
 * All settings, from flags and the environment, checked once at start and frozen. An invalid value stops the start
 * with a message that names the variable.
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
  uiLinks,
  urls,
  webAddress,
} from './config-values.js';

/** The variable of each setting, and its parser. `config-help.ts` describes them. */
export const KNOBS = {
  address: ['ENGINE_HTTP_ADDR', address('127.0.0.1:8080')],
  httpBackend: ['ENGINE_HTTP_BACKEND', choice(['auto', 'uws', 'node'], 'auto')],
  maxConnections: ['ENGINE_MAX_CONNECTIONS', integer(10_000, 1, 1_000_000)],
  maxConnectionsPerAddress: ['ENGINE_MAX_CONNECTIONS_PER_ADDRESS', integer(0, 0, 1_000_000)],
  maxRequestsPerAddress: ['ENGINE_MAX_REQUESTS_PER_ADDRESS', integer(0, 0, 1_000_000)],
  trustedProxies: ['ENGINE_TRUSTED_PROXIES', addressRanges],
  databaseUrl: ['DATABASE_URL', secret(databaseUrl)],
  migrationUrl: ['DATABASE_MIGRATION_URL', secret(databaseUrl)],
  dbSchema: ['ENGINE_DB_SCHEMA', schemaName],
  clusterUrl: ['ENGINE_CLUSTER_URL', secret(databaseUrl)],
  advertisedAddress: ['ENGINE_ADVERTISED_ADDR', text],
  dataDir: ['ENGINE_DATA_DIR', (value) => path.resolve(value ?? 'data')],
  runMigrations: ['ENGINE_RUN_MIGRATIONS', toggle(true)],
  rowSecurity: ['ENGINE_ROW_SECURITY', choice(['auto', 'required', 'off'], 'auto')],
  dbSynchronous: ['ENGINE_DB_SYNCHRONOUS', choice(['auto', 'required', 'off'], 'auto')],
  apiKey: ['ENGINE_API_KEY', secret(text)],
  requireTenantHeader: ['ENGINE_REQUIRE_TENANT_HEADER', lenientToggle(true)],
  allowNoTenantIsolation: ['ENGINE_ALLOW_NO_TENANT_ISOLATION', toggle(false)],
  encryptionKey: ['ENGINE_ENCRYPTION_KEY', secret(hexKey)],
  oldEncryptionKey: ['ENGINE_OLD_ENCRYPTION_KEY', secret(hexKey)],
  trustedSigningKeys: ['ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON', trustedKeys],
  shards: ['ENGINE_SHARDS', integer(Math.max(1, availableParallelism() - 1), 1, 64)],
  writerLanes: ['ENGINE_WRITER_LANES', integer(0, 0, 16)],
  tickIntervalMs: ['ENGINE_TICK_INTERVAL_MS', integer(100, 10, 60_000)],
  workerStaleMs: ['ENGINE_WORKER_REAPER_STALE_SECS', seconds(60, 1, 86_400)],
  workerReaperTickMs: ['ENGINE_WORKER_REAPER_TICK_SECS', seconds(5, 1, 3_600)],
  lostClaimsMax: ['ENGINE_WORKER_LOST_CLAIMS_MAX', integer(10, 0, 1_000_000)],
  stepTimeoutMaxMs: ['ENGINE_STEP_TIMEOUT_MAX_SECS', seconds(300, 1, 86_400)],
  requireClaimEpoch: ['ENGINE_REQUIRE_CLAIM_EPOCH', toggle(false)],
  unpoliciedRetry: ['ENGINE_UNPOLICIED_RETRY', choice(['redispatch', 'fail'], 'redispatch')],
  maxBodyBytes: ['ENGINE_MAX_BODY_BYTES', bytes(10 * MIB, 1_024, 256 * MIB)],
  maxContextBytes: ['ENGINE_MAX_CONTEXT_BYTES', bytes(MIB / 4, 0, 64 * MIB)],
  maxOutputBytes: ['ENGINE_MAX_OUTPUT_BYTES', bytes(MIB, 1_024, 64 * MIB)],
  allowInternalUrls: ['ENGINE_ALLOW_INTERNAL_URLS', toggle(undefined)],
  httpAllow: ['ENGINE_HTTP_ALLOW', outboundRules],
  httpDeny: ['ENGINE_HTTP_DENY', outboundRules],
  httpRatePerTenant: ['ENGINE_HTTP_RATE_PER_TENANT', integer(0, 0, 1_000_000)],
  httpProxy: ['ENGINE_HTTP_PROXY', secret(proxyUrl)],
  httpNoProxy: ['ENGINE_HTTP_NO_PROXY', list],
  corsOrigins: ['ENGINE_CORS_ORIGINS', list],
  cronTickMs: ['ENGINE_CRON_TICK_SECS', seconds(10, 1, 3_600)],
  protectDocs: ['ENGINE_PROTECT_DOCS', toggle(false)],
  isUiServed: ['ENGINE_UI', toggle(true)],
  envLabel: ['ENGINE_ENV_LABEL', label],
  envColor: ['ENGINE_ENV_COLOR', color],
  uiLinks: ['ENGINE_UI_LINKS', uiLinks],
  webhookUrls: ['ENGINE_WEBHOOK_URLS', secret(urls)],
  webhookSecret: ['ENGINE_WEBHOOK_SECRET', secret(text)],
  retentionDays: ['ENGINE_RETENTION_DAYS', integer(0, 0, 36_500)],
  activityDays: ['ENGINE_ACTIVITY_DAYS', integer(90, 0, 36_500)],
  publicUrl: ['ENGINE_PUBLIC_URL', webAddress],
  logLevel: [
    'ENGINE_LOG_LEVEL',
    choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
  ],
  logFormat: ['ENGINE_LOG_FORMAT', choice(['auto', 'text', 'json'], 'auto')],
} as const satisfies Record<string, readonly [name: string, parse: Parse<unknown>]>;

type Knobs = {
  readonly [Knob in keyof typeof KNOBS]: ReturnType<(typeof KNOBS)[Knob][1]>;
};

export interface Config extends Omit<Knobs, 'address' | 'allowNoTenantIsolation'> {
  readonly host: string;
  readonly port: number;
  readonly insecureAuth: boolean;
  /** Without keys, and reachable from other machines. */
  readonly insecureAuthAnywhere: boolean;
  /** Accept a database that may lose acknowledged commits when its machine crashes. */
  readonly unsafeDatabase: boolean;
  readonly migrateOnly: boolean;
  /** The parent process moves the time (`manual-time.ts`). */
  readonly manualClock: boolean;
  readonly allowInternalUrls: boolean;
}

/** Variables of the command line client (docs/cli.md). */
const OF_THE_COMMAND_LINE = ['ENGINE_URL', 'ENGINE_TENANT', 'ENGINE_NAMESPACE', 'ENGINE_PROFILE'];

export function unknownNames(env: NodeJS.ProcessEnv): string[] {
  const rows: readonly (readonly [string, Parse<unknown>])[] = Object.values(KNOBS);
  const ours = rows.flatMap(([name, { isSecret }]) => (isSecret ? [name, fileNameOf(name)] : name));
  const known = new Set([...ours, ...OF_THE_COMMAND_LINE]);
  return Object.keys(env).filter((name) => name.startsWith('ENGINE_') && !known.has(name));
}

/** @param args command line flags @throws ConfigError naming the invalid variable or flag */
export function readConfig(env: NodeJS.ProcessEnv, args: readonly string[]): Config {
  const unknown = args.find((arg) => !FLAGS.includes(arg));
  if (unknown !== undefined) {
    throw new ConfigError(`unknown flag ${unknown}; --help lists the flags`);
  }
  const flags = new Set(args);
  const insecureAuthAnywhere = flags.has('--insecure-auth-anywhere');
  const insecureAuth = insecureAuthAnywhere || flags.has('--insecure-auth');
  const migrateOnly = flags.has('--migrate-only');
  const unsafeDatabase = flags.has('--unsafe-database');
  const values = Object.entries(KNOBS).map(([knob, [name, parse]]) => {
    return [knob, parse(knobText(env, name, parse), name)];
  });
  const read = Object.fromEntries(values) as Knobs;
  const manualClock = flags.has('--manual-clock');
  const modes = { insecureAuth, insecureAuthAnywhere, unsafeDatabase, migrateOnly, manualClock };
  const settings = { ...read, ...modes };
  for (const problemIn of PROBLEMS) {
    const problem = problemIn(settings);
    if (problem !== false) throw new ConfigError(problem);
  }
  const { address, allowNoTenantIsolation: _, ...knobs } = read;
  return Object.freeze({
    ...knobs,
    ...{ host: address.host, port: address.port },
    ...modes,
    apiKey: insecureAuth ? undefined : knobs.apiKey,
    allowInternalUrls: knobs.allowInternalUrls ?? insecureAuth,
  });
}

const GUESSED = ['apiKey', 'encryptionKey', 'oldEncryptionKey', 'webhookSecret'] as const;

/** The settings with guessable secrets, and the reason. */
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

export function fileNameOf(name: string): string {
  return `${name}_FILE`;
}

/** The value of the variable, or the content of the file named by its `_FILE` variable. */
function knobText(
  env: NodeJS.ProcessEnv,
  name: string,
  { isSecret }: Parse<unknown>,
): string | undefined {
  const value = env[name]?.trim() || undefined;
  const fileName = fileNameOf(name);
  const file = isSecret ? env[fileName]?.trim() : undefined;
  if (!file) return value;
  if (value !== undefined) throw new ConfigError(`${name} and ${fileName} are both set: unset one`);
  let content: string;
  try {
    content = readFileSync(file, 'utf8').trim();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`${fileName}: the file ${file} cannot be read (${code})`, { cause });
  }
  if (content === '') throw new ConfigError(`${fileName}: the file ${file} is empty`);
  return content;
}

type Mode =
  | 'insecureAuth'
  | 'insecureAuthAnywhere'
  | 'unsafeDatabase'
  | 'migrateOnly'
  | 'manualClock';
type Settings = Knobs & Pick<Config, Mode>;

/** Settings that exclude one another, or would make the server more accessible than probably intended. */
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
  // Never by accident: the time of a database that is in use would stand still.
  ({ manualClock, unsafeDatabase, databaseUrl }) =>
    manualClock &&
    !(unsafeDatabase && isOfTest(databaseUrl)) &&
    '--manual-clock is for servers that tests start: it needs --unsafe-database, and either the ' +
      'embedded database or one whose name begins with engine_test_',
];

function isOfTest(databaseUrl: string | undefined): boolean {
  return databaseUrl === undefined || /\/engine_test_[^/]*$/.test(new URL(databaseUrl).pathname);
}

const FLAGS = [
  '--insecure-auth',
  '--insecure-auth-anywhere',
  '--unsafe-database',
  '--migrate-only',
  '--manual-clock',
];
