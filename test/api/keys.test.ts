/** Keys of tenants: minting, listing, revoking, expiry, and what is kept of them. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ApiKey, KeyMinted } from '../../schema/api-key.js';
import { createClient } from '../../src/db/pool.js';
import {
  beforeWith,
  eventually,
  type Json,
  newHandler,
  step,
  useSharedApi,
} from '../helpers/api.js';
import { type Client, expectStatus, type Reply } from '../helpers/client.js';
import { openEvents } from '../helpers/event-stream.js';

/** With the root key and no tenant. */
let root: Client;

const api = useSharedApi();

beforeWith(api, async () => {
  root = api.root;
});

async function mint(tenant_id: string, more: Json = {}): Promise<KeyMinted> {
  const body = { tenant_id, capabilities: ['operator'], ...more };
  return expectStatus(await root.post<KeyMinted>('/api-keys', body), 201);
}

async function listed(tenant: string): Promise<ApiKey[]> {
  return expectStatus(await root.get<ApiKey[]>(`/api-keys?tenant_id=${tenant}`), 200);
}

const statusWith = async (secret: string, tenant: string): Promise<number> =>
  (await root.with({ apiKey: secret, tenant }).get('/instances')).status;

const newTenant = () => api.tenant().name;

describe('minting', () => {
  test('Key creation without capabilities is 400; explicit lists are echoed verbatim', async () => {
    const tenant = newTenant();
    const ask = (more: Json) => root.post<{ error: string }>('/api-keys', more);
    for (const capabilities of [undefined, null, []]) {
      const reply = await ask({ tenant_id: tenant, capabilities });
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.body.error, /capabilities (is required|must)/);
    }
    // Once this made an operator's key of what was meant to be a worker's.
    const slip = await ask({ tenant_id: tenant, capability: ['worker'] });
    assert.equal(slip.status, 400);
    assert.match(slip.body.error, /capability is unknown; did you mean capabilities\?$/);
    assert.deepEqual(await listed(tenant), []);
    const given = ['auditor', 'worker', 'auditor', 'starter'];
    assert.deepEqual((await mint(tenant, { capabilities: given })).capabilities, given);
    assert.deepEqual(
      (await listed(tenant)).map((key) => key.capabilities),
      [given],
    );
  });

  test('Key id matches ak_ + 32 hex; secret starts sk_; expires_at null by default; list never holds the secret', async () => {
    const tenant = newTenant();
    const key = await mint(tenant, { name: 'build machine' });
    assert.deepEqual(Object.keys(key), [
      'id',
      'tenant_id',
      'name',
      'capabilities',
      'secret',
      'created_at',
      'expires_at',
    ]);
    assert.match(key.id, /^ak_[0-9a-f]{32}$/);
    assert.match(key.secret, /^sk_[0-9a-f]{64}$/);
    assert.equal(key.expires_at, null);
    assert.equal(key.name, 'build machine');
    const reply = await root.get<ApiKey[]>(`/api-keys?tenant_id=${tenant}`);
    assert.deepEqual(reply.body, [
      {
        id: key.id,
        tenant_id: tenant,
        name: 'build machine',
        capabilities: ['operator'],
        created_at: key.created_at,
        last_used_at: null,
        expires_at: null,
        revoked: false,
      },
    ]);
    assert.ok(!reply.text.includes(key.secret.slice(3)));
    assert.ok(!reply.text.includes(sha256(key.secret)));
  });

  test('only the SHA-256 of the secret is stored, in the row of the key', async () => {
    const key = await mint(newTenant());
    const client = createClient({
      connectionString: api.database.connectionString,
      applicationName: 'a test that looks at rows',
    });
    await client.connect();
    try {
      const { rows } = await client.query<{ secret_hash: string; row: string }>(
        'select secret_hash, k::text as row from api_keys k where id = $1',
        [key.id],
      );
      assert.equal(rows[0]?.secret_hash, sha256(key.secret));
      assert.ok(!rows[0]?.row.includes(key.secret.slice(3)));
    } finally {
      await client.end();
    }
  });

  test('what is no minting is 400 that names the field, and nothing is stored', async () => {
    const tenant = newTenant();
    const bad: [Json, RegExp][] = [
      [{}, /tenant_id/],
      [{ tenant_id: '' }, /tenant_id/],
      [{ tenant_id: '  ' }, /tenant_id/],
      [{ tenant_id: 7 }, /tenant_id/],
      [{ tenant_id: tenant, capabilities: ['root'] }, /capabilities/],
      [{ tenant_id: tenant, capabilities: ['Operator'] }, /capabilities/],
      [{ tenant_id: tenant, capabilities: 'operator' }, /capabilities/],
      [{ tenant_id: tenant, scope: 'all' }, /scope is unknown/],
      [{ tenant_id: tenant, expires_at: 'tomorrow' }, /expires_at/],
      [{ tenant_id: tenant, name: 'n'.repeat(256) }, /name/],
    ];
    for (const [body, says] of bad) {
      const given = { capabilities: ['worker'], ...body };
      const reply = await root.post<{ error: string }>('/api-keys', given);
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.body.error, says);
    }
    assert.deepEqual(await listed(tenant), []);
  });

  test('a tenant is taken as headers bring it, without blanks around it', async () => {
    const tenant = newTenant();
    const key = await mint(` ${tenant} `);
    assert.equal(key.tenant_id, tenant);
    assert.equal(await statusWith(key.secret, tenant), 200);
  });
});

describe('the list', () => {
  test('needs a tenant that is not blank', async () => {
    for (const query of ['', '?tenant_id=', '?tenant_id=%20']) {
      const reply = await root.get<{ error: string }>(`/api-keys${query}`);
      assert.equal(reply.status, 400, query);
      assert.match(reply.body.error, /tenant_id/);
    }
  });

  test('is by age and of that tenant alone; pages link to the next', async () => {
    const [tenant, other] = [newTenant(), newTenant()];
    const ids = [];
    for (let count = 0; count < 3; count++) {
      ids.push((await mint(tenant)).id);
      await mint(other);
    }
    const shown = await listed(tenant);
    const times = shown.map(({ created_at }) => created_at);
    assert.deepEqual(times, times.toSorted());
    assert.deepEqual(shown.map(({ id }) => id).sort(), ids.toSorted());
    const seen: string[] = [];
    let path: string | undefined = `/api-keys?tenant_id=${tenant}&limit=2`;
    while (path !== undefined) {
      const page: Reply<ApiKey[]> = await root.get<ApiKey[]>(path);
      seen.push(...page.body.map(({ id }) => id));
      const next = /<([^>]+)>; rel="next"/.exec(String(page.headers.link))?.[1];
      path = next?.replace(/^\/api\/v1/, '');
    }
    assert.deepEqual(
      seen,
      shown.map(({ id }) => id),
    );
  });

  test('says when a key was used last', async () => {
    const tenant = newTenant();
    const key = await mint(tenant);
    assert.equal((await listed(tenant))[0]?.last_used_at, null);
    assert.equal(await statusWith(key.secret, tenant), 200);
    const used = (await listed(tenant))[0]?.last_used_at;
    assert.ok(used != null && used >= key.created_at, String(used));
  });
});

describe('revocation', () => {
  test('Revoked and expired keys get 401; revoked shows revoked: true in the list', async () => {
    const tenant = newTenant();
    const key = await mint(tenant);
    assert.equal(await statusWith(key.secret, tenant), 200);
    expectStatus(await root.delete(`/api-keys/${key.id}`), 204);
    assert.equal(await statusWith(key.secret, tenant), 401);
    assert.deepEqual(
      (await listed(tenant)).map(({ id, revoked }) => [id, revoked]),
      [[key.id, true]],
    );
    const past = new Date(Date.now() - 60_000).toISOString();
    const expired = await mint(tenant, { expires_at: past });
    assert.equal(expired.expires_at, past);
    assert.equal(await statusWith(expired.secret, tenant), 401);
  });

  test('a repetition is a success again, and an id that no key has is 404', async () => {
    const tenant = newTenant();
    const { id } = await mint(tenant);
    for (let count = 0; count < 3; count++) {
      expectStatus(await root.delete(`/api-keys/${id}`), 204);
    }
    for (const unknown of [`ak_${'0'.repeat(32)}`, 'x', '%20', id.toUpperCase()]) {
      const reply = await root.delete<{ error: string }>(`/api-keys/${unknown}`);
      assert.equal(reply.status, 404, unknown);
    }
  });

  test('a key that has expired can be revoked', async () => {
    const tenant = newTenant();
    const { id } = await mint(tenant, { expires_at: '2001-01-01T00:00:00Z' });
    expectStatus(await root.delete(`/api-keys/${id}`), 204);
    assert.equal((await listed(tenant))[0]?.revoked, true);
  });

  test('leaves what is asked with other keys of the tenant alone', async () => {
    const tenant = newTenant();
    const [gone, kept] = [await mint(tenant), await mint(tenant)];
    expectStatus(await root.delete(`/api-keys/${gone.id}`), 204);
    assert.equal(await statusWith(kept.secret, tenant), 200);
  });

  test('takes effect while requests with the key are coming in: none is served after the answer', async () => {
    const tenant = newTenant();
    const key = await mint(tenant);
    const client = root.with({ apiKey: key.secret, tenant });
    let isRevoked = false;
    const late: number[] = [];
    const ask = async () => {
      for (;;) {
        const isAfter = isRevoked;
        const { status } = await client.get('/instances');
        if (isAfter) late.push(status);
        if (status === 401) return;
        assert.equal(status, 200);
      }
    };
    const askers = [ask(), ask(), ask(), ask()];
    expectStatus(await root.delete(`/api-keys/${key.id}`), 204);
    isRevoked = true;
    await Promise.all(askers);
    assert.ok(late.every((status) => status === 401));
    assert.equal(await statusWith(key.secret, tenant), 401);
  });
});

describe('what is open when a key is revoked', () => {
  const openWith = (key: KeyMinted, path: string) =>
    openEvents({
      url: `${api.url}/api/v1${path}`,
      headers: { 'x-api-key': key.secret, 'x-tenant-id': key.tenant_id },
    });

  test('a stream of an instance ends, and one of another key goes on', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', newHandler())]);
    const [gone, kept] = [await mint(tenant.name), await mint(tenant.name)];
    const path = `/instances/${id}/stream`;
    const [cut, other] = [await openWith(gone, path), await openWith(kept, path)];
    await cut.until(({ events }) => events.length > 0);
    expectStatus(await root.delete(`/api-keys/${gone.id}`), 204);
    await cut.ended;
    assert.equal((await openWith(gone, path)).status, 401);
    await tenant.move(id, 'cancelled');
    await other.until(({ events }) => events.some(({ data }) => data.state === 'cancelled'));
  });

  test('a stream of changes ends', async () => {
    const tenant = api.tenant();
    const key = await mint(tenant.name);
    const stream = await openWith(key, '/changes/stream');
    assert.equal(stream.status, 200);
    expectStatus(await root.delete(`/api-keys/${key.id}`), 204);
    await stream.ended;
  });

  test('a poll that waits is 401, and the next task is not claimed for it', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const key = await mint(tenant.name, { capabilities: ['worker'] });
    const worker = root.with({ apiKey: key.secret, tenant: tenant.name });
    const poll = { handler_name: handler, worker_id: 'gone', wait_ms: 10_000 };
    const parked = worker.post<{ error: string }>('/workers/tasks/poll', poll);
    // The worker is known once its poll has been taken up.
    await eventually(async () => {
      const { body } = await tenant.get<{ worker_id: string }[]>('/workers');
      assert.equal(body.length, 1);
    });
    expectStatus(await root.delete(`/api-keys/${key.id}`), 204);
    assert.equal((await parked).status, 401);
    await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    assert.equal(task.claim_epoch, 1);
  });
});

describe('expiry', () => {
  test('a key is valid until its time and not a moment longer, and is echoed in UTC', async () => {
    const tenant = newTenant();
    const soon = new Date(Date.now() + 1_500);
    const local = soon.toISOString().replace('Z', '+00:00');
    const key = await mint(tenant, { expires_at: local });
    assert.equal(key.expires_at, soon.toISOString());
    await eventually(async () => assert.equal(await statusWith(key.secret, tenant), 401));
    assert.ok(Date.now() >= soon.getTime() - 100, 'refused too early');
  });

  test('a key that expires in a century is valid', async () => {
    const tenant = newTenant();
    const key = await mint(tenant, { expires_at: '2125-01-01T00:00:00+02:00' });
    assert.equal(key.expires_at, '2124-12-31T22:00:00.000Z');
    assert.equal(await statusWith(key.secret, tenant), 200);
  });
});

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
