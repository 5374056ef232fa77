/**
 * `npm run fuzz -- [--requests 200000] [--seed n] [--backend uws|node]`: that many requests made of the OpenAPI document,
 * and every sort of problem that they found. The exit code is 0 when there was none.
 */

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { type FuzzReport, fuzz } from '../../test/fuzz/fuzzer.js';
import { BACKENDS, startFuzzedServer } from '../../test/fuzz/server.js';
import { stopSharedServer } from '../../test/helpers/database.js';
import { refuse, say, whole } from './command.js';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '200000' },
    seed: { type: 'string' },
    except: { type: 'string', default: '' },
    backend: { type: 'string', default: 'auto' },
  },
});
const requests = whole('--requests', values.requests);
const seed = whole('--seed', values.seed ?? String(randomInt(0x7fff_ffff)));
const backend = BACKENDS.find((one) => one === values.backend);
if (backend === undefined) refuse('--backend', `one of ${BACKENDS.join(', ')}`, values.backend);
say(`seed ${seed}: ${requests} requests to ${backend}`);
const api = await startFuzzedServer(backend);
const startedMs = performance.now();
try {
  const except = values.except.split(',');
  const report = await fuzz(api, { requests, seed, except, onProgress: say });
  print(report);
  process.exitCode = report.failures.length === 0 ? 0 : 1;
} finally {
  await api.stop();
  await stopSharedServer();
}

function print({ sent, failures, byPurpose, byOperation }: FuzzReport): void {
  for (const [id, statuses] of [...byOperation].sort()) {
    const counts = [...statuses].sort(([a], [b]) => a - b);
    say(`${id.padEnd(28)} ${counts.map(([status, count]) => `${status}: ${count}`).join('  ')}`);
  }
  say([...byPurpose].map(([purpose, count]) => `${purpose} ${count}`).join(', '));
  for (const { problem, exchange } of failures) say(`\nPROBLEM ${problem}\n${exchange}`);
  const seconds = (performance.now() - startedMs) / 1_000;
  say(`${sent} requests in ${seconds.toFixed(1)} s, ${failures.length} sorts of problems`);
}
