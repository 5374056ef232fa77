/**
 * What a test run says. The reporter runs in each process of test files and sends messages `[kind, titles, text]`,
 * whose first title is the name of the file; `Report` prints them, and makes the table of what each file costs.
 */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { inspect } from 'node:util';

export default async function* reporter(events) {
  const titles = [];
  const send = (kind, data, text) =>
    process.send([kind, [...titles.slice(0, data.nesting), data.name], text]);
  let hasFailed = false;
  for await (const { type, data } of events) {
    if (type === 'test:start') titles.splice(data.nesting, titles.length, data.name);
    // Notes follow the result of their test; what failed behind it stands among the totals in the end.
    const isTold = data.nesting > 0 ? hasFailed : /^(?:Warning|Error)/.test(data.message);
    if (type === 'test:diagnostic' && isTold) send('note', data, data.message);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { error, type: what } = data.details;
    // Suites add nothing to what their tests have said.
    hasFailed = type === 'test:fail' && error.failureType !== 'subtestsFailed';
    if (hasFailed) send('fail', data, inspect(error.cause ?? error, { depth: 4 }));
    else if (what !== 'suite') send(data.skip ? 'skip' : 'pass', data, data.skip);
    if (data.nesting === 0) send('end', data);
  }
  yield '';
}

/** The seconds of processor that this process has used, and the children that it has waited for. */
export function cpuSeconds() {
  if (process.platform !== 'linux') return process.cpuUsage().user / 1e6;
  // The name of the command, which may hold spaces, ends at the last parenthesis.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

export class Report {
  counts = { pass: 0, fail: 0, skip: 0 };
  #files = new Map();
  #ended = new Set();
  #saidInTheEnd = [];

  constructor(files) {
    for (const file of files) this.#files.set(file, { tests: 0, failed: 0, cost: [0, 0, 0] });
  }

  take([kind, titles, text]) {
    const state = this.#files.get(titles[0]);
    const title = titles.join(' › ');
    if (kind in this.counts) this.counts[kind] += 1;
    if (kind in this.counts) state.tests += 1;
    if (kind === 'cost') state.cost = text;
    if (kind === 'note') this.#saidInTheEnd.push(text);
    if (kind === 'skip') this.#saidInTheEnd.push(`SKIP ${title} (${text})`);
    if (kind === 'fail') {
      state.failed += 1;
      this.#say(`FAIL ${title}: ${text.split('\n')[0]}`);
      this.#saidInTheEnd.push(`\nFAIL ${title}\n${text}`);
    }
    if (kind !== 'end') return;
    if (state.tests === 0) this.take(['fail', titles, 'no test has run']);
    this.#ended.add(titles[0]);
    const verdict = state.failed > 0 ? 'FAIL' : ' ok ';
    this.#say(`${this.#ending()} ${verdict} ${title} (${state.tests} tests, ${state.cost[0]} s)`);
  }

  /** A process has ended: what it wrote helps where something failed. */
  close(files, output, code, problem) {
    const open = files.find((file) => !this.#ended.has(file));
    const hasFailed = () => files.some((file) => this.#files.get(file).failed > 0);
    // Nothing else tells of a file that has not ended, or of what failed behind its last test.
    const untold = open ?? (code === 0 || hasFailed() ? undefined : files[0]);
    if (untold !== undefined) this.take(['fail', [untold, 'its process'], problem]);
    if (hasFailed()) this.#saidInTheEnd.push(output);
  }

  /** On a terminal the files that run now stand in the last line. */
  status(running) {
    const text = `${this.#ending()} ${running.join(', ')}`;
    if (process.stdout.isTTY) this.#write(text.slice(0, process.stdout.columns - 1));
  }

  /** The last line is what scripts look for. */
  end(name) {
    const lines = [...this.#files]
      .sort(([, a], [, b]) => b.cost[1] - a.cost[1])
      .map(([file, { tests, cost }]) => [file, tests, ...cost].join('\t'));
    lines.unshift('file\ttests\tseconds\tcpu_seconds\tservers');
    mkdirSync('coverage', { recursive: true });
    writeFileSync(`coverage/costs-${name}.tsv`, `${lines.join('\n')}\n`);
    const [wall, cpu] = [performance.now() / 1_000, cpuSeconds()].map((s) => (s / 60).toFixed(1));
    this.#say([...this.#saidInTheEnd, '', ...lines.slice(0, 11), ''].join('\n'));
    this.#say(`${this.#ending()} files in ${wall} min, with ${cpu} min of processor`);
    const { pass, fail, skip } = this.counts;
    this.#say(`${pass} passed, ${fail} failed, ${skip} skipped`);
  }

  #ending = () => `[${this.#ended.size}/${this.#files.size}]`;

  #say = (text) => this.#write(`${text}\n`);

  #write = (text) => process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[K' : ''}${text}`);
}
