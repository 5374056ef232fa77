/**
 * Many tenants in cells behind HAProxy, under load, while owners are killed and a cell comes and takes its share of new
 * tenants: nothing that was acknowledged is lost, nothing is done twice, and no tenant is in two cells. The seed is
 * printed: CHAOS_SEED repeats its choices.
 */

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { bucketOf, cellOfBucket } from '../../../src/cluster/routing.js';
import { type Client, createClient, NoReplyError } from '../../helpers/client.js';
import { byDepth, isDeep } from '../../helpers/depth.js';
import { DEFAULT_API_KEY } from '../../helpers/engine.js';
import { isInstalled } from '../../helpers/proxies.js';
import { findViolations } from '../invariants.js';
import { readBack } from '../read-back.js';
import { findMisrouted } from '../releases.js';
import { readRows, readUnsettled } from '../rows.js';
import { WORK_HANDLER } from '../shapes.js';
import { type Sink, startSink } from '../sink.js';
import { CellPairs } from './pairs.js';
import { type LoadOptions, startTenant, type TenantLoad, type Took } from './tenant.js';
import { feltElsewhere, noiseOf, type Window } from './windows.js';

const CELLS = byDepth(['east', 'west'], ['east', 'west', 'north']);
const ADDED = 'south';
const TENANTS = byDepth(8, 200);
/** That come while the new cell is there. */
const LATE_TENANTS = byDepth(2, 20);
const KILLS_OF_EACH = byDepth(1, 2);
const INSTANCES_OF_EACH = byDepth(60, 150);
/** Three quarters of what the machine can do are left alone, so that waiting says something of the cells. */
const PACE_MS = byDepth(60, 1_200);
const QUIET_MS = byDepth(1_000, 6_000);
/** What is still felt when the new owner serves. */
const AFTER_MS = byDepth(500, 2_000);
const SETTLE_MS_MAX = 600_000;
const STARTS_AT_ONCE = 16;
/** What the other cells may feel of an event, beside what quiet times differ by themselves. */
const RATIO_MAX = 1.5;

const seed = Number(process.env.CHAOS_SEED ?? randomInt(0x1_0000_0000));
const skip = !isInstalled('haproxy') && 'HAProxy is not installed';

let pairs: CellPairs;
let sink: Sink;
let client: Client;
const took: Took[] = [];
const loads: TenantLoad[] = [];
const windows: Window[] = [];

before(async () => {
  if (skip) return;
  [pairs, sink] = await Promise.all([CellPairs.start(CELLS), startSink()]);
  client = createClient({
    url: pairs.proxy.url,
    apiKey: DEFAULT_API_KEY,
    connections: 2 * (TENANTS + LATE_TENANTS),
    // The proxy has answers of its own.
    isChecked: false,
  });
});

after(async () => {
  await Promise.allSettled(loads.map((load) => load.end()));
  await Promise.allSettled(loads.map((load) => load.stop()));
  await client?.close();
  sink?.stop();
  await pairs?.stop();
});

/** @returns those that were started: one whose set-up lost an answer is given up, and another one begun */
async function startTenants(names: readonly string[]): Promise<readonly string[]> {
  const options: LoadOptions = {
    client,
    sinkUrl: sink.url,
    seed,
    paceMs: PACE_MS,
    instancesMax: INSTANCES_OF_EACH,
    took,
  };
  const started: string[] = [];
  const start = async (name: string): Promise<void> => {
    try {
      loads.push(await startTenant(name, loads.length, options));
      started.push(name);
    } catch (error) {
      if (!(error instanceof NoReplyError)) throw error;
      await start(`${name}+`);
    }
  };
  const queue = names.values();
  const starter = async () => {
    for (const name of queue) await start(name);
  };
  // All of them, also behind one that failed: who is started later would be stopped by nobody.
  const ends = await Promise.allSettled(Array.from({ length: STARTS_AT_ONCE }, starter));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  return started;
}

/** What happens, with the quiet time before it; it rests from when it is done. */
async function during(
  name: string,
  cells: readonly string[],
  event: () => Promise<void>,
): Promise<void> {
  const quietFrom = performance.now();
  await wait(QUIET_MS);
  const from = performance.now();
  await event();
  await wait(AFTER_MS);
  windows.push({
    name,
    cells: new Set(cells),
    quiet: [quietFrom, from],
    event: [from, performance.now()],
  });
}

async function killOwner(cell: string): Promise<void> {
  let restart = async () => {};
  await during(`the owner of ${cell} is killed`, [cell], async () => {
    ({ restart } = await pairs.killOwner(cell));
  });
  // The start of a process costs the machine what no cell of several machines would feel.
  await restart();
}

async function placements(): Promise<ReadonlyMap<string, string>> {
  const rows = await pairs.directory.placements({ after: '', limit: 10_000 });
  return new Map(rows.map(({ tenant_id, cell }) => [tenant_id, cell]));
}

/** What every tenant was promised, beside the rows of its cell; and in which other cells it has any. */
async function judge(load: TenantLoad, cell: string): Promise<readonly string[]> {
  const { name, world } = load;
  const { pool } = pairs.cell(cell);
  const { ledger, shapes } = world;
  const sinkTokens = new Set([...sink.tokens].filter((token) => ledger.creations.has(token)));
  const found = [
    ...findViolations({ ledger, rows: await readRows(pool, name), shapes, sinkTokens }),
    ...(await findMisrouted(pool, name)),
    ...(await readBack(world.client, ledger)),
  ];
  for (const other of pairs.cells.values()) {
    if (other.name === cell) continue;
    const { rows } = await other.pool.query(
      'select id from instances where tenant_id = $1 union all select id from sequences where tenant_id = $1',
      [name],
    );
    if (rows.length > 0) found.push(`has ${rows.length} rows in ${other.name}, too`);
  }
  return found.map((what) => `${name} in ${cell}: ${what}`);
}

async function settle(where: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const until = performance.now() + SETTLE_MS_MAX;
  for (const load of loads) {
    const { pool } = pairs.cell(where.get(load.name) as string);
    for (;;) {
      const unsettled = await readUnsettled(pool, load.name, WORK_HANDLER);
      if (unsettled.length === 0) break;
      if (performance.now() > until) return unsettled.map((what) => `${load.name}: ${what}`);
      await wait(50);
    }
  }
  return [];
}

test(`${TENANTS} tenants in ${CELLS.length} cells lose nothing when owners are killed and a cell comes`, {
  skip,
}, async (t) => {
  t.diagnostic(`seed ${seed}`);
  await startTenants(Array.from({ length: TENANTS }, (_, at) => `tenant-${seed}-${at}`));
  const led = (name: string, cells: readonly string[]) => cellOfBucket(bucketOf(name), cells);
  for (const [name, cell] of await placements()) assert.equal(cell, led(name, CELLS), name);

  for (let round = 0; round < KILLS_OF_EACH; round += 1) {
    for (const cell of CELLS) await killOwner(cell);
  }

  await during(`the cell ${ADDED} is added`, [ADDED], () => pairs.add(ADDED));
  const late = await startTenants(
    Array.from({ length: LATE_TENANTS }, (_, at) => `late-${seed}-${at}`),
  );
  const now = await placements();
  for (const name of late) assert.equal(now.get(name), led(name, [...CELLS, ADDED]), name);
  await killOwner(ADDED);
  await during(`the cell ${ADDED} is closed`, [ADDED], async () => {
    await pairs.directory.setState(ADDED, 'closed');
  });
  for (const name of await startTenants([`last-${seed}`])) {
    assert.equal((await placements()).get(name), led(name, CELLS));
  }

  await Promise.all(loads.map((load) => load.end()));
  const where = await placements();
  const violations = [...(await settle(where))];
  await Promise.all(loads.map((load) => load.stop()));
  for (const load of loads) {
    violations.push(...(await judge(load, where.get(load.name) as string)));
  }
  const sum = (of: (load: TenantLoad) => number) => loads.reduce((all, load) => all + of(load), 0);
  const acknowledged = sum(({ world }) => world.ledger.counts.acknowledged);
  const unknown = sum(({ world }) => world.ledger.counts.unknown);
  const instances = sum(({ world }) => world.ledger.instances.size);
  t.diagnostic(`${instances} instances, ${acknowledged} promises, ${unknown} answers lost`);
  assert.deepEqual(violations, [], `seed ${seed}`);
  assert.ok(acknowledged > 10 * loads.length, `only ${acknowledged} promises were made`);

  const felt = feltElsewhere(windows, took, (tenant) => where.get(tenant));
  for (const { name, quietMs, eventMs, ratio, count } of felt) {
    const times = `${quietMs.toFixed(1)} ms before, ${eventMs.toFixed(1)} ms during`;
    t.diagnostic(`${name}: others' p99 ${times}, × ${ratio.toFixed(2)} of ${count} requests`);
  }
  const noise = noiseOf(felt);
  const typical = felt.map(({ ratio }) => ratio).sort((a, b) => a - b)[Math.floor(felt.length / 2)];
  t.diagnostic(
    `the median is × ${typical?.toFixed(2)}; quiet times differ by × ${noise.toFixed(2)}`,
  );
  if (isDeep)
    assert.ok((typical as number) <= RATIO_MAX * noise, 'an event is felt in other cells');
});
