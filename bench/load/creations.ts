/**
 * Parts a and d: durable creations through the whole server, beside the ceiling of the same
 * Postgres. Both take turns, so that a machine that gets slower or faster does so for both, and the
 * ceiling gets the mean batch size that the server had just before.
 */

import type { BenchOptions } from '../options.js';
import { median, type PartResult, renderTable, round } from '../report.js';
import { Ceiling } from './ceiling.js';
import type { LoadContext } from './run.js';
import { type BenchServer, creationsOf, startServer, type Variant } from './server.js';
import { UnitTemplate } from './unit-template.js';

const CONNECTIONS = [64, 256] as const;
const VARIANTS: readonly Variant[] = ['noop', 'external'];

/** The target: creations at 256 connections reach this share of the ceiling. */
const TARGET = { connections: 256, share: 0.3 } as const;

/** Batches of this size show what the same rows cost when group commit is at its best. */
const BEST_BATCH_UNITS = 250;

interface Turn {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly unitsPerFlush: number;
  readonly ceilingPerSecond: number;
  readonly ceilingFlushP50Ms: number;
  readonly bestPerSecond: number;
  readonly share: number;
}

interface CreationRow extends Turn {
  readonly sequence: Variant;
  readonly connections: number;
  readonly rowsPerUnit: number;
  readonly bytesPerUnit: number;
  readonly turns: readonly Turn[];
}

export async function runCreations(
  context: LoadContext,
  options: BenchOptions,
): Promise<{ readonly part: PartResult; readonly table: string }> {
  const rows: CreationRow[] = [];
  let shards = 0;
  let lanes = 0;
  for (const variant of VARIANTS) {
    const server = await startServer(
      context.postgres,
      `creations_${variant}`,
      variant,
      options.shards,
    );
    try {
      rows.push(...(await measureVariant(context, options, server, variant)));
      shards = server.shards;
      lanes = await server.lanes();
    } finally {
      await server.stop();
    }
  }
  const part: PartResult = {
    question:
      'How many instances per second does the server create durably, and what share is that of ' +
      'what a bare script reaches with the same rows, statements and batch size?',
    settings: { seconds: options.seconds, rounds: options.rounds, shards, lanes },
    results: { rows },
    remarks: rows.filter(({ connections }) => connections === TARGET.connections).map(verdict),
  };
  return { part, table: `${speedTable(rows)}\n\n${part.remarks.join('\n')}` };
}

async function measureVariant(
  context: LoadContext,
  options: BenchOptions,
  server: BenchServer,
  variant: Variant,
): Promise<CreationRow[]> {
  const { postgres } = context;
  const ms = options.seconds * 1_000;
  // Not counted: the code of the request has run.
  await context.generator.run(creationsOf(server, CONNECTIONS[0], ms / 2));
  const { rows } = await server.db.query<{ id: string }>(
    'select id from instances order by id desc limit 1',
  );
  const template = await UnitTemplate.readFrom(server.db, rows[0]!.id);
  const ceiling = await Ceiling.open(
    await postgres.createDatabase(`ceiling_${variant}`),
    await server.lanes(),
  );
  const turns = new Map<number, Turn[]>(CONNECTIONS.map((connections) => [connections, []]));
  try {
    for (let round = 0; round < options.rounds; round += 1) {
      for (const connections of CONNECTIONS) {
        const turn = await takeTurn(context, server, { ceiling, template, connections, ms });
        turns.get(connections)?.push(turn);
      }
    }
  } finally {
    ceiling.close();
  }
  return [...turns].map(([connections, all]) => ({
    sequence: variant,
    connections,
    rowsPerUnit: template.rowsPerUnit,
    bytesPerUnit: template.bytesPerUnit,
    ...medianTurn(all),
    turns: all,
  }));
}

interface Comparison {
  readonly ceiling: Ceiling;
  readonly template: UnitTemplate;
  readonly connections: number;
  readonly ms: number;
}

async function takeTurn(
  context: LoadContext,
  server: BenchServer,
  { ceiling, template, connections, ms }: Comparison,
): Promise<Turn> {
  const { postgres } = context;
  await postgres.checkpoint();
  const flushesBefore = await server.flushes();
  const created = await context.generator.run(creationsOf(server, connections, ms));
  const flushes = (await server.flushes()) - flushesBefore;
  const unitsPerFlush = created.answered / Math.max(1, flushes);

  await postgres.checkpoint();
  const bare = await ceiling.run(template, unitsPerFlush, { ms });
  const best = await ceiling.run(template, BEST_BATCH_UNITS, { ms: ms / 2 });

  const perSecond = (created.replies * 1_000) / created.ms;
  const ceilingPerSecond = (bare.units * 1_000) / bare.ms;
  const latency = created.latency.request;
  return {
    perSecond,
    p50Ms: latency?.p50 ?? 0,
    p99Ms: latency?.p99 ?? 0,
    unitsPerFlush,
    ceilingPerSecond,
    ceilingFlushP50Ms: bare.flush.p50,
    bestPerSecond: (best.units * 1_000) / best.ms,
    share: perSecond / ceilingPerSecond,
  };
}

function medianTurn(turns: readonly Turn[]): Turn {
  const of = (read: (turn: Turn) => number) => round(median(turns.map(read)));
  return {
    perSecond: of((turn) => turn.perSecond),
    p50Ms: of((turn) => turn.p50Ms),
    p99Ms: of((turn) => turn.p99Ms),
    unitsPerFlush: of((turn) => turn.unitsPerFlush),
    ceilingPerSecond: of((turn) => turn.ceilingPerSecond),
    ceilingFlushP50Ms: of((turn) => turn.ceilingFlushP50Ms),
    bestPerSecond: of((turn) => turn.bestPerSecond),
    share: of((turn) => turn.share),
  };
}

function verdict(row: CreationRow): string {
  const percent = round(100 * row.share);
  const reached = row.share >= TARGET.share ? 'reached' : 'missed';
  return (
    `${row.sequence} at ${row.connections} connections: ${percent} % of the ceiling, ` +
    `target ${100 * TARGET.share} %: ${reached}`
  );
}

function speedTable(rows: readonly CreationRow[]): string {
  return renderTable(
    [
      'sequence',
      'connections',
      'creations/s',
      'p50 ms',
      'p99 ms',
      'units/flush',
      'ceiling/s',
      'share %',
      `at ${BEST_BATCH_UNITS}/flush`,
      'rows/unit',
    ],
    rows.map((row) => [
      row.sequence,
      row.connections,
      row.perSecond,
      row.p50Ms,
      row.p99Ms,
      row.unitsPerFlush,
      row.ceilingPerSecond,
      round(100 * row.share),
      row.bestPerSecond,
      row.rowsPerUnit,
    ]),
  );
}
