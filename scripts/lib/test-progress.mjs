/**
 * What a person reads while the tests run and when they have ended: a line for each file, and a
 * summary whose last line is `N passed, N failed, N skipped`.
 */

import path from 'node:path';

const SLOWEST = 10;

export class Progress {
  #total;
  #done = 0;
  #counts = { pass: 0, fail: 0, skip: 0 };
  #failures = [];
  #skipped = [];
  #slowest = [];
  #running = new Set();
  /** By unit: its counts, and what its tests noted. */
  #units = new Map();
  #startedAt = performance.now();
  #isTerminal = process.stdout.isTTY === true;

  constructor(total) {
    this.#total = total;
  }

  get hasFailed() {
    return this.#failures.length > 0;
  }

  begin(unit) {
    this.#running.add(unit);
    this.#units.set(unit, { tests: 0, failed: 0, notes: [] });
    this.#status();
  }

  line(unit, [kind, titles, text]) {
    const state = this.#units.get(unit);
    if (kind === 'note') state.notes.push(`${titles.join(' › ')}: ${text}`);
    if (!(kind in this.#counts)) return;
    this.#counts[kind] += 1;
    state.tests += 1;
    if (kind === 'fail') this.#fail(unit, titles, text);
    if (kind === 'skip') this.#skipped.push(`${unit.name}: ${titles.join(' › ')} (${text})`);
  }

  end(unit, { ms, cpuS, output, problem }) {
    const state = this.#units.get(unit);
    if (problem !== undefined || state.tests === 0) {
      this.#counts.fail += 1;
      this.#fail(unit, ['the file'], problem ?? 'no test has run');
    }
    if (state.failed > 0) this.#failures.push({ notes: state.notes, output: output.trim() });
    this.#slowest.push({ name: unit.name, ms, cpuS });
    this.#running.delete(unit);
    this.#done += unit.files.length;
    const verdict = state.failed > 0 ? 'FAIL' : ' ok ';
    const tests = `${state.tests} ${state.tests === 1 ? 'test' : 'tests'}`;
    this.#say(`[${this.#count()}] ${verdict} ${unit.name} (${tests}, ${seconds(ms / 1_000)})`);
    this.#status();
  }

  /**
   * Its last line is what scripts look for.
   *
   * @param cpuS of everything, not of the files alone
   */
  summary(cpuS) {
    for (const test of this.#skipped) this.#say(`SKIP ${test}`);
    for (const failure of this.#failures) this.#say(readable(failure));
    this.#say('\nslowest files, with their share of the processor:');
    for (const { name, ms, cpuS: used } of this.#top()) {
      this.#say(`  ${seconds(ms / 1_000).padStart(9)} ${seconds(used).padStart(9)}  ${name}`);
    }
    const wall = seconds((performance.now() - this.#startedAt) / 1_000);
    this.#say(`\n${this.#count()} files in ${wall}, with ${(cpuS / 60).toFixed(1)} minutes of CPU`);
    const { pass, fail, skip } = this.#counts;
    this.#say(`${pass} passed, ${fail} failed, ${skip} skipped`);
  }

  #fail(unit, titles, text) {
    this.#units.get(unit).failed += 1;
    // A process of several files has a suite for each of them.
    const isNamed = unit.files.length > 1 && titles.length > 1;
    const [file, ...rest] = isNamed ? titles : [unit.name, ...titles];
    this.#failures.push({ file, title: rest.join(' › '), text });
    this.#say(`FAIL ${file}: ${rest.join(' › ')}: ${text.split('\n')[0]}`);
  }

  #top() {
    return this.#slowest.sort((a, b) => b.ms - a.ms).slice(0, SLOWEST);
  }

  #count() {
    return `${String(this.#done).padStart(String(this.#total).length)}/${this.#total}`;
  }

  #say(text) {
    this.#clear();
    process.stdout.write(`${text}\n`);
  }

  /** On a terminal the files that run now stand in the last line. */
  #status() {
    if (!this.#isTerminal) return;
    this.#clear();
    const names = [...this.#running].map(({ name }) => path.basename(name)).join(', ');
    process.stdout.write(`[${this.#count()}] ${names}`.slice(0, process.stdout.columns - 1));
  }

  #clear() {
    if (this.#isTerminal) process.stdout.write('\r\x1b[K');
  }
}

const seconds = (value) => `${value.toFixed(1)} s`;

const indented = (text) => text.replace(/^(?=.)/gm, '    ');

function readable({ file, title, text, notes, output }) {
  if (file !== undefined) return `\nFAIL ${file}\n  ${title}\n${indented(text)}`;
  const noted = notes.map((note) => indented(note)).join('\n');
  return [noted, output && `  its output:\n${indented(output)}`].filter(Boolean).join('\n');
}
