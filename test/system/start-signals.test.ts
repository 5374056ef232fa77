/**
 * SIGTERM at every moment of a start on the embedded database: the process ends, and leaves neither a
 * Postgres nor a half-made database nor a lock that holds up the next start. The moments are those of one start after the other.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { eventually } from '../helpers/api.js';
import { makeDataDir } from '../helpers/engine.js';

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));

const dataDir = realpathSync(makeDataDir());
const fileOf = (name: string) => path.join(dataDir, name);
after(() => rmSync(dataDir, { recursive: true }));

interface Moment {
  readonly title: string;
  /** @param output of the process so far */
  readonly has: (output: string) => boolean;
}

const told = (message: string) => (output: string) => output.includes(`"msg":"${message}"`);

/** In their order; the first two are those of a database that does not exist yet. */
const MOMENTS: readonly Moment[] = [
  { title: 'while initdb begins', has: () => existsSync(fileOf('postgres.new')) },
  {
    title: 'while initdb fills the database',
    has: () => existsSync(fileOf('postgres.new/base/1')),
  },
  {
    title: 'while Postgres starts',
    has: () => existsSync(fileOf('postgres/postmaster.pid')),
  },
  { title: 'when the database runs', has: told('embedded database runs') },
  { title: 'while the threads start', has: told('starting threads') },
  { title: 'when it listens', has: told('listening') },
  { title: 'while the schema is made', has: (output) => hasSettled(output) },
  {
    title: 'when the lanes are counted',
    has: told('number of lanes chosen by cores and the time of a commit'),
  },
  { title: 'when it is ready', has: told('ready') },
];

/** Some time after it listens: the first contact, ownership and migrations follow. */
function hasSettled(output: string): boolean {
  if (!told('listening')(output)) return false;
  settledLooks += 1;
  return settledLooks > 100;
}
let settledLooks = 0;

/** Processes that work in the data folder, or were started with its name. */
function processesThere(): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter((pid) => {
      try {
        const folder = readlinkSync(`/proc/${pid}/cwd`);
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return `${folder} ${command}`.includes(dataDir);
      } catch {
        // It ended meanwhile.
        return false;
      }
    });
}

function start(): ChildProcess {
  const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME)$/.test(name));
  return spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...Object.fromEntries(inherited),
      ENGINE_HTTP_ADDR: '127.0.0.1:0',
      ENGINE_DATA_DIR: dataDir,
      ENGINE_SHARDS: '1',
    },
  });
}

describe('SIGTERM ends a start without leftovers', () => {
  for (const { title, has } of MOMENTS) {
    test(title, async (t) => {
      if (process.platform !== 'linux') return t.skip('no /proc');
      const child = start();
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on('data', (chunk: Buffer) => {
          output += chunk.toString('utf8');
        });
      }
      const closed = once(child, 'close');
      while (!has(output)) {
        assert.equal(child.exitCode, null, output);
        await wait(1);
      }
      child.kill('SIGTERM');
      const [code, signal] = await closed;
      assert.deepEqual([code, signal], [0, null], output);
      // On a busy disk Postgres ends after the engine, which may not wait for long. A lock that is left
      // then names a process that is gone: the next start shows that it is in nobody's way.
      await eventually(() => assert.deepEqual(processesThere(), [], output));
      const left = readdirSync(dataDir).filter((name) => name.includes('.new'));
      assert.deepEqual(left, [], output);
      assert.doesNotMatch(output, /^\s+at |"level":[56]0/m);
    });
  }
});
