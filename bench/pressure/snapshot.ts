/**
 * What a snapshot costs that another session holds: dead rows stay where they are, in every table of that database.
 * Whole rounds are done for as long as it is held, minute by minute, in turns with a server on another database of the
 * same Postgres, whose rows nobody keeps: so what else the machine does, and what full tables cost, is divided out.
 */

import type { Figure, Found } from '../load/checks.js';
import { startMeter } from '../load/cost.js';
import { pathNamed } from '../load/path-table.js';
import { connect } from '../load/postgres.js';
import type { LoadContext } from '../load/run.js';
import type { BenchServer } from '../load/server.js';
import { type Candidate, inTurn, openCandidate } from '../load/sides.js';
import type { BenchOptions } from '../options.js';
import { median, round } from '../report.js';

const MINUTE_MS = 60_000;
/** What is judged: a single minute says more of the machine than of the server. */
const LAST_MINUTES = 3;
const PATH = 'round16';

interface Turn {
  readonly perSecond: number;
  /** Of a round. */
  readonly cpuUs: number;
  /** That statements looked at for a round, which no other load on the machine changes. */
  readonly blocks: number;
}

/** Beside the snapshot, and without one. */
interface Minute {
  readonly held: Turn;
  readonly control: Turn;
}

export async function measureSnapshot(
  context: LoadContext,
  options: BenchOptions,
  held: Candidate,
): Promise<Found> {
  const control = await openCandidate(context, options, 'control', 'external', held.side);
  try {
    return { figures: figuresOf(await minutesOf(context, options, held, control)) };
  } finally {
    await control.server.stop();
  }
}

/** The first one is before the snapshot. */
async function minutesOf(
  { postgres, generator, progress }: LoadContext,
  { snapshotSeconds, backlog }: BenchOptions,
  held: Candidate,
  control: Candidate,
): Promise<readonly Minute[]> {
  const path = pathNamed(PATH);
  const turn = async ({ server, roles }: Candidate, ms: number): Promise<Turn> => {
    const blocks = await blocksOf(server);
    const stopMeter = await startMeter(postgres, server);
    const result = await generator.run(path.job({ server, ms, backlog }));
    const { cpu } = await stopMeter(roles, result.answered);
    return {
      perSecond: (result.replies * 1_000) / result.ms,
      cpuUs: cpu.sum,
      blocks: ((await blocksOf(server)) - blocks) / result.answered,
    };
  };
  const minute = async (at: number, ms: number): Promise<Minute> => {
    const turns = new Map<Candidate, Turn>();
    for (const one of inTurn([held, control], at)) turns.set(one, await turn(one, ms));
    return { held: turns.get(held)!, control: turns.get(control)! };
  };
  const heldMs = snapshotSeconds * 1_000;
  const ms = Math.min(heldMs, MINUTE_MS);
  // Not counted: the code of every kind of request has run.
  await minute(0, ms / 4);
  const minutes = [await minute(1, ms)];
  const session = await connect(held.server.databaseUrl);
  try {
    await session.query('begin isolation level repeatable read');
    await session.query('select 1');
    for (let at = 1; at * ms <= heldMs; at += 1) {
      minutes.push(await minute(at, ms));
      const ratios = Object.entries(ratiosOf(minutes, at));
      const told = ratios.map(([name, ratio]) => `${name} ${round(ratio)} ×`);
      progress(`snapshot, minute ${at}: ${told.join(', ')}`);
    }
  } finally {
    await session.end();
  }
  return minutes;
}

/** Of the minute beside the one before the snapshot, each of them by the server without one. */
function ratiosOf(minutes: readonly Minute[], at: number) {
  const shareOf = (of: keyof Turn, { held, control }: Minute) => held[of] / control[of];
  const ratio = (of: keyof Turn) => shareOf(of, minutes[at]!) / shareOf(of, minutes[0]!);
  return { throughput: ratio('perSecond'), CPU: ratio('cpuUs'), blocks: ratio('blocks') };
}

/** By statements so far: not those of vacuums, which find more to look through for as long as a snapshot is held. */
async function blocksOf({ db }: BenchServer): Promise<number> {
  const { rows } = await db.query<{ blocks: number }>(
    "select sum(hits + reads)::int8 as blocks from pg_stat_io where backend_type = 'client backend'",
  );
  return rows[0]!.blocks;
}

function figuresOf(minutes: readonly Minute[]): readonly Figure[] {
  const [before] = minutes;
  const beside = minutes.slice(1).map((_, at) => ratiosOf(minutes, at + 1));
  const last = beside.slice(-LAST_MINUTES);
  return [
    { name: 'rounds/s without a snapshot', value: before!.held.perSecond },
    { name: 'rounds/s beside one, in the last minute', value: minutes.at(-1)!.held.perSecond },
    ...beside.flatMap((ratios, at) =>
      Object.entries(ratios).map(([name, value]) => ({
        name: `minute ${at + 1}: ${name} beside one by without`,
        value,
      })),
    ),
    {
      name: 'throughput beside one by without',
      value: median(last.map(({ throughput }) => throughput)),
      target: 'check snapshot',
    },
    { name: 'CPU of a round beside one by without', value: median(last.map(({ CPU }) => CPU)) },
    {
      name: 'blocks of a round beside one by without',
      value: median(last.map(({ blocks }) => blocks)),
    },
  ];
}
