/**
 * A server is killed right before and right after the commits of a migration and of the way back.
 * The execution has one owner and the version that its record tells of, no output is lost, and what
 * was not done can be done again.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { MigrationRecord } from '../../schema/continuity.js';
import { newHandler, step, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { killAt, type Moment } from '../helpers/commit-points.js';
import { continuityOf } from '../helpers/continuity.js';
import { byDepth } from '../helpers/depth.js';
import {
  apply,
  askApply,
  askPlan,
  askRollback,
  MIGRATIONS,
  type Moving,
  plan,
  rollBack,
} from '../helpers/migrations.js';

/** An answer that is lost with what it says committed is the harder case. */
const MOMENTS: readonly Moment[] = byDepth(['after'], ['before', 'after']);

const env = { ENGINE_SHARDS: '2', ENGINE_ENCRYPTION_KEY: 'ab'.repeat(32) };
const api = useApi({ env });
const tenant = api.tenant();

interface Journey extends Moving {
  readonly handler: string;
}

/** One step of a worker is done, the next one is about to begin; the second version has one more. */
async function between(): Promise<Journey> {
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
  const execution = await continuityOf(tenant).enrol(id);
  return { id, execution, from, to, handler };
}

const recordOf = async (id: string) =>
  expectStatus(await tenant.get<MigrationRecord>(`${MIGRATIONS}/${id}`), 200);

/** What the record says is what the instance, its execution and its locations say. */
async function assertConsistent(journey: Journey, migration: string): Promise<MigrationRecord> {
  const { id, from, to, execution } = journey;
  const continuity = continuityOf(tenant);
  const record = await recordOf(migration);
  const epoch = { planned: 0, applied: 1, rolled_back: 2 }[record.state];
  const instance = await tenant.instance(id);
  assert.equal(instance.sequence_id, record.state === 'applied' ? to : from);
  assert.equal(instance.state, 'paused');
  assert.equal((await continuity.execution(execution.continuity_id)).epoch, epoch);
  const locations = await continuity.locations(execution.continuity_id);
  assert.deepEqual(
    locations.map((location) => location.epoch),
    [0, 1, 2].slice(0, epoch + 1),
  );
  assert.equal((await continuity.provenance(execution.continuity_id)).length, epoch + 1);
  assert.deepEqual(await tenant.outputsOf(id), { a: { done: 'a' } });
  return record;
}

/** The instance goes on where it is: nothing is done twice, and nothing is left out. */
async function finish({ id, handler }: Journey, expected: readonly string[]): Promise<void> {
  await tenant.move(id, 'scheduled');
  await tenant.complete(await tenant.task(handler), { done: 'b' });
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), expected);
  assert.equal((await tenant.tasks(handler)).length, 2);
}

describe('a kill', () => {
  for (const moment of MOMENTS) {
    test(`${moment} the commit of a plan leaves no plan, or a good one`, async () => {
      const journey = await between();
      const more = { capture_checkpoint: true };
      await killAt(moment, api, 'migrations', () => askPlan(tenant, journey, more));
      const checkpoints = await tenant.get<unknown[]>(`/instances/${journey.id}/checkpoints`);
      assert.equal(checkpoints.body.length, moment === 'before' ? 0 : 1);
      const made = await plan(tenant, journey, more);
      await apply(tenant, made.id);
      await finish(journey, ['a', 'b', 'c']);
    });

    test(`${moment} the commit of a migration leaves one owner, at the version of the record`, async () => {
      const journey = await between();
      const made = await plan(tenant, journey, { capture_checkpoint: true });
      await killAt(moment, api, 'migrations', () => askApply(tenant, made.id));
      const { state } = await assertConsistent(journey, made.id);
      assert.equal(state, moment === 'before' ? 'planned' : 'applied');
      if (moment === 'before') await apply(tenant, made.id);
      else expectStatus(await askApply(tenant, made.id), 409);
      await assertConsistent(journey, made.id);
      await finish(journey, ['a', 'b', 'c']);
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
      await killAt(moment, api, 'migrations', door);
      const { sequence_id, state } = await tenant.instance(id);
      assert.deepEqual([sequence_id, state], [moment === 'before' ? from : to, 'waiting']);
      assert.equal(expectStatus(await door(), 200).migrated, moment === 'before');
      assert.equal((await tenant.tasks(handler)).length, 1);
      await tenant.complete(await tenant.task(handler));
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'c']);
      const locations = await continuityOf(tenant).locations(id);
      assert.deepEqual(
        locations.map(({ epoch }) => epoch),
        [0, 1],
      );
    });

    test(`${moment} the commit of the way back leaves one owner, at the version of the record`, async () => {
      const journey = await between();
      const made = await plan(tenant, journey, { capture_checkpoint: true });
      await apply(tenant, made.id);
      await killAt(moment, api, 'migrations', () => askRollback(tenant, made.id));
      const { state } = await assertConsistent(journey, made.id);
      assert.equal(state, moment === 'before' ? 'applied' : 'rolled_back');
      if (moment === 'before') await rollBack(tenant, made.id);
      else expectStatus(await askRollback(tenant, made.id), 409);
      await assertConsistent(journey, made.id);
      await finish(journey, ['a', 'b']);
    });
  }
});
