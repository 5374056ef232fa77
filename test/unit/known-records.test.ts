/** When a shard says that what it told of an instance is old, and when it tells without being asked. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { KnownRecord, Reply } from '../../actors/runtime/protocol.js';
import type { Json } from '../helpers/api.js';
import { HandShard, sequenceOf } from '../helpers/hand-shard.js';

const WAITING: Json[] = [{ type: 'step', id: 'a', handler: 'ship' }];

let shard: HandShard;

beforeEach(async () => {
  shard = new HandShard(sequenceOf(WAITING));
  await shard.start();
  shard.units = [];
  // From then on the plan is at hand.
  shard.create();
  await shard.run();
  await shard.ack();
});
afterEach(() => shard.shard.stop());

const bodyOf = (reply: Reply | undefined) =>
  reply !== undefined && 'body' in reply ? reply.body : assert.fail('no answer');
const knownBy = (request: number): KnownRecord | undefined => {
  const reply = shard.replies.get(request);
  return reply !== undefined && 'known' in reply ? reply.known : undefined;
};
const isCurrent = (known: KnownRecord | undefined) =>
  known !== undefined && shard.versions.isCurrent(known.stamp);

async function created(more?: Json): Promise<{ request: number; id: string }> {
  const request = shard.create(more);
  await shard.run();
  await shard.ack();
  return { request, id: JSON.parse(bodyOf(shard.replies.get(request))).id };
}

describe('what a reader was told', () => {
  test('is old as soon as a unit is on its way to the writer, and not only when it is committed', async () => {
    const { id } = await created();
    const first = shard.ask('instances.get', id);
    await shard.run();
    assert.ok(isCurrent(knownBy(first)));
    shard.ask('instances.signal', id, { signal_type: 'pause' });
    await shard.run();
    assert.equal(shard.units.length, 1);
    assert.ok(!isCurrent(knownBy(first)), 'before the commit');
  });

  test('while a unit is under way is told behind it, and holds from then on', async () => {
    const { id } = await created();
    shard.ask('instances.signal', id, { signal_type: 'pause' });
    const read = shard.ask('instances.get', id);
    await shard.run();
    assert.equal(shard.replies.get(read), undefined);
    await shard.ack();
    assert.equal(JSON.parse(bodyOf(shard.replies.get(read))).state, 'paused');
    assert.ok(isCurrent(knownBy(read)));
  });

  test('between two units is old when it comes', async () => {
    const { id } = await created();
    shard.ask('instances.signal', id, { signal_type: 'pause' });
    const read = shard.ask('instances.get', id);
    shard.ask('instances.signal', id, { signal_type: 'resume' });
    await shard.run();
    await shard.ack();
    assert.equal(JSON.parse(bodyOf(shard.replies.get(read))).state, 'paused');
    assert.ok(!isCurrent(knownBy(read)));
  });

  test('is old when the rows may be about to be deleted, and when a sequence is gone', async () => {
    const { id } = await created();
    const read = async () => {
      const request = shard.ask('instances.get', id);
      await shard.run();
      return knownBy(request);
    };
    const before = await read();
    assert.ok(isCurrent(before));
    shard.hint({ kind: 'sequence.evict', sequence: '0195ffff-0000-7000-8000-0000000000ff' });
    await shard.run();
    assert.ok(!isCurrent(before));
    const again = await read();
    assert.ok(isCurrent(again));
    shard.ask('instances.purge', '', { ids: [id], before: 0 });
    await shard.run();
    assert.ok(!isCurrent(again));
  });
});

describe('the answer of a creation', () => {
  test('brings the record along that its reader would be shown, when it is alone', async () => {
    for (const more of [{}, { idempotency_key: 'k' }]) {
      const { request, id } = await created(more);
      const known = knownBy(request);
      assert.equal(known?.instance, id);
      assert.ok(isCurrent(known));
      const read = shard.ask('instances.get', id);
      await shard.run();
      assert.equal(known?.text, bodyOf(shard.replies.get(read)));
      shard.ask('instances.signal', id, { signal_type: 'pause' });
      await shard.run();
      assert.ok(!isCurrent(known));
      await shard.ack();
    }
  });

  test('brings nothing along when others are under way, or the text is long', async () => {
    const together = [shard.create(), shard.create()];
    await shard.run();
    const behind = shard.create();
    await shard.run();
    await shard.ack();
    const { request: long } = await created({ context: { data: { text: 'x'.repeat(20_000) } } });
    for (const request of [...together, behind, long]) {
      assert.equal(shard.answer(request), 201);
      assert.equal(knownBy(request), undefined);
    }
  });

  test('brings nothing along when the database refuses it', async () => {
    const refused = shard.create();
    await shard.run();
    await shard.ack(({ seq }) => ({ seq, outcome: 'refused', sqlState: '22003', reason: 'no' }));
    assert.match(String(shard.answer(refused)), /^ENG_/);
    assert.equal(knownBy(refused), undefined);
  });
});
