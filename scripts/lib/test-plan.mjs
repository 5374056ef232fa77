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
  'chaos/failover',
  'chaos/cells',
  'chaos/library-worker',
  'sim/seeds',
  'ui/pages',
  'integration/webhooks-faults',
  'ui/stories',
  'ui/access',
  'ui/actions',
  'ui/live',
  'integration/two-engines-crash',
  'integration/waiting-story',
  'fuzz/fuzz',
  'integration/continuity-migration-crash',
  'integration/two-engines',
  'integration/proxies',
  'cells/routing',
  'integration/python',
  'api/shards',
  'api/stream',
  'integration/start-refusals',
  'integration/start-signals',
  'integration/terminal',
  'cli/commands',
  'api/concurrency-load',
  'integration/bench-smoke',
  'integration/pressure',
  'api/changes-load',
  'api/cron-restart',
  'api/cron',
  'api/changes',
  'api/shutdown',
  'integration/webhooks',
  'integration/swagger-ui',
  'integration/big-instances',
  'integration/standby',
  'integration/docs-newcomer',
  'integration/metrics-api',
  'integration/tracing',
  'integration/logs',
  'api/edits-restart',
  'integration/change-threads',
  'integration/ui-flow',
  'unit/evaluator-model',
];

/** Small enough that a failure is found quickly, and that the last ones keep both cores busy. */
const FILES_PER_PROCESS = { unit: 16, api: 8 };

/**
 * What is run by one process each, in order: a file of those given, or one that is written into
 * `folder`, beside the folder of all tests, and runs several of them.
 */
export function planTests(files, folder) {
  const slow = files.filter((file) => rank(file) >= 0).sort((a, b) => rank(a) - rank(b));
  const others = files.filter((file) => rank(file) < 0);
  const unit = others.filter(isSmall);
  const api = others.filter(isApi);
  const alone = others.filter((file) => !unit.includes(file) && !api.includes(file));
  return [
    ...slow.map(single),
    ...grouped('api', api, folder),
    ...alone.map(single),
    ...grouped('unit', unit, folder),
  ];
}

function rank(file) {
  return SLOW.findIndex((name) => file.includes(name));
}

const isSmall = (file) => /test\/(unit|contract)\//.test(file);

const nameOf = (file) => path.relative('dist/test', file).replace(/\.test\.js$/, '');

const isApi = (file) => /^dist\/test\/(?:integration\/api|client)\//.test(file);

/**
 * Files of the API only ask servers, of which the one that they share notes its coverage. One file whose
 * threads die stands for all of them: each thread writes what it has covered. What is hot would take half as
 * long again, and reaches nothing that no other test does.
 */
const isCovered = (file) =>
  !isApi(file) && !isUi(file) && !file.includes('-threads') && !isHot(file);

/** What they cover is in a browser and in servers of their own. */
const isUi = (file) => /^dist\/test\/ui\//.test(file);

/** It does the same work so often that all of it is worth being compiled for speed. */
const isHot = (file) => file.includes('sim/seeds');

const single = (file) => ({
  name: nameOf(file),
  file,
  files: [file],
  isCovered: isCovered(file),
  isHot: isHot(file),
});

function grouped(name, files, folder) {
  const count = Math.ceil(files.length / FILES_PER_PROCESS[name]);
  return Array.from({ length: count }, (_, group) => {
    const members = files.filter((_, at) => at % count === group);
    if (members.length === 1) return single(members[0]);
    const file = path.join(folder, `${name}-${group + 1}.mjs`);
    writeFileSync(file, groupText(members));
    const part = `${name} files, part ${group + 1} of ${count}`;
    return { name: part, file, files: members, isCovered: name !== 'api' };
  });
}

function groupText(members) {
  const suites = members.map((file) => [nameOf(file), path.relative('dist/test', file)]);
  return `import { describe } from 'node:test';

for (const [name, file] of ${JSON.stringify(suites, null, 2)}) {
  await describe(name, () => import(\`../test/\${file}\`));
}
`;
}
