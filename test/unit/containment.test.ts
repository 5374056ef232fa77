/**
 * What a defect reaches: the message that met it, and nothing else. Shards are real; what makes an
 * actor throw is a row that makes no sense, or a value that JSON has no form for.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewInstance } from '../../actors/instance/record.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import { ActorHost } from '../../actors/runtime/host.js';
import type { PeerMessage } from '../../actors/runtime/protocol.js';
import type { RateLimitRow, ScheduleRow, SequenceRow } from '../../actors/runtime/rows.js';
import { rateLimitId } from '../../src/core/ids.js';
import { isoTime } from '../../src/core/time.js';
import { HandShard, rowsOf, TENANT } from '../helpers/hand-shard.js';
import { hostDeps } from '../helpers/host-deps.js';
import { newInstance } from '../helpers/instances.js';
import { work } from '../helpers/player.js';

const ID = '01950000-0000-7000-8000-000000000000';
const SEQUENCE: SequenceRow = {
  id: ID,
  tenant_id: TENANT,
  namespace: 'n',
  name: 's',
  version: 1,
  deprecated: false,
  definition: JSON.stringify({ blocks: [work('a')] }),
};

const INSTANCE = newInstance(ID, { sequence_id: ID, tenant_id: TENANT });

const creation = (request: number, instance: NewInstance): PeerMessage => {
  return { kind: 'create', request, creation: JSON.stringify(instance) };
};

const limit = (key: string, window_seconds: number): RateLimitRow => {
  return { tenant_id: TENANT, limit_key: key, max_count: 1, window_seconds };
};

test('a schedule that throws in the middle of its fire commits nothing of it', async () => {
  const due: ScheduleRow = {
    id: ID,
    tenant_id: TENANT,
    namespace: 'n',
    sequence_id: ID,
    sequence: null,
    version: null,
    cron_expr: 'never mind',
    timezone: 'UTC',
    enabled: true,
    metadata: '{}',
    context: '{"data":{},"config":{}}',
    priority: 'Normal',
    timeout: null,
    overlap_policy: 'allow',
    skipped_fires: 0,
    last_skipped_at: null,
    last_triggered_at: null,
    next_fire_at: isoTime(1_600_000_000_000),
    last_error: null,
    created_at: isoTime(0),
    updated_at: isoTime(0),
  };
  const shard = new HandShard({
    dueSchedules: async ({ id }) =>
      id === ID ? [] : [{ id: ID, next_fire_at: due.next_fire_at as string }],
    schedules: async () => new Map([[ID, due]]),
    sequence: async () => SEQUENCE,
  });
  await shard.start();
  await shard.pass(1);
  assert.ok(shard.errors.some(({ msg }) => msg === 'defect'));
  assert.deepEqual(rowsOf(shard.units, 'instance.insert'), []);
});

test('a limit that throws at the end of the turn takes no other one with it', async () => {
  const poisoned = rateLimitId(TENANT, 'poisoned');
  const shard = new HandShard({
    rateLimit: async (id) => (id === poisoned ? limit('poisoned', Number.NaN) : limit('sound', 1)),
  });
  await shard.start();
  const step = { node: 0, iteration: '', attempt: 0 };
  const ask = (limit: string) => shard.hint({ kind: 'rate.asked', limit, instance: ID, ...step });
  ask(poisoned);
  await shard.run();
  ask(poisoned);
  ask(rateLimitId(TENANT, 'sound'));
  const other = shard.ask('rateLimits.put', 'other', { max_count: 1, window_seconds: 1 });
  await shard.run();
  const limits = rowsOf(shard.units, 'rateGrant.insert').map(({ limit_id }) => limit_id);
  assert.deepEqual(limits, [rateLimitId(TENANT, 'sound')]);
  await shard.ack();
  assert.equal(shard.answer(other), 200);
});

test('everybody who waits for a unit is told when it is refused, those with an error too', async () => {
  const shard = new HandShard();
  await shard.start();
  const gone = shard.ask('rateLimits.delete', 'a');
  const put = shard.ask('rateLimits.put', 'a', { max_count: 1, window_seconds: 1 });
  await shard.run();
  await shard.ack(({ seq }) => ({ seq, outcome: 'refused', sqlState: '22P05', reason: 'no' }));
  const seen = [gone, put].map((request) => shard.answer(request));
  assert.deepEqual(seen, ['ENG_REFUSED_DATA', 'ENG_REFUSED_DATA']);
});

test('an effect that cannot be performed holds up neither its unit nor those behind it', async () => {
  const shard = new HandShard({ sequence: async () => SEQUENCE });
  await shard.start();
  const sound = `${ID.slice(0, -1)}1`;
  // There is no rank for this priority, by which the instance would go on.
  const odd = { ...INSTANCE, body: { ...INSTANCE.body, priority: 'odd' as 'low' } };
  shard.hint(creation(91, odd), creation(92, { ...INSTANCE, id: sound }));
  await shard.run();
  await shard.ack();
  const unsound = shard.ask('instances.patchState', ID, { state: 'running' });
  const other = shard.ask('instances.patchState', sound, { state: 'running' });
  await shard.run();
  await shard.ack();
  const seen = [unsound, other].map((request) => shard.answer(request));
  assert.deepEqual(seen, [200, 200]);
});

test('a reply that cannot be posted is a 500, and the others of its post leave', async () => {
  const shard = new HandShard({}, ({ replies }) => {
    if (replies.some((reply) => reply.request === 1 && 'status' in reply))
      throw new Error('not cloned');
  });
  await shard.start();
  const place = { tenant_id: TENANT, namespace: 'n', version: 1, blocks: [work('a')] };
  const asked = ['a', 'b'].map((name) => shard.ask('sequences.create', '', { ...place, name }));
  await shard.run();
  await shard.ack();
  const seen = asked.map((request) => shard.answer(request));
  assert.deepEqual(seen, ['ENG_INTERNAL', 201]);
});

test('an answer that has no form is a 500', async () => {
  const row = { id: ID, tenant_id: TENANT, baseline_sequence_id: ID, state: 'rolled_back' };
  const shard = new HandShard({ release: async () => ({ ...row, gates: [1n] }) as never });
  await shard.start();
  const asked = shard.ask('releases.rollback', ID);
  await shard.run();
  assert.equal(shard.answer(asked), 'ENG_INTERNAL');
});

test('an instance that throws with a unit under way is back when that is settled', async () => {
  const shard = new HandShard({ sequence: async () => SEQUENCE });
  await shard.start();
  const next_fire_at = isoTime(shard.now + 60_000);
  const later = { ...INSTANCE, body: { ...INSTANCE.body, next_fire_at } };
  shard.hint(creation(91, later));
  await shard.run();
  // To no time at all, which only the engine itself can ask for.
  const change = { kind: 'reschedule', offsetMs: 'x' };
  const asked = shard.ask('instances.changeMany', '', { ids: [ID], change });
  await shard.run();
  const body = '{"applied":0,"skipped":0,"failed":1}';
  assert.deepEqual(shard.replies.get(asked), { request: asked, status: 200, body });
  const read = shard.ask('instances.get', ID);
  await shard.ack();
  // It is read again, and there are no rows here.
  assert.equal(shard.answer(read), 'ENG_NOT_FOUND');
});

test('an actor whose rows make no sense answers 500, and 503 when they cannot be read', async () => {
  const told = new Map<number, number>();
  const unrestorable: string[] = [];
  const host = new ActorHost<object, { readonly kind: 'ask'; readonly request: number }, object>(
    {
      noun: 'row',
      keyOf: (id) => id,
      nameOf: (actor) => ({ actor }),
      tenantOf: () => undefined,
      residentMax: 3,
      load: async () => new Map(),
      restore: async (id) => {
        if (id === 'odd') return JSON.parse('{');
        if (id === 'away') throw new Error('Connection terminated unexpectedly');
        return {};
      },
      unrestorable: (id) => unrestorable.push(id),
      isIdle: () => true,
      handle: (cell, { request }) =>
        host.run(cell, { kind: 'ask', request }, (turn) => turn.reply(request, 200, '')),
    },
    hostDeps(told),
  );
  for (const [request, id] of ['odd', 'away', 'sound'].entries()) {
    host.tell(id, { kind: 'ask', request });
  }
  host.endTurn();
  await new Promise(setImmediate);
  assert.deepEqual(Object.fromEntries(told), { 0: 500, 1: 503, 2: 200 });
  assert.deepEqual(unrestorable, ['odd']);
});

test('when one of a batch throws, the others are decided anew and committed together', async () => {
  const commits = new CommitLog();
  const told = new Map<number, number>();
  const host = new ActorHost<
    { sum: number },
    { readonly kind: 'add'; readonly request: number; readonly by: number },
    object
  >(
    {
      noun: 'sum',
      keyOf: (id) => id,
      nameOf: (actor) => ({ actor }),
      tenantOf: () => undefined,
      residentMax: 1,
      load: async () => new Map(),
      restore: () => ({ sum: 0 }),
      isIdle: () => true,
      handle: (cell, message) =>
        host.run(cell, message, (turn) => {
          cell.state.sum += message.by;
          turn.put('rateLimit.set', 'sum', cell.state);
          turn.reply(message.request, 200, '');
          if (Number.isNaN(cell.state.sum)) throw new Error('not a number');
        }),
      flush: () => 'done',
    },
    hostDeps(told, commits),
  );
  const turn = async () => {
    host.endTurn();
    await new Promise(setImmediate);
  };
  host.tell('a', { kind: 'add', request: 1, by: 1 });
  host.tell('a', { kind: 'add', request: 2, by: Number.NaN });
  host.tell('a', { kind: 'add', request: 3, by: 2 });
  // Loaded, found out, loaded again.
  for (let turns = 0; turns < 3; turns += 1) await turn();
  assert.deepEqual([...told], [[2, 500]]);
  const units = commits.take();
  assert.deepEqual(rowsOf(units, 'rateLimit.set'), [{ sum: 1 }, { sum: 3 }]);
  assert.equal(units.length, 1);
  commits.settle([{ seq: 1, outcome: 'committed' }]);
  assert.deepEqual(
    [...told],
    [
      [2, 500],
      [1, 200],
      [3, 200],
    ],
  );
});
