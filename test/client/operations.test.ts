/** The client against a real server: its operations are sent as the server means them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, EngineError } from '../../client/src/index.js';
import { useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const api = useSharedApi();
const clientOf = (tenant: string) => new Client({ url: api.url, apiKey: DEFAULT_API_KEY, tenant });

test('a sequence is stored, run and read, with tenant and namespace of the client', async () => {
  const client = clientOf('client-operations');
  const { id } = await client.sequences.create({
    name: 'greet',
    version: 1,
    blocks: [{ type: 'step', id: 'hello', handler: 'noop' }],
  });
  const stored = await client.sequences.get(id);
  assert.equal(stored.namespace, 'default');
  const created = await client.instances.create({ sequence: 'greet', context: { data: { a: 1 } } });
  const instance = await client.instances.get(created.id);
  assert.equal(instance.tenant_id, 'client-operations');
  const page = await client.instances.list({ limit: 10 });
  assert.deepEqual(
    page.items.map((item) => item.id),
    [created.id],
  );
});

test('a refusal has status, code, field and the id of the request', async () => {
  const client = clientOf('client-operations');
  const refused = client.sequences.create({ name: 'x', version: 1, blocks: [] });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof EngineError);
    assert.equal(error.status, 400);
    assert.equal(error.code, 'ENG_VALIDATION');
    assert.equal(error.field, 'blocks');
    assert.match(error.requestId ?? '', /./);
    return true;
  });
});
