/** Describes every setting, for `--help` and docs/reference/environment.md. */

import { fileNameOf, KNOBS } from './config.js';
import type { Parse } from './config-values.js';

export const FLAGS_HELP = `Usage: durable-workflow-engine start [--insecure-auth | --insecure-auth-anywhere] [--unsafe-database] [--migrate-only] [--manual-clock] [--help] [--version]
In a checkout: npm start -- [--insecure-auth] …

  --insecure-auth     accept every request without a key (for development), from this machine only
  --insecure-auth-anywhere
                      the same from any address, as a container needs it
  --unsafe-database   accept a Postgres with fsync or full_page_writes off, and run the embedded one
                      so (for tests)
  --migrate-only      wait until no engine owns the database, migrate it, and exit
  --manual-clock      time stands still until the parent process moves it; only for servers that
                      tests start (docs/testing.md)
  --help              print this help
  --version           print the version`;

/** The meaning of each variable, and its default in words where the value is not clear. */
const MEANINGS: Readonly<Record<keyof typeof KNOBS, string | readonly [string, string]>> = {
  address: 'Where it listens, as host:port.',
  httpBackend: 'uWebSockets.js, node:http, or the first of them that loads.',
  maxConnections:
    'Concurrent client connections; fewer if the limit of open files is low. Others get 503.',
  maxConnectionsPerAddress:
    'The same per address that is not a trusted proxy; others get 429. 0: three quarters of all.',
  maxRequestsPerAddress:
    'Requests in flight per client address, including waiting polls and streams; others get 429. 0: 15000, three quarters of all.',
  trustedProxies:
    'Proxies whose x-forwarded-for has the client address, and whose connections are not limited per address.',
  databaseUrl: 'A Postgres 15 or later. Without it, an embedded one in ENGINE_DATA_DIR.',
  migrationUrl:
    'The same database with the role that owns and migrates its tables; by default that of DATABASE_URL.',
  dbSchema: [
    'The database schema with the tables of this engine: its cell. Other cells may share the database.',
    'public',
  ],
  clusterUrl:
    'The Postgres with the directory of a cluster, which has the cell of each tenant. Without it there are no other cells.',
  advertisedAddress: [
    'The address at which others reach this engine, as host:port, for the directory of the cluster.',
    'ENGINE_HTTP_ADDR',
  ],
  dataDir: ['Folder of the embedded database and its generated root key.', './data'],
  runMigrations: 'Whether the start migrates the database.',
  rowSecurity:
    'Whether row level security restricts reads of a tenant: auto, if the database roles allow it; required, or the start fails.',
  dbSynchronous:
    'Whether commits must be on a replica before they are acknowledged. auto: a warning if they are not; required: the start fails; off: no check.',
  apiKey:
    'The root key, which may do everything. Must be set with DATABASE_URL; generated without it.',
  requireTenantHeader: 'Whether requests must carry x-tenant-id. Any word but true and 1 is false.',
  allowNoTenantIsolation: 'Confirms ENGINE_REQUIRE_TENANT_HEADER=false while keys are required.',
  encryptionKey:
    'Seals secrets, and seals and signs capsules: 64 hexadecimal digits. Generated with the embedded database. Without it, requests that need it get 503.',
  oldEncryptionKey: 'The former key, which still opens and verifies.',
  trustedSigningKeys: [
    'Public keys of servers whose capsules, receipts and grants are trusted: a JSON object of key id to Ed25519 key in base64.',
    '{}',
  ],
  shards: ['Threads that run instances.', 'one less than there are cores'],
  writerLanes:
    'Connections that write to the database. 0: 1 on one or two cores or with a fast disk, else up to 4, as measured at the start.',
  tickIntervalMs: 'The longest time between two safety scans for due timers.',
  workerStaleMs: 'A worker without a heartbeat for this long loses its claim.',
  workerReaperTickMs: 'How often lost claims are looked for.',
  lostClaimsMax: 'An attempt that lost this many claims fails permanently (claims_lost). 0: never.',
  stepTimeoutMaxMs:
    'The longest time of a call in the server (http_request), whatever its timeout_ms.',
  requireClaimEpoch: 'Whether workers must send claim_epoch.',
  unpoliciedRetry:
    'Whether a retryable worker failure of a step without retry is retried, or fails the step.',
  maxBodyBytes: 'Larger request bodies get 413. Most routes have a lower limit.',
  maxContextBytes: 'Larger contexts get 413. 0: no limit.',
  maxOutputBytes: 'Larger outputs of workers get 413.',
  allowInternalUrls: [
    'Whether http_request, webhooks and worker endpoints may reach private addresses.',
    'false; true with --insecure-auth',
  ],
  httpAllow: 'Non-public addresses that http_request, webhooks and worker endpoints may reach.',
  httpDeny: 'Addresses that they may not reach, whatever else is allowed.',
  httpRatePerTenant:
    'http_request calls, webhooks and requests to worker endpoints per tenant and second; further ones wait. 0: no limit.',
  httpProxy: 'A proxy for them, which must accept CONNECT.',
  httpNoProxy:
    'Hosts, with their subdomains, that are reached without the proxy, separated by commas.',
  corsOrigins: 'Origins whose pages may call the API from a browser, separated by commas.',
  cronTickMs: 'The longest time between two safety scans for due schedules.',
  protectDocs: 'Whether the OpenAPI document requires key and tenant.',
  isUiServed: 'Whether the dashboard is served, below /ui/.',
  envLabel:
    'The environment, such as production; public in /info, and on every page of the dashboard.',
  envColor: 'Its colour in the dashboard.',
  uiLinks:
    'Links of the dashboard to other systems, such as logs and traces; public in /info. See the dashboard.',
  webhookUrls: 'Addresses that receive a webhook for each ended instance, separated by commas.',
  webhookSecret: 'Signs these webhooks. Without it, they are unsigned.',
  retentionDays: 'Instances that ended longer ago are deleted. 0: never.',
  activityDays: 'Older actions (GET /actions) are deleted. 0: never.',
  publicUrl: [
    'The public URL of the server, with any path that a proxy puts before /api/v1; links begin with it.',
    'the address of the request, with http',
  ],
  logLevel: 'The lowest level that is logged.',
  logFormat: 'The format of log lines. auto: text on a terminal, else JSON.',
};

export interface Variable {
  readonly name: string;
  /** The variable that may name a file with the value. */
  readonly fileName: string | undefined;
  readonly meaning: string;
  readonly takes: string;
  readonly byDefault: string;
}

export const VARIABLES: readonly Variable[] = Object.entries(KNOBS).map(([knob, row]) => {
  const [name, parse]: readonly [string, Parse<unknown>] = row;
  const [meaning, inWords] = [MEANINGS[knob as keyof typeof KNOBS]].flat();
  const { takes = 'a text', byDefault = 'none', isSecret } = parse;
  const fileName = isSecret ? fileNameOf(name) : undefined;
  return { name, fileName, meaning: meaning as string, takes, byDefault: inWords ?? byDefault };
});

export const USAGE = [
  FLAGS_HELP,
  'Environment variables:',
  ...VARIABLES.map(({ name, fileName, meaning, takes, byDefault }) => {
    const names = fileName === undefined ? name : `${name}, or ${fileName} with the path of a file`;
    return `  ${names}\n      ${meaning}\n      Takes ${takes}. Default: ${byDefault}.`;
  }),
].join('\n\n');
