/** Checks of a server through its API: readiness, version, clock, key, workers and load. */

import {
  type Client,
  EngineError,
  type TaskStats,
  type WorkerInfo,
} from '../../client/src/index.js';
import type { Info, NotReady } from '../../schema/system.js';
import { packageVersion } from '../../src/base/package-files.js';
import { weaknessOf } from '../../src/core/weak-secret.js';
import type { Session } from '../session.js';
import { durationText } from '../table.js';
import { type Check, check, ok } from './check.js';

/** The header has whole seconds, and the request takes time. */
const CLOCK_MS_MAX = 2_500;
const SLOW_MS = 1_000;
const PROBE_MS = 10_000;

/** Sent without a key. If the answer is not that of an engine, no other check is possible. */
export async function reachChecks({ connection }: Session): Promise<Check[]> {
  const { url } = connection;
  const about = 'server';
  const startedAt = Date.now();
  let reply: Response;
  try {
    reply = await probe(`${url}/health/live`);
  } catch (error) {
    const { cause, message } = error as Error & { readonly cause?: { readonly code?: string } };
    const why = cause?.code ?? message;
    return [
      check(
        'bad',
        about,
        `${url} does not answer (${why})`,
        'Check that the server is running and that this is its address (--url, profiles).',
      ),
    ];
  }
  const tookMs = Date.now() - startedAt;
  if (!reply.ok) {
    return [
      check(
        'bad',
        about,
        `${url} answers ${reply.status}`,
        'Another program listens there, or a proxy cannot reach the server.',
      ),
    ];
  }
  const reached = `${url} answered in ${tookMs} ms`;
  return [
    tookMs > SLOW_MS
      ? check('warn', about, reached, 'Check the network and the load of its machine.')
      : ok(about, reached),
    clockCheck(reply.headers.get('date'), startedAt + tookMs / 2),
    await readyCheck(url),
    ...infoFindings(await infoOf(url)),
  ];
}

const probe = (address: string) => fetch(address, { signal: AbortSignal.timeout(PROBE_MS) });

/** @param here the time of this machine when the response was made */
export function clockCheck(date: string | null, here: number): Check {
  const about = 'clock';
  const there = Date.parse(date ?? '');
  if (Number.isNaN(there))
    return check(
      'unknown',
      about,
      'the response has no Date header',
      'A proxy may have removed it.',
    );
  const differenceMs = here - there;
  const isNear = differenceMs > -CLOCK_MS_MAX && differenceMs < CLOCK_MS_MAX;
  if (isNear) return ok(about, 'in sync with this machine');
  const side = differenceMs > 0 ? 'behind' : 'ahead of';
  return check(
    'warn',
    about,
    `is ${durationText(Math.abs(differenceMs))} ${side} this machine`,
    'Synchronize both clocks with NTP; the engine itself uses the clock of its database.',
  );
}

/** What to do for each reason that readiness reports. */
const READY_TODO: Readonly<Record<string, string>> = {
  unreachable: 'Start Postgres, or fix the connection to it.',
  rights: "Restore the rights of the engine's role: docs/operate/roles.md.",
  disk: 'Free space on the disk of the database.',
};

async function readyCheck(url: string): Promise<Check> {
  const reply = await probe(`${url}/health/ready`);
  return readyFinding(reply.ok ? undefined : ((await reply.json()) as Partial<NotReady>));
}

/** @param told what a server that is not ready reports; undefined: the server is ready */
export function readyFinding(told: Partial<NotReady> | undefined): Check {
  const about = 'ready';
  if (told === undefined) return ok(about, 'owns its database and can write');
  const { error = '', reason } = told;
  if (reason?.kind === 'lease') return ok(about, 'a standby that waits for the owner to stop');
  const state = reason?.sql_state === undefined ? '' : ` (${reason.sql_state})`;
  const todo =
    READY_TODO[reason?.kind ?? ''] ??
    'See docs/operate/troubleshooting.md, unless this server is a standby.';
  return check('bad', about, `${error}${state}`, todo);
}

/** From the path that proxies in front of cells answer for any of them. */
async function infoOf(url: string): Promise<Partial<Info>> {
  return (await (await probe(`${url}/info`)).json()) as Partial<Info>;
}

/** Its version, and whether it has the encryption key of its secrets (docs/operate/encryption-key.md). */
export function infoFindings({ version, encryption_key }: Partial<Info>): Check[] {
  const own = packageVersion();
  const todo = `Use npx durable-workflow-engine@${version}: some commands may not work with another version.`;
  const told = `the server has version ${version}, this command line ${own}`;
  const about = 'secrets';
  return [
    version === own
      ? ok('version', `${version}, same as this command line`)
      : check('warn', 'version', told, todo),
    ...(encryption_key === 'fits' ? [ok(about, 'the encryption key opens every secret')] : []),
    ...(encryption_key === 'former'
      ? [check('warn', about, 'some secrets are encrypted with the old key', GIVE_ANEW)]
      : []),
    ...(encryption_key === 'other'
      ? [
          check(
            'bad',
            about,
            'secrets are encrypted with a key that the server does not have',
            OTHER_KEY,
          ),
        ]
      : []),
  ];
}

const GIVE_ANEW = 'Set them again before you remove ENGINE_OLD_ENCRYPTION_KEY.';
const OTHER_KEY =
  'Start the server with that key, or set them again: docs/operate/encryption-key.md.';

// ---------------------------------------------------------------- the key

type Probe = readonly [what: string, ask: (client: Client, tenant: string) => PromiseLike<unknown>];

/** An id that no instance and no definition has. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

/** Harmless requests, each of which needs another right. */
const PROBES: readonly Probe[] = [
  ['read instances', (client) => client.instances.list({ limit: 1 })],
  ['see workers', (client) => client.workers.stats()],
  [
    'publish definitions',
    (client, tenant) =>
      client.sequences.validate({
        tenant_id: tenant,
        namespace: 'doctor',
        name: 'doctor',
        version: 1,
        blocks: [],
      }),
  ],
  [
    'change instances',
    (client) =>
      client.instances.batchAction({
        filter: { sequence_id: NOBODY },
        action: 'pause',
        dry_run: true,
      }),
  ],
  ['manage keys', (client, tenant) => client.apiKeys.list({ tenant_id: tenant, limit: 1 })],
];

/** Warns of a key that could be guessed. */
export function keyFindings({ apiKey, keyFrom }: Session['connection']): Check[] {
  const why = apiKey === undefined ? undefined : weaknessOf(apiKey);
  if (why === undefined) return [];
  return [check('warn', 'key', `the key of ${keyFrom} ${why}`, ANOTHER_KEY)];
}

const ANOTHER_KEY =
  'Configure another key on the server, such as one generated by openssl rand -hex 32.';

export async function permissionCheck({ client, connection }: Session): Promise<Check> {
  const about = 'permissions';
  const { tenant, keyFrom } = connection;
  if (tenant === undefined) {
    return check('unknown', about, 'no tenant is set', 'Use --tenant NAME or set ENGINE_TENANT.');
  }
  const may: string[] = [];
  const mayNot: string[] = [];
  for (const [what, ask] of PROBES) {
    try {
      await ask(client, tenant);
      may.push(what);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.status === 401) {
        const key = keyFrom === undefined ? 'no key is set' : `the key of ${keyFrom} is not valid`;
        return check(
          'bad',
          about,
          key,
          'Set ENGINE_API_KEY, use --key-file, or save the key in a profile.',
        );
      }
      if (error.status === 400) may.push(what);
      else if (error.status === 403) mayNot.push(what);
      else
        return check(
          'bad',
          about,
          `to ${what}: ${error.message}`,
          'Fix the problems above, then run doctor again.',
        );
    }
  }
  const rights = may.length === 0 ? 'none of the checked rights' : may.join(', ');
  const found =
    mayNot.length === 0
      ? `allowed: ${rights}`
      : `allowed: ${rights}; not allowed: ${mayNot.join(', ')}`;
  return may.length === 0
    ? check('bad', about, found, 'See docs/authorization.md for the rights of each capability.')
    : ok(about, found);
}

// ---------------------------------------------------------------- workers and failures

export async function fleetChecks({ client }: Session): Promise<Check[]> {
  const [stats, workers] = await Promise.all([
    client.workers.stats(),
    client.workers.list({ include_stale: true }),
  ]);
  return [...fleetFindings(stats, workers), await deadLetterCheck(client)];
}

/** Handlers whose tasks no worker claims, and workers that stopped responding. */
export function fleetFindings(stats: TaskStats, workers: readonly WorkerInfo[]): Check[] {
  const about = 'workers';
  const alive = workers.filter((worker) => worker.alive);
  const served = new Set(alive.flatMap(({ handlers }) => handlers));
  const orphans = Object.entries(stats.by_handler)
    .filter(([handler, counts]) => (counts.pending ?? 0) > 0 && !served.has(handler))
    .map(([handler, { pending }]) => `${handler} (${pending})`);
  const silent = workers.filter(({ alive, in_flight }) => !alive && in_flight > 0);
  const found: Check[] = [];
  if (orphans.length > 0) {
    found.push(
      check(
        'bad',
        about,
        `tasks wait for handlers that no worker serves: ${orphans.join(', ')}`,
        'Start a worker for them, or check the definition for a misspelled handler.',
      ),
    );
  }
  if (silent.length > 0) {
    const names = silent.map(({ worker_id }) => worker_id).join(', ');
    found.push(
      check(
        'warn',
        about,
        `workers that hold tasks do not respond: ${names}`,
        'Their tasks are given to other workers after ENGINE_WORKER_REAPER_STALE_SECS.',
      ),
    );
  }
  if (found.length > 0) return found;
  const pending = stats.by_state.pending ?? 0;
  return [
    ok(about, `${alive.length} alive, ${pending} ${pending === 1 ? 'task waits' : 'tasks wait'}`),
  ];
}

async function deadLetterCheck(client: Client): Promise<Check> {
  const about = 'failures';
  const { items, hasMore } = await client.instances.deadLetters({ limit: 100 });
  if (items.length === 0) return ok(about, 'no instance is in the dead letter queue');
  const count = hasMore ? 'more than 100' : String(items.length);
  return check(
    'warn',
    about,
    `${count} in the dead letter queue`,
    'dlq list shows the reasons; dlq retry retries them, and asks before it repeats external effects.',
  );
}

// ---------------------------------------------------------------- metrics of the server

/** A metric, and the value above which it is a problem. */
const LIMITS: readonly (readonly [metric: string, limit: number, what: string, todo: string])[] = [
  [
    'engine_oldest_pending_seconds',
    60,
    's that the first due instance has waited',
    'The server is overloaded: docs/operate/sizing.md.',
  ],
  [
    'engine_clock_skew_seconds',
    5,
    's between the clocks of server and database',
    'Synchronize both with NTP.',
  ],
  [
    'engine_writer_backlog_units',
    50_000,
    'writes are waiting for the database',
    'Check its disk, and sessions that hold locks.',
  ],
  [
    'engine_webhook_outbox_depth',
    10_000,
    'webhooks are waiting',
    'Check their destinations: /webhooks/outbox.',
  ],
];

/** Empty if the key may not read metrics. */
export async function loadCheck({ client }: Session): Promise<Check[]> {
  const about = 'load';
  try {
    return loadFindings(await client.metrics());
  } catch (error) {
    if (!(error instanceof EngineError) || error.status !== 403) throw error;
    return [
      check(
        'unknown',
        about,
        'the key may not read metrics',
        'Use a key with the capability operator or auditor.',
      ),
    ];
  }
}

export function loadFindings(metrics: string): Check[] {
  const about = 'load';
  const values = new Map(
    metrics.split('\n').flatMap((line): [string, number][] => {
      const [, name, value] = /^(\w+) (\S+)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(value)]];
    }),
  );
  const high = LIMITS.filter(([metric, limit]) => Math.abs(values.get(metric) ?? 0) > limit);
  if (high.length === 0) return [ok(about, 'nothing waits too long')];
  return high.map(([metric, , what, todo]) =>
    check('warn', about, `${Math.round(values.get(metric) ?? 0)} ${what}`, todo),
  );
}
