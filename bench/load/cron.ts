/**
 * Part `cron`: how late schedules of every second fire. The server's own rows say it: the time that
 * a fire is for stands in the instance's idempotency key, beside when it was created and last changed.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { createClient, expectStatus } from '../../test/helpers/client.js';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { TENANT } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { type PartResult, renderTable, round } from '../report.js';
import type { LoadContext } from './run.js';
import { Samples } from './samples.js';
import { type BenchServer, startServer } from './server.js';

/** The target for one schedule: its instances are created this long after their time at most. */
const TARGET_MS = 50;
/** Schedules of every second that fire together. */
const STAGES = [1, 100, 1_000] as const;
/** A stage is as long as this many measured runs: one schedule fires once a second only. */
const RUNS_PER_STAGE = 4;

export async function runCron(
  { postgres }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const server = await startServer(postgres, 'cron', 'noop', options.shards);
  const rows = [];
  try {
    for (const schedules of STAGES) rows.push(await measure(server, schedules, options));
  } finally {
    await server.stop();
  }
  const alone = rows[0]?.createdMs.p99 ?? 0;
  const reached = alone <= TARGET_MS ? 'reached' : 'missed';
  const part: PartResult = {
    question: 'How late do schedules of every second fire?',
    settings: { seconds: options.seconds * RUNS_PER_STAGE, shards: server.shards },
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
  const body = {
    tenant_id: TENANT,
    namespace: 'bench',
    sequence_id: sequence?.id,
    cron_expr: '* * * * * ? *',
  };
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
