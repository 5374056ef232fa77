/** Of which tenants a proxy is told, and when, by what the directory says. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import type { CellRow, PlacementRow } from '../../src/cluster/directory.js';
import { TopologyReader } from '../../src/cluster/proxy/topology-reader.js';
import { bucketOf, cellOfBucket } from '../../src/cluster/routing.js';
import { tenantLedTo } from '../helpers/cluster.js';

const TWO = ['east', 'west'];
const cellRow = (name: string, state: CellRow['state'] = 'open'): CellRow => {
  const joined = { created_at: '', joined_at: '', found_at: '' };
  return { name, state, engines: ['10.0.0.1:80'], database_url: '', ...joined };
};

let cells: CellRow[];
let placed: PlacementRow[];
let revision: number;
/** After which revision the reader asked, one for each time. */
let asked: number[];
let isAway: boolean;
let nowMs: number;

beforeEach(() => {
  cells = TWO.map((name) => cellRow(name));
  placed = [];
  revision = 0;
  asked = [];
  isAway = false;
  nowMs = 0;
  mock.method(performance, 'now', () => nowMs);
});

afterEach(() => mock.restoreAll());

const directory = {
  cells: async () => {
    if (isAway) throw new Error('away');
    return cells;
  },
  placedSince: async (after: Pick<PlacementRow, 'revision' | 'tenant_id'>) => {
    asked.push(after.revision);
    return placed.filter((row) => row.revision > after.revision);
  },
};

function place(tenant_id: string, cell: string, placed_by: PlacementRow['placed_by'] = 'hash') {
  revision += 1;
  placed = placed.filter((row) => row.tenant_id !== tenant_id);
  placed.push({ tenant_id, cell, placed_by, placed_at: '', revision });
}

const told = async (reader: TopologyReader) => Object.fromEntries((await reader.read()).placements);

for (const proxy of ['haproxy', 'envoy'] as const) {
  test(`${proxy} is told of the tenants that do not live in the cell of their bucket`, async () => {
    const reader = new TopologyReader(proxy, directory);
    const [follower, stray] = [tenantLedTo('east', TWO, 'f'), tenantLedTo('east', TWO, 's')];
    place(follower, 'east');
    place(stray, 'west', 'hand');
    assert.deepEqual(await told(reader), { [stray]: 'west' });
    place(stray, 'east', 'move');
    place(follower, 'west', 'move');
    assert.deepEqual(await told(reader), { [follower]: 'west' });
  });
}

test('who lives where a bucket led before it got another cell is told of from then on', async () => {
  const reader = new TopologyReader('haproxy', directory);
  // All others stay with their bucket.
  const taken = tenantLedTo('north', [...TWO, 'north'], 'taken');
  const home = cellOfBucket(bucketOf(taken), TWO) as string;
  place(taken, home);
  place(tenantLedTo('east', [...TWO, 'north'], 'kept'), 'east');
  assert.deepEqual(await told(reader), {});
  cells = [...cells, cellRow('north')];
  assert.deepEqual(await told(reader), { [taken]: home });
  cells = cells.map(({ name }) => cellRow(name, name === 'north' ? 'closed' : 'open'));
  assert.deepEqual(await told(reader), {});
});

test('placements are read once, and then those that have come since', async () => {
  const reader = new TopologyReader('nginx', directory);
  place('a', 'east');
  await reader.read();
  place('b', 'east', 'hand');
  assert.deepEqual(await told(reader), { a: 'east', b: 'east' });
  assert.deepEqual(asked, [0, 1]);
});

test('what was read when the directory went away is told when it is back', async () => {
  const reader = new TopologyReader('nginx', directory);
  place('a', 'east', 'hand');
  isAway = true;
  await assert.rejects(reader.read());
  isAway = false;
  assert.deepEqual(await told(reader), { a: 'east' });
});

test('nginx is told of new tenants together, and at once of what an operator does', async () => {
  const reader = new TopologyReader('nginx', directory);
  place('a', 'east');
  assert.deepEqual(await told(reader), { a: 'east' });
  place('b', 'west');
  nowMs = 29_000;
  assert.deepEqual(await told(reader), { a: 'east' });
  nowMs = 31_000;
  assert.deepEqual(await told(reader), { a: 'east', b: 'west' });
  place('c', 'west', 'found');
  assert.deepEqual(await told(reader), { a: 'east', b: 'west' });
  place('a', 'west', 'move');
  assert.deepEqual(await told(reader), { a: 'west', b: 'west', c: 'west' });
});
