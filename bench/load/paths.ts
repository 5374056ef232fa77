/**
 * Part `paths`: what an operation of each path costs the whole machine. With another checkout to be
 * compared with, both servers run on databases of their own in one Postgres and take turns (A B B A),
 * so that a machine that gets slower or faster does so for both.
 */

import { setTimeout as wait } from 'node:timers/promises';
import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import { type Cost, ROLES, startMeter } from './cost.js';
import {
  BATCH_CONNECTIONS,
  BATCH_INSTANCES,
  batchRequest,
  operationsOf,
  PATHS,
  type Path,
} from './path-table.js';
import type { LoadContext } from './run.js';
import { type BenchServer, startServer } from './server.js';
import { findRoles, type ThreadRoles } from './thread-roles.js';

/** Queues learn of new tasks by hints, which may still be under way when the creations are answered. */
const SETTLE_MS = 200;

/** Of each of the two loads that tell the threads apart. */
const PROBE_MS_MAX = 1_000;

/** Which server: that of this checkout, or the one it is compared with. */
export type Side = 'this' | 'against';

export interface Turn extends Cost {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface PathRow {
  readonly path: string;
  readonly operation: string;
  readonly side: Side;
  readonly turns: readonly Turn[];
  readonly median: Turn;
}

interface Candidate {
  readonly side: Side;
  readonly server: BenchServer;
  readonly roles: ThreadRoles;
  /** Tasks that have been created and are not completed. */
  pending: number;
}

export async function runPaths(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const rows: PathRow[] = [];
  const skipped: string[] = [];
  await context.postgres.setAutovacuum(false);
  for (const path of PATHS.filter(({ name }) => options.paths.includes(name))) {
    const result = await measure(context, options, path);
    rows.push(...result.rows);
    skipped.push(...result.skipped);
    context.progress(costTable(result.rows));
  }
  await context.postgres.setAutovacuum(true);
  const ratios = ratioTable(rows);
  const part: PartResult = {
    question: 'What does an operation of each path cost the whole machine?',
    settings: {
      seconds: options.seconds,
      rounds: options.rounds,
      backlog: options.backlog,
      server: options.server ?? 'this checkout',
      against: options.against ?? null,
    },
    results: { rows },
    remarks: skipped,
  };
  const tables = [costTable(rows), ...(ratios === undefined ? [] : [ratios]), ...skipped];
  return { part, table: tables.join('\n\n') };
}

async function measure(context: LoadContext, options: BenchOptions, path: Path) {
  const candidates: Candidate[] = [];
  const skipped: string[] = [];
  const turns = new Map<Side, Turn[]>();
  try {
    for (const side of sidesOf(options)) {
      const candidate = await prepare(context, options, path, side);
      candidates.push(candidate);
      if (path.route !== undefined && !(await knows(candidate.server, path.route))) {
        skipped.push(`${path.name}: the server (${side}) has no ${path.route}`);
        candidates.pop();
        await candidate.server.stop();
        continue;
      }
      turns.set(side, []);
      // Not counted: the code of every kind of request has run.
      await takeTurn(context, options, path, candidate, (options.seconds * 1_000) / 2);
    }
    for (let at = 0; at < options.rounds; at += 1) {
      for (const candidate of at % 2 === 0 ? candidates : candidates.toReversed()) {
        const turn = await takeTurn(context, options, path, candidate, options.seconds * 1_000);
        turns.get(candidate.side)?.push(turn);
      }
    }
  } finally {
    for (const { server } of candidates) await server.stop();
  }
  const rows = [...turns].map(
    ([side, all]): PathRow => ({
      path: path.name,
      operation: path.operation,
      side,
      turns: all,
      median: medianTurn(all),
    }),
  );
  return { rows, skipped };
}

function sidesOf({ against }: BenchOptions): readonly Side[] {
  return against === undefined ? ['this'] : ['against', 'this'];
}

async function prepare(
  { postgres, generator }: LoadContext,
  options: BenchOptions,
  path: Path,
  side: Side,
): Promise<Candidate> {
  const checkout = side === 'this' ? options.server : options.against;
  const server = await startServer(
    postgres,
    `paths_${path.name}_${side}`,
    path.sequence,
    options.shards,
    checkout === undefined ? {} : { checkout },
  );
  try {
    const probeMs = Math.min(PROBE_MS_MAX, options.seconds * 250);
    return { side, server, roles: await findRoles(server, generator, probeMs), pending: 0 };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function takeTurn(
  context: LoadContext,
  options: BenchOptions,
  path: Path,
  candidate: Candidate,
  ms: number,
): Promise<Turn> {
  const { postgres, generator } = context;
  const { server, roles } = candidate;
  const { backlog } = options;
  await postgres.checkpoint();
  if (path.needsBacklog) {
    await fill(context, candidate, backlog);
    await wait(SETTLE_MS);
  }
  await server.db.query('vacuum (analyze)');
  const stopMeter = await startMeter(postgres, server);
  const result = await generator.run(path.job({ server, ms, backlog }));
  const operations = operationsOf(path, result);
  const cost = await stopMeter(roles, operations.all);
  if (path.needsBacklog) candidate.pending -= operations.all;
  const latency = result.latency.request!;
  return {
    perSecond: (operations.timed * 1_000) / result.ms,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    ...cost,
  };
}

/** Creates what is missing of the backlog. */
async function fill({ generator }: LoadContext, candidate: Candidate, backlog: number) {
  const batches = Math.ceil((backlog - candidate.pending) / BATCH_INSTANCES);
  if (batches <= 0) return;
  await generator.run({
    kind: 'loop',
    port: candidate.server.port,
    connections: BATCH_CONNECTIONS,
    requests: [batchRequest(candidate.server)],
    status: 201,
    limit: { replies: batches },
  });
  candidate.pending += batches * BATCH_INSTANCES;
}

async function knows({ port }: BenchServer, route: string): Promise<boolean> {
  const reply = await fetch(`http://127.0.0.1:${port}/api/v1${route}`, { method: 'POST' });
  await reply.arrayBuffer();
  return reply.status !== 404;
}

function medianTurn(turns: readonly Turn[]): Turn {
  const of = (read: (turn: Turn) => number) => round(median(turns.map(read)));
  return {
    perSecond: of((turn) => turn.perSecond),
    p50Ms: of((turn) => turn.p50Ms),
    p99Ms: of((turn) => turn.p99Ms),
    cpu: {
      sum: of(({ cpu }) => cpu.sum),
      front: of(({ cpu }) => cpu.front),
      shards: of(({ cpu }) => cpu.shards),
      writer: of(({ cpu }) => cpu.writer),
      helpers: of(({ cpu }) => cpu.helpers),
      postgres: of(({ cpu }) => cpu.postgres),
      client: of(({ cpu }) => cpu.client),
    },
    walBytes: of((turn) => turn.walBytes),
    flushes: of((turn) => turn.flushes),
  };
}

const COLUMNS: readonly (readonly [name: string, read: (turn: Turn) => number])[] = [
  ['ops/s', (turn) => turn.perSecond],
  ['p50 ms', (turn) => turn.p50Ms],
  ['p99 ms', (turn) => turn.p99Ms],
  ['CPU µs/op', ({ cpu }) => cpu.sum],
  ...ROLES.map((role) => [role, ({ cpu }: Turn) => cpu[role]] as const),
  ['WAL B/op', (turn) => turn.walBytes],
  ['flushes/op', (turn) => turn.flushes],
];

function costTable(rows: readonly PathRow[]): string {
  return renderTable(
    ['path', 'server', ...COLUMNS.map(([name]) => name)],
    rows.map(({ path, side, median: turn }) => [
      path,
      side,
      ...COLUMNS.map(([, read]) => read(turn)),
    ]),
  );
}

/** This server by the other one: the medians over the pairs of turns. */
function ratioTable(rows: readonly PathRow[]): string | undefined {
  const pairs = rows
    .filter(({ side }) => side === 'this')
    .flatMap((mine) => {
      const theirs = rows.find(({ path, side }) => path === mine.path && side === 'against');
      return theirs === undefined ? [] : [{ path: mine.path, mine, theirs }];
    });
  if (pairs.length === 0) return undefined;
  return renderTable(
    ['this / against', ...COLUMNS.map(([name]) => name)],
    pairs.map(({ path, mine, theirs }) => [
      path,
      ...COLUMNS.map(([, read]) =>
        round(median(mine.turns.map((turn, at) => read(turn) / read(theirs.turns[at]!)))),
      ),
    ]),
  );
}
