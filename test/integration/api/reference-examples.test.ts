/** The sequences of docs/reference run as the pages say. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import {
  HANDLER_EXAMPLES,
  KIND_EXAMPLES,
  type SequenceExample,
} from '../../../scripts/reference/sequence-examples.js';
import { type Json, useTenant } from '../../helpers/api.js';
import { expectStatus } from '../../helpers/client.js';

const tenant = useTenant();

/** Takes the place of the shop that the example of http_request names. */
const shop = createServer((request, response) => {
  request.resume();
  response.writeHead(201, { 'content-type': 'application/json' }).end('{"id": 7}');
});

before(() => new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve)));
after(() => shop.close());

const shopUrl = () => `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;

async function run(example: SequenceExample): Promise<void> {
  for (const [name, blocks] of Object.entries(example.others ?? {})) {
    await tenant.sequence(blocks as readonly Json[], { name });
  }
  const body = tenant.definition(example.blocks as readonly Json[]);
  const reply = await tenant.post<{ id: string }>('/sequences?strict=true', body);
  const handlers = Object.keys(example.answers ?? {});
  const { data = {} } = example;
  const context = { data: 'shop' in data ? { ...data, shop: shopUrl() } : data };
  const id = await tenant.create(expectStatus(reply, 201).id, { context });
  for (const handler of handlers) {
    for (const output of example.answers?.[handler] ?? []) {
      await tenant.complete(await tenant.task(handler), output);
    }
  }
  await tenant.until(id, example.ends);
  const outputs = await tenant.outputsOf(id);
  const told = Object.keys(example.outputs).map((block) => [block, outputs[block]]);
  assert.deepEqual(Object.fromEntries(told), example.outputs);
}

for (const [what, examples] of [
  ['block', KIND_EXAMPLES],
  ['handler', HANDLER_EXAMPLES],
] as const) {
  describe(`the example of each ${what} is stored without a warning and ends as the page says`, () => {
    for (const [name, example] of Object.entries(examples)) test(name, () => run(example));
  });
}
