/** How long requests take one at a time on an idle server, in single durable commits. */

import type pg from 'pg';
import { NOOP_SEQUENCE, STEPS, STEPS_HANDLER, STEPS_SEQUENCE } from '../base/fixtures.js';
import { connect } from '../base/postgres.js';
import { Clock, type LoadResult } from '../client/clock.js';
import type { Load } from '../client/loads.js';
import { getRequest } from '../client/requests.js';
import type { Bench, Contender, Job } from '../job.js';
import { openSides, type Side } from '../paths/sides.js';

const COMPLETED = 'created to completed';
const STEP = 'completed step to the next task';

export const idleJob: Job = {
  part: 'load',
  name: 'idle',
  asks: 'How long do requests take on an idle server, beside a single durable commit?',
  targets: [
    { contender: COMPLETED, column: 'p50 ms', isRatio: true, atMost: 2.8 },
    { contender: STEP, column: 'p50 ms', isRatio: true, atMost: 5 },
  ],
  prepare: async (bench) => {
    const db = await connect(await (await bench.postgres()).createDatabase('idle_single'));
    await db.query('create table single (id bigint generated always as identity, at text)');
    const { sides, close } = await openSides(bench, 'idle', NOOP_SEQUENCE);
    const contenders = await Promise.all(sides.map((side) => requestsOf(bench, side)));
    const single = {
      name: 'one commit',
      turn: (ms: number) => commits(db, ms),
    };
    return {
      contenders: [single, ...contenders.flat()],
      close: async () => {
        await db.end();
        await close();
      },
    };
  },
};

async function requestsOf({ generator }: Bench, side: Side): Promise<Contender[]> {
  const { server, create } = side;
  const { port } = server;
  const steps = await server.createRequest(STEPS_SEQUENCE);
  const { rows } = await server.db.query<{ id: string }>('select id from instances limit 1');
  const loop =
    (request: string, status: number) =>
    (ms: number): Load => {
      return { kind: 'loop', port, connections: 1, requests: [request], status, limit: { ms } };
    };
  const loads: Readonly<Record<string, (ms: number) => Load>> = {
    'GET /health/live': loop(getRequest('/health/live'), 200),
    'GET /instances/{id}': loop(getRequest(`/instances/${rows[0]!.id}`), 200),
    'POST /instances': loop(create, 201),
    [COMPLETED]: (ms) => ({ kind: 'complete', port, create, ms }),
    [STEP]: (ms) => {
      return { kind: 'step', port, create: steps, handler: STEPS_HANDLER, steps: STEPS, ms };
    },
  };
  return Object.entries(loads).map(([name, load]) => ({
    name: side.name === 'this' ? name : `${name} (${side.name})`,
    turn: async (ms) => figuresOf(await generator.run(load(ms))),
  }));
}

/** The least that a durable answer can cost: one narrow row, one statement, one commit. */
async function commits(db: pg.Client, ms: number) {
  const clock = new Clock(ms);
  while (!clock.isOver()) {
    const startedAt = performance.now();
    const text = 'insert into single (at) values ($1::text)';
    await db.query({ name: 'single', text, values: ['2025-01-31T12:00:00.000Z'] });
    clock.add('request', startedAt);
  }
  return figuresOf(clock.result());
}

function figuresOf({ latency }: LoadResult) {
  const { p50, p99 } = latency.request!;
  return { 'p50 ms': p50, 'p99 ms': p99 };
}
