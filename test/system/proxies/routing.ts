/**
 * A real HAProxy in front of cells, as `cells proxy-config` sets it up and keeps it up to date: each tenant reaches
 * its cell, and what goes wrong on the way is refused and not done. Nothing is tried where it is not installed.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { percentEncoded } from '../../../cli/proxy/haproxy.js';
import { Client as EngineClient } from '../../../client/src/index.js';
import { RAISED } from '../../../src/cluster/directory.js';
import { bucketOf, cellOfBucket } from '../../../src/cluster/routing.js';
import type { Api, Tenant } from '../../helpers/api.js';
import { eventually, newHandler, step, tenantThrough } from '../../helpers/api.js';
import { type CellProxy, runtime, startCellProxy } from '../../helpers/cell-proxy.js';
import { type Cluster, startCluster, tenantLedTo } from '../../helpers/cluster.js';
import { DEFAULT_API_KEY, type Engine } from '../../helpers/engine.js';
import { fetchWhole, isInstalled } from '../../helpers/proxies.js';

const CELLS = ['east', 'west', 'north'] as const;
type Cell = (typeof CELLS)[number];

/** Whatever is in a header that both HTTP backends take, and a word, a quote or an end for some proxy. */
const ODD_TENANTS = [
  ...['a b', 'default', '~^a', 'q"u;o\'te', '$x{}', '#no', 'c,d', 'back\\slash', 'Größe!', '%41'],
];

let cluster: Cluster;
let apis: Record<Cell, Api>;
/** Of east, which has two engines. */
let standby: Engine;

const changeDirectory = (text: string, values: readonly unknown[]) =>
  cluster.directory.transaction((client) => client.query(`with ${RAISED} ${text}`, [...values]));

const bucketCell = (tenant: string) => cellOfBucket(bucketOf(tenant), CELLS) as Cell;

const otherThan = (...cells: readonly string[]) =>
  CELLS.find((name) => !cells.includes(name)) as Cell;

/** The cells in which there is something of the tenant. */
async function cellsWith(tenant: string): Promise<string[]> {
  const parts = CELLS.map(
    (cell) => `select '${cell}' as cell from ${cell}.sequences where tenant_id = $1`,
  );
  const { rows } = await apis.west.sql.query<{ cell: string }>(parts.join(' union '), [tenant]);
  return rows.map(({ cell }) => cell);
}

async function place(tenant: string, cell: Cell): Promise<void> {
  assert.equal((await cluster.directory.settle([tenant], cell, 'hand')).get(tenant), cell);
}

/** The first engine of east in the table of the test, which stops what it finds there. */
async function swapEast(engine: Engine): Promise<void> {
  apis = { ...apis, east: { ...apis.east, engine } };
}

const isReady = async ({ url }: Engine) =>
  (await fetchWhole(`${url}/health/ready`).catch(() => undefined))?.status === 200;

const pidOf = async (proxy: CellProxy) => /Pid: (\d+)/.exec(await runtime(proxy, 'show info'))?.[1];

export function describeRouting(): void {
  before(async () => {
    cluster = await startCluster();
    const env = { ENGINE_TRUSTED_PROXIES: '127.0.0.1' };
    const [east, west, north] = [
      await cluster.start('east', { env }),
      await cluster.start('west', { env }),
      await cluster.start('north', { env }),
    ];
    apis = { east, west, north };
    standby = await east.engine.beside({ waitFor: 'listening' });
    for (const name of CELLS) {
      const addresses = [`127.0.0.1:${apis[name].engine.port}`];
      if (name === 'east') addresses.push(`127.0.0.1:${standby.port}`);
      await changeDirectory('update cluster.cells set engines = $2 from raised where name = $1', [
        name,
        addresses,
      ]);
    }
    await eventually(async () => {
      for (const name of CELLS) {
        const others = CELLS.filter((other) => other !== name);
        for (const other of others) {
          const asked = tenantThrough(apis[name].url, tenantLedTo(other, CELLS, 'settled'));
          const { status } = await asked.get('/sequences');
          await asked.close();
          assert.equal(status, 421);
        }
      }
    });
  });

  after(async () => {
    await standby?.stop();
    await apis?.east.engine.stop();
    await cluster?.stop();
  });

  if (!isInstalled('haproxy')) return;

  describe('behind HAProxy', () => {
    let proxy: CellProxy;
    const opened: Tenant[] = [];
    const through = (name: string) => {
      const tenant = tenantThrough(proxy.url, name);
      opened.push(tenant);
      return tenant;
    };
    const key = { 'x-api-key': DEFAULT_API_KEY };
    const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
      fetchWhole(`${proxy.url}${path}`, { method, headers: { ...key, ...headers } });
    /** A definition of the tenant, whose id is sent in UTF-8. */
    const store = (name: string) => {
      const body = JSON.stringify(through(name).definition([step('a', 'noop')]));
      const headers = {
        ...key,
        'content-type': 'application/json',
        'x-tenant-id': Buffer.from(name).toString('latin1'),
      };
      return fetchWhole(`${proxy.url}/api/v1/sequences`, { method: 'POST', headers, body });
    };
    /** Resolves when the proxy itself leads the tenant there, without being told by a cell. */
    const untilMapped = (tenant: string, cell: string) =>
      eventually(async () => {
        const entry = `${percentEncoded(tenant)} ${cell}\n`;
        assert.ok((await runtime(proxy, 'show map tenants.map')).includes(entry), entry);
      });

    before(async () => {
      proxy = await startCellProxy({ clusterUrl: cluster.database.connectionString });
      await eventually(async () => assert.equal((await ask('/health/ready')).status, 200));
    });
    after(async () => {
      await Promise.all(opened.map((tenant) => tenant.close()));
      await proxy?.stop();
    });

    test('tenants that were placed reach their cells, whatever they are called', async () => {
      const suffix = randomUUID().slice(0, 8);
      const tenants = [...ODD_TENANTS, 'Case', 'case'].map((name) => `${name} ${suffix}`);
      const wanted = new Map(tenants.map((name) => [name, otherThan(bucketCell(name))]));
      wanted.set(`Case ${suffix}`, 'east').set(`case ${suffix}`, 'west');
      for (const [name, cell] of wanted) await place(name, cell);
      for (const [name, cell] of wanted) {
        await eventually(async () => assert.equal((await store(name)).status, 201, name));
        assert.deepEqual(await cellsWith(name), [cell], name);
      }
    });

    test('new tenants settle in the cell of their bucket, and only a map that has no buckets gets them', async () => {
      const tenants = Array.from({ length: 20 }, () => `new-${randomUUID()}`);
      await Promise.all(tenants.map((name) => through(name).sequence([step('a', 'noop')])));
      for (const name of tenants) assert.deepEqual(await cellsWith(name), [bucketCell(name)]);
      const stray = `stray-${randomUUID()}`;
      await place(stray, otherThan(bucketCell(stray)));
      await untilMapped(stray, otherThan(bucketCell(stray)));
      const map = await runtime(proxy, 'show map tenants.map');
      for (const name of tenants) assert.ok(!map.includes(name), name);
    });

    test('who names no tenant names the cell, is answered where all answer alike, or refused', async () => {
      for (const cell of CELLS) {
        const mine = tenantLedTo(cell, CELLS, `root-${randomUUID()}`);
        await through(mine).sequence([step('a', 'noop')]);
        const listed = await ask('/api/v1/tenants?limit=1000', { 'x-cell': cell });
        assert.equal(listed.status, 200);
        assert.match(await listed.text(), new RegExp(mine));
        const other = await ask('/api/v1/tenants?limit=1000', { 'x-cell': otherThan(cell) });
        assert.doesNotMatch(await other.text(), new RegExp(mine));
      }
      const pages = ['/info', '/health/live', '/ui/', '/api-docs/openapi.json', '/swagger-ui'];
      const answers = ['/whoami', '/cells', '/cells/moves', '/cells/moves?limit=1'];
      for (const path of [...pages, ...answers]) {
        for (const prefix of ['', '/api/v1']) {
          assert.equal((await ask(`${prefix}${path}`)).status, 200, `${prefix}${path}`);
        }
      }
      for (const path of ['/metrics', '/api/v1/cells-of', '/api/v1/instances']) {
        assert.equal((await ask(path)).status, 400, path);
      }
      assert.equal((await ask('/api/v1/instances', {}, 'OPTIONS')).status, 405);
      const unnamed = await ask('/api/v1/tenants');
      assert.equal(unnamed.status, 400);
      const said = ((await unnamed.json()) as { error: string }).error;
      assert.match(said, /name the tenant with x-tenant-id/);
      assert.equal((await ask('/api/v1/tenants', { 'x-cell': 'east\tx' })).status, 404);
    });

    test('a stream that cannot send headers names its tenant in its address', async () => {
      const cell = 'north';
      const name = tenantLedTo(cell, CELLS, `query-${randomUUID()}`);
      await through(name).sequence([step('a', 'noop')]);
      const changes = await ask(`/api/v1/changes?tenant_id=${encodeURIComponent(name)}`);
      assert.equal(changes.status, 200);
      assert.deepEqual(await cellsWith(name), [cell]);
    });

    test('a webhook reaches the cell of the tenant in its address, however that is encoded there', async () => {
      const cell = 'west';
      const name = tenantLedTo('north', CELLS, `Größe (+1) b@corp ${randomUUID()}`);
      await place(name, cell);
      await untilMapped(name, cell);
      const slug = `hook-${randomUUID()}`;
      const send = (path: string, body: object) =>
        fetchWhole(`${proxy.url}/api/v1${path}`, {
          method: 'POST',
          headers: { ...key, 'x-tenant-id': Buffer.from(name).toString('latin1') },
          body: JSON.stringify(body),
        });
      const definition = through(name).definition([step('a', 'noop')]) as { name: string };
      await eventually(async () =>
        assert.equal((await send('/sequences', definition)).status, 201),
      );
      const trigger = { slug, sequence_name: definition.name, namespace: 'test' };
      const made = await send('/triggers', { ...trigger, tenant_id: name });
      assert.equal(made.status, 201, await made.text());
      for (const query of [
        `tenant_id=${encodeURIComponent(name)}`,
        `a=b&${new URLSearchParams({ tenant_id: name })}`,
      ]) {
        await eventually(async () => {
          const url = `${proxy.url}/api/v1/webhooks/${slug}?${query}`;
          const reply = await fetchWhole(url, { method: 'POST', body: '{}' });
          assert.match(await reply.text(), /the trigger has no secret/, query);
        });
      }
    });

    test('a map that changes is followed while a poll waits, which is answered', async () => {
      const waiting = through(`waits-${randomUUID()}`);
      const handler = newHandler();
      const sequence = await waiting.sequence([step('a', handler)]);
      const polled = waiting.poll(handler, { wait_ms: 30_000 });
      const name = `moved-${randomUUID()}`;
      const from = otherThan(bucketCell(name));
      const to = otherThan(bucketCell(name), from);
      const before = await pidOf(proxy);
      await place(name, from);
      await untilMapped(name, from);
      await changeDirectory(
        `update cluster.placements set cell = $2, placed_by = 'move', revision = number
       from raised where tenant_id = $1`,
        [name, to],
      );
      await untilMapped(name, to);
      await eventually(async () =>
        assert.equal((await through(name).get('/sequences')).status, 200),
      );
      await through(name).sequence([step('a', 'noop')]);
      assert.deepEqual(await cellsWith(name), [to]);
      assert.equal(await pidOf(proxy), before);
      await waiting.create(sequence);
      assert.equal((await polled).length, 1);
    });

    test('an owner that is killed is followed by its standby, and a client that asks again loses nothing', async () => {
      const name = tenantLedTo('east', CELLS, `killed-${randomUUID()}`);
      const tenant = through(name);
      const sequence = await tenant.sequence([step('a', 'noop')]);
      const client = new EngineClient({
        url: proxy.url,
        apiKey: DEFAULT_API_KEY,
        tenant: name,
        retries: 1_000,
      });
      const elsewhere = through(tenantLedTo('west', CELLS, `calm-${randomUUID()}`));
      await elsewhere.sequence([step('a', 'noop')]);
      const KEYS = 60;
      const made: string[] = [];
      const creating = Array.from({ length: 6 }, async (_, lane) => {
        for (let at = lane; at < KEYS; at += 6) {
          const { id } = await client.instances.create({
            ...tenant.creation(sequence),
            idempotency_key: `k-${at}`,
          } as never);
          made.push(id);
        }
      });
      const [owner, heir] = (await isReady(apis.east.engine))
        ? [apis.east.engine, standby]
        : [standby, apis.east.engine];
      await eventually(() => assert.ok(made.length > 10));
      await owner.kill();
      const calm = { 'x-tenant-id': elsewhere.name };
      for (let at = 0; at < 20; at += 1)
        assert.equal((await ask('/api/v1/sequences', calm)).status, 200);
      await Promise.all(creating);
      assert.equal(new Set(made).size, KEYS);
      assert.ok(await isReady(heir));
      const { rows } = await apis.west.sql.query<{ count: number }>(
        'select count(*)::int as count from east.instances where tenant_id = $1',
        [name],
      );
      assert.equal(rows[0]?.count, KEYS);
      // Both stand again for the proxy that comes next.
      const again = await owner.restart({ waitFor: 'listening' });
      if (owner === standby) standby = again;
      else await swapEast(again);
    });

    test('a map that is wrong is answered 421 with the right cell, and nothing is written', async () => {
      const name = `wrong-${randomUUID()}`;
      const cell = bucketCell(name);
      await through(name).sequence([step('a', 'noop')]);
      proxy.freeze();
      await runtime(proxy, `add map tenants.map ${name} ${otherThan(cell)}`);
      const reply = await through(name).post(
        '/sequences',
        through(name).definition([step('a', 'noop')]),
      );
      assert.equal(reply.status, 421);
      assert.equal(reply.headers['x-cell'], cell);
      assert.deepEqual(await cellsWith(name), [cell]);
      proxy.thaw();
    });
  });
}
