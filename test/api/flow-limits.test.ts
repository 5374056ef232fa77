/** Members of a sequence that limit its instances by a key: `concurrency` and `throttle`. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AuditEntry, InstanceCreated } from '../../schema/instance.js';
import {
  type Json,
  NAMESPACE,
  newHandler,
  type SharedApi,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();

type WhenFull = 'queue' | 'skip' | 'cancel_oldest' | 'cancel_newest';

const BY_CUSTOMER = '{{ data.customer }}';

/** A sequence with one slot for each customer, whose only step waits for a worker. */
class Shop {
  readonly tenant: Tenant;
  readonly handler = newHandler();
  readonly name = newHandler();

  constructor(shared: SharedApi) {
    this.tenant = shared.tenant();
  }

  static async with(whenFull: WhenFull, more: Json = {}): Promise<Shop> {
    const shop = new Shop(api);
    await shop.publish({
      concurrency: { key: BY_CUSTOMER, limit: 1, when_full: whenFull },
      ...more,
    });
    return shop;
  }

  publish(limits: Json, version = 1): Promise<string> {
    const blocks = [step('work', this.handler)];
    return this.tenant.sequence(blocks, { name: this.name, version, ...limits });
  }

  async order(customer: string, more: Json = {}): Promise<InstanceCreated> {
    const reply = await this.post(customer, more);
    assert.ok(reply.status === 201 || reply.status === 200, JSON.stringify(reply.body));
    return reply.body as InstanceCreated;
  }

  post(customer: unknown, more: Json = {}) {
    return this.tenant.post<InstanceCreated>('/instances', {
      tenant_id: this.tenant.name,
      namespace: NAMESPACE,
      sequence: this.name,
      context: { data: { customer } },
      ...more,
    });
  }

  async state(id: string): Promise<string> {
    return (await this.tenant.instance(id)).state;
  }

  async serve(): Promise<string> {
    const task = await this.tenant.task(this.handler);
    await this.tenant.complete(task);
    return task.instance_id;
  }

  async reason(id: string): Promise<unknown> {
    const audit = await this.tenant.get<AuditEntry[]>(`/instances/${id}/audit`);
    return expectStatus(audit, 200).find(({ event_type }) => event_type === 'key_full')?.details;
  }

  async count(): Promise<number> {
    return expectStatus(await this.tenant.get<unknown[]>('/instances'), 200).length;
  }
}

describe('`concurrency` of a sequence: a slot of the key that its template gives, shared by all versions', () => {
  test('a customer waits for its own instances only, oldest first', async () => {
    const shop = await Shop.with('queue');
    const first = await shop.order('ann');
    const second = await shop.order('ann');
    const third = await shop.order('ann');
    const other = await shop.order('bob');
    await shop.tenant.until(first.id, 'waiting');
    await shop.tenant.until(other.id, 'waiting');
    assert.deepEqual(
      [await shop.state(second.id), await shop.state(third.id)],
      ['scheduled', 'scheduled'],
    );
    const served = [await shop.serve(), await shop.serve(), await shop.serve(), await shop.serve()];
    assert.deepEqual(
      served.filter((id) => id !== other.id),
      [first.id, second.id, third.id],
    );
  });

  test('a free slot is taken in the unit of the creation, and shown as the key of the sequence', async () => {
    const shop = await Shop.with('queue');
    const { id } = await shop.order('ann');
    const { state, concurrency_key, max_concurrency } = await shop.tenant.instance(id);
    assert.equal(state, 'waiting');
    assert.deepEqual([concurrency_key, max_concurrency], [`sequence:test/${shop.name}:ann`, 1]);
  });

  test('two versions share the slots, and the key of a caller is another one', async () => {
    const shop = await Shop.with('queue');
    await shop.publish({ concurrency: { key: BY_CUSTOMER, limit: 1 } }, 2);
    const first = await shop.order('ann', { version: 1 });
    const second = await shop.order('ann', { version: 2 });
    await shop.tenant.until(first.id, 'waiting');
    assert.equal(await shop.state(second.id), 'scheduled');
    const own = { concurrency_key: 'ann', max_concurrency: 1 };
    const other = await shop.tenant.run([step('a', 'noop')], own);
    await shop.tenant.until(other, 'completed');
  });

  test('instances that need nobody take turns, and hold nothing when they have ended', async () => {
    const tenant = api.tenant();
    const limits = { concurrency: { limit: 1, when_full: 'skip' } };
    const sequence = await tenant.sequence([step('a', 'noop')], limits);
    for (let index = 0; index < 5; index++) {
      await tenant.until(await tenant.create(sequence), 'completed');
    }
  });

  test('a key that is null, empty or not renderable is 422, names the member, and creates nothing', async () => {
    const shop = await Shop.with('queue');
    for (const more of [{}, { dry_run: true }]) {
      for (const customer of [null, '']) {
        const { status, body } = await shop.post(customer, more);
        assert.equal(status, 422);
        assert.match(JSON.stringify(body), /concurrency\.key/);
      }
    }
    const batch = {
      instances: [{ tenant_id: shop.tenant.name, namespace: NAMESPACE, sequence: shop.name }],
    };
    const reply = await shop.tenant.post<Json>('/instances/batch', batch);
    assert.equal(reply.status, 422);
    assert.match(JSON.stringify(reply.body), /instances\[0\]: concurrency\.key/);
    assert.equal(await shop.count(), 0);
  });

  test('a creation brings no key of its own, nor one that looks like that of a sequence', async () => {
    const shop = await Shop.with('queue');
    const own = await shop.post('ann', { concurrency_key: 'k', max_concurrency: 1 });
    assert.deepEqual([own.status, /concurrency_key/.test(JSON.stringify(own.body))], [422, true]);
    const sequence = await shop.tenant.sequence([step('a', 'noop')]);
    const forged = {
      tenant_id: shop.tenant.name,
      namespace: NAMESPACE,
      sequence_id: sequence,
      concurrency_key: 'sequence:x',
    };
    assert.equal((await shop.tenant.post('/instances', forged)).status, 400);
  });

  test('a dry run takes no slot and waits for none', async () => {
    const shop = await Shop.with('skip');
    await shop.order('ann');
    const dry = await shop.order('ann', { dry_run: true });
    assert.deepEqual([dry.skipped, await shop.state(dry.id)], [undefined, 'completed']);
  });

  test('an instance that is retried or resumed waits, whatever when_full says', async () => {
    const shop = await Shop.with('cancel_newest');
    const { id } = await shop.order('ann');
    await shop.tenant.signal(id, 'pause');
    const second = await shop.order('ann');
    await shop.tenant.until(second.id, 'waiting');
    await shop.tenant.signal(id, 'resume');
    await shop.tenant.until(id, 'scheduled');
    assert.equal(await shop.serve(), second.id);
    assert.equal(await shop.serve(), id);
  });

  test('explain names the key, the holders and the place', async () => {
    const shop = await Shop.with('queue');
    const first = await shop.order('ann');
    const { id } = await shop.order('ann');
    const { body } = await shop.tenant.get<{ waiting_for: Json[] }>(`/instances/${id}/explain`);
    const [wait] = body.waiting_for;
    assert.equal(wait?.key, `sequence:test/${shop.name}:ann`);
    assert.deepEqual(column(wait?.holders as Json[], 'instance_id'), [first.id]);
  });
});

describe('`when_full: skip` creates nothing while the slots are taken, and answers with the newest holder', () => {
  test('single creations, and again when the slot is free', async () => {
    const shop = await Shop.with('skip');
    const first = await shop.order('ann');
    const { status, body } = await shop.post('ann');
    assert.deepEqual([status, body], [200, { id: first.id, deduplicated: false, skipped: true }]);
    assert.equal(await shop.count(), 1);
    await shop.serve();
    assert.notEqual((await shop.order('ann')).id, first.id);
    assert.equal(await shop.count(), 2);
  });

  test('of many creations at the same time one is created', async () => {
    const shop = await Shop.with('skip');
    const all = await Promise.all(Array.from({ length: 20 }, () => shop.order('ann')));
    assert.equal(all.filter(({ skipped }) => skipped !== true).length, 1);
    assert.equal(new Set(column(all, 'id')).size, 1);
    assert.equal(await shop.count(), 1);
  });

  test('a repeated idempotency key gets the first instance, never a second one', async () => {
    const shop = await Shop.with('skip');
    const key = { idempotency_key: 'k' };
    const first = await shop.order('ann', key);
    assert.deepEqual(await shop.order('ann', key), { id: first.id, deduplicated: true });
    await shop.serve();
    await shop.order('ann');
    assert.deepEqual(await shop.order('ann', key), { id: first.id, deduplicated: true });
    const skipped = await shop.order('ann', { idempotency_key: 'other' });
    assert.equal(skipped.skipped, true);
  });

  test('items of a batch are skipped one by one', async () => {
    const shop = await Shop.with('skip');
    const item = (customer: string) => ({
      tenant_id: shop.tenant.name,
      namespace: NAMESPACE,
      sequence: shop.name,
      context: { data: { customer } },
    });
    const plain = await shop.tenant.sequence([step('a', 'noop')]);
    const other = { tenant_id: shop.tenant.name, namespace: NAMESPACE, sequence_id: plain };
    const instances = [item('ann'), item('ann'), other, item('bob')];
    const reply = await shop.tenant.post<Json>('/instances/batch', { instances });
    assert.deepEqual(expectStatus(reply, 201), { count: 3, created: 3, skipped: 1 });
    assert.equal(await shop.count(), 3);
  });

  test('a fire of a trigger says so', async () => {
    const shop = await Shop.with('skip');
    const slug = newHandler();
    const trigger = {
      slug,
      tenant_id: shop.tenant.name,
      sequence_name: shop.name,
      namespace: NAMESPACE,
      config: { event_name: 'x' },
      trigger_type: 'event',
    };
    expectStatus(await shop.tenant.post('/triggers', trigger), 201);
    const fire = () => shop.tenant.post<Json>(`/triggers/${slug}/fire`, { customer: 'ann' });
    const first = expectStatus(await fire(), 201);
    assert.equal(first.skipped, undefined);
    const second = expectStatus(await fire(), 201);
    assert.deepEqual([second.instance_id, second.skipped], [first.instance_id, true]);
  });
});

describe('`when_full: cancel_oldest` and `cancel_newest` cancel instances, with the reason in the audit', () => {
  test('the newest instance starts when the oldest has ended', async () => {
    const shop = await Shop.with('cancel_oldest');
    const first = await shop.order('ann');
    await shop.tenant.until(first.id, 'waiting');
    const second = await shop.order('ann');
    await shop.tenant.until(first.id, 'cancelled');
    await shop.tenant.until(second.id, 'waiting');
    const concurrency_key = `sequence:test/${shop.name}:ann`;
    assert.deepEqual(await shop.reason(first.id), { concurrency_key, when_full: 'cancel_oldest' });
    assert.equal(await shop.reason(second.id), undefined);
  });

  test('of several that wait the newest is left, while the oldest still cleans up', async () => {
    const shop = new Shop(api);
    const cleanup = newHandler();
    const blocks = [
      {
        type: 'try_catch',
        id: 't',
        try_block: [step('work', shop.handler)],
        catch_block: [],
        finally_block: [step('tidy', cleanup)],
      },
    ];
    const concurrency = { limit: 1, when_full: 'cancel_oldest' };
    await shop.tenant.sequence(blocks, { name: shop.name, concurrency });
    const first = await shop.order('ann');
    await shop.tenant.until(first.id, 'waiting');
    const waiting = [await shop.order('ann'), await shop.order('bob'), await shop.order('eve')];
    await shop.tenant.until(waiting[0]!.id, 'cancelled');
    await shop.tenant.until(waiting[1]!.id, 'cancelled');
    assert.equal(await shop.state(waiting[2]!.id), 'scheduled');
    await shop.tenant.complete(await shop.tenant.task(cleanup));
    await shop.tenant.until(first.id, 'cancelled');
    await shop.tenant.until(waiting[2]!.id, 'waiting');
  });

  test('an arrival is created and cancelled at once', async () => {
    const shop = await Shop.with('cancel_newest');
    const first = await shop.order('ann');
    const second = await shop.order('ann');
    await shop.tenant.until(second.id, 'cancelled');
    assert.equal(await shop.state(first.id), 'waiting');
    assert.equal(((await shop.reason(second.id)) as Json).when_full, 'cancel_newest');
  });

  test('a child whose key is full is cancelled, and its step fails', async () => {
    const shop = await Shop.with('skip');
    await shop.order('ann');
    const child = {
      type: 'sub_sequence',
      id: 'c',
      sequence_name: shop.name,
      input: { customer: 'ann' },
    };
    const parent = await shop.tenant.run([child]);
    await shop.tenant.until(parent, 'failed');
    const { failure } = await shop.tenant.instance(parent);
    assert.match(failure?.message ?? '', /cancelled/);
  });
});

describe('other ways in', () => {
  test('a schedule whose context gives no key is refused, and names the member', async () => {
    const shop = await Shop.with('queue');
    const schedule = {
      tenant_id: shop.tenant.name,
      namespace: NAMESPACE,
      sequence: shop.name,
      cron_expr: '0 0 0 1 1 * 2099',
    };
    const { id } = expectStatus(await shop.tenant.post<Json>('/cron', schedule), 201);
    const { status, body } = await shop.tenant.post<Json>(`/cron/${id}/run`, {});
    assert.deepEqual([status, /concurrency\.key/.test(JSON.stringify(body))], [422, true]);
    const context = { data: { customer: 'ann' } };
    expectStatus(await shop.tenant.put(`/cron/${id}`, { context }), 200);
    await shop.order('ann');
    const run = expectStatus(await shop.tenant.post<Json>(`/cron/${id}/run`, {}), 201);
    await shop.tenant.until(String(run.id), 'scheduled');
  });

  test('a fork waits for a slot, unless it is a dry run', async () => {
    const shop = await Shop.with('queue');
    const { id } = await shop.order('ann');
    await shop.tenant.until(id, 'waiting');
    const fork = async (dry_run: boolean) => {
      const reply = await shop.tenant.post<Json>(`/instances/${id}/fork`, {
        from_block_id: 'work',
        dry_run,
      });
      return String(expectStatus(reply, 201).id);
    };
    await shop.tenant.until(await fork(true), 'completed');
    const real = await fork(false);
    assert.equal(await shop.serve(), id);
    assert.equal(await shop.serve(), real);
  });
});

describe('`throttle` of a sequence puts off starts, and refuses none', () => {
  test('the burst starts at once, and the others one by one, in their order', async () => {
    const tenant = api.tenant();
    const throttle = { limit: 2, per_ms: 600, burst: 1 };
    const sequence = await tenant.sequence([step('a', 'noop')], { throttle });
    const ids: string[] = [];
    for (let index = 0; index < 4; index++) ids.push(await tenant.create(sequence));
    for (const id of ids) await tenant.until(id, 'completed');
    const began = await startsOf(tenant, ids);
    assert.deepEqual(
      began,
      began.toSorted((a, b) => a - b),
    );
    for (const [index, at] of began.entries()) {
      const second = began[index + 2];
      if (second !== undefined) assert.ok(second - at >= 600, `${began}`);
    }
  });

  test('one that also needs a slot, and is to start later, starts', async () => {
    const tenant = api.tenant();
    const limits = { concurrency: { limit: 1 }, throttle: { limit: 1, per_ms: 10 } };
    const sequence = await tenant.sequence([step('a', 'noop')], limits);
    const id = await tenant.create(sequence, { next_fire_at: '2100-01-01T00:00:00Z' });
    const soon = new Date(Date.now() + 100).toISOString();
    await tenant.signal(id, 'pause');
    await tenant.move(id, 'scheduled', { next_fire_at: soon });
    await tenant.until(id, 'completed');
  });

  test('one that waits is shown by explain, and is cancelled like any other', async () => {
    const tenant = api.tenant();
    const throttle = { key: '{{ data.k }}', limit: 1, per_ms: 3_600_000 };
    const sequence = await tenant.sequence([step('a', 'noop')], { throttle });
    const create = (k: string) => tenant.create(sequence, { context: { data: { k } } });
    await tenant.until(await create('x'), 'completed');
    const late = await create('x');
    await tenant.until(await create('y'), 'completed');
    const { body } = await tenant.get<{ waiting_for: Json[] }>(`/instances/${late}/explain`);
    assert.deepEqual(column(body.waiting_for, 'kind'), ['throttle']);
    await tenant.signal(late, 'cancel');
    await tenant.until(late, 'cancelled');
  });
});

async function startsOf(tenant: Tenant, ids: readonly string[]): Promise<number[]> {
  const began = ids.map(async (id) => {
    const { context } = await tenant.instance(id);
    return Date.parse(context.runtime.started_at ?? '');
  });
  return Promise.all(began);
}
