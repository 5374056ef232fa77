/**
 * `npm run example`: stores the order pipeline, serves its steps, places four orders and shows how they get on: one has
 * to wait for the bank, one is paid back, one is asked about. On the server of ENGINE_URL (with ENGINE_API_KEY and
 * ENGINE_TENANT), or on a throw-away one. It fails when an order does.
 */

import { Client } from '../../client/src/index.js';
import { startServer } from '../../client/src/testing/index.js';
import { type Order, order } from './order.js';
import { orderWorker } from './worker.js';

const { ENGINE_URL: url, ENGINE_API_KEY: apiKey, ENGINE_TENANT: tenant = 'demo' } = process.env;
const server = url === undefined ? await startServer({ tenant }) : undefined;
const client = server?.client ?? new Client({ url: url ?? '', apiKey, tenant });

const orders: readonly Order[] = [
  { order: 'lamp-1', customer: 'ada', item: 'lamp', amount: 120 },
  { order: 'slow-2', customer: 'bob', item: 'lamp', amount: 20 },
  { order: 'unicorn-3', customer: 'cid', item: 'unicorn', amount: 20 },
];
const yacht: Order = { order: 'yacht-4', customer: 'dee', item: 'yacht', amount: 50_000 };

const { version, changed } = await order.apply(client);
console.log(`order, version ${version}, ${changed ? 'is stored' : 'is there already'}`);

const worker = orderWorker(client, (line) => console.log(`bank: ${line}`));
await worker.start();
try {
  await Promise.all([...orders.map(place), sell(yacht)]);
} finally {
  await worker.stop();
  await server?.stop();
}

/** Starts an order, waits for its end, and says what became of it. */
async function place(input: Order): Promise<void> {
  // Who does not know whether an order was placed places it again: by the key it is the same one.
  const options = { idempotencyKey: input.order, timeout: 60_000 };
  const { outputs } = await client.instances.run(order, input, options);
  const way = outputs.courier?.by ?? outputs.post?.by;
  const end = outputs.refund === undefined ? `sent by ${way}` : 'paid back';
  console.log(`${input.order}: ${outputs.charge.charge}, ${end}`);
}

/** Starts an order and watches it; when somebody is asked, answers. */
async function sell(input: Order): Promise<void> {
  const { id } = await client.instances.create({
    sequence: order.name,
    namespace: order.namespace,
    idempotency_key: input.order,
    context: { data: input },
  });
  for await (const event of client.instances.follow(id)) {
    if (event.type === 'state' && event.state === 'waiting') await approve(id);
    if (event.type === 'done') console.log(`${input.order} is ${event.state}`);
    if (event.type !== 'output') continue;
    const { block_id, output_ref } = event.output;
    console.log(`${input.order}: ${block_id} is ${output_ref === null ? 'done' : 'answered'}`);
  }
}

/** The person. */
async function approve(instance: string): Promise<void> {
  for await (const { id, instance_id, prompt } of client.approvals.list()) {
    if (instance_id !== instance) continue;
    console.log(`somebody is asked: ${prompt}`);
    await client.approvals.answer(id, { value: 'sell' });
  }
}
