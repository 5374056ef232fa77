/** What a caller is told of its own key, and the root key of the tenants. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeyMinted, WhoAmI } from '../../schema/api-key.js';
import { CAPABILITIES } from '../../schema/route-row.js';
import type { Tenant as Listed } from '../../schema/tenant-limits.js';
import { step, useApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';

const api = useApi({ env: { ENGINE_SHARDS: '1' } });

const whoami = async (client: Pick<typeof api.root, 'get'>): Promise<WhoAmI> =>
  expectStatus(await client.get<WhoAmI>('/whoami'), 200);

test('the root key is told that it may do everything, for any tenant', async () => {
  const everything: WhoAmI = {
    is_root: true,
    is_insecure: false,
    tenant_id: null,
    requires_tenant: true,
    capabilities: [...CAPABILITIES],
    key: null,
  };
  assert.deepEqual(await whoami(api.root), everything);
  assert.deepEqual(await whoami(api.root.with({ tenant: 'acme' })), everything);
});

test('a key of a tenant is told its tenant and what it may do, whatever that is', async () => {
  const expires_at = '2199-01-01T00:00:00.000Z';
  for (const capability of CAPABILITIES) {
    const body = { tenant_id: 'acme', name: 'n', capabilities: [capability], expires_at };
    const { id, secret } = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
    const key = api.root.with({ apiKey: secret, tenant: null });
    assert.deepEqual(await whoami(key), {
      is_root: false,
      is_insecure: false,
      tenant_id: 'acme',
      requires_tenant: true,
      capabilities: [capability],
      key: { id, name: 'n', expires_at },
    });
    assert.equal((await key.get('/tenants')).status, 403);
    expectStatus(await api.root.delete(`/api-keys/${id}`), 204);
    assert.equal((await key.get('/whoami')).status, 401);
  }
  assert.equal((await api.root.with({ apiKey: null }).get('/whoami')).status, 401);
});

test('the tenants that have anything are listed by their names, page by page', async () => {
  const names = ['a-sequence', 'b-key', 'c-limits', 'd "quoted"', 'z'];
  await api.tenant('a-sequence').run([step('a', 'noop')]);
  await api.tenant('d "quoted"').run([step('a', 'noop')]);
  await api.tenant('z').sequence([step('a', 'noop')]);
  const key = { tenant_id: 'b-key', capabilities: ['worker'] };
  expectStatus(await api.root.post('/api-keys', key), 201);
  expectStatus(await api.root.put('/tenants/c-limits/limits', { schedules_max: 1 }), 200);
  const listed: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = cursor === undefined ? '' : `&cursor=${cursor}`;
    const reply: Reply<Listed[]> = await api.root.get<Listed[]>(`/tenants?limit=2${query}`);
    const page = expectStatus(reply, 200);
    assert.ok(page.length <= 2);
    listed.push(...page.map(({ tenant_id }) => tenant_id));
    const next = reply.headers['x-next-cursor'];
    if (next === undefined) break;
    cursor = String(next);
  }
  assert.equal(new Set(listed).size, listed.length, 'none is given twice');
  assert.deepEqual(listed.filter((name) => names.includes(name)).sort(), [...names].sort());
  const all = expectStatus(await api.root.get<Listed[]>('/tenants'), 200);
  assert.deepEqual(
    all.map(({ tenant_id }) => tenant_id),
    listed,
  );
  assert.equal((await api.root.get('/tenants?limit=0')).text, '[]');
  assert.equal((await api.root.get('/tenants?cursor=none')).status, 400);
  assert.equal((await api.root.get('/tenants?name=a')).status, 400);
});

describe('without keys', () => {
  const open = useApi({ apiKey: null, env: { ENGINE_REQUIRE_TENANT_HEADER: 'false' } });

  test('whoever asks is told that nobody is asked for a key, and may list tenants', async () => {
    const told = await whoami(open.root);
    assert.deepEqual([told.is_root, told.is_insecure, told.requires_tenant], [true, true, false]);
    assert.equal((await open.root.get('/tenants')).status, 200);
  });
});
