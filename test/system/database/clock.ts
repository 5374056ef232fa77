/** The clock of the database is set while an engine runs, which follows it on every thread. */

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { eventually, newHandler, step, type Tenant } from '../../helpers/api.js';
import { PageReader } from '../../helpers/changes.js';
import type { DatabaseWorld } from './world.js';

const HOUR_MS = 3_600_000;
const NEAR_MS = HOUR_MS / 4;

export function describeClock(worldOf: () => DatabaseWorld): void {
  let world: DatabaseWorld;
  let tenant: Tenant;
  let noop: string;
  let late: string;

  before(async () => {
    world = worldOf();
    tenant = world.tenant('clocks');
    noop = await tenant.sequence([step('a', 'noop')]);
    late = await tenant.sequence([step('a', 'noop', { delay: { duration: HOUR_MS / 2 } })]);
  });

  /** Sets the clock, and waits until the engine has followed. */
  async function set(aheadMs: number): Promise<void> {
    await world.given.setClock(aheadMs);
    await eventually(async () => {
      const { text } = await tenant.get('/metrics');
      const skewMs = Number(/^engine_clock_skew_seconds (.*)$/m.exec(text)![1]) * 1_000;
      assert.ok(Math.abs(skewMs - aheadMs) < NEAR_MS, `${skewMs} ms ahead`);
    });
  }

  test('what is created, due and measured follows the clock of the database', async () => {
    const waiting = await Promise.all(Array.from({ length: 4 }, () => tenant.create(late)));
    await set(HOUR_MS);
    for (const id of waiting) await tenant.until(id, 'completed');
    for (let i = 0; i < 10; i++) {
      const { created_at } = await tenant.instance(await tenant.create(noop));
      assert.ok(Math.abs(Date.parse(created_at) - Date.now() - HOUR_MS) < NEAR_MS, created_at);
    }
    const lines = world.engine
      .logs()
      .filter(({ msg }) => msg === 'the clock of the database was set');
    assert.equal(lines.length, 1);
    assert.ok(Math.abs(Number(lines[0]!.jumpMs) - HOUR_MS) < NEAR_MS);
  });

  test('a worker that was not silent keeps its task, and a poll does not wait for the clock', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    const task = await tenant.task(handler);
    const parked = tenant.poll(handler, { wait_ms: 10_000 });
    await set(-HOUR_MS);
    assert.deepEqual(await parked, []);
    await set(HOUR_MS);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
  });

  test('set back, the clock delays what it moved away from, and hides nothing from readers of changes', async () => {
    const reader = new PageReader(500);
    const early = await tenant.create(late);
    await reader.drain(tenant);
    await set(-HOUR_MS);
    for (let i = 0; i < 10; i++) {
      const id = await tenant.create(noop);
      await reader.drain(tenant);
      assert.ok(reader.seen.some(({ instance_id }) => instance_id === id));
    }
    assert.notEqual((await tenant.instance(early)).state, 'completed');
    await set(HOUR_MS * 2);
    await tenant.until(early, 'completed');
  });
}
