/**
 * A server is killed at the commits on the way of an execution to another server, of a migration and of the way back.
 * What the caller does then is what the documentation says; there is never more than one owner, no output is lost,
 * and nothing is done twice outside.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, test } from 'node:test';
import type { MigrationRecord } from '../../../schema/continuity.js';
import type { Handoff } from '../../../schema/handoff.js';
import { type Api, newHandler, step, type Tenant } from '../../helpers/api.js';
import { type Bundle, exported, importing } from '../../helpers/capsules.js';
import { expectStatus } from '../../helpers/client.js';
import { column } from '../../helpers/columns.js';
import { killAt, type Moment } from '../../helpers/commit-points.js';
import { continuityOf } from '../../helpers/continuity.js';
import { byDepth } from '../../helpers/depth.js';
import {
  apply,
  askApply,
  askRollback,
  MIGRATIONS,
  type Moving,
  plan,
  rollBack,
} from '../../helpers/migrations.js';
import {
  accepting,
  assertFenced,
  claiming,
  finish,
  type Journey,
  type Landed,
  land,
  type Pair,
  send,
  startJourney,
  startSent,
} from '../../helpers/two-engines.js';

/** An answer that is lost with what it says committed is the harder case. */
const MOMENTS: readonly Moment[] = byDepth(['after'], ['before', 'after']);

let pair: Pair;

/** How many instances of the execution may run, on both servers together. */
async function owners({ id }: Journey): Promise<number> {
  const text =
    'select count(*)::int as count from instances ' +
    'where (id = $1 or continuity_id = $1) and fence is null';
  const counts = [pair.a.api, pair.b.api].map(async ({ sql }: Api) => {
    const { rows } = await sql.query<{ count: number }>(text, [id]);
    return rows[0]?.count ?? 0;
  });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

/** The rest of the way, of an execution that has a capsule; every step of it can be asked again. */
async function goOn(journey: Journey, bundle: Bundle): Promise<void> {
  const { a, b } = journey;
  await arrive(journey, await land(bundle, a, b));
}

async function arrive(journey: Journey, { instance }: Landed): Promise<void> {
  assert.equal(await owners(journey), 1);
  await assertFenced(journey.a, journey.id);
  await finish(journey, journey.b, instance);
}

/** As the documentation has it: what is not exported is exported, what has no capsule begins anew. */
async function bundleAfter(journey: Journey, { id }: Handoff): Promise<Bundle> {
  const { a, b } = journey;
  const handoff = await a.continuity.getHandoff(id);
  if (handoff.state === 'requested') return exported(a.continuity, handoff);
  if (handoff.state === 'exported') {
    expectStatus(await a.continuity.act(id, 'export', { capture_checkpoint: true }), 409);
    expectStatus(await a.continuity.act(id, 'revoke'), 200);
  }
  return send(journey.id, a, b);
}

// ---------------------------------------------------------------- migrations on the first server

let tenant: Tenant;

interface Migration extends Moving {
  readonly handler: string;
}

/** One step of a worker is done, the next one is about to begin; the second version has one more. */
async function between(): Promise<Migration> {
  const handler = newHandler();
  const source = [step('a', handler), step('b', handler)];
  const name = `s-${randomUUID()}`;
  const from = await tenant.sequence(source, { name });
  const to = await tenant.sequence([...source, step('c', 'noop')], { name, version: 2 });
  const id = await tenant.create(from, { context: { data: { n: 1 } } });
  const task = await tenant.task(handler);
  await tenant.signal(id, 'pause');
  await tenant.until(id, 'paused');
  await tenant.complete(task, { done: 'a' });
  return { id, execution: await continuityOf(tenant).enrol(id), from, to, handler };
}

const recordOf = async (id: string) =>
  expectStatus(await tenant.get<MigrationRecord>(`${MIGRATIONS}/${id}`), 200);

/** What the record says is what the instance, its execution and its locations say. */
async function assertConsistent(journey: Migration, migration: string): Promise<MigrationRecord> {
  const { id, from, to, execution } = journey;
  const continuity = continuityOf(tenant);
  const record = await recordOf(migration);
  const epoch = { planned: 0, applied: 1, rolled_back: 2 }[record.state];
  const instance = await tenant.instance(id);
  assert.equal(instance.sequence_id, record.state === 'applied' ? to : from);
  assert.equal(instance.state, 'paused');
  assert.equal((await continuity.execution(execution.continuity_id)).epoch, epoch);
  const locations = await continuity.locations(execution.continuity_id);
  assert.deepEqual(column(locations, 'epoch'), [0, 1, 2].slice(0, epoch + 1));
  assert.equal((await continuity.provenance(execution.continuity_id)).length, epoch + 1);
  assert.deepEqual(await tenant.outputsOf(id), { a: { done: 'a' } });
  return record;
}

/** The instance goes on where it is: nothing is done twice, and nothing is left out. */
async function finishMigrated(
  { id, handler }: Migration,
  expected: readonly string[],
): Promise<void> {
  await tenant.move(id, 'scheduled');
  await tenant.complete(await tenant.task(handler), { done: 'b' });
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), expected);
  assert.equal((await tenant.tasks(handler)).length, 2);
}

export function describeKills(pairOf: () => Pair): void {
  before(() => {
    pair = pairOf();
    tenant = pair.a.api.tenant();
  });

  for (const moment of MOMENTS) {
    for (const [table, what] of [
      ['handoffs', 'the fence of an export'],
      ['artifacts', 'the capsule of an export'],
    ] as const) {
      test(`${moment} the commit of ${what} leaves one owner`, async () => {
        const journey = await startJourney(pair);
        const { a, b, id } = journey;
        const handoff = await a.continuity.handoff(id, b.runtime);
        await killAt(moment, pair.a.api, table, () => exported(a.continuity, handoff));
        assert.ok((await owners(journey)) <= 1);
        await goOn(journey, await bundleAfter(journey, handoff));
      });
    }

    test(`${moment} the commit of an acceptance leaves one owner`, async () => {
      const { journey, a, b, bundle } = await startSent(pair);
      const { instance_id, import_receipt } = expectStatus(await importing(b.tenant, bundle), 201);
      const accept = () => accepting(a, bundle.handoff.id, instance_id, import_receipt);
      await killAt(moment, pair.a.api, 'continuity_locations', accept);
      assert.equal(await owners(journey), 0);
      await goOn(journey, bundle);
    });
    test(`${moment} the commit of an import leaves one owner`, async () => {
      const { journey, b, bundle } = await startSent(pair);
      await killAt(moment, pair.b.api, 'capsule_imports', () => importing(b.tenant, bundle));
      assert.equal(await owners(journey), 0);
      await goOn(journey, bundle);
    });

    test(`${moment} the commit of a claim leaves one owner`, async () => {
      const { journey, a, b, bundle } = await startSent(pair);
      const { instance_id, import_receipt } = expectStatus(await importing(b.tenant, bundle), 201);
      const reply = await accepting(a, bundle.handoff.id, instance_id, import_receipt);
      const accepted = expectStatus(reply, 200);
      const claim = () => claiming(b, accepted.ownership_grant);
      await killAt(moment, pair.b.api, 'continuity_locations', claim);
      assert.equal(await owners(journey), moment === 'before' ? 0 : 1);
      await goOn(journey, bundle);
    });
    test(`${moment} the commit of a migration leaves one owner, at the version of the record`, async () => {
      const journey = await between();
      const made = await plan(tenant, journey, { capture_checkpoint: true });
      await killAt(moment, pair.a.api, 'migrations', () => askApply(tenant, made.id));
      const { state } = await assertConsistent(journey, made.id);
      assert.equal(state, moment === 'before' ? 'planned' : 'applied');
      if (moment === 'before') await apply(tenant, made.id);
      else expectStatus(await askApply(tenant, made.id), 409);
      await assertConsistent(journey, made.id);
      await finishMigrated(journey, ['a', 'b', 'c']);
    });

    test(`${moment} the commit of the simple door leaves one task, of one version`, async () => {
      const handler = newHandler();
      const source = [step('a', handler)];
      const name = `s-${randomUUID()}`;
      const from = await tenant.sequence(source, { name });
      const to = await tenant.sequence([...source, step('c', 'noop')], { name, version: 2 });
      const id = await tenant.create(from);
      await tenant.until(id, 'waiting');
      const door = () =>
        tenant.post<{ migrated: boolean }>(`/instances/${id}/migrate`, { version: 2 });
      await killAt(moment, pair.a.api, 'migrations', door);
      const { sequence_id, state } = await tenant.instance(id);
      assert.deepEqual([sequence_id, state], [moment === 'before' ? from : to, 'waiting']);
      assert.equal(expectStatus(await door(), 200).migrated, moment === 'before');
      assert.equal((await tenant.tasks(handler)).length, 1);
      await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'c']);
      assert.deepEqual(column(await continuityOf(tenant).locations(id), 'epoch'), [0, 1]);
    });

    test(`${moment} the commit of the way back leaves one owner, at the version of the record`, async () => {
      const journey = await between();
      const made = await plan(tenant, journey, { capture_checkpoint: true });
      await apply(tenant, made.id);
      await killAt(moment, pair.a.api, 'migrations', () => askRollback(tenant, made.id));
      const { state } = await assertConsistent(journey, made.id);
      assert.equal(state, moment === 'before' ? 'applied' : 'rolled_back');
      if (moment === 'before') await rollBack(tenant, made.id);
      else expectStatus(await askRollback(tenant, made.id), 409);
      await assertConsistent(journey, made.id);
      await finishMigrated(journey, ['a', 'b']);
    });
  }
}
