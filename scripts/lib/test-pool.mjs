/**
 * Runs test files in processes, some at a time, in the given order. A process is ended when it gets
 * nowhere: when no test of it ends, and it either hardly uses the processor or has used a great deal.
 * The clock alone is no sign of that, since a machine may be slow or busy.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { processTable, treeOf } from './process-cpu.mjs';

const LOOK_EVERY_MS = 1_000;

/**
 * What a process may do without the end of a test: nothing for so long, which is less work than
 * `idleCpuS`, or so much work. Where nobody knows what it does, the clock has to tell.
 */
const LIMITS = { idleMs: 600_000, idleCpuS: 10, busyCpuS: 2_400, clockMs: 3_600_000 };

const PATIENCE_MS = 10_000;
const OUTPUT_PATIENCE_MS = 2_000;
const OUTPUT_MAX = 200_000;

/** No module is behind a link. */
const NODE_FLAGS = ['--enable-source-maps', '--preserve-symlinks', '--preserve-symlinks-main'];

/** Most tests run once: what is compiled for speed has to be worth it. */
const COLD_FLAGS = ['--interrupt-budget=1000000'];

const REPORTER = new URL('./test-reporter.mjs', import.meta.url).href;

/**
 * Runs every unit, `atOnce` of them at a time; resolves when all have ended.
 * `on.begin(unit)`, `on.line(unit, line)` for each line of the reporter, and `on.end(unit, result)`
 * with `{ ms, cpuS, output, problem }` tell what happens.
 *
 * @param folder for the reports
 */
export async function runUnits(units, { atOnce, folder, root, signal, on, limits = LIMITS }) {
  const waiting = [...units.entries()];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (signal.aborted) return;
      const [index, unit] = next;
      const report = path.join(folder, `${index}.report`);
      on.begin(unit);
      const onLine = (line) => on.line(unit, line);
      on.end(unit, await runUnit(unit, { report, root, signal, limits, onLine }));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

async function runUnit(
  { file, isCovered = true, isHot = false },
  { report, root, signal, limits, onLine },
) {
  const startedAt = performance.now();
  const flags = isHot ? NODE_FLAGS : [...NODE_FLAGS, ...COLD_FLAGS];
  const args = [...flags, `--test-reporter=${REPORTER}`, file];
  const child = spawn(process.execPath, args, {
    cwd: root,
    // What is absent would be inherited.
    env: { ...process.env, TEST_REPORT: report, ...(isCovered ? {} : { NODE_V8_COVERAGE: '' }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const abort = () => child.kill('SIGTERM');
  signal.addEventListener('abort', abort);
  const output = collect(child);
  const lines = reader(report);
  const watch = new Watch(child.pid, limits);
  let hasFailed = false;
  let cpuS;
  const look = () => {
    for (const line of lines()) {
      if (line[0] === 'end') cpuS = line[1];
      else {
        hasFailed ||= line[0] === 'fail';
        watch.progress();
        onLine(line);
      }
    }
  };
  const timer = setInterval(() => {
    look();
    watch.look();
  }, LOOK_EVERY_MS);
  const closed = once(child, 'close');
  const [code, endedBy] = await once(child, 'exit');
  // Whoever it leaves behind may hold its output open.
  await Promise.race([closed, wait(OUTPUT_PATIENCE_MS, undefined, { ref: false })]);
  clearInterval(timer);
  signal.removeEventListener('abort', abort);
  look();
  const isFine = code === 0 || (code !== null && hasFailed);
  const problem =
    watch.problem ?? (isFine ? undefined : `its process ended with ${code ?? endedBy}`);
  return { ms: performance.now() - startedAt, cpuS: cpuS ?? watch.cpuS, output: output(), problem };
}

/** Judges one process by what it and its children do. */
class Watch {
  #pid;
  #limits;
  #since = performance.now();
  #cpuAtProgress = 0;
  cpuS = 0;
  problem;

  constructor(pid, limits) {
    this.#pid = pid;
    this.#limits = limits;
  }

  progress() {
    this.#since = performance.now();
    this.#cpuAtProgress = this.cpuS;
  }

  look() {
    const table = processTable();
    const tree = treeOf(table, this.#pid);
    // What children that were killed had used counts for their parent once it has waited for them.
    this.cpuS = Math.max(
      this.cpuS,
      tree.reduce((sum, pid) => sum + table.get(pid).cpuS, 0),
    );
    const reason = this.#reason(table.size > 0);
    if (reason === undefined || this.problem !== undefined) return;
    this.problem = reason;
    process.kill(this.#pid, 'SIGTERM');
    setTimeout(() => killAll(this.#pid), PATIENCE_MS).unref();
  }

  #reason(isKnown) {
    const { idleMs, idleCpuS, busyCpuS, clockMs } = this.#limits;
    const ms = performance.now() - this.#since;
    const cpuS = this.cpuS - this.#cpuAtProgress;
    const isIdle = isKnown ? ms > idleMs && cpuS < idleCpuS : ms > clockMs;
    if (isIdle) return `it hangs: no test has ended for ${Math.round(ms / 1_000)} s`;
    return cpuS > busyCpuS ? `no test has ended in ${Math.round(cpuS)} s of work` : undefined;
  }
}

function killAll(root) {
  for (const pid of treeOf(processTable(), root)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It was quicker.
    }
  }
}

/** Gives the lines of a growing file that were not given before. */
function reader(file) {
  let seen = 0;
  return () => {
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    const fresh = lines.slice(seen);
    seen = lines.length;
    return fresh.map((line) => JSON.parse(line));
  };
}

/** The end of both output streams. */
function collect(child) {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part) => {
      text = (text + part).slice(-OUTPUT_MAX);
    });
  }
  return () => text;
}
