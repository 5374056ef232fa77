/** GET /rate-limits: whose limits it shows, and in which order. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RateLimit } from '../../../schema/rate.js';
import { type Tenant, useSharedApi } from '../../helpers/api.js';
import { type Client, expectStatus } from '../../helpers/client.js';

const api = useSharedApi();

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

test('a limit that was changed or deleted is shown so', async () => {
  const tenant = api.tenant();
  await put(tenant, 'kept');
  await put(tenant, 'gone');
  const changed = await put(tenant, 'kept', 9, 90);
  expectStatus(await tenant.delete('/rate-limits/gone'), 204);
  assert.deepEqual(await list(tenant), [changed]);
  assert.deepEqual([changed.max_count, changed.window_seconds], [9, 90]);
});
