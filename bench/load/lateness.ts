/**
 * How late instances that fall due within one second go on: those still in memory from their creation, and those in
 * the database only, because the server was killed and started again since.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { createBody, NOOP_SEQUENCE } from '../base/fixtures.js';
import { readFamily, readOwn, readResidentMib } from '../base/process-cpu.js';
import { BenchServer } from '../base/server.js';
import { once } from '../client/loads.js';
import { batchRequests } from '../client/requests.js';
import { Samples } from '../client/samples.js';
import type { Bench, Job } from '../job.js';

const INSTANCES = 10_000;
const DUE_WITHIN_MS = 1_000;
const PER_BATCH = 500;
/** Of creation, at some 2,000 a second on two busy cores, and until all is calm again. */
const LEAD_MS_EACH = 1;
const LEAD_MS_MIN = 8_000;
const FAR_MS = 90 * 24 * 60 * 60 * 1_000;
const PATIENCE_MS = 60_000;
const LOOK_MS = 100;
const STORED = 'in the database only';
const LATE = 'late p99 ms';

export const latenessJob: Job = {
  part: 'load',
  name: 'lateness',
  asks: 'How late do instances that are due within one second go on?',
  isWarmedUp: false,
  targets: [{ contender: STORED, column: LATE, atMost: 500 }],
  prepare: async (bench) => {
    let databases = 0;
    const contender = (name: string) => ({
      name,
      turn: async () => {
        databases += 1;
        const server = await BenchServer.open(bench, `lateness_${databases}`);
        return dueTogether(bench, server, name === STORED).finally(() => server.stop());
      },
    });
    return {
      contenders: [contender('in memory'), contender(STORED)],
      close: async () => undefined,
    };
  },
};

async function dueTogether(bench: Bench, server: BenchServer, isStored: boolean) {
  const size = bench.options.instances ?? INSTANCES;
  const sequence = await server.store({ ...NOOP_SEQUENCE, name: 'due' });
  const leadMs = LEAD_MS_MIN + size * LEAD_MS_EACH;
  let dueAt = Date.now() + (isStored ? FAR_MS : leadMs);
  const dueOf = (n: number) => dueAt + Math.floor((n * DUE_WITHIN_MS) / size);
  const creation = (n: number) => ({
    ...createBody(sequence),
    metadata: { n },
    next_fire_at: new Date(dueOf(n)).toISOString(),
  });
  await bench.generator.run(once(server.port, batchRequests(size, PER_BATCH, creation)));
  if (isStored) {
    const to = Date.now() + leadMs;
    await restartDue(server, to - dueAt);
    dueAt = to;
  }
  if (Date.now() > dueAt) throw new Error(`creating ${size} timers took over ${leadMs} ms`);
  await pause(dueAt - Date.now());
  const { pid: postgres } = await bench.postgres();
  const cpu = () => ({ server: readOwn(server.pid), postgres: readFamily(postgres) });
  const before = cpu();
  const peakMib = await untilCompleted(server, size, dueAt + PATIENCE_MS);
  const after = cpu();
  const { rows } = await server.db.query<{ n: number; at: number }>(
    `select (metadata->>'n')::int as n, (extract(epoch from updated_at) * 1000)::float8 as at
     from instances`,
  );
  const samples = new Samples();
  for (const { n, at } of rows) samples.add(Math.max(0, at - dueOf(n)));
  const { p50, p99, max } = samples.summary();
  return {
    instances: size,
    'late p50 ms': p50,
    [LATE]: p99,
    'late max ms': max,
    'MiB at most': peakMib,
    'server µs each': ((after.server - before.server) / size) * 1_000,
    'postgres µs each': ((after.postgres - before.postgres) / size) * 1_000,
  };
}

/** Kills the server and moves all timers in the database, of which it then has none in memory. */
async function restartDue(server: BenchServer, byMs: number): Promise<void> {
  await server.kill();
  const moved = `+ $1::float8 * interval '1 ms'`;
  await server.db.query(`update instances set next_fire_at = next_fire_at ${moved}`, [byMs]);
  await server.db.query(`update timers set fire_at = fire_at ${moved}`, [byMs]);
  await server.db.query('vacuum analyze');
  await server.start();
}

/** @returns the most that the server had of memory @throws Error when some have not ended by then */
async function untilCompleted({ db, pid }: BenchServer, size: number, giveUpAt: number) {
  for (let peakMib = 0; ; await pause(LOOK_MS)) {
    peakMib = Math.max(peakMib, readResidentMib(pid));
    const { rows } = await db.query<{ ended: number }>(
      `select count(*) as ended from instances where state = 'completed'`,
    );
    if (rows[0]!.ended === size) return peakMib;
    if (Date.now() > giveUpAt) throw new Error(`${rows[0]!.ended} of ${size} timers have fired`);
  }
}
