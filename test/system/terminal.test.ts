/**
 * What a person sees who starts the server: on a real terminal (that of `script`) lines to read and what
 * to open next, elsewhere one JSON line per event.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeDataDir } from '../helpers/engine.js';

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));
const GOLDEN = 'test/golden/first-lines.txt';

/** The last line of a start, of either form. */
const IS_READY = /api\/v1\/instances\r?\n|"msg":"ready"/;

const dataDir = makeDataDir();
after(() => rmSync(dataDir, { recursive: true }));

/** Starts the server, ends it with SIGTERM once it is ready, and gives all that it wrote. */
async function run(isTerminal: boolean, env: Readonly<Record<string, string>>): Promise<string> {
  const program = isTerminal
    ? ['script', '-qec', `'${process.execPath}' '${MAIN}'`, '/dev/null']
    : [process.execPath, MAIN];
  const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME)$/.test(name));
  const child = spawn(program[0]!, program.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...Object.fromEntries(inherited),
      TERM: 'xterm',
      ENGINE_HTTP_ADDR: '127.0.0.1:0',
      ENGINE_DATA_DIR: dataDir,
      ENGINE_SHARDS: '1',
      ENGINE_WRITER_LANES: '1',
      ...env,
    },
  });
  const output = collect(child);
  const closed = once(child, 'close');
  while (!IS_READY.test(output())) {
    assert.equal(child.exitCode, null, output());
    await wait(20);
  }
  process.kill(enginePid(), 'SIGTERM');
  const [code] = await closed;
  assert.equal(code, 0, output());
  return output();
}

function collect(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
  }
  return () => text.replaceAll('\r\n', '\n');
}

/** `script` is between us and the server, which names itself in the lock of its data folder. */
function enginePid(): number {
  const lock = readFileSync(path.join(dataDir, 'engine.lock'), 'utf8');
  return (JSON.parse(lock) as { pid: number }).pid;
}

/** What begins each code of the terminal. */
const ESCAPE = '\u001b';

/** What differs from run to run, from machine to machine and from version to version. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  // Where uWebSockets.js does not load.
  [/^.*serving with node:http.*\n/m, ''],
  [/\d\d:\d\d:\d\d/g, 'HH:MM:SS'],
  [/(127\.0\.0\.1:)\d+/g, '$1PORT'],
  [/(port=(?:<22>)?)\d+/g, '$1PORT'],
  [/((?:heapMib|memoryMib)=(?:<22>)?)\d+/g, '$1N'],
  [/(version=(?:<22>)?)[\d.]+/g, '$1VERSION'],
  [/(node=(?:<22>)?)v[\d.]+/g, '$1NODE'],
  // Where the database's user cannot read the packages, a line says so.
  [/.*Postgres runs from.*\n/, ''],
  [/((?:keyId|publicKey)=(?:<22>)?)[\w+/=-]+/g, '$1KEY'],
];

/** Codes of the terminal are written as their numbers, so that a person can read the file. */
function normalised(text: string): string {
  const codes = new RegExp(`${ESCAPE}\\[(\\d+)m`, 'g');
  const readable = text.replace(codes, '<$1>').replaceAll(dataDir, 'DATA');
  return VARYING.reduce((seen, [pattern, word]) => seen.replace(pattern, word), readable);
}

test('on a terminal the first lines say what is ready and what to open next', async (t) => {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/script')) return t.skip('no script');
  const seen = normalised(await run(true, {}));
  assert.equal(seen, readFileSync(GOLDEN, 'utf8'));
  const block = seen
    .replace(/<\d+>/g, '')
    .split('\n')
    .filter((line) => line.startsWith('  '));
  assert.ok(block.length > 0);
  for (const line of block) assert.ok(line.length <= 80, line);
});

test('NO_COLOR leaves the same lines without colours', async (t) => {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/script')) return t.skip('no script');
  const seen = normalised(await run(true, { NO_COLOR: '1' }));
  assert.doesNotMatch(seen, /<\d+>/);
  assert.ok(!seen.includes(ESCAPE));
  assert.match(seen, /^ {2}API +http:\/\/127.0.0.1:PORT\/swagger-ui$/m);
  assert.match(seen, /^HH:MM:SS ready /m);
});

test('elsewhere, and where ENGINE_LOG_FORMAT says json, every line is JSON and nothing else is', async (t) => {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/script')) return t.skip('no script');
  for (const text of [await run(false, {}), await run(true, { ENGINE_LOG_FORMAT: 'json' })]) {
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    const ready = lines.find(({ msg }) => msg === 'ready');
    assert.match(ready?.url ?? '', /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(ready?.docs, `${ready?.url}/swagger-ui`);
    assert.equal(ready?.keyFile, path.join(dataDir, 'root-key'));
    assert.equal(lines.at(-1)?.msg, 'stopped');
  }
});

interface Line {
  readonly msg: string;
  readonly url?: string;
  readonly docs?: string;
  readonly keyFile?: string;
}

test('ENGINE_LOG_FORMAT=text writes for people into a file, without colours', async () => {
  const seen = normalised(await run(false, { ENGINE_LOG_FORMAT: 'text' }));
  assert.doesNotMatch(seen, /<\d+>/);
  assert.ok(!seen.includes(ESCAPE));
  assert.match(seen, /^HH:MM:SS ready /m);
  assert.match(seen, /^ {2}Root key +DATA\/root-key$/m);
});
