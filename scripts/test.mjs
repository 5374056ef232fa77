/** `npm test [-- filter ...]`: the files of a tier, or of all tiers whose paths hold a filter. */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { Report } from './lib/test-report.mjs';

await bootstrap();
process.chdir(root);
const { preparedIn, startPrepared } = await import('../dist/test/helpers/api.js');
const { stopSharedServer } = await import('../dist/test/helpers/database.js');

const TIERS = {
  fast: (file) => !/^(system|deep)\//.test(file),
  // What runs within its own process runs again: with all cases, and to note what it covers.
  full: (file) => /^(system|unit|contract|database|http|sim)\//.test(file),
  deep: () => true,
};
const tier = Object.keys(TIERS).find((name) => process.argv.includes(`--${name}`)) ?? 'fast';
const filters = process.argv.slice(2).filter((argument) => argument !== `--${tier}`);
/** Without the end of a test for so long a process hangs; a busy machine comes nowhere near. */
const SILENCE_MS = tier === 'deep' ? 14_400_000 : 900_000;
/** A process takes half a second before its first test, so that small files share one. */
const FILES_PER_PROCESS = 12;
/** Files wait for one Postgres and at times for the clock: one more than there are processors. */
const AT_ONCE = Math.min(8, availableParallelism() + 1);
const REPORTER = import.meta.resolve('./lib/test-report.mjs');
/** Most tests run once: what is compiled for speed has to be worth it. */
const FLAGS = ['--enable-source-maps', '--interrupt-budget=1000000', `--test-reporter=${REPORTER}`];

const isIn = (part) => (file) => `test/${file}`.includes(part);
const files = readdirSync('test', { recursive: true })
  .filter((file) => file.endsWith('.test.ts'))
  .filter(filters.length > 0 ? (file) => filters.some((part) => isIn(part)(file)) : TIERS[tier]);
const sources = new Map(files.map((file) => [file, readFileSync(`test/${file}`, 'utf8')]));
const unmatched = filters.filter((part) => !files.some(isIn(part)));
for (const part of unmatched) console.error(`no test file matches ${part}`);
const report = new Report(files);
/** Processes, with the files that each is given. */
const running = new Map();
let isInterrupted = false;
/** The run goes on to its own end, since the servers have to be stopped. */
const interrupt = () => {
  isInterrupted = true;
  for (const child of running.keys()) child.kill('SIGTERM');
};
process.on('SIGINT', interrupt).on('SIGTERM', interrupt);

const prepared = await startPrepared(preparedIn([...sources.values()]));
Object.assign(process.env, prepared.env, { TEST_TIER: tier });
const waiting = groups();
const work = async () => {
  while (waiting.length > 0 && !isInterrupted) await run(waiting.shift());
};
await Promise.all(Array.from({ length: AT_ONCE }, work));
await prepared.stop();
await stopSharedServer();
report.end(filters.length > 0 ? 'some' : tier);
process.exitCode = report.counts.fail > 0 || isInterrupted || unmatched.length > 0 ? 1 : 0;

/** The files of each process: first each by itself that is large or says what it costs, then the others together. */
function groups() {
  const costOf = (file) => Number(/^ \* Cost: (\d+) s/m.exec(sources.get(file))?.[1] ?? 0);
  const isLarge = (file) => costOf(file) > 0 || !TIERS.fast(file);
  const large = files.filter(isLarge).sort((a, b) => costOf(b) - costOf(a));
  const small = files.filter((file) => !isLarge(file));
  const each = Math.min(FILES_PER_PROCESS, Math.ceil(small.length / AT_ONCE));
  const count = Math.ceil(small.length / each);
  const parts = Array.from({ length: count }, (_, at) =>
    small.filter((_file, n) => n % count === at),
  );
  return [...large.map((file) => [file]), ...parts];
}

async function run(group) {
  // In a process group, to be killed with its servers; Ctrl-C reaches it by the handler above.
  const options = { execArgv: FLAGS, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] };
  const child = fork('scripts/lib/test-group.mjs', group, options);
  running.set(child, group);
  report.status([...running.values()]);
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => output.push(part));
  let problem;
  const silence = setTimeout(() => {
    problem = `no test has ended for ${SILENCE_MS / 60_000} min`;
    process.kill(-child.pid, 'SIGKILL');
  }, SILENCE_MS);
  child.on('message', (message) => {
    silence.refresh();
    report.take(message);
  });
  const [code, signal] = await once(child, 'close');
  clearTimeout(silence);
  running.delete(child);
  const ending = problem ?? `it ended with ${code ?? signal}`;
  report.close(group, String(Buffer.concat(output)), code, ending);
}
