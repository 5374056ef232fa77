/**
 * An execution that goes from one server to another, and to another version: two processes with a database each,
 * which know one another’s public keys and nothing else. The document about it is run as it stands.
 *
 * Cost: 60 s, since it kills two servers at every commit of a handoff.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { GrantFacts, ImportFacts } from '../../actors/continuity/core/statements.js';
import { signStatement } from '../../actors/continuity/core/statements.js';
import type { CapsuleImported, Handoff, OwnershipGrant } from '../../schema/handoff.js';
import { accepted, imported, importing, newDevice } from '../helpers/capsules.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { answersOf, missingIn, page, runScript } from '../helpers/docs.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import {
  accepting,
  assertFenced,
  claiming,
  finish,
  type Journey,
  land,
  type Pair,
  type Place,
  send,
  startJourney,
  startPair,
  startSent,
} from '../helpers/two-engines.js';
import { describeKills } from './two-engines/kills.js';
import { describeWaits } from './two-engines/waits.js';

let pair: Pair;

before(async () => {
  pair = await startPair();
});
after(() => pair.stop());

function refused(reply: Reply<{ error: string }>, status: number, text = /./): void {
  assert.match(expectStatus(reply, status).error, text);
}

const fencesOf = ({ tenant }: Place, id: string) =>
  tenant.patch<{ error: string }>(`/instances/${id}/state`, { state: 'scheduled' });

test('an instance starts on one server, is handed over, and ends on the other; the first never runs it again', async () => {
  const { journey, a, b, id, bundle } = await startSent(pair);
  const { instance, handoff, execution } = await land(bundle, a, b);
  const seen = [execution.epoch, execution.owner_runtime_id, execution.current_instance_id];
  assert.deepEqual(seen, [1, b.runtime, instance]);
  assert.deepEqual(await a.continuity.execution(id), {
    ...execution,
    updated_at: (await a.continuity.execution(id)).updated_at,
  });
  assert.equal(expectStatus(await a.continuity.act(handoff.id, 'resume'), 200).state, 'resumed');
  assert.equal((await b.tenant.instance(instance)).state, 'paused');
  await assertFenced(a, id);
  await pair.a.api.restart();
  await assertFenced(a, id);
  await finish(journey, b, instance);
  await assertFenced(a, id);
  assert.equal((await a.tenant.poll(journey.handler)).length, 0);
  assert.deepEqual(column(await a.continuity.provenance(id), 'kind'), [
    'execution_created',
    'capsule_exported',
    'runtime_claimed',
    'execution_resumed',
  ]);
  assert.deepEqual(column(await b.continuity.provenance(id), 'kind'), ['runtime_claimed']);
});

test('a capsule of the other server is no device capsule: that server would go on when it expires', async () => {
  const journey = await startJourney(pair);
  const { a, b, id } = journey;
  const { instance } = await land(await send(id, a, b), a, b);
  const bundle = await send(id, b, a);
  const handoff = await a.continuity.handoff(id, a.runtime);
  const body = {
    destination_instance_id: randomUUID(),
    capsule: bundle.capsule,
    payload_base64: bundle.payload_base64,
    payload_key_base64: bundle.key,
  };
  const attached = await a.continuity.act<{ error: string }>(
    handoff.id,
    'attach-device-capsule',
    body,
  );
  refused(attached, 409, /another server/);
  expectStatus(await b.continuity.act(bundle.handoff.id, 'revoke'), 200);
  const again = await b.continuity.preview(id, a.runtime);
  const next = await b.tenant.post<Handoff>('/continuity/handoffs', b.continuity.creation(again));
  expectStatus(await b.continuity.act(expectStatus(next, 201).id, 'reject'), 200);
  await finish(journey, b, instance);
});

// ---------------------------------------------------------------- statements

test('an acceptance believes only what the destination itself says of this very import', async () => {
  const { journey, a, b, bundle } = await startSent(pair);
  const { instance_id, import_receipt } = await imported(b.tenant, bundle);
  const accept = (receipt: unknown) => accepting(a, bundle.handoff.id, instance_id, receipt);
  const facts = JSON.parse(import_receipt.statement) as ImportFacts;
  // Trusted, and not the destination: it registered a key of its own.
  refused(await accept(signStatement(pair.a.keyring.signing, facts)), 409, /receipt/);
  refused(await accept(await receiptOfAnother(journey)), 409, /receipt/);
  expectStatus(await accept(undefined), 404);
  assert.equal((await a.continuity.getHandoff(bundle.handoff.id)).state, 'exported');
  const first = expectStatus(await accept(import_receipt), 200);
  // The answer may have been lost: nobody could run the execution without the grant.
  assert.deepEqual(expectStatus(await accept(import_receipt), 200), first);
});

/** A receipt that is good, for something else. */
async function receiptOfAnother({ b }: Journey): Promise<CapsuleImported['import_receipt']> {
  const other = await startJourney(pair);
  const bundle = await send(other.id, other.a, other.b);
  assert.notEqual(other.b.runtime, b.runtime);
  return (await imported(other.b.tenant, bundle)).import_receipt;
}

const GRANT_CHANGES: Partial<GrantFacts>[] = [
  { tenant_id: 'another' },
  { capsule_id: randomUUID() },
  { epoch: 2 },
  { owner_runtime_id: randomUUID() },
  { instance_id: randomUUID() },
  { handoff_id: 'none' },
  { importer_public_key: newDevice().signing.publicKey },
];

test('a claim believes only what the source itself grants, once', async () => {
  const { journey, a, b, id, bundle } = await startSent(pair);
  const { instance_id, import_receipt } = await imported(b.tenant, bundle);
  const { ownership_grant } = await accepted(a.continuity, bundle.handoff.id, instance_id, {
    import_receipt,
  });
  assert.ok(ownership_grant);
  const facts = JSON.parse(ownership_grant.statement) as GrantFacts;
  const { signing } = pair.a.keyring;
  for (const change of GRANT_CHANGES) {
    refused(await claiming(b, signStatement(signing, { ...facts, ...change })), 409, /grant/);
  }
  refused(await claiming(b, signStatement(newDevice().signing, facts)), 409, /grant/);
  refused(await claiming(b, import_receipt as OwnershipGrant), 409, /grant/);
  refused(await claiming(b, { ...ownership_grant, statement: '{}' }), 400);
  refused(await claiming(a, ownership_grant), 409, /grant/);
  refused(await claiming({ ...b, tenant: pair.b.api.tenant() }, ownership_grant), 409, /grant/);
  refused(await fencesOf(b, instance_id), 409);

  const execution = expectStatus(await claiming(b, ownership_grant), 200);
  assert.deepEqual(expectStatus(await claiming(b, ownership_grant), 200), execution);
  const back = await land(await send(id, b, a), b, a);
  refused(await claiming(b, ownership_grant), 409, /epoch 2/);
  await assertFenced(b, instance_id);
  // What was handed over has come back, and ends where it began.
  assert.deepEqual([back.execution.epoch, back.execution.owner_runtime_id], [2, a.runtime]);
  await assertFenced(a, id);
  assert.deepEqual(columns(await a.continuity.locations(id), 'epoch', 'instance_id'), [
    [0, id],
    [1, instance_id],
    [2, back.instance],
  ]);
  await finish(journey, a, back.instance);
});

test('a server takes no capsule of a stranger, nor one that is for somebody else', async () => {
  const { a, b, bundle } = await startSent(pair);
  const reply = await importing(b.tenant, bundle, { destination_runtime_id: a.runtime });
  refused(reply, 409, /another destination/);
  refused(await importing(b.tenant, bundle, { payload_base64: undefined }), 409, /not stored here/);
  const { env, api } = pair.b;
  const nobody = { ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON: '{}' };
  await api.restart('SIGTERM', { env: { ...env, ...nobody } });
  refused(await importing(b.tenant, bundle), 409, /not trusted/);
  await api.restart('SIGTERM', { env });
  expectStatus(await importing(b.tenant, bundle), 201);
});

// ---------------------------------------------------------------- what it waits for, and kills

describe('what an instance waits for', () => describeWaits(() => pair));

describe('a kill', () => describeKills(() => pair));

// ---------------------------------------------------------------- the document

const SCRIPT = page('docs/migration.md')
  .fences.filter(({ language }) => language === 'sh')
  .map(({ text }) => text)
  .join('\n');
const EXPECTED = answersOf(SCRIPT);

test('every command of docs/migration.md works, and its answer is what it says', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'docs-migration-'));
  t.after(() => rmSync(folder, { recursive: true }));
  assert.ok(EXPECTED.length > 30, `${EXPECTED.length} answers`);
  const [a = '', b = ''] = [pair.a, pair.b].map(({ api }) => `${api.engine.url}/api/v1`);
  const env = { KEY: DEFAULT_API_KEY, A: a, B: b };
  const { code, stdout, stderr } = await runScript(SCRIPT, { folder, env });
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  const missing = missingIn(stdout, EXPECTED);
  assert.equal(missing, undefined, `no ${missing} in\n${stdout}`);
});
