/**
 * `npm run bench`: the micro benches, then the load runs against a real server and a real Postgres,
 * both its own. Prints tables and stores the results by machine and day.
 */

import { fileURLToPath } from 'node:url';
import { batchCases } from './batch.bench.js';
import { entryCases } from './entry.bench.js';
import { evaluatorCases } from './evaluator.bench.js';
import { expressionCases } from './expression.bench.js';
import { runLoad } from './load/run.js';
import { describeCommit, describeMachine } from './machine.js';
import { runMicro } from './micro.js';
import { type BenchOptions, readOptions, USAGE, UsageError } from './options.js';
import { PeersMissingError } from './peers/packages.js';
import { planCases } from './plan.bench.js';
import { type PartResult, saveResults } from './report.js';
import { rowCases } from './row.bench.js';

const RESULTS = fileURLToPath(new URL('../../bench/results', import.meta.url));

const MICRO_CASES = [
  ...evaluatorCases,
  ...planCases,
  ...expressionCases,
  ...entryCases,
  ...batchCases,
  ...rowCases,
];

const say = (text: string): void => void process.stdout.write(`${text}\n`);

try {
  if (process.argv.includes('--help')) say(USAGE);
  else await run(readOptions(process.argv.slice(2), RESULTS));
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n\n${USAGE}\n`);
    process.exitCode = 2;
  } else if (error instanceof PeersMissingError) {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  } else {
    throw error;
  }
}

async function run(options: BenchOptions): Promise<void> {
  const machine = describeMachine();
  say(`${machine.processor}, ${machine.cores} cores, ${machine.memoryGb} GB, node ${machine.node}`);
  const parts: Record<string, PartResult> = {};
  if (options.micro) {
    const { part, table } = await runMicro(MICRO_CASES, options.microMs);
    parts.micro = part;
    say(`\nmicro benches\n\n${table}`);
  }
  const { load, paths, checks, neighbours, cron, timers, release, events, worker, scale, peers } =
    options;
  const lists = [load, paths, checks, peers, options.attacks];
  const isLoaded = lists.some((list) => list.length > 0);
  if (isLoaded || neighbours || cron || timers || release || events || worker || scale) {
    Object.assign(parts, await runLoad(options, say));
  }
  if (options.results === undefined || Object.keys(parts).length === 0) return;
  say(`\nstored in ${saveResults(options.results, machine, describeCommit(), parts)}`);
}
