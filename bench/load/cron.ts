/**
 * How late schedules fire: some of every second, and many at one instant. The server's own rows show it: the time of a
 * fire is a part of the instance's idempotency key, beside the times of its creation and its end.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { NAMESPACE, NOOP_SEQUENCE, TENANT } from '../base/fixtures.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import { postRequest } from '../client/requests.js';
import { Samples } from '../client/samples.js';
import type { Bench, Job } from '../job.js';

/** Schedules of every second that fire together. */
const STAGES = [1, 100, 1_000] as const;
const BURST = 10_000;
const BURST_LEAD_MS_MIN = 3_000;
/** Creating a schedule takes some milliseconds on two busy cores. */
const BURST_LEAD_MS_EACH = 2;
const CONNECTIONS = 16;
const PATIENCE_MS = 60_000;
const LOOK_MS = 500;
/** One schedule fires only once a second. */
const TIMES = 4;

export const cronJob: Job = {
  part: 'load',
  name: 'cron',
  asks: 'How late do schedules of every second fire, and many that are due at one instant?',
  rounds: () => 1,
  seconds: ({ seconds }) => seconds * TIMES,
  isWarmedUp: false,
  isCompared: false,
  targets: [{ contender: '1 of every second', column: 'created p99 ms', atMost: 50 }],
  prepare: async (bench) => {
    const server = await BenchServer.open(bench, 'cron');
    const sequence = await server.store(NOOP_SEQUENCE);
    const burst = bench.options.instances ?? BURST;
    return {
      contenders: [
        ...STAGES.map((schedules) => ({
          name: `${schedules} of every second`,
          turn: (ms: number) => everySecond(bench, server, sequence, schedules, ms),
        })),
        { name: `${burst} at once`, turn: () => atOnce(bench, server, sequence, burst) },
      ],
      close: () => server.stop(),
    };
  },
};

async function everySecond(
  bench: Bench,
  server: BenchServer,
  sequence: string,
  schedules: number,
  ms: number,
) {
  await create(bench, server, sequence, schedules, '* * * * * ? *');
  await server.db.query('delete from instances where cron_schedule_id is not null');
  await wait(ms);
  const figures = await latenessOf(server);
  for (const { id } of (await server.db.query('select id from cron_schedules')).rows) {
    await server.ask(204, 'DELETE', `/cron/${id}`);
  }
  return figures;
}

/** @throws Error when they have not all fired within a minute */
async function atOnce(bench: Bench, server: BenchServer, sequence: string, schedules: number) {
  await server.db.query('delete from instances where cron_schedule_id is not null');
  const leadMs = BURST_LEAD_MS_MIN + schedules * BURST_LEAD_MS_EACH;
  const dueAt = new Date(Math.ceil((Date.now() + leadMs) / 1_000) * 1_000);
  const at = [dueAt.getUTCSeconds(), dueAt.getUTCMinutes(), dueAt.getUTCHours()];
  const on = [dueAt.getUTCDate(), dueAt.getUTCMonth() + 1, '?', dueAt.getUTCFullYear()];
  await create(bench, server, sequence, schedules, [...at, ...on].join(' '));
  if (Date.now() > dueAt.getTime()) throw new Error(`creating took over ${leadMs} ms`);
  await wait(dueAt.getTime() - Date.now());
  for (const giveUpAt = Date.now() + PATIENCE_MS; ; ) {
    await wait(LOOK_MS);
    const { rows } = await server.db.query<{ count: number }>(
      `select count(*)::int as count from instances
       where cron_schedule_id is not null and state = 'completed'`,
    );
    if (rows[0]!.count === schedules) return latenessOf(server);
    if (Date.now() > giveUpAt) throw new Error(`${rows[0]!.count} of ${schedules} have fired`);
  }
}

function create(bench: Bench, server: BenchServer, sequence: string, count: number, expr: string) {
  const place = { tenant_id: TENANT, namespace: NAMESPACE };
  const body = { ...place, sequence_id: sequence, cron_expr: expr };
  const requests = new Array<string>(count).fill(postRequest('/cron', JSON.stringify(body)));
  return bench.generator.run(once(server.port, requests, CONNECTIONS));
}

async function latenessOf({ db }: BenchServer) {
  const { rows } = await db.query<{ created: number; completed: number | null }>(
    `select extract(epoch from created_at - fire)::float8 * 1000 as created,
       case when state = 'completed' then extract(epoch from updated_at - fire)::float8 * 1000 end
         as completed
     from (select *, substr(idempotency_key, 43)::timestamptz as fire
           from instances where cron_schedule_id is not null) i`,
  );
  const [created, completed] = [new Samples(), new Samples()];
  for (const row of rows) {
    created.add(row.created);
    if (row.completed !== null) completed.add(row.completed);
  }
  const { rows: gaps } = await db.query<{ missed: number }>(
    `select coalesce(sum(seconds - fires), 0)::int4 as missed from (
       select count(*) as fires, 1 + extract(epoch from max(fire) - min(fire)) as seconds
       from (select cron_schedule_id, substr(idempotency_key, 43)::timestamptz as fire
             from instances where cron_schedule_id is not null) i group by cron_schedule_id) s`,
  );
  const [createdMs, completedMs] = [created.summary(), completed.summary()];
  return {
    fires: rows.length,
    missed: gaps[0]?.missed ?? 0,
    'created p50 ms': createdMs.p50,
    'created p99 ms': createdMs.p99,
    'completed p50 ms': completedMs.p50,
    'completed p99 ms': completedMs.p99,
  };
}
