/** How long it takes to move a tenant with waiting instances to a cell in another database, and how long it waits. */

import { setTimeout as pause } from 'node:timers/promises';
import { step, type Tenant } from '../../test/helpers/api.js';
import { stopSharedServer } from '../../test/helpers/database.js';
import { TwoCells } from '../../test/helpers/moving.js';
import type { Figures } from '../base/report.js';
import type { Job } from '../job.js';

const INSTANCES = 100_000;
const BATCH = 1_000;
/** A quarter each: a task that waits, one that is claimed, a timer that is far away, a signal. */
const KINDS = 4;
const TENANT = 'large';
const SETTLE_MS = 2_000;
const PROBE_MS = 20;

export const moveJob: Job = {
  part: 'load',
  name: 'move',
  asks: 'How long does a tenant with waiting instances wait while it is moved?',
  rounds: () => 1,
  isWarmedUp: false,
  prepare: async ({ options }) => {
    const cells = await TwoCells.start(2);
    const instances = options.instances ?? INSTANCES;
    return {
      contenders: [{ name: `${instances} instances`, turn: () => move(cells, instances) }],
      close: async () => {
        await cells.stop();
        await stopSharedServer();
      },
    };
  },
};

async function move(cells: TwoCells, instances: number): Promise<Figures> {
  await cells.place(TENANT, 'east');
  const probe = await fill(cells.tenant('east', TENANT), instances);
  await pause(SETTLE_MS);
  const steps: [name: string, at: number][] = [];
  const began = performance.now();
  const probing = waitOf(cells, probe, () => steps.some(([name]) => name === 'depart-source'));
  await cells.move(TENANT, 'west', { onStep: (name) => steps.push([name, performance.now()]) });
  const ended = performance.now();
  const each = steps.map(([name, at], n) => {
    return [`${name} s`, ((steps[n + 1]?.[1] ?? ended) - at) / 1_000] as const;
  });
  const figures = { 'moved s': (ended - began) / 1_000, 'tenant waited s': await probing };
  return { ...figures, ...Object.fromEntries(each) };
}

/** @returns seconds from the last answer of the old cell to the first one of the new */
async function waitOf(cells: TwoCells, probe: string, isMoved: () => boolean): Promise<number> {
  const answers = async (cell: 'east' | 'west') =>
    (await cells.tenant(cell, TENANT).get(`/instances/${probe}`)).status === 200;
  for (let lastAt = performance.now(); ; await pause(PROBE_MS)) {
    if ((await answers('east')) && !isMoved()) lastAt = performance.now();
    else if (await answers('west')) return (performance.now() - lastAt) / 1_000;
  }
}

/** @returns the id of an instance */
async function fill(tenant: Tenant, count: number): Promise<string> {
  const tasks = await tenant.sequence([step('a', 'moving.work')]);
  const naps = await tenant.sequence([step('a', 'noop', { delay: { duration: 86_400_000 } })]);
  const signals = await tenant.sequence([step('a', 'noop', { wait_for_input: { prompt: '?' } })]);
  for (let made = 0; made < count; made += BATCH) {
    const instances = Array.from({ length: Math.min(BATCH, count - made) }, (_, at) =>
      tenant.creation([tasks, tasks, naps, signals][at % KINDS] as string, {
        context: { data: { n: made + at, text: 'x'.repeat(200) } },
      }),
    );
    const { status } = await tenant.post('/instances/batch', { instances });
    if (status !== 201) throw new Error(`a batch was answered ${status}`);
  }
  const probe = await tenant.create(tasks);
  for (let at = 0; at < 50; at++) await tenant.poll('moving.work', { limit: 20 });
  return probe;
}
