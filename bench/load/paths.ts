/**
 * Part `paths`: what an operation of each path costs the whole machine. With another checkout to be
 * compared with, both servers run on databases of their own in one Postgres and take turns (A B B A),
 * so that a machine that gets slower or faster does so for both.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { DEFAULT_API_KEY } from '../../test/helpers/engine.js';
import { describeCommit } from '../machine.js';
import type { BenchOptions } from '../options.js';
import type { RowsResult } from '../report.js';
import { type Reached, reachedOf } from '../targets.js';
import { CHECKS, type Check } from './checks.js';
import { startMeter } from './cost.js';
import {
  type CheckRow,
  CPU_SUM,
  checkTable,
  costTable,
  type Figures,
  mediansOf,
  type PathRow,
  type Ratios,
  ratiosOf,
  ratioTable,
  type Saving,
  savingsOf,
  savingText,
  type Turn,
} from './path-report.js';
import {
  BATCH_CONNECTIONS,
  BATCH_INSTANCES,
  batchRequest,
  operationsOf,
  PATHS,
  type Path,
} from './path-table.js';
import { monotonicUs, type Span } from './profile.js';
import { storedProfile } from './profile-report.js';
import type { LoadContext } from './run.js';
import type { BenchServer } from './server.js';
import { type Candidate, inTurn, withCandidates } from './sides.js';
import { readStatements, resetStatements, statementTable } from './statements.js';

/** Of a measured turn. */
const WARM_UP_SHARE = 0.5;

/** Queues learn of new tasks by hints, which may still be under way when the creations are answered. */
const SETTLE_MS = 200;

/** A server under a path. */
interface Contender extends Candidate {
  readonly turns: Turn[];
  /** Tasks that have been created and are not completed. */
  pending: number;
  /** Operations that were answered. */
  done: number;
}

export async function runPaths(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: RowsResult; readonly table: string }> {
  const rows: PathRow[] = [];
  const skipped: string[] = [];
  await context.postgres.setAutovacuum(false);
  try {
    for (const path of PATHS.filter(({ name }) => options.paths.includes(name))) {
      const result = await withCandidates(
        context,
        options,
        `paths_${path.name}`,
        path.sequence,
        (candidates) => measure(context, options, path, candidates),
      );
      rows.push(...result.rows);
      skipped.push(...result.skipped);
    }
  } finally {
    await context.postgres.setAutovacuum(true);
  }
  const checks: CheckRow[] = [];
  for (const check of CHECKS.filter(({ name }) => options.checks.includes(name))) {
    const found = await withCandidates(
      context,
      options,
      `check_${check.name}`,
      check.sequence,
      (candidates) => measureCheck(context, options, check, candidates),
    );
    context.progress(`\n${checkTable(found)}`);
    checks.push(...found);
  }
  const ratios = ratiosOf(rows);
  const savings = savingsOf(rows);
  const part: RowsResult = {
    question: 'What does an operation of each path cost the whole machine?',
    settings: {
      seconds: options.seconds,
      rounds: options.rounds,
      backlog: options.backlog,
      lanes: options.lanes ?? null,
      heldSeconds: options.snapshotSeconds,
      fullSeconds: options.fullSeconds,
      this: describeCommit(options.server),
      against: options.against === undefined ? null : describeCommit(options.against),
    },
    rows: {
      ...Object.fromEntries(
        rows.map(({ path }) => [path, storedPath(path, rows, ratios, savings)]),
      ),
      ...Object.fromEntries(checks.map(({ check }) => [check, storedCheck(check, checks)])),
    },
    remarks: [...skipped, ...savings.map(savingText)],
  };
  const tables = [
    ...(rows.length > 0 ? [costTable(rows)] : []),
    ...(ratios.length > 0 ? [ratioTable(ratios)] : []),
    ...(checks.length > 0 ? [checkTable(checks)] : []),
    ...part.remarks,
  ];
  return { part, table: tables.join('\n\n') };
}

/** What is stored of one path: both sides of it, and what it is beside others of the same run. */
export interface StoredPath {
  readonly sides: readonly (PathRow & { readonly medians: Figures })[];
  readonly ratios: Ratios | null;
  readonly saving: Saving | null;
  readonly reached: Reached;
}

function storedPath(
  path: string,
  rows: readonly PathRow[],
  ratios: readonly Ratios[],
  savings: readonly Saving[],
): StoredPath {
  const ratio = ratios.find((one) => one.path === path);
  const saving = savings.find((one) => one.path === path && one.side === 'this');
  return {
    sides: rows
      .filter((row) => row.path === path)
      .map((row) => ({
        ...row,
        medians: mediansOf(row),
        profiles: row.profiles.map(storedProfile),
      })),
    ratios: ratio ?? null,
    saving: saving ?? null,
    reached: {
      ...reachedOf(`cpu ${path}`, ratio?.ratios[CPU_SUM]),
      ...(saving?.of.side === 'against' ? reachedOf(`saving ${path}`, saving.share) : {}),
    },
  };
}

export interface StoredCheck {
  readonly sides: readonly CheckRow[];
  readonly reached: Reached;
}

function storedCheck(check: string, rows: readonly CheckRow[]): StoredCheck {
  const sides = rows.filter((row) => row.check === check);
  const own = sides.find(({ side }) => side === 'this')?.figures ?? [];
  const reached = own.map(({ target, value }) => (target ? reachedOf(target, value) : {}));
  return { sides, reached: Object.assign({}, ...reached) };
}

async function measureCheck(
  context: LoadContext,
  options: BenchOptions,
  check: Check,
  candidates: readonly Candidate[],
): Promise<CheckRow[]> {
  const rows: CheckRow[] = [];
  for (const candidate of candidates) {
    const found = await check.measure(context, options, candidate);
    rows.push({ check: check.name, asks: check.asks, side: candidate.side, ...found });
  }
  return rows;
}

async function measure(
  context: LoadContext,
  options: BenchOptions,
  path: Path,
  candidates: readonly Candidate[],
) {
  const ms = options.seconds * 1_000;
  const contenders: Contender[] = [];
  const skipped: string[] = [];
  for (const candidate of candidates) {
    if (path.route !== undefined && !(await knows(candidate.server, path.route))) {
      skipped.push(`${path.name}: the server (${candidate.side}) has no ${path.route}`);
      continue;
    }
    const contender = { ...candidate, turns: [], pending: 0, done: 0 };
    contenders.push(contender);
    // Not counted: the code of every kind of request has run.
    await takeTurn(context, options, path, contender, ms * WARM_UP_SHARE);
  }
  for (let round = 0; round < options.rounds; round += 1) {
    for (const contender of inTurn(contenders, round)) {
      const { turn, span } = await takeTurn(context, options, path, contender, ms);
      contender.turns.push(turn);
      contender.measured.push(span);
    }
  }
  const rows: PathRow[] = [];
  for (const contender of contenders) {
    const { side, turns, server, profiles } = contender;
    const { name, operation, completes } = path;
    if (completes) await expectCompleted(contender);
    rows.push({
      path: name,
      operation,
      insteadOf: path.insteadOf,
      side,
      turns,
      profiles,
      shards: server.shards,
      lanes: await server.lanes(),
    });
  }
  context.progress(`\n${costTable(rows)}`);
  return { rows, skipped };
}

async function takeTurn(
  context: LoadContext,
  options: BenchOptions,
  path: Path,
  contender: Contender,
  ms: number,
): Promise<{ readonly turn: Turn; readonly span: Span }> {
  const { postgres, generator } = context;
  const { server, roles, side, database } = contender;
  const { backlog } = options;
  await postgres.checkpoint();
  if (path.needsBacklog) {
    await fill(context, contender, backlog);
    await wait(SETTLE_MS);
  }
  await server.db.query('vacuum (analyze)');
  if (options.statements) await resetStatements(postgres);
  const stopMeter = await startMeter(postgres, server);
  const from = monotonicUs();
  const result = await generator.run(path.job({ server, ms, backlog }));
  const span = { from, to: monotonicUs() };
  const operations = operationsOf(path, result);
  const cost = await stopMeter(roles, operations.all);
  if (options.statements) {
    const statements = await readStatements(postgres, database);
    context.progress(`\n${path.name} ${side}\n${statementTable(statements, operations.all)}`);
  }
  if (path.needsBacklog) contender.pending -= operations.all;
  contender.done += operations.all;
  const latency = result.latency.request!;
  const perSecond = (operations.timed * 1_000) / result.ms;
  return { turn: { perSecond, p50Ms: latency.p50, p99Ms: latency.p99, ...cost }, span };
}

/** @throws Error when fewer instances are completed than answers said so */
async function expectCompleted({ server, done }: Contender): Promise<void> {
  const { rows } = await server.db.query<{ completed: number }>(
    `select count(*) as completed from instances where state = 'completed'`,
  );
  const { completed } = rows[0]!;
  if (completed < done) throw new Error(`${completed} instances are completed, not ${done}`);
}

/** Creates what is missing of the backlog. */
async function fill({ generator }: LoadContext, contender: Contender, backlog: number) {
  const batches = Math.ceil((backlog - contender.pending) / BATCH_INSTANCES);
  if (batches <= 0) return;
  await generator.run({
    kind: 'loop',
    port: contender.server.port,
    connections: BATCH_CONNECTIONS,
    requests: [batchRequest(contender.server)],
    status: 201,
    limit: { replies: batches },
  });
  contender.pending += batches * BATCH_INSTANCES;
}

async function knows({ port }: BenchServer, route: string): Promise<boolean> {
  const reply = await fetch(`http://127.0.0.1:${port}/api/v1${route}`, {
    method: 'POST',
    headers: { 'x-api-key': DEFAULT_API_KEY },
  });
  await reply.arrayBuffer();
  return reply.status !== 404;
}
