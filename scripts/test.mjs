/** `npm test [-- filter ...]`: the files of a tier, or of all tiers whose paths hold a filter. */

import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { Report } from './lib/test-report.mjs';

const TIERS = {
  '--fast': (file) => !/^(system|deep)\//.test(file),
  // What runs within its own process runs again: with all cases, and to note what it covers.
  '--full': (file) => /^(system|unit|contract|database|http|sim)\//.test(file),
  '--deep': () => true,
};
const filters = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const [flag = '--fast', ...more] = process.argv.slice(2).filter((it) => !filters.includes(it));
if (!Object.hasOwn(TIERS, flag) || more.length > 0) {
  console.error('usage: npm test [-- [--full | --deep] [part of a path ...]]');
  process.exit(2);
}
/** Without the end of a test for so long a process hangs; a busy machine comes nowhere near. */
const SILENCE_MS = flag === '--deep' ? 14_400_000 : 900_000;
/** A process takes half a second before its first test, so that small files share one, behind the large ones. */
const FILES_PER_PROCESS = 8;
/** Files wait for one Postgres and at times for the clock: one more than there are processors. */
const AT_ONCE = Math.min(8, availableParallelism() + 1);
const REPORTER = `--test-reporter=${import.meta.resolve('./lib/test-report.mjs')}`;
/** Most tests run once, so that code has to be hot before it is optimised. V8 refuses options that it does not know. */
const LATE_OPTIMISATION = ['--interrupt-budget=1000000', '--invocation-count-for-turbofan=45000'];
const isKnown = (option) => spawnSync(process.execPath, [option, '--eval', '']).status === 0;
const FLAGS = ['--enable-source-maps', REPORTER, ...LATE_OPTIMISATION.filter(isKnown)];
await bootstrap();
process.chdir(root);
const { preparedIn, withPrepared } = await import('../dist/test/helpers/api.js');
const { cpuSeconds } = await import('../dist/test/helpers/cpu-time.js');

/** A file is found by its path, and by those of the tests that it bundles. */
const pathsOf = (file) =>
  [`test/${file}`, ...(file === 'unit/ui.test.ts' ? readdirSync('ui/test') : [])].join(' ui/test/');
const isChosen = (file) => filters.some((part) => pathsOf(file).includes(part));
const all = readdirSync('test', { recursive: true }).filter((file) => file.endsWith('.test.ts'));
const files = all.filter(filters.length > 0 ? isChosen : TIERS[flag]);
const sources = new Map(files.map((file) => [file, readFileSync(`test/${file}`, 'utf8')]));
const unmatched = filters.filter((part) => !files.some((file) => pathsOf(file).includes(part)));
for (const part of unmatched) console.error(`no test file matches ${part}`);
const report = new Report(files);
const running = new Set();
const killGroup = (child) => process.kill(-child.pid, 'SIGKILL');
let interruption;
// The run goes on to its own end, since the servers have to be stopped.
const interrupt = (signal) => {
  interruption ??= signal;
  for (const child of running) child.kill('SIGTERM');
  // Whoever computes does not listen.
  setTimeout(() => running.forEach(killGroup), 10_000).unref();
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, interrupt);
/** What its head says; those of `system` and `deep` are large. By their lengths files of a folder are spread. */
const costOf = (file) =>
  Number(/^ \* Cost: (\d+) s/m.exec(sources.get(file))?.[1] ?? !TIERS['--fast'](file));
const waiting = [...files].sort((a, b) => costOf(b) - costOf(a) || a.length - b.length);
const work = async () => {
  while (waiting.length > 0 && interruption === undefined) {
    const count = Math.min(FILES_PER_PROCESS, Math.ceil(waiting.length / AT_ONCE));
    await run(waiting.splice(0, costOf(waiting[0]) > 0 ? 1 : count));
  }
};
const problem = await withPrepared(preparedIn([...sources.values()]), async (env) => {
  Object.assign(process.env, env, { TEST_TIER: flag.slice(2) });
  await Promise.all(Array.from({ length: AT_ONCE }, work));
});
const tier = filters.length > 0 ? 'some' : flag.slice(2);
const isWhole = report.end(tier, cpuSeconds(), interruption) && unmatched.length === 0;
// Ctrl-C of a terminal reaches the servers, too, and they may just be starting.
if (problem && !interruption) console.error(problem);
process.exit(interruption ? 128 + constants.signals[interruption] : isWhole && !problem ? 0 : 1);

async function run(group) {
  // In a process group, to be killed with its servers; Ctrl-C reaches it by the handler above.
  const options = { execArgv: FLAGS, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] };
  const child = fork('scripts/lib/test-group.mjs', group, options);
  running.add(child);
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => output.push(part));
  const silence = setTimeout(killGroup, SILENCE_MS, child);
  child.on('message', () => silence.refresh());
  child.on('message', (message) => interruption ?? report.take(message));
  const [code, signal] = await once(child, 'close');
  clearTimeout(silence);
  running.delete(child);
  if (interruption !== undefined) return;
  const killed = `SIGKILL, as after ${SILENCE_MS / 60_000} min without the end of a test`;
  const ending = `it ended with ${signal === 'SIGKILL' ? killed : (code ?? signal)}`;
  waiting.push(...report.close(group, String(Buffer.concat(output)), code, ending));
}
