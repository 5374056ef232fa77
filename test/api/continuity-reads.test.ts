/** What is read of executions: their checkpoints, and what only the right keys open or trust. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  Boundary,
  BoundaryDetail,
  MigrationPlan,
  ProvenanceVerdict,
} from '../../schema/continuity.js';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import { type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { accepted, exported, imported } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { type Continuity, continuityOf, soon } from '../helpers/continuity.js';

const UNKNOWN = '0195ffff-0000-7000-8000-000000000000';
const EXECUTIONS = '/continuity/executions';

const api = useSharedApi();

interface World extends Continuity {
  readonly tenant: Tenant;
  /** The instance, which is also the id of its execution. */
  readonly id: string;
  /** The next version of its sequence. */
  readonly next: string;
}

/** An execution that is paused before its first step. */
async function world(): Promise<World> {
  const tenant = api.tenant();
  const continuity = continuityOf(tenant);
  const [name, blocks] = ['story', [step('a', 'noop'), step('b', 'noop')]];
  const sequence = await tenant.sequence(blocks, { name });
  const next = await tenant.sequence(blocks, { name, version: 2 });
  const id = await tenant.create(sequence, { next_fire_at: soon() });
  await tenant.move(id, 'paused');
  await continuity.enrol(id);
  return { ...continuity, tenant, id, next };
}

async function save({ tenant, id }: World, checkpoint_data: unknown): Promise<string> {
  const path = `/instances/${id}/checkpoints`;
  return expectStatus(await tenant.post<{ id: string }>(path, { checkpoint_data }), 201).id;
}

async function list({ tenant, id }: World, query = ''): Promise<Boundary[]> {
  const path = `${EXECUTIONS}/${id}/checkpoints${query}`;
  return expectStatus(await tenant.get<Boundary[]>(path), 200);
}

async function detail({ tenant, id }: World, checkpoint: string): Promise<BoundaryDetail> {
  const path = `${EXECUTIONS}/${id}/checkpoints/${checkpoint}`;
  return expectStatus(await tenant.get<BoundaryDetail>(path), 200);
}

async function plan({ tenant, id, next }: World): Promise<MigrationPlan> {
  const body = { continuity_id: id, to_sequence_id: next, to_version: 2 };
  return expectStatus(await tenant.post<MigrationPlan>('/continuity/migrations/plan', body), 200);
}

async function verdict({ tenant, id }: World, query = ''): Promise<ProvenanceVerdict> {
  const path = `${EXECUTIONS}/${id}/provenance/verify${query}`;
  return expectStatus(await tenant.get<ProvenanceVerdict>(path), 200);
}

describe('the checkpoints of an execution', () => {
  test('fresh execution lists no checkpoints; unknown checkpoint → 404; detail previous id null for the first; diff lists changed paths with secrets redacted; checkpoint_data itself exact', async () => {
    const it = await world();
    assert.deepEqual(await list(it), []);
    const path = `${EXECUTIONS}/${it.id}/checkpoints/${UNKNOWN}`;
    expectStatus(await it.tenant.get(path), 404);

    const before = { safe_boundary: 'a', context_snapshot: { n: 1, api_key: 'first' }, kept: [1] };
    const after = { safe_boundary: 'b', context_snapshot: { n: 2.5, api_key: 'other' }, kept: [1] };
    const [first, second] = [await save(it, before), await save(it, after)];

    const start = await detail(it, first);
    assert.equal(start.previous_checkpoint_id, null);
    assert.deepEqual(start.checkpoint_data, before);
    assert.deepEqual(start.redacted_state_diff, [
      { path: 'context_snapshot', before: null, after: { n: 1, api_key: '[REDACTED]' } },
      { path: 'kept', before: null, after: [1] },
      { path: 'safe_boundary', before: null, after: 'a' },
    ]);

    const shown = await detail(it, second);
    assert.equal(shown.previous_checkpoint_id, first);
    assert.deepEqual(shown.checkpoint_data, after);
    assert.deepEqual(shown.redacted_state_diff, [
      { path: 'context_snapshot.n', before: 1, after: 2.5 },
      { path: 'safe_boundary', before: 'a', after: 'b' },
    ]);
    assert.deepEqual(await list(it), [start.boundary, shown.boundary]);
  });

  test('say where they were saved, and the hash of what was saved', async () => {
    const it = await world();
    const { sequence_id } = await it.tenant.instance(it.id);
    const data = { z: 1, block_id: 'b', a: { '\u{1f600}': 'é', '\uffff': null } };
    const id = await save(it, data);
    const [boundary] = await list(it);
    const created_at = boundary?.created_at ?? '';
    assert.deepEqual(boundary, {
      checkpoint_id: id,
      instance_id: it.id,
      continuity_id: it.id,
      epoch: 0,
      sequence_id,
      sequence_version: 1,
      block_id: 'b',
      checkpoint_sha256: canonicalSha256(data),
      provenance_head: null,
      created_at,
    });
    await save(it, null);
    const [, second] = await list(it);
    assert.equal(second?.block_id, 'unknown_boundary');
    assert.equal((await detail(it, second?.checkpoint_id ?? '')).checkpoint_data, null);
  });

  test('stand once for each epoch of their instance, and as many as were asked for', async () => {
    const it = await world();
    const first = await save(it, { count: 1 });
    const { id } = await plan(it);
    expectStatus(await it.tenant.post(`/continuity/migrations/${id}/apply`), 200);
    const all = await list(it);
    const second = all[1]?.checkpoint_id;
    assert.deepEqual(
      all.map(({ checkpoint_id, epoch, sequence_version }) => [
        checkpoint_id,
        epoch,
        sequence_version,
      ]),
      [
        [first, 0, 2],
        [second, 0, 2],
        [first, 1, 2],
        [second, 1, 2],
      ],
    );
    assert.equal((await detail(it, first)).boundary.epoch, 0);
    assert.deepEqual(await list(it, '?limit=3'), all.slice(0, 3));
    expectStatus(await it.tenant.get(`${EXECUTIONS}/${it.id}/checkpoints?limit=-1`), 400);
  });

  test('are those of more pieces than one, in one order', async () => {
    const it = await world();
    const saved: string[] = [];
    for (let count = 0; count < 20; count += 1) saved.push(await save(it, { count }));
    const all = await list(it);
    assert.deepEqual(
      all.map(({ checkpoint_id }) => checkpoint_id),
      saved,
    );
    assert.equal(new Set(all.map(({ checkpoint_sha256 }) => checkpoint_sha256)).size, 20);
  });

  test('are not found by another tenant', async () => {
    const it = await world();
    const id = await save(it, {});
    const path = `${EXECUTIONS}/${it.id}/checkpoints`;
    const stranger = api.tenant();
    expectStatus(await stranger.get(path), 404);
    expectStatus(await stranger.get(`${path}/${id}`), 404);
    const other = await world();
    expectStatus(await other.tenant.get(`${EXECUTIONS}/${other.id}/checkpoints/${id}`), 404);
  });
});

describe('runtimes', () => {
  test('are those of a tenant, without what was not given', async () => {
    const { tenant, runtime } = await world();
    const mine = await runtime({ handlers: [], regions: ['eu'] });
    const listed = expectStatus(await tenant.get<RuntimeCapabilities[]>('/runtimes'), 200);
    assert.deepEqual(listed, [mine]);
    assert.ok(!('handlers' in mine) && !('connectivity' in mine));
    assert.deepEqual(expectStatus(await api.tenant().get('/runtimes'), 200), []);
  });
});

describe('a handoff shows at once what time alone has changed', () => {
  const storedState = async (id: string) =>
    (await api.sql.query(`select state, version from handoffs where id = '${id}'`)).rows[0];

  test('it is expired when its capsule is past its end', async () => {
    const it = await world();
    const { runtime_id } = await it.runtime();
    const { handoff } = await exported(it, await it.handoff(it.id, runtime_id));
    assert.equal((await it.getHandoff(handoff.id)).state, 'exported');
    await api.sql.query(
      `update handoffs set capsule_expires_at = now() - interval '1 second' where id = '${handoff.id}'`,
    );
    const { state, version } = await it.getHandoff(handoff.id);
    assert.deepEqual([state, version], ['expired', handoff.version]);
    assert.deepEqual(await storedState(handoff.id), { state: 'exported', version });
  });

  test('it is completed when the instance that it led to has ended', async () => {
    const it = await world();
    const { runtime_id } = await it.runtime();
    const { handoff, ...bundle } = await exported(it, await it.handoff(it.id, runtime_id));
    const { instance_id } = await imported(it.tenant, { handoff, ...bundle });
    await accepted(it, handoff.id, instance_id);
    assert.equal((await it.getHandoff(handoff.id)).state, 'accepted');
    const resumed = expectStatus(await it.act(handoff.id, 'resume'), 200);
    await it.tenant.until(instance_id, 'completed');
    const { state, version } = await it.getHandoff(handoff.id);
    assert.deepEqual([state, version], ['completed', resumed.version]);
    assert.deepEqual(await storedState(handoff.id), { state: 'resumed', version });
  });
});

describe('provenance that was tampered with', () => {
  const change = (it: World, seq: number, set: string) =>
    api.sql.query(
      `update provenance_entries set ${set} where continuity_id = '${it.id}' and seq = ${seq}`,
    );
  const tell = (it: World) =>
    it.tenant.post<Json>(`${EXECUTIONS}/${it.id}/provenance`, {
      kind: 'model_selected',
      payload_sha256: '9c'.repeat(32),
    });
  const cases: readonly [string, number, string, string][] = [
    ['another payload', 1, `payload_sha256 = '${'9d'.repeat(32)}'`, 'PROVENANCE_HASH_MISMATCH'],
    [
      'another predecessor',
      1,
      `previous_sha256 = '${'9e'.repeat(32)}'`,
      'PROVENANCE_LINK_MISMATCH',
    ],
    ['no signature', 0, 'signature = null', 'PROVENANCE_SIGNATURE_INCOMPLETE'],
    ['the key of nobody', 0, "signing_key_id = 'nobody'", 'PROVENANCE_SIGNING_KEY_UNTRUSTED'],
    [
      'the signature of another entry',
      1,
      'signature = (select signature from provenance_entries o where ' +
        'o.continuity_id = provenance_entries.continuity_id and o.seq = 0)',
      'PROVENANCE_SIGNATURE_INVALID',
    ],
  ];
  for (const [what, seq, set, code] of cases) {
    test(`is found: ${what}`, async () => {
      const it = await world();
      expectStatus(await tell(it), 201);
      assert.equal((await verdict(it)).valid, true);
      await change(it, seq, set);
      const { valid, first_invalid_index, code: found } = await verdict(it);
      assert.deepEqual([valid, first_invalid_index, found], [false, seq, code]);
    });
  }

  test('is found in the middle of a long chain, which callers cannot make longer without end', async () => {
    const it = await world();
    await Promise.all(Array.from({ length: 120 }, async () => expectStatus(await tell(it), 201)));
    const { valid, entries_checked } = await verdict(it);
    assert.deepEqual([valid, entries_checked], [true, 121]);
    await change(it, 60, `payload_sha256 = '${'9d'.repeat(32)}'`);
    const { first_invalid_index, code } = await verdict(it);
    assert.deepEqual([first_invalid_index, code], [60, 'PROVENANCE_HASH_MISMATCH']);
    await change(it, 120, 'seq = 9999');
    assert.match(expectStatus(await tell(it), 409).error as string, /has 10000 entries/);
  });

  test('is found: an entry at the end that is missing', async () => {
    const it = await world();
    expectStatus(await tell(it), 201);
    const { head_sha256: head } = await verdict(it);
    await api.sql.query(
      `delete from provenance_entries where continuity_id = '${it.id}' and seq = 1`,
    );
    assert.equal((await verdict(it)).valid, true);
    const { valid, code } = await verdict(it, `?expected_head=${head}`);
    assert.deepEqual([valid, code], [false, 'PROVENANCE_HEAD_MISMATCH']);
  });
});
