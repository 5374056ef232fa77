/** GET /rate-limits: whose limits it shows, and in which order. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RateLimit } from '../../../schema/rate.js';
import { type Tenant, useApi } from '../../helpers/api.js';
import { type Client, expectStatus } from '../../helpers/client.js';

const api = useApi({
  env: {
    ENGINE_SHARDS: '2',
    ENGINE_REQUIRE_TENANT_HEADER: 'false',
    ENGINE_ALLOW_NO_TENANT_ISOLATION: 'true',
  },
});

const put = async (tenant: Tenant, key: string, max_count = 1, window_seconds = 60) => {
  const path = `/rate-limits/${encodeURIComponent(key)}`;
  return expectStatus(await tenant.put<RateLimit>(path, { max_count, window_seconds }), 200);
};

const list = async (client: Client) =>
  expectStatus(await client.get<RateLimit[]>('/rate-limits'), 200);

test('a tenant sees its own limits in the order of their keys, as they were put', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  assert.deepEqual(await list(tenant), []);
  const limits = [
    await put(tenant, 'b', 5, 10),
    await put(tenant, 'a/b c', 7),
    await put(tenant, 'Z'),
    await put(tenant, 'ä'),
  ];
  await put(other, 'theirs');
  const [b, a, z, umlaut] = limits;
  assert.deepEqual(await list(tenant), [z, a, b, umlaut]);
  assert.deepEqual(
    (await list(other)).map(({ key }) => key),
    ['theirs'],
  );
});

test('a limit that was changed or deleted is shown so, also after a crash', async () => {
  const tenant = api.tenant();
  await put(tenant, 'kept');
  await put(tenant, 'gone');
  const changed = await put(tenant, 'kept', 9, 90);
  expectStatus(await tenant.delete('/rate-limits/gone'), 204);
  assert.deepEqual(await list(tenant), [changed]);
  await api.restart();
  assert.deepEqual(await list(tenant), [changed]);
  assert.deepEqual([changed.max_count, changed.window_seconds], [9, 90]);
});

test('without a tenant header, where it is optional, the limits of all tenants are shown', async () => {
  const tenants = [api.tenant(), api.tenant()];
  for (const tenant of tenants) for (const key of ['2', '1']) await put(tenant, key);
  const names = tenants.map(({ name }) => name).sort();
  const all = await list(api.root);
  assert.deepEqual(
    all.filter((limit) => names.includes(limit.tenant_id)).map((it) => [it.tenant_id, it.key]),
    names.flatMap((name) => [
      [name, '1'],
      [name, '2'],
    ]),
  );
});
