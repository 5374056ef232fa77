/** What is started by the name of its sequence, over HTTP: which version it gets, and when. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { CronSchedule, ScheduleCreated, ScheduleRun } from '../../schema/cron.js';
import type { BatchCreated, InstanceCreated, TaskInstance } from '../../schema/instance.js';
import type { Release, ReleaseDecision } from '../../schema/release.js';
import { type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();

interface Named {
  readonly tenant: Tenant;
  /** Stores the next version; resolves with its id. */
  version(number: number, more?: Json): Promise<string>;
  /** The sequence that a creation by the name gets. */
  started(more?: Json): Promise<string>;
  create(more?: Json): Promise<InstanceCreated>;
  body(more?: Json): Json;
}

function named(name = `name-${randomUUID()}`, tenant = api.tenant()): Named {
  const body = (more: Json = {}): Json => ({
    tenant_id: tenant.name,
    namespace: 'test',
    sequence: name,
    ...more,
  });
  const create = async (more?: Json) =>
    expectStatus(await tenant.post<InstanceCreated>('/instances', body(more)), 201);
  return {
    tenant,
    body,
    create,
    version: (number, more = {}) =>
      tenant.sequence([step('a', 'noop')], { name, version: number, ...more }),
    started: async (more) => (await tenant.instance((await create(more)).id)).sequence_id,
  };
}

const deprecate = async ({ tenant }: Named, id: string) =>
  expectStatus(await tenant.post(`/sequences/${id}/deprecate`), 204);

const refusal = async ({ tenant, body }: Named, more: Json, path = '/instances') => {
  const reply = await tenant.post<{ error: string }>(path, body(more));
  return [reply.status, reply.body.error] as const;
};

describe('a creation by name', () => {
  test('gets the newest version that is not deprecated, from the answer to its storing on', async () => {
    const it = named();
    const first = await it.version(1);
    assert.equal(await it.started(), first);
    for (let version = 2; version <= 12; version += 1) {
      const id = await it.version(version);
      const started = await Promise.all(Array.from({ length: 8 }, () => it.started()));
      assert.deepEqual([...new Set(started)], [id], `version ${version}`);
    }
  });

  test('gets no version whose deprecation is answered', async () => {
    const it = named();
    const ids: string[] = [];
    for (let version = 1; version <= 6; version += 1) ids.push(await it.version(version));
    while (ids.length > 1) {
      await deprecate(it, ids.pop() as string);
      const started = await Promise.all(Array.from({ length: 8 }, () => it.started()));
      assert.deepEqual([...new Set(started)], [ids.at(-1)]);
    }
    await deprecate(it, ids[0] as string);
    const [status, error] = await refusal(it, {});
    assert.equal(status, 404);
    assert.match(error, /sequence name-.* in namespace test/);
  });

  test('with a version gets that one, deprecated or not', async () => {
    const it = named();
    const first = await it.version(1);
    const second = await it.version(2);
    await deprecate(it, first);
    assert.deepEqual(
      [await it.started({ version: 1 }), await it.started({ version: 2 }), await it.started()],
      [first, second, second],
    );
    assert.deepEqual((await refusal(it, { version: 3 }))[0], 404);
  });

  test('gets the version before a deleted one', async () => {
    const it = named();
    const first = await it.version(1);
    const second = await it.version(2);
    const { id } = await it.create();
    await it.tenant.until(id, 'completed');
    expectStatus(await it.tenant.delete(`/sequences/${second}`), 204);
    assert.equal(await it.started(), first);
  });

  test('names a sequence of its own tenant and namespace', async () => {
    const it = named();
    await it.version(1);
    const [status] = await refusal(it, { namespace: 'elsewhere' });
    assert.equal(status, 404);
    const other = named(it.body().sequence as string);
    assert.equal((await refusal(other, {}))[0], 404);
  });

  test('names it once: by its id or by its name', async () => {
    const it = named();
    const sequence_id = await it.version(1);
    const once = /exactly one of sequence_id and sequence/;
    for (const more of [{ sequence_id }, { sequence: undefined }, { sequence: null }]) {
      const [status, error] = await refusal(it, more);
      assert.equal(status, 400);
      assert.match(error, once);
    }
    const pinned = await refusal(it, { sequence: undefined, sequence_id, version: 1 });
    assert.equal(pinned[0], 400);
    assert.match(pinned[1], /sequence, not sequence_id, when it has version/);
    const items = [it.body(), it.body({ sequence_id })];
    const batch = await it.tenant.post<{ error: string }>('/instances/batch', { instances: items });
    assert.equal(batch.status, 400);
    assert.match(batch.body.error, /^invalid argument: instances\[1\] must have exactly one of/);
    const [status, error] = await refusal(it, { sequence_id, cron_expr: '@daily' }, '/cron');
    assert.equal(status, 400);
    assert.match(error, once);
    assert.equal((await it.started({ sequence_id: null })) === sequence_id, true);
  });

  test('is deduplicated by its key, whatever the name leads to by now', async () => {
    const it = named();
    const first = await it.version(1);
    const idempotency_key = randomUUID();
    const { id } = await it.create({ idempotency_key });
    const second = await it.version(2);
    assert.deepEqual(await it.create({ idempotency_key }), { id, deduplicated: true });
    for (const version of [first, second]) await deprecate(it, version);
    assert.deepEqual(await it.create({ idempotency_key }), { id, deduplicated: true });
    assert.equal((await it.tenant.instance(id)).sequence_id, first);
    assert.equal((await refusal(it, { idempotency_key: randomUUID() }))[0], 404);
    const again = { instances: [it.body({ idempotency_key })] };
    const batch = await it.tenant.post<BatchCreated>('/instances/batch', again);
    assert.deepEqual(expectStatus(batch, 201), { count: 1, created: 0 });
  });

  test('in a batch stands beside creations by id, and an unknown name refuses all of them', async () => {
    const it = named();
    const first = await it.version(1);
    const second = await it.version(2);
    const items = [
      it.body(),
      it.body({ version: 1 }),
      it.body({ sequence: undefined, sequence_id: first }),
    ];
    const batch = async (instances: Json[]) => it.tenant.post('/instances/batch', { instances });
    assert.deepEqual(expectStatus(await batch(items), 201), { count: 3, created: 3 });
    const refused = await batch([...items, it.body({ sequence: 'no such name' })]);
    assert.equal(refused.status, 404);
    assert.match(
      (refused.body as { error: string }).error,
      /instances\[3\]: sequence no such name/,
    );
    const list = await it.tenant.get<TaskInstance[]>('/instances');
    assert.deepEqual(column(list.body, 'sequence_id').sort(), [first, first, second].sort());
  });
});

describe('a name and a release', () => {
  async function released(it: Named, baseline: string, candidate: string): Promise<string> {
    const body = { baseline_sequence_id: baseline, candidate_sequence_id: candidate, gates: [] };
    const release = expectStatus(await it.tenant.post<Release>('/releases', body), 201);
    return release.id;
  }

  const move = async ({ tenant }: Named, id: string, word: string, body: Json = {}) =>
    expectStatus(await tenant.post<Release>(`/releases/${id}/${word}`, body), 200);

  /** Two versions, the second of which gets everything by its release. */
  async function canaried() {
    const it = named();
    const first = await it.version(1);
    const second = await it.version(2);
    const id = await released(it, first, second);
    await move(it, id, 'validate', { skip: true });
    await move(it, id, 'canary', { percent: 100 });
    return { it, first, second, id };
  }

  test('the candidate is reached through its release alone until it is promoted', async () => {
    const it = named();
    const first = await it.version(1);
    const second = await it.version(2);
    assert.equal(await it.started(), second);
    const id = await released(it, first, second);
    assert.equal(await it.started(), first);
    await move(it, id, 'validate', { skip: true });
    await move(it, id, 'canary', { percent: 100 });
    const routed = await it.tenant.instance((await it.create()).id);
    assert.deepEqual(routed.metadata, { release: { release_id: id, variant: 'candidate' } });
    assert.equal(routed.sequence_id, second);
    await move(it, id, 'pause');
    assert.equal(await it.started(), first);
    assert.equal(await it.started({ version: 2 }), second);
    await move(it, id, 'canary', { percent: 100 });
    await move(it, id, 'promote');
    assert.equal(await it.started(), second);
  });

  test('a version that was rolled back gets no creations by name, and the next one does', async () => {
    const { it, first, id } = await canaried();
    await move(it, id, 'rollback');
    assert.equal(await it.started(), first);
    const third = await it.version(3);
    assert.equal(await it.started(), third);
  });

  test('a deprecated candidate gets nothing any more, and its canary is paused with a decision', async () => {
    const { it, first, second, id } = await canaried();
    assert.equal(await it.started(), second);
    await deprecate(it, second);
    assert.equal(await it.started(), first);
    assert.equal(await it.started({ sequence: undefined, sequence_id: first }), first);
    const { body: release } = await it.tenant.get<Release>(`/releases/${id}`);
    assert.equal(release.state, 'paused');
    const decisions = await it.tenant.get<ReleaseDecision[]>(`/releases/${id}/decisions`);
    const last = decisions.body.find(({ to_state }) => to_state === 'paused');
    assert.equal(last?.actor, 'deprecation');
    assert.match(last?.reason ?? '', /the candidate was deprecated/);
    const again = await it.tenant.post(`/releases/${id}/canary`, { percent: 5 });
    assert.equal(again.status, 409);
  });

  test('a promoted version that is deprecated later leads back to the one before', async () => {
    const { it, first, second, id } = await canaried();
    await move(it, id, 'promote');
    await deprecate(it, second);
    assert.equal(await it.started(), first);
  });
});

describe('a schedule by name', () => {
  const NEVER_SOON = '0 0 0 1 1 ? 2998';

  test('gets at each fire what the name leads to then', async () => {
    const it = named();
    const first = await it.version(1);
    const made = await it.tenant.post<ScheduleCreated>('/cron', it.body({ cron_expr: NEVER_SOON }));
    const { id } = expectStatus(made, 201);
    const fired = async () => {
      const run = await it.tenant.post<ScheduleRun>(`/cron/${id}/run`);
      return (await it.tenant.instance(expectStatus(run, 201).id)).sequence_id;
    };
    assert.equal(await fired(), first);
    const second = await it.version(2);
    assert.equal(await fired(), second);
    await deprecate(it, second);
    assert.equal(await fired(), first);
    const { body } = await it.tenant.get<CronSchedule>(`/cron/${id}`);
    const { sequence_id, sequence, version } = body;
    assert.deepEqual([sequence_id, sequence, version], [null, it.body().sequence, null]);
  });

  test('of an unknown name is 404, and one that has lost its versions says so', async () => {
    const it = named();
    assert.equal((await refusal(it, { cron_expr: NEVER_SOON }, '/cron'))[0], 404);
    const only = await it.version(1);
    const made = await it.tenant.post<ScheduleCreated>('/cron', it.body({ cron_expr: NEVER_SOON }));
    const { id } = expectStatus(made, 201);
    expectStatus(await it.tenant.delete(`/sequences/${only}`), 204);
    const run = await it.tenant.post<{ error: string }>(`/cron/${id}/run`);
    assert.equal(run.status, 404);
    assert.match(run.body.error, /not found: sequence name-/);
  });
});
