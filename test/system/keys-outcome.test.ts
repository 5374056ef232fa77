/** A key is refused while its revocation is on its way to the table, however that way breaks. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ApiKey, KeyMinted } from '../../schema/api-key.js';
import { type Api, eventually, startApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { FaultProxy } from '../helpers/proxy.js';

let database: TestDatabase;
let proxy: FaultProxy;
let api: Api;

before(async () => {
  database = await createTestDatabase();
  const through = await FaultProxy.before(database.connectionString);
  proxy = through.proxy;
  api = await startApi({ database: { ...database, connectionString: through.url } });
});
after(async () => {
  await api.stop();
  await proxy.stop();
  await database.drop();
});

/** What is in the statement that stores the revocation and in no other. */
const REVOCATION = '"revoked":true';

for (const [fault, what] of [
  ['cut-before', 'never arrives'],
  ['cut-after', 'arrives and is never answered'],
] as const) {
  test(`a revocation that ${what} holds from the start, and is stored in the end`, async () => {
    const tenant = api.tenant().name;
    const body = { tenant_id: tenant, capabilities: ['operator'] };
    const key = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
    const worker = api.root.with({ apiKey: key.secret, tenant });
    assert.equal((await worker.get('/instances')).status, 200);
    const sent = proxy.whenSent(REVOCATION, fault);
    const revoked = api.root.delete(`/api-keys/${key.id}`);
    await sent;
    assert.equal((await worker.get('/instances')).status, 401);
    await revoked;
    assert.equal((await worker.get('/instances')).status, 401);
    await eventually(async () => {
      const list = await api.root.get<ApiKey[]>(`/api-keys?tenant_id=${tenant}`);
      assert.deepEqual(
        expectStatus(list, 200).map((listed) => listed.revoked),
        [true],
      );
    });
    assert.equal((await worker.get('/instances')).status, 401);
  });
}
