/**
 * The Python client as its users have it, tried from its wheel against the real server; then with the packages of its
 * tests. That its workers and their server are killed is tried in `test/deep/python-workers.test.ts`.
 *
 * Cost: 30 s, since it installs the wheel of the Python client.
 */

import assert from 'node:assert/strict';
import path from 'node:path';
import { before, describe } from 'node:test';
import { useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { Wheel } from './python/wheel.js';

const wheel = Wheel.use();
const { folder, python, tests } = wheel;
const api = useSharedApi();
const server = () => ({ ENGINE_URL: api.url, ENGINE_API_KEY: DEFAULT_API_KEY });

describe('the wheel of the Python client, alone in a new environment', () => {
  wheel.tried('runs the order pipeline by one command, the first time and again', async () => {
    const program = path.join(folder, 'examples/orders.py');
    const env = { ...server(), ENGINE_TENANT: api.tenant().name };
    for (let round = 0; round < 2; round += 1) {
      const lines = (await wheel.succeed(python, [program], env)).trim().split('\n').sort();
      assert.deepEqual(lines, [
        'A-1: ch-A-1, lamp is sent by courier',
        'A-2: paid back, because unicorns are sold out',
        'A-3: ch-A-3, chair is sent by post',
      ]);
    }
  });
});

describe('the Python client with the packages of its tests', () => {
  before(() => wheel.installTests());

  wheel.tried('does what its tests say', () =>
    wheel.succeed(python, ['-m', 'pytest', '-q', tests], server()),
  );

  wheel.tried('is typed, and written as its linter asks', async () => {
    const source = path.join(folder, 'source');
    const config = path.join(source, 'pyproject.toml');
    const all = [path.join(source, 'src'), tests, path.join(folder, 'examples')];
    await wheel.succeed(python, ['-m', 'mypy', '--config-file', config, ...all]);
    await wheel.succeed(python, ['-m', 'ruff', 'check', '--config', config, ...all]);
    await wheel.succeed(python, ['-m', 'ruff', 'format', '--check', '--config', config, ...all]);
  });
});
