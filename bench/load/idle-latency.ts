/**
 * Part b: how long requests take when nothing else happens, beside the single durable commit and the
 * answer of the front that they cannot do without. One request at a time; all take turns.
 */

import { createBody, STEPS, STEPS_HANDLER } from '../fixtures.js';
import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import { type Reached, reachedOf, type TargetName, verdictOf } from '../targets.js';
import { Ceiling } from './ceiling.js';
import { getRequest, postRequest } from './requests.js';
import type { LoadContext } from './run.js';
import { type Latency, Samples } from './samples.js';
import { type Candidate, inTurn, type Side, withCandidates } from './sides.js';
import { SingleCommits } from './single-commits.js';
import { UnitTemplate } from './unit-template.js';

const PER_SECOND = 100;
/** Not counted: code that has not run yet is compiled, connections and plans are made. */
const WARMUP_SHARE = 0.5;

interface Turn {
  readonly frontMs: Latency;
  readonly createMs: Latency;
  /** Of what was created just now. */
  readonly readMs: Latency;
  /** Of one instance again and again, as `frontMs` is of the front. */
  readonly rereadMs: Latency;
  readonly totalMs: Latency;
  readonly stepMs: Latency;
  readonly commitMs: Latency;
  /** Only of this checkout's own server: the script sends this checkout's statements. */
  readonly unitCommitMs?: Latency;
}

type Read = (turn: Turn) => Latency | undefined;

const LINES: readonly (readonly [name: string, read: Read])[] = [
  ['created to completed (POST, then GET)', (turn) => turn.totalMs],
  ['POST /instances', (turn) => turn.createMs],
  ['GET /instances/{id} behind its creation', (turn) => turn.readMs],
  ['GET /instances/{id} again and again', (turn) => turn.rereadMs],
  ['GET /health/live, which only the front answers', (turn) => turn.frontMs],
  ['step completed to next one at a parked poll', (turn) => turn.stepMs],
  ['single durable commit of one row', (turn) => turn.commitMs],
  ["the creation's rows: fence, inserts, commit", (turn) => turn.unitCommitMs],
];

/** Ratios within a turn. */
const RATIOS: readonly {
  readonly name: string;
  readonly of: (turn: Turn) => number;
  readonly target: TargetName;
}[] = [
  {
    name: 'created to completed, in single commits',
    of: ({ totalMs, commitMs }) => totalMs.p50 / commitMs.p50,
    target: 'idle completed',
  },
  {
    name: 'GET /instances/{id} by GET /health/live',
    of: ({ rereadMs, frontMs }) => rereadMs.p50 / frontMs.p50,
    target: 'idle read',
  },
  {
    name: 'step completed to next one at a parked poll, in single commits',
    of: ({ stepMs, commitMs }) => stepMs.p50 / commitMs.p50,
    target: 'idle step',
  },
];

interface Measured {
  readonly side: Side;
  readonly turns: readonly Turn[];
}

export async function runIdleLatency(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const count = Math.ceil(options.seconds * PER_SECOND);
  const commits = await SingleCommits.open(await context.postgres.createDatabase('idle_single'));
  try {
    const measured = await withCandidates(context, options, 'idle', 'noop', (candidates) =>
      measure(context, options, { candidates, commits, count }),
    );
    return report(measured, count, options);
  } finally {
    await commits.close();
  }
}

interface Idle {
  readonly candidates: readonly Candidate[];
  readonly commits: SingleCommits;
  /** Requests of each kind in a turn. */
  readonly count: number;
}

async function measure(
  context: LoadContext,
  options: BenchOptions,
  { candidates, commits, count }: Idle,
): Promise<Measured[]> {
  const contenders = [];
  try {
    for (const { side, server } of candidates) {
      const isOwn = side === 'this' && options.server === undefined;
      const rows = isOwn ? await ownRows(context, server) : undefined;
      const steps = await server.store('steps');
      const turn = (requests: number) =>
        takeTurn(context, server, { commits, count: requests, steps, ...(rows && { rows }) });
      contenders.push({ side, turn, rows, turns: [] as Turn[] });
      await turn(Math.ceil(count * WARMUP_SHARE));
    }
    await context.postgres.checkpoint();
    for (let at = 0; at < options.rounds; at += 1) {
      for (const { turn, turns } of inTurn(contenders, at)) turns.push(await turn(count));
    }
    return contenders.map(({ side, turns }) => ({ side, turns }));
  } finally {
    for (const { rows } of contenders) rows?.ceiling.close();
  }
}

interface OwnRows {
  readonly ceiling: Ceiling;
  readonly template: UnitTemplate;
}

async function ownRows({ postgres }: LoadContext, { db }: Candidate['server']): Promise<OwnRows> {
  const { rows } = await db.query<{ id: string }>('select id from instances limit 1');
  const template = await UnitTemplate.readFrom(db, rows[0]!.id);
  return {
    template,
    ceiling: await Ceiling.open(await postgres.createDatabase('idle_ceiling'), 1),
  };
}

interface TurnSetting {
  readonly commits: SingleCommits;
  readonly count: number;
  /** The id of the sequence of steps for a worker. */
  readonly steps: string;
  readonly rows?: OwnRows;
}

async function takeTurn(
  { generator }: LoadContext,
  { port, createRequest }: Candidate['server'],
  { commits, count, steps, rows }: TurnSetting,
): Promise<Turn> {
  const { latency } = await generator.run({
    kind: 'complete',
    port,
    create: createRequest,
    count,
  });
  const one = { kind: 'loop', port, connections: 1 } as const;
  const created = { requests: [createRequest], status: 201, limit: { replies: 1 }, keepBodies: 1 };
  const { bodies } = await generator.run({ ...one, ...created });
  const { id } = JSON.parse(bodies[0]!) as { id: string };
  const again = async (path: string) => {
    const requests = [getRequest(path)];
    return generator.run({ ...one, requests, status: 200, limit: { replies: count } });
  };
  const front = await again('/health/live');
  const reread = await again(`/instances/${id}`);
  const stepped = await generator.run({
    kind: 'step',
    port,
    create: postRequest('/instances', JSON.stringify(createBody(steps))),
    handler: STEPS_HANDLER,
    steps: STEPS,
    instances: Math.ceil(count / STEPS),
  });
  const samples = new Samples();
  await commits.run(count, samples);
  const units = await rows?.ceiling.run(rows.template, 1, { flushes: count });
  return {
    frontMs: front.latency.request!,
    createMs: latency.create!,
    readMs: latency.read!,
    rereadMs: reread.latency.request!,
    totalMs: latency.total!,
    stepMs: stepped.latency.request!,
    commitMs: samples.summary(),
    ...(units === undefined ? {} : { unitCommitMs: units.flush }),
  };
}

function report(measured: readonly Measured[], count: number, options: BenchOptions) {
  const rows = measured.flatMap(({ side, turns }) =>
    LINES.flatMap(([name, read]) => {
      const at = (share: 'p50' | 'p99') => turns.map((turn) => read(turn)?.[share] ?? Number.NaN);
      const p50Ms = round(median(at('p50')));
      return Number.isNaN(p50Ms) ? [] : [{ name, side, p50Ms, p99Ms: round(median(at('p99'))) }];
    }),
  );
  const ratios = measured.flatMap(({ side, turns }) =>
    RATIOS.map(({ name, of, target }) => {
      return { name, side, ratio: median(turns.map(of)), target };
    }),
  );
  const own = ratios.filter(({ side }) => side === 'this');
  const reached: Reached = Object.assign(
    {},
    ...own.map(({ target, ratio }) => reachedOf(target, ratio)),
  );
  const part: PartResult = {
    question: 'How long do requests take on an idle server, counted in commits?',
    settings: { requests: count, rounds: options.rounds },
    results: { rows, ratios, turns: measured, reached },
    remarks: [],
  };
  const times = renderTable(
    ['idle server', 'server', 'p50 ms', 'p99 ms'],
    rows.map(({ name, side, p50Ms, p99Ms }) => [name, side, p50Ms, p99Ms]),
  );
  const shares = renderTable(
    ['ratio at the median', 'server', 'ratio', 'target'],
    ratios.map(({ name, side, ratio, target }) => [
      name,
      side,
      round(ratio),
      verdictOf(target, ratio),
    ]),
  );
  return { part, table: `${times}\n\n${shares}` };
}
