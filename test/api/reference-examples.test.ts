/** The sequences of docs/reference run as the pages say. */

import { describe, test } from 'node:test';
import {
  GATE_EXAMPLE,
  HANDLER_EXAMPLES,
  HOOKS_EXAMPLE,
  KIND_EXAMPLES,
  type SequenceExample,
  STEP_EXAMPLES,
} from '../../scripts/reference/sequence-examples.js';
import { type Json, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { playExample, storeOthers, useShop } from '../helpers/examples.js';

const tenant = useTenant();
const shopUrl = useShop();

async function run(example: SequenceExample): Promise<void> {
  await storeOthers(tenant, example);
  const body = tenant.definition(example.blocks as readonly Json[], { ...example.hooks });
  const reply = await tenant.post<{ id: string }>('/sequences?strict=true', body);
  await playExample(tenant, expectStatus(reply, 201).id, example, shopUrl);
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
