/** What does not compile: the compiler complains where a line that is expected to be wrong is not. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Client,
  type CreateSequence,
  type SequenceRef,
  type TaskInstance,
  type WorkerTask,
} from '../../client/src/index.js';

/** Never called: its types are what counts. */
async function calls(client: Client, instance: TaskInstance, task: WorkerTask) {
  // @ts-expect-error an operation that does not exist
  client.instances.creat({ sequence: 'order' });
  // @ts-expect-error a resource that does not exist
  client.instance.get('i');
  // @ts-expect-error a field that does not exist
  client.instances.create({ sequenze: 'order' });
  // @ts-expect-error a word that the field does not take
  client.instances.create({ sequence: 'order', priority: 'urgent' });
  // @ts-expect-error a parameter of the path that is missing
  client.instances.get();
  // @ts-expect-error a filter that the list does not have
  client.instances.list({ stat: ['failed'] });
  // @ts-expect-error a state that does not exist
  client.instances.list({ state: ['done'] });
  // @ts-expect-error a query that has to name a sequence
  client.sequences.byName({});
  // @ts-expect-error a key where nothing is created
  client.instances.get('i', { idempotencyKey: 'A-1' });
  // @ts-expect-error an option that does not exist
  client.instances.get('i', { timeout: 5 });
  // @ts-expect-error a list is awaited as a page, not as an array
  (await client.instances.list()).map(String);
  // @ts-expect-error a field of the answer that does not exist
  instance.status;
  // @ts-expect-error an answer is not changed
  instance.state = 'completed';
  // @ts-expect-error a state that the task never has
  task.state === 'done';
  // @ts-expect-error the address is required
  new Client({ apiKey: 'k' });

  const order: SequenceRef<{ amount: number }, { charge: { id: string } }> = { name: 'order' };
  const { outputs } = await client.instances.run(order, { amount: 1 });
  const id: string = outputs.charge.id;
  // @ts-expect-error an output that the block does not have
  outputs.charge.identity;
  // @ts-expect-error a block that the sequence does not have
  outputs.refund;
  // @ts-expect-error an input of another type
  client.instances.run(order, { amount: '1' });
  return id;
}

/** What may be left out is left out, and undefined stands for it. */
function definition(timeout: number | undefined): CreateSequence {
  return {
    name: 'order',
    version: 1,
    blocks: [
      { type: 'step', id: 'charge', handler: 'charge-card', timeout },
      // @ts-expect-error a kind of block that does not exist
      { type: 'stepp', id: 'x', handler: 'h' },
      // @ts-expect-error what a block of this kind does not have
      { type: 'parallel', id: 'x', branches: [], handler: 'h' },
    ],
  };
}

test('what is misspelt does not compile', () => {
  assert.equal(typeof calls, 'function');
  assert.equal(definition(undefined).blocks.length, 3);
});
