/**
 * What becomes of the work of an earlier master key of the server. `api/continuity-capsules.test.ts` has none.
 *
 * Cost: 15 s, since it restarts its server with other keys.
 */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { MigrationRecord, ProvenanceVerdict } from '../../schema/continuity.js';
import { createKeyring } from '../../src/core/sealing/keys.js';
import { beforeWith, type Json, useApi } from '../helpers/api.js';
import type { Bundle, Passage } from '../helpers/capsules.js';
import { accepted, exported, imported, importing, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import { apply, MIGRATIONS, rollBack } from '../helpers/migrations.js';

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

async function checkpointed(checkpoint_data: Json): Promise<Passage> {
  const made = await world();
  const path = `/instances/${made.id}/checkpoints`;
  expectStatus(await made.tenant.post(path, { checkpoint_data }), 201);
  return made;
}

// What the first key has signed and sealed.

let planned: Passage;
let migration: string;
let asPlanned: MigrationRecord;
let carried: Passage;
let bundle: Bundle;
/** A migration that is applied. */
let sealed: { readonly from: Passage; readonly id: string };

const read = async () => expectStatus(await planned.tenant.get<MigrationRecord>(migration), 200);

async function verdict({ tenant, id }: Passage): Promise<ProvenanceVerdict> {
  const path = `/continuity/executions/${id}/provenance/verify`;
  return expectStatus(await tenant.get<ProvenanceVerdict>(path), 200);
}

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

beforeWith(api, async () => {
  planned = await checkpointed({ context_snapshot: { n: 1 } });
  migration = `${MIGRATIONS}/${await plan(planned)}`;
  asPlanned = await read();
  const from = await world();
  sealed = { from, id: await plan(from, { capture_checkpoint: true }) };
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

describe('with another key than before', () => {
  before(() => restartWith(SECOND));

  test('signatures of the first are not trusted, and entries go on to be made', async () => {
    const path = `/continuity/executions/${carried.id}/provenance`;
    const entry = { kind: 'model_selected', payload_sha256: 'a1'.repeat(32) };
    expectStatus(await carried.tenant.post(path, entry), 201);
    for (const it of [planned, carried]) {
      const { valid, code, first_invalid_index } = await verdict(it);
      const seen = [valid, code, first_invalid_index];
      assert.deepEqual(seen, [false, 'PROVENANCE_SIGNING_KEY_UNTRUSTED', 0]);
    }
  });

  test('a capsule that the first signed and sealed is not taken', async () => {
    const reply = await importing(carried.tenant, bundle, { payload_base64: undefined });
    assert.match(expectStatus(reply, 409).error, /not trusted/);
  });

  test('what the first sealed is not read: 503', async () => {
    const reply = await planned.tenant.get<{ error: string }>(migration);
    assert.match(expectStatus(reply, 503).error, /no key of the server/);
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
    const { instance_id } = await imported(carried.tenant, bundle, { payload_base64: undefined });
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

test('what the first sealed is rolled back', async () => {
  await rollBack(sealed.from.tenant, sealed.id);
  await sealed.from.tenant.move(sealed.from.id, 'scheduled');
  await sealed.from.tenant.until(sealed.from.id, 'completed');
});

test('signatures of a key that is named as trusted are good', async () => {
  const { signing } = createKeyring(Buffer.from(FIRST_KEY, 'hex'));
  const named = JSON.stringify({ [signing.id]: signing.publicKey });
  await restartWith({ ...SECOND, ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON: named });
  for (const it of [planned, carried]) assert.equal((await verdict(it)).valid, true);
});
