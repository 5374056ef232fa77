/**
 * Part `cron`: how late schedules of every second fire, and a herd of them at one instant. The server's own rows say it: the time that
 * a fire is for stands in the instance's idempotency key, beside when it was created and last changed.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { TENANT } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { type PartResult, renderTable, round } from '../report.js';
import type { Generator } from './generator.js';
import { postRequest } from './requests.js';
import type { LoadContext } from './run.js';
import { Samples } from './samples.js';
import { type BenchServer, startServer } from './server.js';

/** The target for one schedule: its instances are created this long after their time at most. */
const TARGET_MS = 50;
/** Schedules of every second that fire together. */
const STAGES = [1, 100, 1_000] as const;
/** Of those that are due once, at one instant; creating one takes some milliseconds on two busy cores. */
const HERD_LEAD_MS_MIN = 3_000;
const HERD_LEAD_MS_EACH = 2;
const HERD_CONNECTIONS = 16;
const PATIENCE_MS = 60_000;
const LOOK_MS = 500;
/** A stage is as long as this many measured runs: one schedule fires once a second only. */
const RUNS_PER_STAGE = 4;

export async function runCron(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const server = await startServer(postgres, 'cron', 'noop', options.shards);
  const rows = [];
  try {
    for (const schedules of STAGES) rows.push(await measure(server, schedules, options));
    rows.push(await measureHerd(server, generator, options.herd));
  } finally {
    await server.stop();
  }
  const alone = rows[0]?.createdMs.p99 ?? 0;
  const reached = alone <= TARGET_MS ? 'reached' : 'missed';
  const part: PartResult = {
    question:
      'How late do schedules of every second fire, and a herd of them that is due at one instant?',
    settings: {
      seconds: options.seconds * RUNS_PER_STAGE,
      shards: server.shards,
      herd: options.herd,
    },
    results: { rows },
    remarks: [
      `one schedule: created within ${round(alone)} ms at the 99th percentile, ` +
        `target ${TARGET_MS}: ${reached}`,
    ],
  };
  const table = renderTable(
    ['schedules', 'fires', 'missed', 'created p50 ms', 'p99 ms', 'completed p50 ms', 'p99 ms'],
    rows.map(({ schedules, fires, missed, createdMs, completedMs }) => [
      schedules,
      fires,
      missed,
      round(createdMs.p50),
      round(createdMs.p99),
      round(completedMs.p50),
      round(completedMs.p99),
    ]),
  );
  return { part, table: `${table}\n\n${part.remarks.join('\n')}` };
}

async function measure(server: BenchServer, schedules: number, { seconds }: BenchOptions) {
  const url = `http://127.0.0.1:${server.port}`;
  const client = createClient({ url, apiKey: DEFAULT_API_KEY, tenant: TENANT });
  const [sequence] = (await server.db.query<{ id: string }>('select id from sequences')).rows;
  const body = bodyOf(sequence?.id, '* * * * * ? *');
  try {
    const ids: string[] = [];
    for (let i = 0; i < schedules; i += 1) {
      ids.push(expectStatus(await client.post<{ id: string }>('/cron', body), 201).id);
    }
    await server.db.query('delete from instances where cron_schedule_id is not null');
    await wait(seconds * RUNS_PER_STAGE * 1_000);
    const measured = await latenessOf(server);
    for (const id of ids) expectStatus(await client.delete(`/cron/${id}`), 204);
    return { schedules, ...measured };
  } finally {
    await client.close();
  }
}

/** Schedules that fire once, all of them at one instant. @throws Error when they do not within a minute */
async function measureHerd(server: BenchServer, generator: Generator, schedules: number) {
  const [sequence] = (await server.db.query<{ id: string }>('select id from sequences')).rows;
  await server.db.query('delete from instances where cron_schedule_id is not null');
  const leadMs = HERD_LEAD_MS_MIN + schedules * HERD_LEAD_MS_EACH;
  const dueAt = new Date(Math.ceil((Date.now() + leadMs) / 1_000) * 1_000);
  const at = [dueAt.getUTCSeconds(), dueAt.getUTCMinutes(), dueAt.getUTCHours()];
  const on = [dueAt.getUTCDate(), dueAt.getUTCMonth() + 1, '?', dueAt.getUTCFullYear()];
  const body = JSON.stringify(bodyOf(sequence?.id, [...at, ...on].join(' ')));
  await generator.run({
    kind: 'loop',
    port: server.port,
    connections: HERD_CONNECTIONS,
    requests: [postRequest('/cron', body)],
    status: 201,
    limit: { replies: schedules },
  });
  if (Date.now() > dueAt.getTime())
    throw new Error(`${schedules} schedules take over ${leadMs} ms`);
  await wait(dueAt.getTime() - Date.now());
  for (const giveUpAt = Date.now() + PATIENCE_MS; ; ) {
    await wait(LOOK_MS);
    const { rows } = await server.db.query<{ count: number }>(
      `select count(*)::int as count from instances
       where cron_schedule_id is not null and state = 'completed'`,
    );
    if (rows[0]!.count === schedules) break;
    if (Date.now() > giveUpAt) throw new Error(`${rows[0]!.count} of ${schedules} have fired`);
  }
  return { schedules, ...(await latenessOf(server)) };
}

function bodyOf(sequence_id: string | undefined, cron_expr: string) {
  return { tenant_id: TENANT, namespace: 'bench', sequence_id, cron_expr };
}

async function latenessOf({ db }: BenchServer) {
  const { rows } = await db.query<{ created: number; completed: number | null; schedule: string }>(
    `select extract(epoch from created_at - fire)::float8 * 1000 as created,
       case when state = 'completed' then extract(epoch from updated_at - fire)::float8 * 1000 end
         as completed, schedule
     from (select state, created_at, updated_at, cron_schedule_id::text as schedule,
             substr(idempotency_key, 43)::timestamptz as fire
           from instances where cron_schedule_id is not null) i`,
  );
  const [created, completed] = [new Samples(), new Samples()];
  for (const row of rows) {
    created.add(row.created);
    if (row.completed !== null) completed.add(row.completed);
  }
  const { rows: gaps } = await db.query<{ missed: number }>(
    `select coalesce(sum(seconds - fires), 0)::int4 as missed from (
       select count(*) as fires, 1 + extract(epoch from
         max(substr(idempotency_key, 43)::timestamptz) - min(substr(idempotency_key, 43)::timestamptz))
         as seconds
       from instances where cron_schedule_id is not null group by cron_schedule_id) s`,
  );
  return {
    fires: rows.length,
    missed: gaps[0]?.missed ?? 0,
    createdMs: created.summary(),
    completedMs: completed.summary(),
  };
}
