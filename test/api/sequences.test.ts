/** Sequences: stored as given, found by id and name, listed, deprecated, deleted. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { Finding } from '../../schema/finding.js';
import type { SequenceDefinition, SequenceListed } from '../../schema/sequence.js';
import { type Json, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';

let tenant: Tenant;

const api = useSharedApi();

const definition = (more: Json = {}): Json => ({
  tenant_id: tenant.name,
  namespace: 'test',
  name: 'order',
  version: 1,
  blocks: [step('a', 'noop')],
  ...more,
});
const byName = (more = '') =>
  tenant.get<SequenceDefinition>(
    `/sequences/by-name?tenant_id=${tenant.name}&namespace=test&name=order${more}`,
  );
const versions = () =>
  tenant.get<SequenceDefinition[]>('/sequences/versions?namespace=test&name=order');

describe('creation', () => {
  before(() => {
    tenant = api.tenant();
  });

  test('a definition of all seven block kinds reads back as it was given', async () => {
    const blocks = [
      step('s', 'charge', {
        params: { amount: 3, nested: { list: [1, 'x', null, true] } },
        delay: { duration: 5, business_days_only: false, jitter: 2 },
        retry: {
          max_attempts: 3,
          initial_backoff: 10,
          max_backoff: 100,
          backoff_multiplier: 1.5,
        },
        timeout: 1000,
        rate_limit_key: 'k',
        queue_name: 'q',
      }),
      { type: 'parallel', id: 'p', branches: [[step('p1', 'noop')], []] },
      {
        type: 'race',
        id: 'r',
        branches: [[step('r1', 'noop')], [step('r2', 'noop')]],
        semantics: 'first_to_succeed',
      },
      {
        type: 'router',
        id: 'ro',
        routes: [{ condition: 'plan == pro', blocks: [step('ro1', 'noop')] }],
        default: [step('ro2', 'noop')],
      },
      {
        type: 'try_catch',
        id: 't',
        try_block: [step('t1', 'noop')],
        catch_block: [step('t2', 'noop')],
        finally_block: [step('t3', 'noop')],
      },
      { type: 'loop', id: 'l', condition: 'more', body: [step('l1', 'noop')], max_iterations: 7 },
      {
        type: 'for_each',
        id: 'f',
        collection: 'items',
        item_var: 'it',
        body: [step('f1', 'noop')],
      },
    ];
    const id = randomUUID();
    const created_at = '2024-02-29T12:00:00.123Z';
    const reply = await tenant.post<Json>('/sequences', definition({ id, blocks, created_at }));
    assert.equal(reply.status, 201, reply.text);
    assert.equal(reply.body.id, id);
    const stored = await tenant.get<SequenceDefinition>(`/sequences/${id}`);
    assert.deepEqual(stored.body, {
      ...definition({ id, blocks }),
      deprecated: false,
      status: 'production',
      created_at,
    });
  });

  test('a handler that no one serves here is a warning, not an error', async () => {
    const reply = await tenant.post<{ warnings?: Finding[] }>(
      '/sequences',
      definition({ name: 'warned', blocks: [step('a', 'nop')] }),
    );
    assert.equal(reply.status, 201);
    const [warning] = reply.body.warnings ?? [];
    assert.equal(warning?.path, 'blocks[0].handler');
    assert.equal(warning.suggestion, 'noop');
    assert.match(warning.message, /nop .*did you mean noop/);
    const clean = await tenant.post<Json>('/sequences', definition({ name: 'clean' }));
    assert.deepEqual(Object.keys(clean.body), ['id']);
  });

  test('an id, or a name and version, that exists already is 409', async () => {
    const id = await tenant.sequence([step('a', 'noop')], { name: 'twice', version: 3 });
    const sameId = await tenant.post('/sequences', definition({ id, name: 'unlike' }));
    assert.equal(sameId.status, 409);
    const sameName = await tenant.post('/sequences', definition({ name: 'twice', version: 3 }));
    assert.equal(sameName.status, 409);
    assert.match(
      JSON.stringify(sameName.body),
      /version 3 of sequence twice in namespace test exists already .* store another version/,
    );
    const other = api.tenant();
    await other.sequence([step('a', 'noop')], { name: 'twice', version: 3 });
    const elsewhere = definition({ name: 'twice', version: 3, namespace: 'elsewhere' });
    assert.equal((await tenant.post('/sequences', elsewhere)).status, 201);
  });

  test('of 16 equal creations at once exactly one succeeds', async () => {
    const body = definition({ name: 'herd' });
    const replies = await Promise.all(
      Array.from({ length: 16 }, () => tenant.post('/sequences', body)),
    );
    const statuses = replies.map((reply) => reply.status).sort();
    assert.deepEqual(statuses, [201, ...Array(15).fill(409)]);
  });
});

describe('reading', () => {
  before(() => {
    tenant = api.tenant();
  });

  test('by-name gives the newest version, and versions all of them, the newest first', async () => {
    assert.equal((await byName()).status, 404);
    for (const version of [2, 10, 9]) {
      await tenant.sequence([step('a', 'noop')], { name: 'order', version });
    }
    assert.equal((await byName()).body.version, 10);
    assert.deepEqual(
      (await versions()).body.map((item) => item.version),
      [10, 9, 2],
    );
  });

  test('by-name without one of its names is 400 and says which', async () => {
    const names = { tenant_id: 't', namespace: 'n', name: 'x' };
    for (const missing of Object.keys(names)) {
      const query = Object.entries(names).filter(([name]) => name !== missing);
      const text = query.map(([name, value]) => `${name}=${value}`).join('&');
      const reply = await tenant.get<{ error: string }>(`/sequences/by-name?${text}`);
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, new RegExp(`\\b${missing}\\b`));
    }
    const bad = await byName('&version=x');
    assert.equal(bad.status, 400);
  });

  test('the list goes by namespace, name and descending version, in pages', async () => {
    const lister = api.tenant();
    const wanted = [
      ['a', 'x', 2],
      ['a', 'x', 1],
      ['a', 'y', 1],
      ['b', 'a', 1],
    ] as const;
    for (const [namespace, name, version] of [...wanted].reverse()) {
      await lister.sequence([step('a', 'noop')], { namespace, name, version });
    }
    const names = (items: SequenceDefinition[]) =>
      items.map((item) => [item.namespace, item.name, item.version]);
    const all = await lister.get<SequenceDefinition[]>('/sequences');
    assert.deepEqual(names(all.body), wanted);
    const first = await lister.get<SequenceDefinition[]>('/sequences?limit=3');
    assert.match(String(first.headers.link), /rel="next"/);
    const second = await lister.get<SequenceDefinition[]>('/sequences?limit=3&offset=3');
    assert.deepEqual(names([...first.body, ...second.body]), wanted);
    const one = await lister.get<SequenceDefinition[]>('/sequences?namespace=b');
    assert.deepEqual(names(one.body), [['b', 'a', 1]]);
    const x = await lister.get<SequenceDefinition[]>('/sequences?name=x');
    assert.deepEqual(names(x.body), wanted.slice(0, 2));
    const withY = await lister.get<SequenceDefinition[]>('/sequences?name_contains=Y');
    assert.deepEqual(names(withY.body), [['a', 'y', 1]]);
  });

  test('the list can leave definitions out, and all but the newest version of each name', async () => {
    const lister = api.tenant();
    for (const version of [1, 2, 3]) {
      await lister.sequence([step('a', 'noop')], { namespace: 'a', name: 'x', version });
    }
    await lister.sequence([step('a', 'noop')], { namespace: 'b', name: 'x', version: 7 });
    const known = (items: SequenceListed[]) =>
      items.map(({ namespace, version, versions }) => [namespace, version, versions]);
    const brief = await lister.get<SequenceListed[]>('/sequences?include_definition=false');
    assert.equal(brief.body.length, 4);
    assert.ok(brief.body.every((item) => !('blocks' in item) && !('versions' in item)));
    const newest = await lister.get<SequenceListed[]>('/sequences?newest_only=true');
    assert.deepEqual(known(newest.body), [
      ['a', 3, 3],
      ['b', 7, 1],
    ]);
    assert.equal(newest.body[0]?.blocks?.length, 1);
    const asked = '/sequences?newest_only=true&include_definition=false&limit=1';
    const first = await lister.get<SequenceListed[]>(asked);
    const cursor = first.headers['x-next-cursor'];
    const second = await lister.get<SequenceListed[]>(`${asked}&cursor=${cursor}`);
    assert.deepEqual(known([...first.body, ...second.body]), known(newest.body));
  });
});

describe('deletion', () => {
  before(() => {
    tenant = api.tenant();
  });

  test('it takes its ended instances with outputs and tasks along', async () => {
    const handler = newHandler();
    const id = await tenant.sequence([step('a', handler)]);
    const instance = await tenant.create(id);
    const task = await tenant.task(handler);
    await tenant.complete(task, { done: true });
    await tenant.until(instance, 'completed');
    const failed = await tenant.create(id);
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(failed, 'failed');

    const refusal = await tenant.delete<{ error: string }>(`/sequences/${id}`);
    assert.equal(refusal.status, 409);
    assert.match(refusal.body.error, /has 0 live and 1 failed instances/);
    assert.equal((await tenant.instance(failed)).state, 'failed');

    const foreseen = await tenant.delete<object>(`/sequences/${id}?cascade=true&dry_run=true`);
    const counts = { count: 2, ended: 1, failed: 1, dry_run: true };
    assert.deepEqual([foreseen.status, foreseen.body], [200, counts]);
    assert.equal((await tenant.delete(`/sequences/${id}?dry_run=true`)).status, 409);
    assert.equal((await tenant.instance(instance)).state, 'completed');
    const late = await tenant.create(id);
    await tenant.move(late, 'cancelled');

    assert.equal((await tenant.delete(`/sequences/${id}?cascade=true`)).status, 204);
    for (const gone of [instance, failed]) {
      assert.equal((await tenant.get(`/instances/${gone}`)).status, 404);
      assert.equal((await tenant.post(`/instances/${gone}/retry`)).status, 404);
    }
    for (const path of [`/instances/${instance}/outputs`, `/workers/tasks/${task.id}/attempts`]) {
      assert.equal((await tenant.get(path)).status, 404, path);
    }
    assert.deepEqual((await tenant.get(`/instances?sequence_id=${id}`)).body, []);
    assert.deepEqual((await tenant.get(`/instances/dlq?sequence_id=${id}`)).body, []);
    assert.deepEqual((await tenant.get(`/workers/tasks?handler_name=${handler}`)).body, []);
  });

  test('cascading takes no live instance, and is a boolean', async () => {
    const id = await tenant.sequence([step('a', newHandler())]);
    await tenant.create(id);
    const reply = await tenant.delete<{ error: string }>(`/sequences/${id}?cascade=true`);
    assert.equal(reply.status, 409);
    assert.match(reply.body.error, /has 1 live and 0 failed instances/);
    assert.equal((await tenant.delete(`/sequences/${id}?cascade=yes`)).status, 400);
  });

  test('creations that race with it are answered, and none survives its sequence', async () => {
    for (let round = 0; round < 5; round++) {
      const id = await tenant.sequence([step('a', newHandler())]);
      const creations = Array.from({ length: 20 }, () =>
        tenant.post('/instances', tenant.creation(id)),
      );
      const deletion = await tenant.delete(`/sequences/${id}`);
      const statuses = (await Promise.all(creations)).map((reply) => reply.status);
      const left = await tenant.get<unknown[]>(`/instances?sequence_id=${id}`);
      const created = statuses.filter((status) => status === 201).length;
      assert.ok(statuses.every((status) => [201, 404, 503].includes(status)));
      assert.equal(deletion.status, created === 0 ? 204 : 409);
      assert.equal(left.body.length, created);
    }
  });

  test('its name and version can be used again', async () => {
    const id = await tenant.sequence([step('a', 'noop')], { name: 'again' });
    await tenant.delete(`/sequences/${id}`);
    await tenant.sequence([step('a', 'noop')], { name: 'again' });
  });
});
