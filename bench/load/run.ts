/** The load runs, one after the other on one Postgres. Each part starts a server of its own. */

import type { BenchOptions, LoadPart } from '../options.js';
import { runPeers } from '../peers/run.js';
import { runPressure } from '../pressure/run.js';
import { type PartResult, partsOf, type RowsResult } from '../report.js';
import { runScale } from '../scale/run.js';
import { runCreations } from './creations.js';
import { runCron } from './cron.js';
import { runEvents } from './events.js';
import { Generator } from './generator.js';
import { runIdleLatency } from './idle-latency.js';
import { runNeighbours } from './neighbours.js';
import { runPaths } from './paths.js';
import { type BenchPostgres, startPostgres } from './postgres.js';
import { runRelease } from './release.js';
import { runTimers } from './timers.js';
import { runWorkerLibrary } from './worker-library.js';

/** What all parts share. */
export interface LoadContext {
  readonly postgres: BenchPostgres;
  readonly generator: Generator;
  /** Prints what a part that takes long has so far. */
  readonly progress: (text: string) => void;
}

type RunPart = (
  context: LoadContext,
  options: BenchOptions,
) => Promise<{ readonly part: PartResult | RowsResult; readonly table: string }>;

interface Part {
  readonly title: string;
  readonly run: RunPart;
}

const PARTS: Readonly<Record<LoadPart, Part>> = {
  a: { title: 'creations', run: runCreations },
  b: { title: 'latency', run: runIdleLatency },
};

const NEIGHBOURS: Part = { title: 'neighbours', run: runNeighbours };
const CRON: Part = { title: 'cron', run: runCron };
const TIMERS: Part = { title: 'timers', run: runTimers };
const RELEASE: Part = { title: 'release', run: runRelease };
const PEERS: Part = { title: 'peers', run: runPeers };
const PRESSURE: Part = { title: 'pressure', run: runPressure };
const SCALE: Part = { title: 'scale', run: runScale };
const EVENTS: Part = { title: 'events', run: runEvents };
const WORKER: Part = { title: 'worker', run: runWorkerLibrary };
const PATHS: Part = { title: 'paths', run: runPaths };

/** Of rows whose run had a profile or counted statements: they tell where time goes, and are no measurement. */
export const EXPLAINED = 'explained';

/** @returns the parts by their titles; each is printed as soon as it is there */
export async function runLoad(
  options: BenchOptions,
  say: (text: string) => void,
): Promise<Readonly<Record<string, PartResult>>> {
  const postgres = await startPostgres(options);
  const generator = new Generator();
  const results: Record<string, PartResult> = {};
  try {
    const doubts = postgres.isInMemory
      ? ['The database was on a file system in memory: syncs were free. Give --data-dir a disk.']
      : [];
    if (!options.isDurable) doubts.push('Nothing was synced: these numbers measure nothing.');
    say(`Postgres ${postgres.version}, fsync ${options.isDurable ? 'on' : 'off'}`);
    const chosen: (readonly [name: string, part: Part])[] = options.load.map((name) => [
      name,
      PARTS[name],
    ]);
    if (options.neighbours) chosen.push(['neighbours', NEIGHBOURS]);
    if (options.cron) chosen.push(['cron', CRON]);
    if (options.timers) chosen.push(['timers', TIMERS]);
    if (options.release) chosen.push(['release', RELEASE]);
    if (options.events) chosen.push(['events', EVENTS]);
    if (options.worker) chosen.push(['worker', WORKER]);
    if (options.paths.length + options.checks.length > 0) chosen.push(['paths', PATHS]);
    if (options.scale) chosen.push(['scale', SCALE]);
    if (options.peers.length > 0) chosen.push(['peers', PEERS]);
    if (options.attacks.length > 0) chosen.push(['pressure', PRESSURE]);
    for (const [name, { title, run }] of chosen) {
      const { part, table } = await run({ postgres, generator, progress: say }, options);
      const settings = {
        ...part.settings,
        postgres: postgres.version,
        isDurable: options.isDurable,
      };
      const remarks = [...part.remarks, ...doubts];
      const isExplained = 'rows' in part && (options.statements || options.profile !== undefined);
      const stored = isExplained ? EXPLAINED : title;
      Object.assign(results, partsOf(stored, { ...part, settings, remarks }));
      say(`\n${name}: ${part.question}\n\n${[table, ...doubts].join('\n')}`);
    }
  } finally {
    await generator.close();
    await postgres.stop();
  }
  return results;
}
