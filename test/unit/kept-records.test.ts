/** The table of versions, what is kept of instances by it, and the client that answers from that. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Reply } from '../../actors/runtime/protocol.js';
import { Versions } from '../../actors/runtime/versions.js';
import { ShardClient } from '../../actors/shard/client.js';
import { KeptRecords } from '../../actors/shard/kept-records.js';
import type { Clock } from '../../src/core/clock.js';
import { LIMITS } from '../../src/limits.js';

const ID = '0195ffff-0000-7000-8000-12345678abcd';
const OTHER = '0195ffff-0000-7000-8000-22345678abcd';
/** It shares its counter with the first. */
const TWIN = '0295ffff-1111-7000-8000-1234ffff0001';

const reply = (body: string) => ({ status: 200, body });

describe('versions', () => {
  test('a stamp is current until its instance is raised, and not again afterwards', () => {
    const versions = new Versions();
    const stamp = versions.stampOf(ID);
    assert.ok(versions.isCurrent(stamp));
    versions.raise(OTHER);
    assert.ok(versions.isCurrent(stamp), 'another instance');
    versions.raise(ID);
    assert.ok(!versions.isCurrent(stamp));
    const next = versions.stampOf(ID);
    assert.notEqual(next, stamp);
    assert.ok(versions.isCurrent(next));
  });

  test('instances that share a counter are raised together, and all of them by raiseAll', () => {
    const versions = new Versions();
    const stamps = [ID, TWIN, OTHER].map((id) => versions.stampOf(id));
    const current = () => stamps.map((stamp) => versions.isCurrent(stamp));
    versions.raise(TWIN);
    assert.deepEqual(current(), [false, false, true]);
    versions.raiseAll();
    assert.deepEqual(current(), [false, false, false]);
  });

  test('a counter that is full begins again, and says so by another stamp', () => {
    const versions = new Versions();
    new Uint32Array(versions.memory).fill(0xffff_ffff);
    for (const raise of [() => versions.raise(ID), () => versions.raiseAll()]) {
      const stamp = versions.stampOf(ID);
      assert.ok(versions.isCurrent(stamp));
      raise();
      assert.ok(!versions.isCurrent(stamp));
      assert.ok(versions.isCurrent(versions.stampOf(ID)));
    }
  });

  test('the first and the last counter are those of instances, and not the one of all', () => {
    for (const digits of ['0000', 'ffff']) {
      const versions = new Versions();
      const others = versions.stampOf(ID);
      const id = `0195ffff-0000-7000-8000-${digits}5678abcd`;
      const stamp = versions.stampOf(id);
      versions.raise(id);
      assert.deepEqual(
        [stamp, others].map((one) => versions.isCurrent(one)),
        [false, true],
      );
    }
  });

  test('what one thread raises the others see', async () => {
    const versions = new Versions();
    const stamp = versions.stampOf(ID);
    const { href } = new URL('../../actors/runtime/versions.js', import.meta.url);
    const code = `import('${href}').then(({ Versions }) => {
      new Versions(require('node:worker_threads').workerData).raise('${ID}');
    })`;
    const worker = new Worker(code, { eval: true, workerData: versions.memory });
    await once(worker, 'exit');
    assert.ok(!versions.isCurrent(stamp));
  });
});

describe('kept records', () => {
  test('one is found while its version stands, by the tenant that it was given to alone', () => {
    const versions = new Versions();
    const kept = new KeptRecords(versions);
    kept.keep('a', ID, versions.stampOf(ID), reply('1'));
    assert.deepEqual(kept.find('a', ID), reply('1'));
    for (const tenant of ['', 'b', 'A', `a ${ID}`]) {
      assert.equal(kept.find(tenant, ID), undefined, tenant);
    }
    assert.equal(kept.find('a', TWIN), undefined);
    versions.raise(ID);
    assert.equal(kept.find('a', ID), undefined);
  });

  test('one that is old when it comes is not kept, and takes nothing away', () => {
    const versions = new Versions();
    const kept = new KeptRecords(versions);
    const old = versions.stampOf(ID);
    versions.raise(ID);
    kept.keep('a', ID, versions.stampOf(ID), reply('new'));
    kept.keep('a', ID, old, reply('old'));
    assert.deepEqual(kept.find('a', ID), reply('new'));
  });

  test('those that were read last stay within the bound; one that is too long is not kept', () => {
    const versions = new Versions();
    const kept = new KeptRecords(versions);
    const long = 'x'.repeat(LIMITS.keptRecordCharactersMax - 1_000);
    const ids = Array.from(
      { length: 2 + LIMITS.keptRecordsCharactersMax / LIMITS.keptRecordCharactersMax },
      (_, i) => `0195ffff-0000-7000-8000-${String(i).padStart(4, '0')}00000000`,
    );
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
    let now = 0;
    let sweep: () => void = () => undefined;
    const posts: (() => void)[] = [];
    const clock: Clock = {
      now: () => now,
      monotonic: () => now,
      setTimeout: (fn) => {
        sweep = fn;
        return 0;
      },
      clearTimeout: () => undefined,
    };
    const client = new ShardClient({ shards: 1, clock, setImmediate: (fn) => posts.push(fn) });
    const { port1, port2 } = new MessageChannel();
    client.attach(0, port1);
    let asked = 0;
    /** Resolves with the text and whether the shard was asked for it. */
    const read = async (
      stamp: () => number | undefined,
      body: string,
      operation = 'instances.get',
    ) => {
      const heard = { text: '' };
      const id = client.send(0, operation as 'instances.get', 'a', ID, '', (told) => {
        heard.text = 'error' in told ? told.error.code : told.body;
      });
      if (heard.text !== '') return { text: heard.text, isAsked: false };
      asked += 1;
      const given = stamp();
      const answer: Reply = { request: id, status: 200, body };
      const known = given === undefined ? {} : { known: { instance: ID, stamp: given } };
      port2.postMessage({ kind: 'replies', replies: [{ ...answer, ...known }] });
      while (heard.text === '') await new Promise((resolve) => setImmediate(resolve));
      return { text: heard.text, isAsked: true };
    };
    const pass = (ms: number) => {
      now += ms;
      sweep();
    };
    const stop = () => {
      client.stop();
      port2.close();
    };
    return {
      client,
      read,
      pass,
      stop,
      stampOf: () => client.versions.stampOf(ID),
      asked: () => asked,
    };
  }

  test('asks once for a record that does not change, and again for one that did', async () => {
    const { client, read, stop, stampOf } = start();
    assert.deepEqual(await read(stampOf, '1'), { text: '1', isAsked: true });
    assert.deepEqual(await read(stampOf, '2'), { text: '1', isAsked: false });
    assert.equal(client.readsKept, 1);
    assert.equal(client.inFlight, 0);
    client.versions.raise(ID);
    assert.deepEqual(await read(stampOf, '3'), { text: '3', isAsked: true });
    stop();
  });

  test('answers no other question with it, and keeps nothing that has no stamp', async () => {
    const { read, stop, stampOf } = start();
    await read(stampOf, '1');
    assert.equal((await read(() => undefined, 'tree', 'instances.tree')).isAsked, true);
    stop();
    const other = start();
    await other.read(() => undefined, '1');
    assert.equal((await other.read(() => undefined, '2')).text, '2');
    other.stop();
  });

  test('a promise is answered with it, too', async () => {
    const { client, read, stop, stampOf } = start();
    await read(stampOf, '1');
    const { signal } = new AbortController();
    const told = await client.ask(0, 'instances.get', 'a', ID, '', signal);
    assert.equal(told.body, '1');
    stop();
  });

  test('nothing outlives the shard that said it, or an hour', async () => {
    for (const end of ['death', 'hour'] as const) {
      const { client, read, pass, stop, stampOf } = start();
      await read(stampOf, '1');
      if (end === 'hour') pass(3_600_001);
      else client.detach(0);
      assert.equal(client.kept.find('a', ID), undefined, end);
      stop();
    }
  });
});
