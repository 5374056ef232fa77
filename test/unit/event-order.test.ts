/** The order of events on a shard: those of one key keep it, those of others do not wait. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { EventTriggerRow } from '../../actors/runtime/rows.js';
import type { Json } from '../helpers/api.js';
import { HandShard } from '../helpers/hand-shard.js';

interface LookUp {
  readonly name: string;
  readonly found: (rows: EventTriggerRow[]) => void;
}

/** Of triggers, which find nothing until the test says so. */
let lookUps: LookUp[];
let shard: HandShard;

beforeEach(async () => {
  lookUps = [];
  shard = new HandShard({
    eventTriggers: ({ name }) => new Promise((found) => lookUps.push({ name, found })),
  });
  await shard.start();
  shard.units = [];
});
afterEach(() => shard.shard.stop());

async function send(event_name: string, producer_event_id: string): Promise<number> {
  const body: Json = { event_name, producer_event_id };
  const request = shard.ask('events.send', '', body);
  await shard.run();
  return request;
}

async function find(which: LookUp | undefined): Promise<void> {
  which?.found([]);
  await shard.run();
}

test('an event does not wait for the look-up of another key', async () => {
  const slow = await send('slow', '1');
  const fast = await send('fast', '2');
  await find(lookUps.find(({ name }) => name === 'fast'));
  await shard.ack();
  assert.deepEqual([shard.answer(fast), shard.answer(slow)], [201, undefined]);
  await find(lookUps.find(({ name }) => name === 'slow'));
  await shard.ack();
  assert.equal(shard.answer(slow), 201);
});

test('events of one key are stored in the order in which they came', async () => {
  const first = await send('paid', '1');
  const second = await send('paid', '2');
  await find(lookUps[1]);
  assert.deepEqual(shard.units, []);
  await find(lookUps[0]);
  assert.equal(shard.units.length, 2);
  assert.deepEqual(
    shard.units.map(
      ({ mutations }) => JSON.stringify(mutations).match(/producer_event_id\D*(\d)/)?.[1],
    ),
    ['1', '2'],
  );
  await shard.ack();
  assert.deepEqual([shard.answer(first), shard.answer(second)], [201, 201]);
});
