/**
 * Which processes run the test files, and in which order. A process costs a second before its first
 * test, so that small files share one, each as a suite of its own that begins when the one before has
 * ended; what takes long begins first, so that nothing is left to wait for in the end.
 */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

/** Parts of paths, the slowest first. Each of these takes 10 s or more of a processor. */
const SLOW = [
  'chaos/kill-loop',
  'sim/seeds',
  'integration/webhooks-faults',
  'fuzz/fuzz',
  'api/shards',
  'api/stream',
  'api/rows-01-concurrency',
  'integration/bench-smoke',
  'api/changes-load',
  'api/cron-restart',
  'api/cron',
  'api/changes',
  'api/shutdown',
  'integration/webhooks',
  'integration/swagger-ui',
  'integration/big-instances',
  'integration/standby',
  'integration/metrics-api',
  'integration/tracing',
  'integration/logs',
  'integration/docs-migration',
  'api/surgery-restart',
  'integration/change-threads',
  'unit/evaluator-model',
];

/** Small enough that a failure is found quickly, and that the last ones keep both cores busy. */
const FILES_PER_PROCESS = { unit: 16, api: 5 };

/**
 * The files to be run, in order: those given, or others in `folder`, beside the folder of all tests,
 * that run several of them.
 */
export function planTests(files, folder) {
  const slow = files.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
  const others = files.filter((file) => rank(file) < 0);
  const unit = others.filter(isSmall);
  const api = others.filter((file) => file.includes('/integration/api/'));
  const alone = others.filter((file) => !unit.includes(file) && !api.includes(file));
  return [...slow, ...grouped('api', api, folder), ...alone, ...grouped('unit', unit, folder)];
}

function rank(file) {
  return SLOW.findIndex((name) => file.includes(name));
}

/** Properties are tried many times, some of them against the clock, and get a process of their own. */
function isSmall(file) {
  return /test\/(unit|contract)\//.test(file) && !file.endsWith('.prop.test.js');
}

function grouped(name, files, folder) {
  const count = Math.ceil(files.length / FILES_PER_PROCESS[name]);
  return Array.from({ length: count }, (_, group) => {
    const members = files.filter((_, at) => at % count === group);
    const file = path.join(folder, `${name}-${group + 1}.mjs`);
    writeFileSync(file, groupText(members));
    return file;
  });
}

function groupText(members) {
  const names = JSON.stringify(
    members.map((file) => path.relative('dist/test', file)),
    null,
    2,
  );
  return `import { describe } from 'node:test';

for (const file of ${names}) {
  await describe(file, () => import(\`../test/\${file}\`));
}
`;
}
