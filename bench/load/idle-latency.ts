/**
 * Part b: how long one instance takes when nothing else happens, beside the single durable commit
 * that it cannot do without. One connection, one request at a time; both take turns.
 */

import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import { Ceiling } from './ceiling.js';
import { getRequest } from './requests.js';
import type { LoadContext } from './run.js';
import type { Latency } from './samples.js';
import { Samples } from './samples.js';
import { startServer } from './server.js';
import { SingleCommits } from './single-commits.js';
import { UnitTemplate } from './unit-template.js';

/** The target: created to completed takes at most so many single commits, at the median. */
const TARGET_COMMITS = 3;

const PER_SECOND = 100;
/** Not counted: code that has not run yet is compiled, connections and plans are made. */
const WARMUP_SHARE = 0.5;

interface Turn {
  readonly frontMs: Latency;
  readonly createMs: Latency;
  readonly readMs: Latency;
  readonly totalMs: Latency;
  readonly commitMs: Latency;
  readonly unitCommitMs: Latency;
}

export async function runIdleLatency(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const count = Math.ceil(options.seconds * PER_SECOND);
  const server = await startServer(postgres, 'idle', 'noop', options.shards);
  const commits = await SingleCommits.open(await postgres.createDatabase('idle_single'));
  const ceiling = await Ceiling.open(await postgres.createDatabase('idle_ceiling'), 1);
  const job = { kind: 'complete', port: server.port, create: server.createRequest } as const;
  const turns: Turn[] = [];
  try {
    const warmup = Math.ceil(count * WARMUP_SHARE);
    await generator.run({ ...job, count: warmup });
    await commits.run(warmup, new Samples());
    const { rows } = await server.db.query<{ id: string }>('select id from instances limit 1');
    const template = await UnitTemplate.readFrom(server.db, rows[0]!.id);
    await ceiling.run(template, 1, { flushes: warmup });
    await postgres.checkpoint();
    for (let round = 0; round < options.rounds; round += 1) {
      const { latency } = await generator.run({ ...job, count });
      const front = await generator.run({
        kind: 'loop',
        port: server.port,
        connections: 1,
        requests: [getRequest('/health/live')],
        status: 200,
        limit: { replies: count },
      });
      const samples = new Samples();
      await commits.run(count, samples);
      const units = await ceiling.run(template, 1, { flushes: count });
      turns.push({
        frontMs: front.latency.request!,
        createMs: latency.create!,
        readMs: latency.read!,
        totalMs: latency.total!,
        commitMs: samples.summary(),
        unitCommitMs: units.flush,
      });
    }
  } finally {
    ceiling.close();
    await commits.close();
    await server.stop();
  }
  return report(turns, count, options);
}

function report(turns: readonly Turn[], count: number, options: BenchOptions) {
  const at = (read: (turn: Turn) => Latency, share: 'p50' | 'p99') =>
    round(median(turns.map((turn) => read(turn)[share])));
  const line = (name: string, read: (turn: Turn) => Latency) => ({
    name,
    p50Ms: at(read, 'p50'),
    p99Ms: at(read, 'p99'),
  });
  const rows = [
    line('created to completed (POST, then GET)', (turn) => turn.totalMs),
    line('POST /instances', (turn) => turn.createMs),
    line('GET /instances/{id}', (turn) => turn.readMs),
    line('GET /health/live, which only the front answers', (turn) => turn.frontMs),
    line('single durable commit of one row', (turn) => turn.commitMs),
    line("the creation's rows: fence, inserts, commit", (turn) => turn.unitCommitMs),
  ];
  const ratio = round(median(turns.map((turn) => turn.totalMs.p50 / turn.commitMs.p50)));
  const reached = ratio <= TARGET_COMMITS ? 'reached' : 'missed';
  const part: PartResult = {
    question: 'How long does a one-step instance take on an idle server, counted in commits?',
    settings: { instances: count, rounds: options.rounds },
    results: { rows, ratio, turns },
    remarks: [
      `created to completed: ${ratio} single commits at the median, ` +
        `target ${TARGET_COMMITS}: ${reached}`,
    ],
  };
  const table = renderTable(
    ['idle server', 'p50 ms', 'p99 ms'],
    rows.map((row) => [row.name, row.p50Ms, row.p99Ms]),
  );
  return { part, table: `${table}\n\n${part.remarks.join('\n')}` };
}
