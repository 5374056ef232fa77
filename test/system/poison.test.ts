/** An instance whose stored state makes its actor throw: only it suffers, and the log says so. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { type Api, eventually, startApi, step, type Tenant } from '../helpers/api.js';

let api: Api;
let tenant: Tenant;

before(async () => {
  api = await startApi();
  tenant = api.tenant();
});

after(() => api?.stop());

test('an instance that cannot be advanced is left alone, and its neighbours go on', async () => {
  const sequence = await tenant.sequence([step('a', 'sleep', { params: { duration_ms: 400 } })]);
  const neighbour = await tenant.create(sequence);
  const poison = await tenant.create(sequence);
  const lost = await tenant.create(sequence);
  await api.engine.kill();
  const sql = new pg.Client({ connectionString: api.database.connectionString });
  await sql.connect();
  await sql.query("update instances set execution = 'null' where id = $1", [poison]);
  // It throws when it goes on, and can still be failed.
  const nothing = JSON.stringify({ t: 1, o: {}, d: {} });
  await sql.query('update instances set execution = $2 where id = $1', [lost, nothing]);
  await sql.end();
  await api.restart();
  await tenant.until(neighbour, 'completed');
  // That it is looked at all the time puts nothing off.
  assert.equal((await tenant.until(lost, 'failed')).failure?.code, 'internal_error');
  await eventually(() => {
    const lines = api.engine.logs();
    assert.ok(lines.some((line) => line.msg === 'instance quarantined'));
  });
  // It is found in lists, and what is asked of it fails alone.
  const running = await tenant.get<{ id: string }[]>('/instances?state=running');
  assert.ok(running.body.some(({ id }) => id === poison));
  const refused = await api.root
    .with({ tenant: tenant.name })
    .post(`/instances/${poison}/signals`, { signal_type: 'cancel' });
  assert.equal(refused.status, 500);
  await tenant.until(await tenant.create(sequence), 'completed');
  assert.ok(api.engine.isRunning());
});
