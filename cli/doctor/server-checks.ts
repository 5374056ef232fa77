/** What the API tells about a server: whether it serves, its version, its clock, the key, the workers. */

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

/** A header tells whole seconds, and the way takes its time. */
const CLOCK_MS_MAX = 2_500;
const SLOW_MS = 1_000;
const PROBE_MS = 10_000;

/** Without a key. An answer that is none is one check, and nothing else can be asked. */
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
        'Is it running, and is this its address? See --url and profiles.',
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
        'Something else listens there, or a proxy that does not reach it.',
      ),
    ];
  }
  const reached = `${url} answers in ${tookMs} ms`;
  return [
    tookMs > SLOW_MS
      ? check('warn', about, reached, 'Look at the network, and at the load of its machine.')
      : ok(about, reached),
    clockCheck(reply.headers.get('date'), startedAt + tookMs / 2),
    await readyCheck(url),
    ...infoFindings(await infoOf(url)),
  ];
}

const probe = (address: string) => fetch(address, { signal: AbortSignal.timeout(PROBE_MS) });

/** @param here the time of this machine when the answer was made */
export function clockCheck(date: string | null, here: number): Check {
  const about = 'clock';
  const there = Date.parse(date ?? '');
  if (Number.isNaN(there))
    return check('unknown', about, 'the answer has no date', 'A proxy may take it off.');
  const differenceMs = here - there;
  const isNear = differenceMs > -CLOCK_MS_MAX && differenceMs < CLOCK_MS_MAX;
  if (isNear) return ok(about, 'agrees with this machine');
  const side = differenceMs > 0 ? 'behind' : 'ahead of';
  return check(
    'warn',
    about,
    `is ${durationText(Math.abs(differenceMs))} ${side} this machine`,
    'Let NTP set the clocks of both; the engine itself goes by the clock of its database.',
  );
}

/** What helps, by the kind of trouble that readiness names. */
const READY_TODO: Readonly<Record<string, string>> = {
  unreachable: 'Start Postgres, or mend the way to it.',
  rights: 'Give the role of the engine its rights back: docs/operate/roles.md.',
  disk: 'Make room on the disk of the database.',
};

async function readyCheck(url: string): Promise<Check> {
  const reply = await probe(`${url}/health/ready`);
  return readyFinding(reply.ok ? undefined : ((await reply.json()) as Partial<NotReady>));
}

/** @param told what a server says that is not ready; undefined: it is */
export function readyFinding(told: Partial<NotReady> | undefined): Check {
  const about = 'ready';
  if (told === undefined) return ok(about, 'owns its database and can write');
  const { error = '', reason } = told;
  if (reason?.kind === 'lease') return ok(about, 'a standby, which waits for the owner to end');
  const state = reason?.sql_state === undefined ? '' : ` (${reason.sql_state})`;
  const todo =
    READY_TODO[reason?.kind ?? ''] ??
    'A standby waits for the owner; else docs/operate/troubleshooting.md has what it means.';
  return check('bad', about, `${error}${state}`, todo);
}

/** From the path that proxies in front of cells answer for any of them. */
async function infoOf(url: string): Promise<Partial<Info>> {
  return (await (await probe(`${url}/info`)).json()) as Partial<Info>;
}

/** Its version, and whether it has the key of its secrets (docs/operate/encryption-key.md). */
export function infoFindings({ version, encryption_key }: Partial<Info>): Check[] {
  const own = packageVersion();
  const todo = `Use npx durable-workflow-engine@${version}: commands may ask for what the other does not have.`;
  const told = `the server is ${version}, this command line ${own}`;
  const about = 'secrets';
  return [
    version === own
      ? ok('version', `${version}, as this command line`)
      : check('warn', 'version', told, todo),
    ...(encryption_key === 'fits' ? [ok(about, 'opens every secret')] : []),
    ...(encryption_key === 'former'
      ? [check('warn', about, 'some secrets are sealed with the old key', GIVE_ANEW)]
      : []),
    ...(encryption_key === 'other'
      ? [
          check(
            'bad',
            about,
            'secrets are sealed with a key that the server does not have',
            OTHER_KEY,
          ),
        ]
      : []),
  ];
}

const GIVE_ANEW = 'Give them anew before ENGINE_OLD_ENCRYPTION_KEY is taken away.';
const OTHER_KEY = 'Start it with that key, or give them anew: docs/operate/encryption-key.md.';

// ---------------------------------------------------------------- the key

type Probe = readonly [what: string, ask: (client: Client, tenant: string) => PromiseLike<unknown>];

/** No instance and no definition has it. */
const NOBODY = '00000000-0000-0000-0000-000000000000';

/** Harmless questions, each of which another right answers. */
const PROBES: readonly Probe[] = [
  ['read instances', (client) => client.instances.list({ limit: 1 })],
  ['see workers', (client) => client.workers.stats()],
  [
    'store definitions',
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

/** One that could be guessed, whatever it opens; none for one that could not. */
export function keyFindings({ apiKey, keyFrom }: Session['connection']): Check[] {
  const why = apiKey === undefined ? undefined : weaknessOf(apiKey);
  if (why === undefined) return [];
  return [check('warn', 'key', `the key of ${keyFrom} ${why}`, ANOTHER_KEY)];
}

const ANOTHER_KEY = 'Set another one at the server, such as openssl rand -hex 32 makes.';

export async function permissionCheck({ client, connection }: Session): Promise<Check> {
  const about = 'permissions';
  const { tenant, keyFrom } = connection;
  if (tenant === undefined) {
    return check(
      'unknown',
      about,
      'no tenant was named',
      'Give --tenant NAME or set ENGINE_TENANT.',
    );
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
        const key = keyFrom === undefined ? 'no key is sent' : `the key of ${keyFrom} is not known`;
        return check(
          'bad',
          about,
          key,
          'Set ENGINE_API_KEY, give --key-file, or keep the key in a profile.',
        );
      }
      if (error.status === 400) may.push(what);
      else if (error.status === 403) mayNot.push(what);
      else
        return check(
          'bad',
          about,
          `to ${what}: ${error.message}`,
          'Look at the lines above, then ask again.',
        );
    }
  }
  const rights = may.length === 0 ? 'nothing of what was tried' : may.join(', ');
  const found = mayNot.length === 0 ? `may ${rights}` : `may ${rights}; not ${mayNot.join(', ')}`;
  return may.length === 0
    ? check('bad', about, found, 'docs/authorization.md has what each capability opens.')
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

/** Which handlers have tasks that nobody takes, and which workers are silent. */
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
        'Start a worker for them, or look for a misspelt handler in the definition.',
      ),
    );
  }
  if (silent.length > 0) {
    const names = silent.map(({ worker_id }) => worker_id).join(', ');
    found.push(
      check(
        'warn',
        about,
        `were not heard of, and hold tasks: ${names}`,
        'Their tasks go to others after ENGINE_WORKER_REAPER_STALE_SECS.',
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
    'dlq list says why; dlq retry goes on with them, and asks where that repeats effects outside.',
  );
}

// ---------------------------------------------------------------- numbers of the server

/** A metric, and from which value on it tells of trouble. */
const LIMITS: readonly (readonly [metric: string, limit: number, what: string, todo: string])[] = [
  [
    'engine_oldest_pending_seconds',
    60,
    's since the first due instance waits',
    'The server does not keep up: docs/operate/sizing.md.',
  ],
  [
    'engine_clock_skew_seconds',
    5,
    's between the clocks of server and database',
    'Let NTP set both.',
  ],
  [
    'engine_writer_backlog_units',
    50_000,
    'changes wait for the database',
    'Look at its disk and at sessions that hold locks.',
  ],
  [
    'engine_webhook_outbox_depth',
    10_000,
    'webhooks wait',
    'Look at the addresses that they go to: /webhooks/outbox.',
  ],
];

/** Undefined where the key may not read them. */
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
        'A key with operator or auditor may.',
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
  if (high.length === 0) return [ok(about, 'nothing waits longer than it should')];
  return high.map(([metric, , what, todo]) =>
    check('warn', about, `${Math.round(values.get(metric) ?? 0)} ${what}`, todo),
  );
}
