/** What is under way when a tenant is moved ends in the other cell, as it would have in the first one. */

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { BulkJob } from '../../../schema/bulk-job.js';
import type { ScheduleCreated } from '../../../schema/cron.js';
import type { Activity } from '../../../schema/statistics.js';
import type { SubscriptionCreated } from '../../../schema/webhook.js';
import { firedInstanceId } from '../../../src/base/ids.js';
import { eventually, type Json, step, type Tenant } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';
import type { TwoCells } from '../../helpers/moving.js';
import { startReceiver, statusOf } from '../../helpers/receiver.js';

let cells: TwoCells;

/** The tenant as each of the cells serves it; it lives in the first. */
async function placed(name: string): Promise<{ east: Tenant; west: Tenant }> {
  await cells.place(name, 'east');
  return { east: cells.tenant('east', name), west: cells.tenant('west', name) };
}

async function moved({ name }: Tenant): Promise<void> {
  assert.equal((await cells.move(name, 'west')).move.state, 'done');
  assert.deepEqual(await cells.rows('east', name), {});
}

function sleepUntil(time: number): void {
  const ms = Math.max(0, time - Date.now());
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

export function describeWork(cellsOf: () => TwoCells): void {
  before(() => {
    cells = cellsOf();
  });

  test('a webhook that was not taken before the move comes after it, signed with the same secret', async (t) => {
    const receiver = await startReceiver();
    t.after(() => receiver.stop());
    // Only once each: after four refusals, which take seconds, a webhook is parked.
    const refused = new Set<unknown>();
    receiver.answer('/refuses', (response, { body }) => {
      if (refused.has(body.instance_id)) return;
      refused.add(body.instance_id);
      response.writeHead(503).end();
    });
    // Its requests are under way when the tenant is held.
    receiver.answer('/hangs', () => undefined);
    const { east, west } = await placed('hooked');
    const subscribe = async (path: string) => {
      const body = { url: receiver.url(path), secret: 'of the tenant' };
      return expectStatus(await east.post<SubscriptionCreated>('/webhooks', body), 201);
    };
    await subscribe('/refuses');
    await subscribe('/hangs');
    const sequence = await east.sequence([step('a', 'noop')]);
    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push(await east.create(sequence));
    for (const id of ids) await east.until(id, 'completed');
    await receiver.until(ids.at(-1) as string, 1);
    await moved(east);
    const before = new Map(ids.map((id) => [id, receiver.of(id).length]));
    for (const path of ['/refuses', '/hangs']) receiver.answer(path, statusOf(200));
    await eventually(async () => {
      for (const id of ids) {
        const since = receiver.of(id).slice(before.get(id));
        const paths = new Set(since.map(({ path }) => path));
        assert.deepEqual([...paths].sort(), ['/hangs', '/refuses'], id);
        for (const { headers } of since) assert.ok(headers['x-engine-signature']);
      }
      assert.deepEqual(expectStatus(await west.get<unknown[]>('/webhooks/outbox'), 200), []);
    });
  });

  test('a change of many goes on where it stood, and changes nothing twice', async () => {
    const count = 3_000;
    const { east, west } = await placed('many');
    const sequence_id = await east.sequence([step('a', 'nobody.works')]);
    const far = '2100-01-01T00:00:00Z';
    const one = { sequence_id, tenant_id: east.name, namespace: 'test', next_fire_at: far };
    const instances = Array.from({ length: count }, () => one);
    expectStatus(await east.post('/instances/batch', { instances }), 201);
    const body = { filter: {}, action: 'signal', signal_type: 'once', limit: 10_000 };
    const reply = await east.post<BulkJob>('/instances/batch-action?async=true', body);
    const { id } = expectStatus(reply, 202);
    await moved(east);
    const job = await eventually(async () => {
      const so = expectStatus(await west.get<BulkJob>(`/instances/bulk/jobs/${id}`), 200);
      assert.equal(so.state, 'completed');
      return so;
    });
    assert.deepEqual([job.matched, job.applied, job.skipped, job.failed], [count, count, 0, 0]);
    const { rows } = await cells.query<{ signals: number; instances: number }>(
      'west',
      `select count(*)::int as signals, count(distinct instance_id)::int as instances
     from west.signals where instance_id in (select id from west.instances where tenant_id = 'many')`,
    );
    assert.deepEqual(rows[0], { signals: count, instances: count });
  });

  test('what was counted of a tenant goes with it', async () => {
    const { east, west } = await placed('counted');
    const sequence = await east.sequence([step('a', 'noop')]);
    for (let n = 0; n < 5; n++) await east.until(await east.create(sequence), 'completed');
    const counted = async (tenant: Tenant) => {
      const { intervals } = expectStatus(await tenant.get<Activity>('/activity'), 200);
      const sum = (of: 'created' | 'completed') =>
        intervals.reduce((all, interval) => all + interval[of], 0);
      return { created: sum('created'), completed: sum('completed') };
    };
    const expected = { created: 5, completed: 5 };
    await eventually(async () => assert.deepEqual(await counted(east), expected));
    await moved(east);
    await eventually(async () => assert.deepEqual(await counted(west), expected));
  });

  test('a schedule that is due while the tenant waits fires once, in its new cell', async () => {
    const { east, west } = await placed('due');
    const sequence_id = await east.sequence([step('a', 'noop')]);
    const due = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 5_000);
    const [month, day] = [due.getUTCMonth() + 1, due.getUTCDate()];
    const time = `${due.getUTCSeconds()} ${due.getUTCMinutes()} ${due.getUTCHours()}`;
    const cron_expr = `${time} ${day} ${month} ? *`;
    const body = { tenant_id: 'due', namespace: 'test', sequence_id, cron_expr };
    const { id: schedule } = expectStatus(await east.post<ScheduleCreated>('/cron', body), 201);
    await cells.move('due', 'west', {
      at: (point) => {
        // The engines are other processes: meanwhile the tenant waits.
        if (point === 'before switch') sleepUntil(due.getTime() + 1_000);
      },
    });
    await west.until(firedInstanceId(schedule, due.getTime()), 'completed');
    assert.equal(expectStatus(await west.get<unknown[]>('/instances'), 200).length, 1);
  });

  test('what is asked again after the move is done once', async () => {
    const { east, west } = await placed('again');
    const events = await east.run([
      step('e', 'wait_for_event', { params: { name: 'paid' } }),
      step('f', 'wait_for_event', { params: { name: 'paid' } }),
    ]);
    await east.until(events, 'waiting');
    const event = { event_name: 'paid', producer_event_id: 'p-1' };
    expectStatus(await east.post('/events', event), 201);
    const sequence_id = await east.sequence([step('a', 'again.work')]);
    const yearly = {
      tenant_id: 'again',
      namespace: 'test',
      sequence_id,
      cron_expr: '0 0 0 1 1 ? *',
    };
    const { id: schedule } = expectStatus(await east.post<ScheduleCreated>('/cron', yearly), 201);
    const run = { idempotency_key: 'r-1' };
    const first = expectStatus(await east.post<Json>(`/cron/${schedule}/run`, run), 201);
    const done = await east.task('again.work');
    await east.complete(done, { n: 1 });
    const sentAgain = await east.call('complete', done);

    await moved(east);

    const receipt = await west.post<{ duplicate?: boolean }>('/events', event);
    assert.ok(receipt.status < 300, receipt.text);
    const second = await west.post<Json>(`/cron/${schedule}/run`, run);
    assert.deepEqual([second.body.id, second.body.deduplicated], [first.id, true], second.text);
    assert.equal(await west.call('complete', done), sentAgain);
    await west.until(first.id as string, 'completed');
    assert.equal((await west.instance(events)).state, 'waiting');
    assert.deepEqual(await west.rowsOf(events), ['e']);
  });
}
