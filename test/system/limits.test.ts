/**
 * What a server bears: instances that ask for too much or whose state is broken, as many connections as there may be,
 * and a database that is cleared of what has ended. Each meets a limit that fails only itself, with a reason, and its
 * neighbours never wait for it.
 *
 * Cost: 33 s, since it fills a server up to its limits.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { OUTPUT_ROWS } from '../../actors/instance/output-tables.js';
import type { BatchActionResult } from '../../schema/edits.js';
import {
  beforeWith,
  eventually,
  type Json,
  loop,
  newHandler,
  sleep,
  step,
  type Tenant,
  transform,
  useApi,
} from '../helpers/api.js';
import { BACKENDS } from '../helpers/backends.js';
import { createClient, expectStatus } from '../helpers/client.js';
import { auditOf } from '../helpers/edits.js';
import { startNeighbour } from '../helpers/neighbour.js';
import { describeGiants } from './limits/giants.js';

const KIB = 1024;
const ENV = { ENGINE_SHARDS: '1' };
const NOOP = step('a', 'noop');

const api = useApi({ env: ENV });
const neighbours = api.tenant('neighbours');
const guilty = api.tenant('guilty');
let sequenceOfNeighbours: string;

beforeWith(api, async () => {
  sequenceOfNeighbours = await neighbours.sequence([NOOP]);
});

/** Does the work while neighbours come and go, at least so many of them. */
async function amongNeighbours<T>(work: () => Promise<T>, least = 1): Promise<T> {
  const neighbour = startNeighbour(neighbours, sequenceOfNeighbours);
  const result = await work().finally(() => neighbour.stop());
  const { length } = neighbour.latenciesMs;
  assert.ok(length >= least, `${length} neighbours instead of ${least}`);
  return result;
}

/** Runs the blocks until their instance has failed; resolves with the reason and its rows by block. */
async function failing(blocks: readonly Json[], data: Json = {}) {
  return amongNeighbours(async () => {
    const id = await guilty.runUntil('failed', blocks, data);
    const { rows } = await api.sql.query('select reason from dead_letters where instance_id = $1', [
      id,
    ]);
    assert.ok((await guilty.deadLetters()).includes(id));
    return { reason: String(rows[0]?.reason), rows: await countRows(id) };
  });
}

async function countRows(id: string): Promise<Record<string, number>> {
  const { rows } = await api.sql.query<{ block_id: string; n: number }>(
    `select block_id, count(*)::int as n from ${OUTPUT_ROWS} o
     where instance_id = $1 and output_ref is null group by block_id order by block_id`,
    [id],
  );
  return Object.fromEntries(rows.map(({ block_id, n }) => [block_id, n]));
}

test('steps that double what the one before gave end at 16 MiB', async () => {
  const doubling = (i: number) =>
    transform(`t${i}`, { a: `{{outputs.t${i - 1}}}`, b: `{{outputs.t${i - 1}}}` });
  const blocks = [
    transform('t0', { x: '{{data.x}}' }),
    ...Array.from({ length: 20 }, (_, i) => doubling(i + 1)),
  ];
  const { reason, rows } = await failing(blocks, { x: 'x'.repeat(128 * KIB) });
  assert.match(reason, /larger than 16 MiB/);
  // 128 KiB doubled six times is 8 MiB; the seventh time is a little over 16.
  assert.deepEqual(Object.keys(rows), ['t0', 't1', 't2', 't3', 't4', 't5', 't6']);
});

test('a template that shows a large value many times ends at 16 MiB, before anything is stored', async () => {
  const template = '{{json(data)}}'.repeat(80);
  const { reason, rows } = await failing([transform('a', { template })], {
    x: 'x'.repeat(250 * KIB),
  });
  assert.match(reason, /larger than 16 MiB/);
  assert.deepEqual(rows, {});
});

test('a loop whose condition is as costly as one can be leaves every turn to others', async () => {
  const condition = 'len(sort(big)) > 0';
  const big = Array.from({ length: 60_000 }, (_, i) => i % 100);
  const blocks = [loop('l', condition, [step('a', 'noop')], 100)];
  // In one turn it would take a second, and one or two neighbours would have seen the end of it.
  const rows = await amongNeighbours(
    async () => countRows(await guilty.runUntil('completed', blocks, { big })),
    6,
  );
  assert.deepEqual(rows, { a: 100, l: 100 });
});

test('what the database refuses of a change of many is counted as failed, and leaves the instance as it was', async () => {
  const tenant = api.tenant();
  const ids = [
    await tenant.runUntil('waiting', [step('a', newHandler())]),
    await tenant.runUntil('completed', [step('a', 'noop')]),
  ];
  await api.sql.query(
    "alter table signals add constraint refused check (signal_type <> 'custom:refused')",
  );
  const act = async (body: object) => {
    const reply = await tenant.post<BatchActionResult>('/instances/batch-action', {
      filter: {},
      ...body,
    });
    const { matched, applied, skipped, failed } = expectStatus(reply, 200);
    return [matched, applied, skipped, failed];
  };
  const states = () => Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));
  assert.deepEqual(await act({ action: 'signal', signal_type: 'refused' }), [2, 0, 1, 1]);
  assert.deepEqual(await states(), ['waiting', 'completed']);
  assert.deepEqual(await auditOf(tenant, ids[0] ?? ''), []);
  assert.deepEqual(await act({ action: 'pause' }), [2, 1, 1, 0]);
  assert.deepEqual(await states(), ['paused', 'completed']);
});

// ---------------------------------------------------------------- large ones

describeGiants(api);

// ---------------------------------------------------------------- broken ones

test('an instance that cannot be advanced is left alone, and its neighbours go on', async () => {
  const sequence = await guilty.sequence([sleep('a', 400)]);
  const neighbour = await guilty.create(sequence);
  const poison = await guilty.create(sequence);
  const lost = await guilty.create(sequence);
  await api.engine.kill();
  await api.sql.query("update instances set execution = 'null' where id = $1", [poison]);
  // It throws when it goes on, and can still be failed.
  const nothing = JSON.stringify({ t: 1, o: {}, d: {} });
  await api.sql.query('update instances set execution = $2 where id = $1', [lost, nothing]);
  await api.restart();
  await guilty.until(neighbour, 'completed');
  // That it is looked at all the time puts nothing off.
  assert.equal((await guilty.until(lost, 'failed')).failure?.code, 'internal_error');
  await eventually(() => {
    assert.ok(api.engine.logs().some((line) => line.msg === 'instance quarantined'));
  });
  // It is found in lists, and what is asked of it fails alone.
  const running = await guilty.get<{ id: string }[]>('/instances?state=running');
  assert.ok(running.body.some(({ id }) => id === poison));
  const refused = await guilty.post(`/instances/${poison}/signals`, { signal_type: 'cancel' });
  assert.equal(refused.status, 500);
  await guilty.until(await guilty.create(sequence), 'completed');
  assert.ok(api.engine.isRunning());
});

// ---------------------------------------------------------------- what has ended

test('ENGINE_RETENTION_DAYS removes instances that ended longer ago, and is off by default; it covers every tenant, soon after the start', async () => {
  const tenants = [api.tenant(), api.tenant()];
  const ids: string[] = [];
  for (const tenant of tenants) {
    const sequence = await tenant.sequence([NOOP]);
    for (let i = 0; i < 60; i++) ids.push(await tenant.create(sequence));
    await tenant.until(ids.at(-1) as string, 'completed');
  }
  const [tenant] = tenants as [(typeof tenants)[0], ...typeof tenants];
  const failed = await tenant.runUntil('failed', [step('f', 'fail')]);
  const old = `now() - interval '2 days'`;
  const names = tenants.map(({ name }) => name);
  await api.sql.query(
    `update instances set updated_at = ${old}, created_at = ${old} where tenant_id = any($1)`,
    [names],
  );
  // Ids that carry their time are looked at only if that time is long enough ago.
  await api.sql.query(
    "update instances set id = overlay(id::text placing '01800000' from 1)::uuid " +
      "where state = 'completed' and tenant_id = any($1)",
    [names],
  );
  const young = await tenant.run([NOOP]);
  await tenant.until(young, 'completed');
  await api.restart('SIGTERM', { env: { ...ENV, ENGINE_RETENTION_DAYS: '1' } });
  await eventually(async () => {
    const { body } = await tenant.get<Json[]>('/instances?limit=1000');
    assert.deepEqual(body.map(({ id }) => id).sort(), [failed, young].sort());
  });
  await eventually(() => assert.match(api.engine.output(), /"removed":120/));
});

// ---------------------------------------------------------------- connections

const DESCRIPTORS = 256;
const ATTACKERS = 3 * DESCRIPTORS;
/** Each may have some of the connections, all together more than there are. */
const ADDRESSES = 8;
/** Of its processor time ours, while there is nothing to do: a loop that spins takes as much as we do. */
const SHARE_MAX = 0.5;
const BUSY_MS = 500;
/** More often than a connection that is idle is given up. */
const ROUND_MS = 50;

const skip = process.platform !== 'linux' && 'there is no /proc here';

/** Of all threads of the process, in ms. */
function cpuMsOfProcess(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return ticks * 10;
}

/** What another process takes of the processor, beside this one, which takes all it gets. */
async function shareOf(pid: number): Promise<number> {
  const theirs = cpuMsOfProcess(pid);
  const ours = process.cpuUsage();
  let spent = 0;
  while (spent < BUSY_MS) {
    const { user, system } = process.cpuUsage(ours);
    spent = (user + system) / 1_000;
    // What the server says to its clients is heard meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return (cpuMsOfProcess(pid) - theirs) / spent;
}

class TenantActivity {
  readonly #sockets = new Set<Socket>();
  answered = 0;

  constructor(port: number) {
    for (let i = 0; i < ATTACKERS; i += 1) {
      const localAddress = `127.0.0.${2 + (i % ADDRESSES)}`;
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => {
        this.answered += 1;
      });
      socket.once('close', () => this.#sockets.delete(socket));
    }
  }

  /** Connections that are not closed. */
  get size(): number {
    return this.#sockets.size;
  }

  leave(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A client that was there before: writes, reads of rows, and the state of the database, one after the other. */
class Service {
  readonly #stopping = new AbortController();
  readonly #done: Promise<number>;

  constructor(tenant: Tenant, sequence: string) {
    this.#done = this.#serve(tenant, sequence);
    // Whoever ends it hears of it.
    this.#done.catch(() => undefined);
  }

  /** Rounds in which all were served. */
  end(): Promise<number> {
    this.#stopping.abort();
    return this.#done;
  }

  async #serve(tenant: Tenant, sequence: string): Promise<number> {
    let rounds = 0;
    for (; !this.#stopping.signal.aborted; rounds += 1) {
      await tenant.create(sequence);
      for (const path of ['/instances', '/health/ready']) expectStatus(await tenant.get(path), 200);
      await pause(ROUND_MS);
    }
    return rounds;
  }
}

for (const backend of BACKENDS) {
  describe(`at the limit of open files, backend ${backend}`, { skip }, () => {
    test('excess connections are refused, the others and the database are served, and the server recovers', async (t) => {
      const env = { ...ENV, ENGINE_HTTP_BACKEND: backend };
      await api.restart('SIGTERM', { descriptorsMax: DESCRIPTORS, env });
      const told = api.engine.logs().find(({ descriptors }) => descriptors === DESCRIPTORS);
      const max = Number(told?.max);
      assert.ok(max >= DESCRIPTORS / 4 && max <= DESCRIPTORS / 2, 'it says how many it takes');
      const tenant = api.tenant();
      const service = new Service(tenant, await tenant.sequence([NOOP]));
      const crowd = new TenantActivity(api.engine.port);
      t.after(() => crowd.leave());
      await eventually(() => assert.ok(crowd.size < max, `${crowd.size} are open`));
      assert.ok(crowd.size > max / 2, `only ${crowd.size} are open`);
      assert.ok(crowd.answered > 0, 'some were told why');
      const share = await shareOf(api.engine.pid);
      assert.ok(share < SHARE_MAX, `takes ${share} of what this process takes`);
      assert.ok((await service.end()) > 0, 'it is served all the time');
      crowd.leave();
      const late = createClient({ url: api.url });
      t.after(() => late.close());
      await eventually(async () => assert.equal((await late.get('/health/ready')).status, 200));
      assert.ok((await shareOf(api.engine.pid)) < SHARE_MAX);
      assert.equal(api.engine.isRunning(), true);
    });
  });
}
