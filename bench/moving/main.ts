/**
 * How long it takes to move a tenant with many waiting instances to a cell in another database, and how long the
 * tenant waits for that: npm run bench:move -- [instances]
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Step } from '../../src/cluster/move-plan.js';
import { step, type Tenant } from '../../test/helpers/api.js';
import { stopSharedServer } from '../../test/helpers/database.js';
import { TwoCells } from '../../test/helpers/moving.js';

const count = Number(process.argv[2] ?? 100_000);
const BATCH = 1_000;
/** Of these, each: a task that waits, one that is claimed, a timer that is far away, a signal. */
const KINDS = 4;

const since = (began: number) => Math.round(performance.now() - began) / 1_000;

async function fill(tenant: Tenant): Promise<string> {
  const tasks = await tenant.sequence([step('a', 'moving.work')]);
  const naps = await tenant.sequence([step('a', 'noop', { delay: { duration: 86_400_000 } })]);
  const signals = await tenant.sequence([step('a', 'noop', { wait_for_input: { prompt: '?' } })]);
  let last = '';
  for (let made = 0; made < count; made += BATCH) {
    const instances = Array.from({ length: Math.min(BATCH, count - made) }, (_, at) =>
      tenant.creation([tasks, tasks, naps, signals][at % KINDS] as string, {
        context: { data: { n: made + at, text: 'x'.repeat(200) } },
      }),
    );
    const { status } = await tenant.post('/instances/batch', { instances });
    if (status !== 201) throw new Error(`a batch was answered ${status}`);
  }
  for (let at = 0; at < 10; at++) last = await tenant.create(tasks);
  for (let at = 0; at < 50; at++) await tenant.poll('moving.work', { limit: 20 });
  return last;
}

const cells = await TwoCells.start(2);
try {
  const tenant = 'large';
  await cells.place(tenant, 'east');
  let began = performance.now();
  const probe = await fill(cells.tenant('east', tenant));
  console.log(`${count} instances made in ${since(began)} s`);
  await pause(2_000);
  const stepAt: [Step, number][] = [];
  began = performance.now();
  let isMoved = false;
  let lastServed = 0;
  let firstServed = 0;
  const probing = (async () => {
    for (;;) {
      const east = await cells.tenant('east', tenant).get(`/instances/${probe}`);
      if (east.status === 200 && !isMoved) lastServed = performance.now();
      else {
        const west = await cells.tenant('west', tenant).get(`/instances/${probe}`);
        if (west.status === 200) {
          firstServed = performance.now();
          return;
        }
      }
      await pause(20);
    }
  })();
  const { move } = await cells.move(tenant, 'west', {
    onStep: (name) => {
      stepAt.push([name, performance.now()]);
      if (name === 'depart-source') isMoved = true;
    },
  });
  const ended = performance.now();
  await probing;
  stepAt.forEach(([name, at], n) => {
    const next = stepAt[n + 1]?.[1] ?? ended;
    console.log(`${name.padEnd(18)} ${((next - at) / 1_000).toFixed(2)} s`);
  });
  console.log(`moved in ${((ended - began) / 1_000).toFixed(2)} s`);
  console.log(`the tenant waited ${((firstServed - lastServed) / 1_000).toFixed(2)} s`);
  const rows = move.rows as Record<string, { rows: number }>;
  for (const [name, { rows: n }] of Object.entries(rows)) console.log(`  ${name} ${n}`);
} finally {
  await cells.stop();
  await stopSharedServer();
}
