/**
 * What a test run says. The reporter runs in each process of test files and sends messages `[kind, titles, text]`,
 * whose first title is the name of the file; `Report` prints them, and makes the table of what each file costs.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { inspect } from 'node:util';

export default async function* reporter(events) {
  const titles = [];
  const send = (kind, data, text) =>
    process.send([kind, [...titles.slice(0, data.nesting), data.name], text]);
  let hasFailed = false;
  for await (const { type, data } of events) {
    if (type === 'test:start') titles.splice(data.nesting, titles.length, data.name);
    const note = type === 'test:diagnostic' ? data.message : '';
    if (note && data.nesting > 0 && hasFailed) send('note', data, note);
    // What failed behind the end of its test stands among the totals, with its place.
    const isPlace = (file) => note.includes(`test/${file.slice(0, -3)}.`);
    const late = { nesting: 0, name: process.argv.find(isPlace) ?? process.argv.at(-1) };
    if (data.nesting === 0 && /^(?:Warning|Error)/.test(note)) send('fail', late, note);
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

export class Report {
  /** How many messages of each kind have come of each file. */
  #files = new Map();
  #saidInTheEnd = [];

  constructor(files) {
    const none = { begin: 0, pass: 0, fail: 0, skip: 0, note: 0, end: 0, tests: 0 };
    for (const file of files) this.#files.set(file, { ...none, cost: [0, 0, 0] });
  }

  take([kind, titles, text]) {
    const state = this.#files.get(titles[0]);
    const title = titles.join(' › ');
    state[kind] = kind === 'cost' ? text : state[kind] + 1;
    if (['pass', 'fail', 'skip'].includes(kind)) state.tests += 1;
    const later = { note: text, skip: `SKIP ${title} (${text})`, fail: `\nFAIL ${title}\n${text}` };
    if (kind in later) this.#saidInTheEnd.push(later[kind]);
    if (kind === 'begin') this.#write('');
    if (kind === 'fail') this.#write(`FAIL ${title}: ${text.split('\n')[0]}\n`);
    if (kind !== 'end') return;
    if (state.tests === 0) this.take(['fail', titles, 'no test has run']);
    const verdict = `${state.fail > 0 ? 'FAIL' : ' ok '} ${title}`;
    this.#write(`${this.#ended()} ${verdict} (${state.tests} tests, ${state.cost[0]} s)\n`);
  }

  /** A process has ended: what it wrote helps where something failed. Returns the files that it did not begin. */
  close(files, output, code, ending) {
    const states = files.map((file) => this.#files.get(file));
    const begun = Math.max(1, states.filter(({ begin }) => begin > 0).length);
    const isExpected = code === Number(states.some(({ fail }) => fail > 0));
    const open = files.slice(0, begun).filter((_, at) => states[at].end === 0);
    // Nothing else tells of a file that has not ended, or of what failed behind the last test.
    const untold = open.length > 0 || isExpected ? open : [files[begun - 1]];
    for (const file of untold) this.take(['fail', [file, 'its process'], ending]);
    for (const file of open) this.take(['end', [file]]);
    if (states.some(({ fail }) => fail > 0)) this.#saidInTheEnd.push(output);
    return files.slice(begun);
  }

  /** The last line is what scripts look for. Only a run of all its files makes a table. Says whether all is well. */
  end(name, cpuSeconds, interruption) {
    const lines = [...this.#files]
      .sort(([, a], [, b]) => b.cost[1] - a.cost[1])
      .map(([file, { tests, cost }]) => [file, tests, ...cost].join('\t'));
    lines.unshift('file\ttests\tseconds\tcpu_seconds\tservers');
    mkdirSync('coverage', { recursive: true });
    const [pass, fail, skip, end] = ['pass', 'fail', 'skip', 'end'].map(this.#sum);
    const isWhole = end === this.#files.size;
    if (isWhole) writeFileSync(`coverage/costs-${name}.tsv`, `${lines.join('\n')}\n`);
    const [wall, cpu] = [performance.now() / 1_000, cpuSeconds].map((s) => (s / 60).toFixed(1));
    const how = interruption ? `interrupted by ${interruption}: ` : '';
    const time = `${how}${this.#ended()} files in ${wall} min, with ${cpu} min of processor`;
    this.#write([...this.#saidInTheEnd, '', ...lines.slice(0, 11), '', time].join('\n'), true);
    console.log(`\n${pass} passed, ${fail} failed, ${skip} skipped`);
    return isWhole && fail === 0;
  }

  #sum = (kind) => [...this.#files.values()].reduce((sum, state) => sum + state[kind], 0);
  #ended = () => `[${this.#sum('end')}/${this.#files.size}]`;

  /** On a terminal the files that run now stand in the last line. */
  #write(text, isOver = false) {
    const running = [...this.#files].filter(([, { begin, end }]) => begin > end && !isOver);
    const status = `${this.#ended()} ${running.map(([file]) => file).join(', ')}`;
    const { isTTY, columns } = process.stdout;
    const shown = isTTY && running.length > 0 ? status.slice(0, columns - 1) : '';
    process.stdout.write(`${isTTY ? '\r\x1b[K' : ''}${text}${shown}`);
  }
}
