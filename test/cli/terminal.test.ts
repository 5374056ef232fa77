/**
 * The command line in a terminal: tables of its width, questions, progress, Ctrl-C, and a pipe that closes.
 *
 * Cost: 6 s, since it starts the command line in terminals.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { cellsOf } from '../../cli/table.js';
import { beforeWith, step, useSharedApi } from '../helpers/api.js';
import type { TerminalOptions } from '../helpers/cli.js';
import { CLI, cliWorld, inTerminal, noTerminal, withoutCodes } from '../helpers/cli.js';

const api = useSharedApi();
const tenant = api.tenant();
const cli = cliWorld(() => ({ url: api.url, tenant: tenant.name }));

const terminal = (args: readonly string[], more: Partial<TerminalOptions> = {}) =>
  inTerminal(args, { cwd: cli.home, ...more, env: { ...cli.env, ...more.env } });

const NAME = '注文-with-a-name-that-is-rather-long-for-a-column';
let waiting: string;

beforeWith(api, async () => {
  const place = path.join(cli.home, 'waits.json');
  writeFileSync(place, JSON.stringify({ name: NAME, blocks: [step('w', 'nobody-does-this')] }));
  await cli.ok(['sequences', 'apply', place]);
  for (let i = 0; i < 3; i++) waiting = (await cli.ok(['instances', 'start', NAME])).trim();
});

for (const columns of [60, 80, 200]) {
  test(`a table fits a terminal of ${columns} columns`, async (t) => {
    if (noTerminal !== undefined) return t.skip('no terminal');
    const { code, shown } = await terminal(['instances', 'list'], { columns });
    assert.equal(code, 0, shown);
    const lines = withoutCodes(shown).trimEnd().split('\n');
    assert.equal(lines.length, 4);
    for (const line of lines) assert.ok(cellsOf(line) <= columns, line);
    assert.ok(lines.some((line) => line.startsWith(waiting)));
    assert.equal(lines[0]?.includes('NAMESPACE'), columns === 200);
  });
}

test('colours are for terminals, and NO_COLOR takes them off', async (t) => {
  if (noTerminal !== undefined) return t.skip('no terminal');
  const coloured = await terminal(['instances', 'list']);
  assert.notEqual(withoutCodes(coloured.shown), coloured.shown);
  const plain = await terminal(['instances', 'list'], { env: { NO_COLOR: '1' } });
  assert.equal(withoutCodes(plain.shown), plain.shown);
  const piped = await cli.ok(['instances', 'list']);
  assert.equal(withoutCodes(piped), piped);
});

test('whoever says no to a change of many changes nothing', async (t) => {
  if (noTerminal !== undefined) return t.skip('no terminal');
  const cancel = ['instances', 'cancel', '--all'];
  const asked = '3 instances will be cancelled\\. Continue\\? \\[y/N\\] ';
  const no = await terminal(cancel, { steps: [[asked, 'n\r']] });
  assert.equal(no.code, 7, no.shown);
  assert.match(no.shown, /nothing was changed/);
  const left = await terminal(cancel, { steps: [[asked, '\u0003']] });
  assert.equal(left.code, 130, left.shown);
  assert.equal((await tenant.instance(waiting)).state, 'waiting');
});

test('Ctrl-C ends the following of an instance with 130 and nothing but an empty line', async (t) => {
  if (noTerminal !== undefined) return t.skip('no terminal');
  const { code, shown } = await terminal(['instances', 'watch', waiting], {
    steps: [['waiting', '\u0003']],
  });
  assert.equal(code, 130, shown);
  assert.doesNotMatch(shown, /error|at .*:\d+/i);
});

test('what follows an instance for a program is a line of JSON for each event', async () => {
  const id = (await cli.ok(['instances', 'start', NAME])).trim();
  const following = cli.run(['instances', 'watch', id, '--json']);
  await tenant.until(id, 'waiting');
  await cli.ok(['instances', 'cancel', id]);
  const { code, out } = await following;
  assert.equal(code, 1);
  const events = out
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { type: string }).type);
  assert.equal(events.at(-1), 'done');
});

test('a reader that leaves is no error', () => {
  const command = `'${process.execPath}' '${CLI}' instances list --json | head -c 1; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', command], { env: cli.env, encoding: 'utf8' });
  assert.equal(stdout, '[0\n');
  assert.equal(stderr, '');
});

test('whoever says yes is shown how far the change is, and then the counts', async (t) => {
  if (noTerminal !== undefined) return t.skip('no terminal');
  const { code, shown } = await terminal(['instances', 'cancel', '--all'], {
    columns: 200,
    steps: [['Continue\\?', 'y\r']],
  });
  assert.equal(code, 0, shown);
  assert.match(shown, /% · \d+ instances? cancelled · job [\da-f-]{36}/);
  assert.match(withoutCodes(shown), /3 instances cancelled\.\n/);
});
