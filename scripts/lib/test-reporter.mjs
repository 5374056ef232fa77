/**
 * Runs inside the process of test files: writes what the test runner reports to the file that
 * TEST_REPORT names, one JSON array a line, whose first word says what it is. That is a file because
 * whoever watches can read it while the process runs, and after it was killed.
 */

import { appendFileSync } from 'node:fs';
import { Transform } from 'node:stream';
import { inspect } from 'node:util';
import { ownCpu } from './process-cpu.mjs';

const file = process.env.TEST_REPORT;
const write = (...line) => appendFileSync(file, `${JSON.stringify(line)}\n`);

process.on('exit', () => write('end', ownCpu()));

/** The titles of the tests and suites that the next event is inside of. */
const titles = [];

export default new Transform({
  writableObjectMode: true,
  transform({ type, data }, _encoding, done) {
    if (type === 'test:start') titles.splice(data.nesting, titles.length, data.name);
    // What it says by itself in the end, such as how many there were, is not nested.
    if (type === 'test:diagnostic' && data.nesting > 0) write('note', titles, data.message);
    if (type === 'test:pass') write(passed(data), pathOf(data), data.skip);
    if (type === 'test:fail' && !isTodo(data)) failed(data);
    done();
  },
});

const pathOf = ({ nesting, name }) => [...titles.slice(0, nesting), name];

function failed(data) {
  const { error } = data.details;
  // Of a suite in which something failed nothing is left to say.
  if (error?.failureType === 'subtestsFailed') return;
  write('fail', pathOf(data), textOf(error?.cause ?? error));
}

function passed(data) {
  if (data.details.type === 'suite') return 'suite';
  return isTodo(data) || (data.skip !== undefined && data.skip !== false) ? 'skip' : 'pass';
}

const isTodo = ({ todo }) => todo !== undefined && todo !== false;

const textOf = (cause) => (typeof cause === 'string' ? cause : inspect(cause, { depth: 4 }));
