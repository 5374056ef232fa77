/** A shard that drains before the engine stops. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type LocalShard, startShard } from '../helpers/shard.js';

let shard: LocalShard;
before(async () => {
  shard = await startShard(new Map());
});
after(() => shard.stop());

const POLL = { worker_id: 'w', wait_ms: 60_000 };

test('answers the polls that are parked, and those that come too late to be parked', async () => {
  const parked = shard.ask('workers.poll', '', { ...POLL, handler_name: 'early' });
  const known = shard.ask('workers.poll', '', { handler_name: 'known', worker_id: 'w' });
  assert.deepEqual(await known, []);
  shard.drain();
  const late = ['early', 'known', 'unknown'].map((handler_name) =>
    shard.ask('workers.poll', '', { ...POLL, handler_name }),
  );
  assert.deepEqual(await Promise.all([parked, ...late]), [[], [], [], []]);
});
