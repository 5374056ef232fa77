/** Changes of what was looked at before: `if_unchanged_since` is the `updated_at` that was read. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Json, step, useSharedApi } from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';

const api = useSharedApi();

type Change = (body: Json) => Promise<Reply<unknown>>;

interface Thing {
  readonly updatedAt: () => Promise<string>;
  readonly change: Change;
}

const never = '0 0 0 1 1 ? 2099';

/** Each thing as it was just made, and a change of it. */
const THINGS: Readonly<Record<string, () => Promise<Thing>>> = {
  'the context of an instance': async () => {
    const tenant = api.tenant();
    const ask = { ...step('a', 'noop'), wait_for_input: { prompt: 'Go on?' } };
    const id = await tenant.run([ask]);
    await tenant.until(id, 'waiting');
    return {
      updatedAt: async () => (await tenant.instance(id)).updated_at,
      change: (body) => tenant.patch(`/instances/${id}/context`, { context: {}, ...body }),
    };
  },
  'a schedule': async () => {
    const tenant = api.tenant();
    const sequence_id = await tenant.sequence([step('a', 'noop')]);
    const made = { tenant_id: tenant.name, namespace: 'test', sequence_id, cron_expr: never };
    const { id } = expectStatus(await tenant.post<{ id: string }>('/cron', made), 201);
    return read(tenant, `/cron/${id}`, (body) =>
      tenant.put(`/cron/${id}`, { timezone: 'UTC', ...body }),
    );
  },
  'a webhook subscription': async () => {
    const tenant = api.tenant();
    const made = await tenant.post<{ id: string }>('/webhooks', { url: 'https://example.com/a' });
    const path = `/webhooks/${expectStatus(made, 201).id}`;
    return read(tenant, path, (body) =>
      tenant.patch(path, { url: 'https://example.com/b', ...body }),
    );
  },
  'a trigger': async () => {
    const tenant = api.tenant();
    const sequence_name = tenant.name;
    await tenant.sequence([step('a', 'noop')], { name: sequence_name, namespace: 'default' });
    const slug = tenant.name;
    const made = { slug, tenant_id: tenant.name, sequence_name };
    expectStatus(await tenant.post('/triggers', made), 201);
    return read(tenant, `/triggers/${slug}`, (body) =>
      tenant.patch(`/triggers/${slug}`, { enabled: true, ...body }),
    );
  },
  'a rate limit': async () => {
    const tenant = api.tenant();
    const set = { max_count: 5, window_seconds: 60 };
    expectStatus(await tenant.put('/rate-limits/mail', set), 200);
    return {
      updatedAt: async () => {
        const list = expectStatus(await tenant.get<{ updated_at: string }[]>('/rate-limits'), 200);
        return list[0]?.updated_at ?? '';
      },
      change: (body) => tenant.put('/rate-limits/mail', { ...set, ...body }),
    };
  },
  'the limits of a tenant': async () => {
    const path = `/tenants/${api.tenant().name}/limits`;
    expectStatus(await api.root.put(path, { queue_depth_max: 9_000 }), 200);
    return read(api.root, path, (body) => api.root.put(path, { queue_depth_max: 9_000, ...body }));
  },
};

function read(client: Pick<typeof api.root, 'get'>, path: string, change: Change): Thing {
  const updatedAt = async () =>
    expectStatus(await client.get<{ updated_at: string }>(path), 200).updated_at;
  return { updatedAt, change };
}

for (const [name, make] of Object.entries(THINGS)) {
  test(`a change is refused when the record has changed since it was read: ${name}`, async () => {
    const { updatedAt, change } = await make();
    const before = await updatedAt();
    // Of many who read the same, the first is taken, and all others are told what there is now.
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => change({ if_unchanged_since: before })),
    );
    const refused = replies.filter(({ status }) => status === 409);
    assert.equal(refused.length, 3, JSON.stringify(replies));
    const now = await updatedAt();
    for (const { body } of refused) {
      const { error } = body as { error: string };
      assert.ok(error.includes(before) && error.includes(now), `${error} names ${before}, ${now}`);
    }
    expectStatus(await change({ if_unchanged_since: now }), 200);
    expectStatus(await change({}), 200);
    expectStatus(await change({ if_unchanged_since: '2026-02-30T00:00:00Z' }), 400);
  });
}
