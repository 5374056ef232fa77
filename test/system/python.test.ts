/**
 * The Python client as its users have it: its wheel is built, installed alone into a new environment, and tried from
 * there against the real server; then with the packages of its tests. Where there is no Python 3.10 or later, or no registry
 * of packages, that is said and nothing is tried.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { KILLS_ENV, surviveKills } from '../chaos/killed-workers.js';
import { type SharedApi, useApi, useSharedApi } from '../helpers/api.js';
import { byDepth } from '../helpers/depth.js';
import { ROOT } from '../helpers/docs.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

interface Run {
  readonly code: number | null;
  readonly output: string;
}

/** The interpreter that is asked for first. */
const PYTHON = 'python3';
const HAS_ALL = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))';

const folder = mkdtempSync(path.join(tmpdir(), 'python-'));
const python = path.join(folder, 'venv/bin/python');
const pip = ['-m', 'pip', '--disable-pip-version-check', '--quiet'];
const toInstall = [...pip, 'install', '--no-compile'];
const tests = path.join(folder, 'tests');
let wheel = '';
/** Why nothing can be tried; undefined: it can. */
let missing: string | undefined;

before(async () => {
  missing = await install();
});
after(() => rmSync(folder, { recursive: true, force: true }));

async function install(): Promise<string | undefined> {
  if ((await run(PYTHON, ['-c', HAS_ALL])).code !== 0) {
    return 'there is no Python 3.10 or later with venv here';
  }
  await succeed(PYTHON, ['-m', 'venv', path.join(folder, 'venv')]);
  // In a copy, so that nothing that is built is left in the checkout.
  const source = path.join(folder, 'source');
  cpSync(path.join(ROOT, 'clients/python'), source, { recursive: true });
  cpSync(path.join(source, 'tests'), tests, { recursive: true });
  cpSync(path.join(ROOT, 'examples/python'), path.join(folder, 'examples'), { recursive: true });
  const reached = await run(python, [...pip, 'download', '--no-deps', '-d', folder, 'hatchling']);
  if (reached.code !== 0) return `no registry of Python packages answers: ${reached.output}`;
  const wheels = path.join(folder, 'wheels');
  await succeed(python, [...pip, 'wheel', '--no-deps', '-w', wheels, source]);
  wheel = path.join(wheels, readdirSync(wheels)[0] ?? '');
  await succeed(python, [...toInstall, wheel]);
  return undefined;
}

/** Its output is shown only when something is wrong. */
async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const child = spawn(command, args, { cwd: folder, env: { ...process.env, ...env } });
  const parts: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part: Buffer) => parts.push(part));
  }
  const failed = once(child, 'error').then(() => [null]);
  const [code] = (await Promise.race([once(child, 'close'), failed])) as [number | null];
  return { code, output: Buffer.concat(parts).toString().slice(-20_000) };
}

async function succeed(...call: Parameters<typeof run>): Promise<string> {
  const { code, output } = await run(...call);
  assert.equal(code, 0, output);
  return output;
}

/** A test that is left out, with the reason, where nothing can be installed. */
function tried(title: string, work: (context: TestContext) => Promise<unknown>): void {
  test(title, async (context: TestContext) => {
    if (missing === undefined) await work(context);
    else context.skip(missing);
  });
}

const serverOf = ({ url }: Pick<SharedApi, 'url'>) => ({
  ENGINE_URL: url,
  ENGINE_API_KEY: DEFAULT_API_KEY,
});

const pytest = (...args: readonly string[]) => ['-m', 'pytest', '-q', tests, ...args];

describe('the wheel of the Python client, alone in a new environment', () => {
  const api = useSharedApi();

  tried('runs the order pipeline by one command', async () => {
    const program = path.join(folder, 'examples/orders.py');
    const env = { ...serverOf(api), ENGINE_TENANT: api.tenant().name };
    for (const _ of ['the first time', 'again']) {
      const lines = (await succeed(python, [program], env)).trim().split('\n').sort();
      assert.deepEqual(lines, [
        'A-1: ch-A-1, lamp is sent by courier',
        'A-2: paid back, because unicorns are sold out',
        'A-3: ch-A-3, chair is sent by post',
      ]);
    }
  });
});

describe('the Python client with the packages of its tests', () => {
  const api = useSharedApi();
  before(async () => {
    if (missing === undefined) await succeed(python, [...toInstall, `${wheel}[test]`]);
  });

  tried('does what its tests say', () => succeed(python, pytest(), serverOf(api)));

  tried('is typed, and written as its linter asks', async () => {
    const source = path.join(folder, 'source');
    const config = path.join(source, 'pyproject.toml');
    const all = [path.join(source, 'src'), tests, path.join(folder, 'examples')];
    await succeed(python, ['-m', 'mypy', '--config-file', config, ...all]);
    await succeed(python, ['-m', 'ruff', 'check', '--config', config, ...all]);
    await succeed(python, ['-m', 'ruff', 'format', '--check', '--config', config, ...all]);
  });
});

describe('Python workers and their server', () => {
  const api = useApi({ env: KILLS_ENV });
  const seed = Number(process.env.CHAOS_SEED ?? randomInt(0x1_0000_0000));

  tried('are killed: every claim is run once, ends once, and nothing is lost', (t) =>
    surviveKills(t, {
      api,
      seed,
      workerKills: byDepth(2, 60),
      serverKills: byDepth(1, 15),
      start: (plan) =>
        spawn(python, [path.join(tests, 'killed_worker.py'), plan], { stdio: 'inherit' }),
    }),
  );
});
