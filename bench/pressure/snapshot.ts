/**
 * What a snapshot that another session holds costs: dead rows stay in every table of that database. Whole rounds are
 * done minute by minute, in turns with a server on another database of the same Postgres, where vacuum goes on.
 */

import { startMeter } from '../base/cost.js';
import { EXTERNAL_HANDLER, EXTERNAL_SEQUENCE } from '../base/fixtures.js';
import { connect } from '../base/postgres.js';
import { CPU } from '../base/report.js';
import { perSecond } from '../client/clock.js';
import type { Bench, Job } from '../job.js';
import { openSide, type Side } from '../paths/sides.js';

const MINUTE_S = 60;
const WORKERS = 16;
const RATE = 'rounds/s';
const HELD = 'beside a snapshot';

export const snapshotJob: Job = {
  part: 'pressure',
  name: 'snapshot',
  asks: 'What do whole rounds lose while another session holds a snapshot? A turn is a minute of it.',
  rounds: ({ heldSeconds }) => Math.max(1, Math.floor(heldSeconds / MINUTE_S)),
  seconds: ({ heldSeconds }) => Math.min(heldSeconds, MINUTE_S),
  isWarmedUp: false,
  targets: [{ contender: HELD, column: RATE, isRatio: true, atLeast: 0.9 }],
  prepare: async (bench) => {
    const control = await openSide(bench, 'snapshot_control', EXTERNAL_SEQUENCE, 'without');
    const held = await openSide(bench, 'snapshot_held', EXTERNAL_SEQUENCE, HELD);
    const session = await connect(held.server.databaseUrl);
    await session.query('begin isolation level repeatable read');
    await session.query('select 1');
    return {
      contenders: [control, held].map((side) => {
        return { name: side.name, turn: (ms) => rounds(bench, side, ms) };
      }),
      close: async () => {
        await session.end();
        for (const { server } of [held, control]) await server.stop();
      },
    };
  },
};

async function rounds(bench: Bench, { server, roles, create }: Side, ms: number) {
  const blocks = await blocksOf(server.db);
  const stopMeter = await startMeter(await bench.postgres(), server);
  const { port } = server;
  const worker = { port, workers: WORKERS, handler: EXTERNAL_HANDLER, create, ms };
  const result = await bench.generator.run({ kind: 'round', ...worker });
  const cost = await stopMeter(roles, result.answered);
  return {
    [RATE]: perSecond(result),
    [CPU]: cost[CPU]!,
    'blocks/op': ((await blocksOf(server.db)) - blocks) / result.answered,
  };
}

/** That statements looked at so far, which no other load on the machine changes; without those of vacuums. */
async function blocksOf(db: Side['server']['db']): Promise<number> {
  const { rows } = await db.query<{ blocks: number }>(
    "select sum(hits + reads)::int8 as blocks from pg_stat_io where backend_type = 'client backend'",
  );
  return rows[0]!.blocks;
}
