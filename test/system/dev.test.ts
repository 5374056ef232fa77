/**
 * `dev`: a server on its own database in an empty folder, and definitions that are applied as they change.
 *
 * Cost: 10 s, since the command starts a server and its database.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { eventually } from '../helpers/api.js';
import { CLI } from '../helpers/cli.js';
import { makeDataDir } from '../helpers/engine.js';

const home = makeDataDir();
let child: ChildProcess | undefined;
after(async () => {
  if (child?.exitCode === null) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  rmSync(home, { recursive: true, force: true });
});

const step = (message: string) => ({ type: 'step', id: 'a', handler: 'log', params: { message } });

function write(content: unknown): void {
  writeFileSync(path.join(home, 'sequences/hello.json'), JSON.stringify(content));
}

test('dev serves without keys, applies what changes, tells mistakes with their place, and ends with Ctrl-C', async () => {
  let shown = '';
  const seen = (pattern: RegExp) =>
    eventually(() => {
      assert.equal(child?.exitCode, null, shown);
      assert.match(shown, pattern);
    });
  child = spawn(process.execPath, [CLI, 'dev', '--port', '0'], {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      // What is set for a server of another kind is not used.
      DATABASE_URL: 'postgres://nobody@127.0.0.1:9/nothing',
      ENGINE_API_KEY: 'of another server',
    },
  });
  const closed = once(child, 'close');
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      shown += chunk.toString('utf8');
    });
  }
  await seen(/Dashboard +http:\/\/127\.0\.0\.1:\d+\/ui\/\?tenant=[\s\S]*Key +none is needed/);
  const [, url = ''] = /API +(\S+)/.exec(shown) ?? [];
  mkdirSync(path.join(home, 'sequences'));
  write({ name: 'hello', blocks: [step('one')] });
  await seen(/hello v1: created/);
  write({ name: 'hello', blocks: [step('two')] });
  await seen(/hello v2: a new version[\s\S]*step a: params change: message/);
  write({ name: 'hello', blocks: [{ type: 'stp', id: 'a' }] });
  await seen(/hello is not valid[\s\S]*blocks\[0\]\.type.*did you mean step\?/);
  write('no definition');
  await seen(/hello\.json: no definition with a name/);
  write({ name: 'hello', version: 1, blocks: [step('three')] });
  await seen(/hello v3: a new version/);
  rmSync(path.join(home, 'sequences/hello.json'));
  await seen(/hello\.json is gone; what it stored stays/);
  const stored = await fetch(`${url}/sequences`, { headers: { 'x-tenant-id': 'demo' } });
  assert.equal(((await stored.json()) as unknown[]).length, 3);
  child.kill('SIGINT');
  assert.deepEqual(await closed, [0, null], shown);
});
