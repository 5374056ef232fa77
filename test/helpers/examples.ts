/** Plays the examples of docs/reference on a server: people, workers and producers say what the pages say. */

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { SequenceExample } from '../../scripts/reference/sequence-examples.js';
import { eventually, type Json, type Tenant } from './api.js';
import { expectStatus } from './client.js';
import { type Served, serve } from './loopback.js';

/** Takes the place of the shop that the example of http_request names; gives its address while tests run. */
export function useShop(): () => string {
  let shop: Served;
  before(async () => {
    shop = await serve((request, response) => {
      request.resume();
      response.writeHead(201, { 'content-type': 'application/json' }).end('{"id": 7}');
    });
  });
  after(() => shop.stop());
  return () => shop.url;
}

/** Stores what the example needs beside its own sequence. */
export async function storeOthers(tenant: Tenant, { others = {} }: SequenceExample): Promise<void> {
  for (const [name, blocks] of Object.entries(others)) {
    await tenant.sequence(blocks as readonly Json[], { name });
  }
}

/** Runs a stored sequence as the example says, to the end and with the outputs that it says. */
export async function playExample(
  tenant: Tenant,
  sequence: string,
  example: SequenceExample,
  shopUrl: () => string,
): Promise<void> {
  const handlers = Object.keys(example.answers ?? {});
  const { data = {} } = example;
  const context = { data: 'shop' in data ? { ...data, shop: shopUrl() } : data };
  const id = await tenant.create(sequence, { context });
  for (const [block, value] of Object.entries(example.says ?? {})) {
    await tenant.until(id, 'waiting');
    await tenant.signal(id, `custom:human_input:${block}`, { value });
  }
  for (const handler of handlers) {
    for (const output of example.answers?.[handler] ?? []) {
      await tenant.complete(await tenant.task(handler), output);
    }
  }
  for (const event of example.events ?? []) expectStatus(await tenant.post('/events', event), 201);
  await tenant.until(id, example.ends);
  // What runs after the end takes a moment more.
  await eventually(async () => {
    const outputs = await tenant.outputsOf(id);
    const told = Object.keys(example.outputs).map((block) => [block, outputs[block]]);
    assert.deepEqual(Object.fromEntries(told), example.outputs);
  });
}
