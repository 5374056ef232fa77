/**
 * `npm run bench`: runs the named jobs one after the other on a Postgres of their own, prints a table of each and
 * stores its numbers by machine and day.
 */

import { fileURLToPath } from 'node:url';
import { describeCommit, describeMachine } from './base/checkout.js';
import { type BenchPostgres, startPostgres } from './base/postgres.js';
import { saveResults, tableOf } from './base/report.js';
import { Generator } from './client/generator.js';
import { type Bench, type JobResult, runJob } from './job.js';
import { JOBS } from './jobs.js';
import { type Options, readOptions, UsageError, usage } from './options.js';
import { PeersMissingError } from './peers/packages.js';

const RESULTS = fileURLToPath(new URL('../../bench/results', import.meta.url));

const say = (text: string): void => void process.stdout.write(`${text}\n`);

try {
  if (process.argv.includes('--help')) say(usage(JOBS));
  else await run(readOptions(process.argv.slice(2), JOBS, RESULTS));
} catch (error) {
  const isExpected = error instanceof UsageError || error instanceof PeersMissingError;
  if (!isExpected) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

async function run(options: Options): Promise<void> {
  const machine = describeMachine();
  say(`${machine.processor}, ${machine.cores} cores, ${machine.memoryGb} GB, node ${machine.node}`);
  let starting: Promise<BenchPostgres> | undefined;
  const postgres = () => (starting ??= startPostgres(options, say));
  const bench: Bench = { options, generator: new Generator(), postgres, say };
  const results: Record<string, JobResult> = {};
  try {
    for (const job of options.jobs) {
      const name = job.part === job.name ? job.name : `${job.part} ${job.name}`;
      say(`\n${name}: ${job.asks}`);
      const result = await runJob(job, bench);
      results[name] = result;
      say(`\n${tableOf({ [name]: result })}`);
      if (options.results === undefined) continue;
      const settings = { ...settingsOf(options), postgres: (await starting)?.version };
      const stored = { ...result, commit: describeCommit(), settings };
      say(`stored in ${saveResults(options.results, machine, { [name]: stored })}`);
    }
  } finally {
    await bench.generator.close();
    await (await starting)?.stop();
  }
  if (options.jobs.length > 1) say(`\n\nall jobs\n\n${tableOf(results)}`);
}

function settingsOf({ against, shards, lanes, profile, backlog, instances, isDurable }: Options) {
  return { against, shards, lanes, profile, backlog, instances, isDurable };
}
