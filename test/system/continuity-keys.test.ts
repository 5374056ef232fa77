/** Master keys of the server: what it can do without one, and what becomes of the work of an earlier one. */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { MigrationRecord, ProvenanceVerdict } from '../../schema/continuity.js';
import type { Handoff } from '../../schema/handoff.js';
import { createKeyring } from '../../src/core/continuity/keys.js';
import { beforeWith, type Json, useApi } from '../helpers/api.js';
import {
  accepted,
  type Bundle,
  exported,
  imported,
  importing,
  type Passage,
  passageOf,
} from '../helpers/capsules.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { apply, askApply, askRollback, MIGRATIONS, rollBack } from '../helpers/migrations.js';

const [FIRST_KEY, SECOND_KEY] = ['1a'.repeat(32), '2b'.repeat(32)];
const FIRST = { ENGINE_SHARDS: '2', ENGINE_ENCRYPTION_KEY: FIRST_KEY };
const SECOND = { ENGINE_SHARDS: '2', ENGINE_ENCRYPTION_KEY: SECOND_KEY };

const api = useApi({ env: FIRST });

const restartWith = (env: Record<string, string>) => api.restart('SIGTERM', { env });

/** A tenant whose execution is paused before its first step. */
async function world(): Promise<Passage> {
  const tenant = api.tenant();
  return passageOf(tenant, await continuityOf(tenant).paused());
}

function refused(reply: Reply<{ error: string }>, status: number, text = /./): void {
  assert.match(expectStatus(reply, status).error, text);
}

async function checkpointed(checkpoint_data: Json = { safe_boundary: 'a' }): Promise<Passage> {
  const made = await world();
  const path = `/instances/${made.id}/checkpoints`;
  expectStatus(await made.tenant.post(path, { checkpoint_data }), 201);
  return made;
}

const tryExport = (from: Passage, { id }: Handoff, body: Json = {}) =>
  from.act<Bundle & { error: string }>(id, 'export', body);

// What the first key has signed and sealed.

let planned: Passage;
let migration: string;
let asPlanned: MigrationRecord;
let carried: Passage;
let bundle: Bundle;
/** Migrations that are applied, and planned without a key. */
let sealed: { readonly from: Passage; readonly id: string };
let unsealed: typeof sealed;

const read = async () => expectStatus(await planned.tenant.get<MigrationRecord>(migration), 200);

async function verdict({ tenant, id }: Passage): Promise<ProvenanceVerdict> {
  const path = `/continuity/executions/${id}/provenance/verify`;
  return expectStatus(await tenant.get<ProvenanceVerdict>(path), 200);
}

const CAPTURED = { capture_checkpoint: true };

/** Plans to the next version, which differs in nothing but its number; resolves with the plan's id. */
async function plan({ tenant, id }: Passage, more: Json = {}): Promise<string> {
  const { sequence_id } = await tenant.instance(id);
  const { body: stored } = await tenant.get<Json>(`/sequences/${sequence_id}`);
  const { name, blocks } = stored;
  const next = await tenant.sequence(blocks as Json[], { name, version: 2 });
  const asked = { continuity_id: id, to_sequence_id: next, to_version: 2 };
  const reply = await tenant.post<{ id: string }>(`${MIGRATIONS}/plan`, { ...asked, ...more });
  return expectStatus(reply, 200).id;
}

/** In one step it goes over without keys, too; there is nothing to roll it back with. */
async function assertOneWay(): Promise<void> {
  const from = await world();
  await plan(from, CAPTURED);
  const path = `/instances/${from.id}/migrate`;
  const reply = expectStatus(await from.tenant.post<Json>(path, { version: 2 }), 200);
  assert.deepEqual(
    [reply.migrated, reply.state, reply.rollback_expires_at],
    [true, 'paused', null],
  );
  refused((await askRollback(from.tenant, String(reply.migration_id))) as never, 409);
  await finished(from);
}

const finished = async ({ tenant, id }: Passage) => {
  await tenant.move(id, 'scheduled');
  await tenant.until(id, 'completed');
};

beforeWith(api, async () => {
  planned = await checkpointed({ context_snapshot: { n: 1 } });
  migration = `${MIGRATIONS}/${await plan(planned)}`;
  asPlanned = await read();
  const from = await world();
  sealed = { from, id: await plan(from, CAPTURED) };
  await apply(from.tenant, sealed.id);
  carried = await world();
  const handoff = await carried.handoff(carried.id, carried.destination);
  bundle = await exported(carried, handoff, { payload_key_base64: null });
});

test('what a migration keeps is sealed in its row', async () => {
  const { checkpoint_data } = asPlanned.source_checkpoint;
  assert.deepEqual(checkpoint_data, { context_snapshot: { n: 1 } });
  const id = migration.split('/').at(-1);
  const { rows } = await api.sql.query('select secrets from migrations where id = $1', [id]);
  assert.equal(rows.length, 1);
  assert.doesNotMatch(JSON.stringify(rows), /context_snapshot/);
});

describe('export ttl 0 or 3601 → 400; source not paused/waiting → 409; different requirements (superset) → 409 and a correct retry then works; second export 409; no keys → 503', () => {
  test('with keys', async () => {
    const from = await checkpointed();
    const requirements = { minimum_trust: 'registered' };
    const handoff = await from.handoff(from.id, from.destination, { requirements });
    refused(await tryExport(from, handoff, { requirements, expires_in_seconds: 0 }), 400);
    refused(await tryExport(from, handoff, { requirements, expires_in_seconds: 3_601 }), 400);
    await from.tenant.move(from.id, 'scheduled', { next_fire_at: '2099-01-01T00:00:00Z' });
    refused(await tryExport(from, handoff, { requirements }), 409, /paused or waiting/);
    await from.tenant.move(from.id, 'paused');
    const superset = { ...requirements, requires_network: true };
    refused(await tryExport(from, handoff, { requirements: superset }), 409);
    refused(await tryExport(from, handoff, {}), 409);
    assert.deepEqual(await from.getHandoff(handoff.id), handoff);
    const { handoff: done } = expectStatus(await tryExport(from, handoff, { requirements }), 200);
    assert.equal(done.state, 'exported');
    assert.equal((await from.execution(from.id)).state, 'transferring');
    refused(await tryExport(from, handoff, { requirements }), 409);
  });

  test('without keys: neither an export nor an import; migrations are planned only', async () => {
    const late = await checkpointed();
    const handoff = await late.handoff(late.id, late.destination);
    await restartWith({ ENGINE_SHARDS: '2' });
    refused(await tryExport(late, handoff), 503);
    refused(await importing(carried.tenant, bundle), 503);
    expectStatus(await askRollback(sealed.from.tenant, sealed.id), 503);
    const bare = await world();
    unsealed = { from: bare, id: await plan(bare, CAPTURED) };
    expectStatus(await askApply(bare.tenant, unsealed.id), 503);
    await assertOneWay();
    await restartWith(SECOND);
    expectStatus(await tryExport(late, handoff), 200);
  });
});

describe('with another key than before', () => {
  test('signatures of the first are not trusted, and entries go on to be made', async () => {
    const path = `/continuity/executions/${carried.id}/provenance`;
    const entry = { kind: 'model_selected', payload_sha256: 'a1'.repeat(32) };
    expectStatus(await carried.tenant.post(path, entry), 201);
    for (const it of [planned, carried]) {
      const { valid, code, first_invalid_index } = await verdict(it);
      assert.deepEqual(
        [valid, code, first_invalid_index],
        [false, 'PROVENANCE_SIGNING_KEY_UNTRUSTED', 0],
      );
    }
  });

  test('a capsule that the first signed and sealed is not taken', async () => {
    const stored = { payload_base64: undefined };
    refused(await importing(carried.tenant, bundle, stored), 409, /not trusted/);
  });

  test('what the first sealed is not read: 503', async () => {
    const reply = await planned.tenant.get<{ error: string }>(migration);
    refused(reply, 503, /no key of the server/);
    assert.equal(reply.headers['x-error-code'], 'ENG_NO_KEYS');
  });
});

describe('with the first key as the old one', () => {
  before(() => restartWith({ ...SECOND, ENGINE_OLD_ENCRYPTION_KEY: FIRST_KEY }));

  test('its signatures are good, and so are those of the new one', async () => {
    const { valid, entries_checked } = await verdict(carried);
    assert.deepEqual([valid, entries_checked], [true, 3]);
  });

  test('its capsules are taken', async () => {
    const stored = { payload_base64: undefined };
    const { instance_id } = await imported(carried.tenant, bundle, stored);
    await accepted(carried, bundle.handoff.id, instance_id);
  });

  test('what it sealed is read, and goes on', async () => {
    assert.deepEqual(await read(), asPlanned);
    const reply = await planned.tenant.post<MigrationRecord>(`${migration}/apply`);
    assert.deepEqual(await read(), expectStatus(reply, 200));
    assert.equal((await verdict(planned)).entries_checked, 2);
    assert.equal((await planned.execution(planned.id)).epoch, 1);
  });
});

test('what the first sealed is rolled back, and what was planned without a key goes on', async () => {
  await rollBack(sealed.from.tenant, sealed.id);
  await finished(sealed.from);
  await apply(unsealed.from.tenant, unsealed.id);
  await finished(unsealed.from);
});

test('signatures of a key that is named as trusted are good', async () => {
  const { signing } = createKeyring(Buffer.from(FIRST_KEY, 'hex'));
  const named = JSON.stringify({ [signing.id]: signing.publicKey });
  await restartWith({ ...SECOND, ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON: named });
  for (const it of [planned, carried]) assert.equal((await verdict(it)).valid, true);
});
