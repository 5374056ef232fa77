/** The sequences of docs/reference run as the pages say. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import {
  GATE_EXAMPLE,
  HANDLER_EXAMPLES,
  HOOKS_EXAMPLE,
  KIND_EXAMPLES,
  type SequenceExample,
  STEP_EXAMPLES,
} from '../../../scripts/reference/sequence-examples.js';
import { eventually, type Json, useTenant } from '../../helpers/api.js';
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
  const body = tenant.definition(example.blocks as readonly Json[], { ...example.hooks });
  const reply = await tenant.post<{ id: string }>('/sequences?strict=true', body);
  const handlers = Object.keys(example.answers ?? {});
  const { data = {} } = example;
  const context = { data: 'shop' in data ? { ...data, shop: shopUrl() } : data };
  const id = await tenant.create(expectStatus(reply, 201).id, { context });
  for (const [block, value] of Object.entries(example.says ?? {})) {
    await tenant.until(id, 'waiting');
    await tenant.signal(id, `custom:human_input:${block}`, { value });
  }
  for (const handler of handlers) {
    for (const output of example.answers?.[handler] ?? []) {
      await tenant.complete(await tenant.task(handler), output);
    }
  }
  for (const event of example.events ?? []) {
    expectStatus(await tenant.post('/events', event), 201);
  }
  await tenant.until(id, example.ends);
  // What runs after the end takes a moment more.
  await eventually(async () => {
    const outputs = await tenant.outputsOf(id);
    const told = Object.keys(example.outputs).map((block) => [block, outputs[block]]);
    assert.deepEqual(Object.fromEntries(told), example.outputs);
  });
}

test('the example of an approval is stored without a warning and ends as the page says', () =>
  run(GATE_EXAMPLE));
test('the example of hooks is stored without a warning and ends as the page says', () =>
  run(HOOKS_EXAMPLE));

for (const [what, examples] of [
  ['block', KIND_EXAMPLES],
  ['handler', HANDLER_EXAMPLES],
  ['part of a step', STEP_EXAMPLES],
] as const) {
  describe(`the example of each ${what} is stored without a warning and ends as the page says`, () => {
    for (const [name, example] of Object.entries(examples)) test(name, () => run(example));
  });
}
