/** What is kept of instances for their readers: the versions, the client, and when a shard says it is old. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { MessagePort } from 'node:worker_threads';
import type { KnownRecord, Reply } from '../../actors/runtime/protocol.js';
import { Versions } from '../../actors/runtime/versions.js';
import { ShardClient } from '../../actors/shard/client.js';
import { KeptRecords } from '../../actors/shard/kept-records.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Json } from '../helpers/api.js';
import { HandClock } from '../helpers/hand-clock.js';
import { HandShard, sequenceOf } from '../helpers/hand-shard.js';

const ID = '0195ffff-0000-7000-8000-12345678abcd';
const OTHER = '0195ffff-0000-7000-8000-22345678abcd';
/** It shares its counter with the first. */
const TWIN = '0295ffff-1111-7000-8000-1234ffff0001';

const reply = (body: string) => ({ status: 200, body });

describe('kept records', () => {
  let versions: Versions;
  let kept: KeptRecords;
  beforeEach(() => {
    versions = new Versions();
    kept = new KeptRecords(versions);
  });

  test('one is found while its version stands, by its tenant alone; one that is old when it comes takes nothing away', () => {
    kept.keep('a', ID, versions.stampOf(ID), reply('1'));
    assert.deepEqual(kept.find('a', ID), reply('1'));
    for (const tenant of ['', 'b', 'A', `a ${ID}`]) {
      assert.equal(kept.find(tenant, ID), undefined, tenant);
    }
    assert.equal(kept.find('a', TWIN), undefined);
    versions.raise(ID);
    assert.equal(kept.find('a', ID), undefined);
    const old = versions.stampOf(ID);
    versions.raise(ID);
    kept.keep('a', ID, versions.stampOf(ID), reply('new'));
    kept.keep('a', ID, old, reply('old'));
    assert.deepEqual(kept.find('a', ID), reply('new'));
  });

  test('those that were read last stay within the bound; one that is too long is not kept', () => {
    const { keptRecordsCharactersMax, keptRecordCharactersMax } = LIMITS;
    const long = 'x'.repeat(keptRecordCharactersMax - 1_000);
    const length = 2 + keptRecordsCharactersMax / keptRecordCharactersMax;
    const ids = Array.from({ length }, (_, i) => ID.replace('12345678', `${1_000 + i}0000`));
    for (const id of ids) {
      kept.keep('a', id, versions.stampOf(id), reply(long));
      kept.find('a', ids[0]!);
    }
    const found = ids.map((id) => kept.find('a', id) !== undefined);
    assert.equal(found[0], true, 'the one that is read again and again');
    assert.equal(found[1], false, 'the oldest of the others');
    assert.equal(found.at(-1), true);
    kept.keep('a', OTHER, versions.stampOf(OTHER), reply(`${long}${long}`));
    assert.equal(kept.find('a', OTHER), undefined);
  });
});

describe('the client of the shards', () => {
  function start() {
    const clock = new HandClock();
    const client = new ShardClient({ shards: 1, clock, setImmediate: () => undefined });
    let answer: (replies: Reply[]) => void = () => undefined;
    const port = {
      on: (_: string, listener: typeof answer) => {
        answer = listener;
      },
      postMessage: () => undefined,
      close: () => undefined,
    };
    client.attach(0, port as unknown as MessagePort);
    const stampOf = () => client.versions.stampOf(ID);
    /** The text, and whether the shard was asked for it. */
    const read = (body: string, stamp = () => stampOf() as number | undefined, about = 'get') => {
      let text = '';
      const operation = `instances.${about}` as 'instances.get';
      const id = client.send(0, { operation, tenant: 'a', target: ID, body: '' }, (told) => {
        text = 'error' in told ? told.error.code : told.body;
      });
      if (text !== '') return `kept ${text}`;
      const given = stamp();
      const known = given === undefined ? {} : { known: { instance: ID, stamp: given } };
      answer([{ request: id, status: 200, body, ...known }]);
      return `asked ${text}`;
    };
    return { client, read, clock };
  }

  const noStamp = () => undefined;

  test('asks once for a record that does not change, and again for one that did', async () => {
    const { client, read } = start();
    assert.deepEqual([read('1'), read('2')], ['asked 1', 'kept 1']);
    assert.deepEqual([client.readsKept, client.inFlight], [1, 0]);
    const caller = new AbortController();
    assert.equal((await client.ask(0, 'instances.get', 'a', ID, '', caller)).body, '1');
    client.versions.raise(ID);
    assert.equal(read('3'), 'asked 3');
    client.stop();
  });

  test('answers no other question with it, and keeps nothing that has no stamp', () => {
    const { client, read } = start();
    read('1');
    assert.equal(read('tree', noStamp, 'tree'), 'asked tree');
    client.versions.raise(ID);
    read('2', noStamp);
    assert.equal(read('3'), 'asked 3');
    client.stop();
  });

  test('nothing outlives the shard that said it, or an hour', () => {
    for (const end of ['death', 'hour'] as const) {
      const { client, read, clock } = start();
      read('1');
      if (end === 'hour') clock.pass(3_700_000);
      else client.detach(0);
      assert.equal(client.kept.find('a', ID), undefined, end);
      client.stop();
    }
  });
});

describe('a shard', () => {
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
  const stateIn = (request: number) => JSON.parse(bodyOf(shard.replies.get(request))).state;
  const signal = (id: string, signal_type: string) =>
    shard.ask('instances.signal', id, { signal_type });

  async function created(more?: Json): Promise<{ request: number; id: string }> {
    const request = shard.create(more);
    await shard.run();
    await shard.ack();
    return { request, id: JSON.parse(bodyOf(shard.replies.get(request))).id };
  }

  async function read(id: string): Promise<KnownRecord | undefined> {
    const request = shard.ask('instances.get', id);
    await shard.run();
    return knownBy(request);
  }

  describe('what a reader was told', () => {
    test('is old as soon as a unit is on its way to the writer, and not only when it is committed', async () => {
      const { id } = await created();
      const first = await read(id);
      assert.ok(isCurrent(first));
      signal(id, 'pause');
      await shard.run();
      assert.equal(shard.units.length, 1);
      assert.ok(!isCurrent(first), 'before the commit');
    });

    test('while a unit is under way is told behind it, and holds unless another unit follows', async () => {
      for (const isLast of [true, false]) {
        const { id } = await created();
        signal(id, 'pause');
        const request = shard.ask('instances.get', id);
        if (!isLast) signal(id, 'resume');
        await shard.run();
        assert.equal(shard.replies.get(request), undefined);
        await shard.ack();
        assert.equal(stateIn(request), 'paused');
        assert.equal(isCurrent(knownBy(request)), isLast);
      }
    });
  });

  test('the answer of a creation brings the record along that its reader would be shown, when it is alone', async () => {
    for (const more of [{}, { idempotency_key: 'k' }]) {
      const { request, id } = await created(more);
      const known = knownBy(request);
      assert.equal(known?.instance, id);
      assert.ok(isCurrent(known));
      const get = shard.ask('instances.get', id);
      await shard.run();
      assert.equal(known?.text, bodyOf(shard.replies.get(get)));
      signal(id, 'pause');
      await shard.run();
      assert.ok(!isCurrent(known));
      await shard.ack();
    }
  });
});
