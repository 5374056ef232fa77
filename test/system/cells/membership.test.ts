/** What an engine that takes its cell over does about a directory that is silent, without an engine around it. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createLogger } from '../../../src/base/log.js';
import { realClock } from '../../../src/base/real-clock.js';
import { Directory, makeDirectory } from '../../../src/cluster/directory.js';
import { Membership, type TenantPage } from '../../../src/cluster/membership.js';
import { eventually } from '../../helpers/api.js';
import { createTestDatabase, type TestDatabase } from '../../helpers/database.js';
import { FaultProxy } from '../../helpers/proxy.js';

let database: TestDatabase;
let directory: Directory;
let way: FaultProxy;
let url: string;

before(async () => {
  database = await createTestDatabase({ isMigrated: false });
  await makeDirectory(database.connectionString);
  directory = new Directory(database.connectionString, 'membership test');
  ({ proxy: way, url } = await FaultProxy.before(database.connectionString));
});

after(async () => {
  await directory?.close();
  await way?.stop();
  await database?.drop();
});

async function joined(cell: string): Promise<Membership> {
  const { connectionString: database_url } = database;
  await directory.createCell({ name: cell, database_url, engines: [], state: 'open' });
  const membership = new Membership({
    url,
    cell,
    id: `engine of ${cell}`,
    version: '1.0.0',
    keyIds: [],
    clock: realClock,
    log: createLogger('fatal', 'test', { write: () => undefined }),
  });
  const writer = () => ({ at: 0, backlog: 0, committed: 0 });
  await membership.join(new AbortController().signal, '127.0.0.1:1', writer);
  return membership;
}

const pageOf = (tenants: readonly string[]): TenantPage => {
  return async (after) =>
    tenants.filter((tenant) => tenant > after).map((tenant_id) => ({ tenant_id }));
};

async function msOf(work: Promise<void>): Promise<number> {
  const began = performance.now();
  await work;
  return performance.now() - began;
}

/** One question to a directory that does not answer takes five seconds. */
const SOON_MS = 3_000;

test('a take-over does not wait for a directory that is silent, whether its cell was looked through or not', async () => {
  for (const [cell, isFound] of [
    ['found', true],
    ['empty', false],
  ] as const) {
    const membership = await joined(cell);
    if (isFound) await directory.markCell(cell, 'searched');
    const rows = [`${cell}-1`];
    try {
      way.stall();
      const tookMs = await msOf(membership.takeOver(pageOf(rows)));
      assert.ok(tookMs < SOON_MS, `${cell}: ${tookMs} ms`);
      assert.equal((await directory.placement(`${cell}-1`))?.cell, undefined);
    } finally {
      way.resume();
    }
    // What could not be done then is done when it answers.
    await eventually(async () => {
      assert.equal((await directory.placement(`${cell}-1`))?.placed_by, 'found');
      assert.ok((await directory.cell(cell))?.found_at);
    });
    await membership.stop();
  }
});
