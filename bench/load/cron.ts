/**
 * How late schedules of every second fire. The server's own rows show it: the time of a fire is a part of the
 * instance's idempotency key, beside the times of its creation and its end.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { NAMESPACE, NOOP_SEQUENCE, TENANT } from '../base/fixtures.js';
import type { Figures } from '../base/report.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import { postRequest } from '../client/requests.js';
import type { Bench, Job } from '../job.js';

/** Schedules that fire together. */
const STAGES = [1, 100, 1_000] as const;
const CONNECTIONS = 16;
/** One schedule fires only once a second. */
const TIMES = 4;

export const cronJob: Job = {
  part: 'load',
  name: 'cron',
  asks: 'How late do schedules of every second fire?',
  rounds: () => 1,
  seconds: ({ seconds }) => seconds * TIMES,
  isWarmedUp: false,
  isCompared: false,
  targets: [{ contender: '1 of every second', column: 'created p99 ms', atMost: 50 }],
  prepare: async (bench) => {
    const server = await BenchServer.open(bench, 'cron');
    const sequence = await server.store(NOOP_SEQUENCE);
    return {
      contenders: STAGES.map((schedules) => ({
        name: `${schedules} of every second`,
        turn: (ms: number) => everySecond(bench, server, sequence, schedules, ms),
      })),
      close: () => server.stop(),
    };
  },
};

async function everySecond(
  { generator }: Bench,
  server: BenchServer,
  sequence_id: string,
  schedules: number,
  ms: number,
): Promise<Figures> {
  const place = { tenant_id: TENANT, namespace: NAMESPACE };
  const body = JSON.stringify({ ...place, sequence_id, cron_expr: '* * * * * ? *' });
  const requests = new Array<string>(schedules).fill(postRequest('/cron', body));
  await generator.run(once(server.port, requests, CONNECTIONS));
  await server.db.query('delete from instances');
  await wait(ms);
  const { rows } = await server.db.query<Figures>(LATENESS);
  for (const { id } of (await server.db.query('select id from cron_schedules')).rows) {
    await server.ask(204, 'DELETE', `/cron/${id}`);
  }
  return rows[0]!;
}

const percentile = (share: number, column: string) =>
  `percentile_disc(${share}) within group (order by ${column}) as "${column} p${100 * share} ms"`;

const LATENESS = `
  with fires as (
    select cron_schedule_id as schedule, substr(idempotency_key, 43)::timestamptz as fire,
      created_at, case when state = 'completed' then updated_at end as completed_at
    from instances where cron_schedule_id is not null
  ), late as (
    select extract(epoch from created_at - fire)::float8 * 1000 as created,
      extract(epoch from completed_at - fire)::float8 * 1000 as completed from fires
  ), gaps as (
    select 1 + extract(epoch from max(fire) - min(fire)) - count(*) as missed
    from fires group by schedule
  )
  select count(*)::int as fires, (select coalesce(sum(missed), 0)::int from gaps) as missed,
    ${percentile(0.5, 'created')}, ${percentile(0.99, 'created')},
    ${percentile(0.5, 'completed')}, ${percentile(0.99, 'completed')}
  from late`;
