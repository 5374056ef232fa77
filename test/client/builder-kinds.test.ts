/**
 * Each kind of block, each handler of the engine, gates, limits of time and hooks, written in code as the examples of
 * docs/reference are in JSON: stored without a warning, given back as they were, and run to the same end.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Client, filter, sequence, t } from '../../client/src/index.js';
import type { KindName } from '../../schema/blocks.js';
import type { BuiltinName } from '../../schema/handlers.js';
import {
  GATE_EXAMPLE,
  HANDLER_EXAMPLES,
  HOOKS_EXAMPLE,
  KIND_EXAMPLES,
  type SequenceExample,
  STEP_EXAMPLES,
} from '../../scripts/reference/sequence-examples.js';
import { useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { playExample, storeOthers, useShop } from '../helpers/examples.js';

type Handlers = {
  charge_card: { params: { amount: number }; output: { receipt: string } };
  reserve_stock: { params: { sku: string }; output: { shelf: string } };
  ask_a_person: { params: { order: number }; output: { approved: boolean } };
  parcel_status: { params: { parcel: string }; output: { status: string } };
  inspect_goods: { output: object };
  pay_back: { params: { amount: number }; output: { receipt: string } };
};

const api = useSharedApi();
const shopUrl = useShop();

const parcel = sequence<Handlers, { city: string; weight: number }>('example-parcel', {
  namespace: 'test',
}).transform('label', ({ input }) => ({ text: t`to ${input.city}`, weight: input.weight }));

const KINDS = {
  step: sequence<Handlers, { amount: number }>('step')
    .step('pay', {
      handler: 'charge_card',
      params: ({ input }) => ({ amount: input.amount }),
      timeout: 60_000,
      retry: { max_attempts: 3, initial_backoff: 1_000 },
    })
    .step('thank', {
      handler: 'log',
      when: ({ input }) => input.amount.gt(0),
      params: ({ outputs }) => ({ message: t`paid, receipt ${outputs.pay.receipt}` }),
    }),
  parallel: sequence<Handlers, { sku: string }>('parallel')
    .parallel('both', [
      (b) =>
        b.step('stock', { handler: 'reserve_stock', params: ({ input }) => ({ sku: input.sku }) }),
      (b) => b.transform('price', { total: 42 }),
    ])
    .step('tell', {
      handler: 'log',
      params: ({ outputs }) => ({
        message: t`shelf ${outputs.stock.shelf}, ${outputs.price.total} EUR`,
      }),
    }),
  race: sequence<Handlers, { order: number }>('race').race(
    'decision',
    [
      (b) =>
        b.step('ask', { handler: 'ask_a_person', params: ({ input }) => ({ order: input.order }) }),
      (b) =>
        b
          .step('patience', { handler: 'sleep', params: { duration_ms: 500 } })
          .transform('nobody', { approved: false }),
    ],
    { semantics: 'first_to_resolve' },
  ),
  router: sequence<Handlers, { plan: string; total: number }>('router').router(
    'by_plan',
    [
      {
        condition: ({ input }) => input.plan.eq('pro'),
        blocks: (b) => b.step('fast', { handler: 'log', params: { message: 'at once' } }),
      },
      {
        condition: ({ input }) => input.total.gt(100),
        blocks: (b) => b.step('large', { handler: 'log', params: { message: 'today' } }),
      },
    ],
    { default: (b) => b.step('normal', { handler: 'log', params: { message: 'tomorrow' } }) },
  ),
  try_catch: sequence('try_catch').tryCatch(
    'guarded',
    (b) =>
      b
        .step('pay', { handler: 'fail', params: { message: 'no money' } })
        .step('ship', { handler: 'noop' }),
    {
      catch: (b, error) =>
        b.step('undo', {
          handler: 'log',
          params: { message: t`failed: ${error.failed_blocks.orElse('none')}` },
        }),
      finally: (b) => b.step('tidy', { handler: 'log', params: { message: 'done' } }),
    },
  ),
  loop: sequence<Handlers, { parcel: string }>('loop')
    .loop(
      'until_sent',
      (b) =>
        b.step('look', {
          handler: 'parcel_status',
          params: ({ input }) => ({ parcel: input.parcel }),
        }),
      { condition: ({ outputs }) => outputs.look.status.ne('sent'), max_iterations: 20 },
    )
    .step('tell', {
      handler: 'log',
      params: ({ outputs }) => ({ message: t`it is ${outputs.look.status.orElse('lost')}` }),
    }),
  for_each: sequence<Handlers, { items: { sku: string; count: number }[] }>('for_each')
    .forEach(
      'each_item',
      ({ input }) => input.items,
      (b, line, number) =>
        b.step('pack', {
          handler: 'log',
          params: { message: t`${number}: ${line.count} of ${line.sku}` },
        }),
      { concurrency: 2 },
    )
    .transform('tell', ({ outputs }) => ({ first: outputs.each_item.at(0).message })),
  sub_sequence: sequence<Handlers, { city: string }>('sub_sequence')
    .subSequence('parcel', parcel, { input: ({ input }) => ({ city: input.city, weight: 2 }) })
    .step('tell', {
      handler: 'log',
      params: ({ outputs }) => ({
        message: t`a parcel ${outputs.parcel.at(0).output.text.orElse('')}`,
      }),
    }),
  cancellation_scope: sequence<Handlers, { amount: number }>(
    'cancellation_scope',
  ).cancellationScope('whole', (b) =>
    b
      .step('pay', { handler: 'charge_card', params: ({ input }) => ({ amount: input.amount }) })
      .step('book', {
        handler: 'log',
        params: ({ outputs }) => ({ message: t`booked under ${outputs.pay.receipt}` }),
      }),
  ),
  saga: sequence('saga').tryCatch(
    'guarded',
    (b) =>
      b.saga('trip', (saga) =>
        saga
          .step(
            'flight',
            (a) => a.transform('book_flight', { seat: '12A' }),
            (c, error) =>
              c.step('cancel_flight', {
                handler: 'log',
                params: ({ outputs }) => ({
                  message: t`no ${error.failed_step.orElse('')}, back goes ${outputs.book_flight.seat}`,
                }),
              }),
          )
          .step('hotel', (a) =>
            a
              .step('look', { handler: 'noop' })
              .step('book_hotel', { handler: 'fail', params: { message: 'no room' } }),
          ),
      ),
    {
      catch: (b, error) =>
        b.step('tell', {
          handler: 'log',
          params: { message: t`${error.failed_blocks.orElse('')}: ${error.message}` },
        }),
    },
  ),
  ab_split: sequence('ab_split').abSplit('wording', [
    {
      name: 'short',
      weight: 1,
      blocks: (b) => b.step('hi', { handler: 'log', params: { message: 'hi' } }),
    },
    { name: 'long', weight: 0, blocks: (b) => b.step('dear', { handler: 'noop' }) },
  ]),
} satisfies { readonly [Kind in KindName]: unknown };

const HANDLERS = {
  noop: sequence('noop').step('nothing', { handler: 'noop' }),
  log: sequence<Handlers, { name: string }>('log').step('greet', {
    handler: 'log',
    params: ({ input }) => ({ message: t`hello ${input.name}`, level: 'warn' }),
  }),
  sleep: sequence('sleep')
    .step('rest', { handler: 'sleep', params: { duration_ms: 250 } })
    .step('wake', { handler: 'noop' }),
  wait_for_event: sequence<Handlers, { order: string }>('wait_for_event')
    .waitForEvent('paid', {
      name: 'payment.settled',
      key: ({ input }) => input.order,
      timeout_ms: 86_400_000,
      schema: { type: 'object', required: ['amount'] },
    })
    .step('thank', {
      handler: 'log',
      params: ({ outputs }) => ({ message: t`received ${outputs.paid.amount}` }),
    }),
  http_request: sequence<Handlers, { shop: string; sku: string }>('http_request')
    .step('order', {
      handler: 'http_request',
      params: ({ input, instanceId }) => ({
        url: t`${input.shop}/orders`,
        method: 'POST',
        headers: { 'x-request': instanceId },
        body: { sku: input.sku },
        timeout_ms: 5_000,
      }),
      retry: { max_attempts: 5 },
    })
    .step('tell', {
      handler: 'log',
      params: ({ outputs: { order } }) => ({ message: t`${order.status}: order ${order.json.id}` }),
    }),
  fail: sequence('fail')
    .step('check', { handler: 'noop' })
    .step('stop', { handler: 'fail', params: { message: 'not in this country' } }),
  transform: sequence<Handlers, { name: string; city: string; tags: string[] }>(
    'transform',
  ).transform('address', ({ input }) => ({
    line: t`${filter.upper(input.name)}, ${input.city}`,
    tags: input.tags,
  })),
  assert: sequence<Handlers, { amount: number }>('assert').step('check', {
    handler: 'assert',
    params: ({ input }) => ({ condition: input.amount.gt(0), message: 'nothing to pay' }),
  }),
} satisfies { readonly [Name in BuiltinName]: unknown };

const GATE = sequence<Handlers, { amount: number; name: string }>('gate')
  .step('approve', {
    handler: 'noop',
    wait_for_input: {
      prompt: ({ input }) => t`Refund ${input.amount} EUR to ${input.name}?`,
      choices: [
        { label: 'Refund', value: 'refund' },
        { label: 'Refuse', value: 'refuse' },
      ],
      store_as: 'decision',
      allow_comment: true,
      timeout: 259_200_000,
    },
  })
  .router('decide', [
    {
      condition: ({ answers }) => answers.decision.eq('refund'),
      blocks: (b) =>
        b.step('pay', { handler: 'pay_back', params: ({ input }) => ({ amount: input.amount }) }),
    },
  ]);

const HOOKS = sequence('hooks')
  .step('pay', { handler: 'fail', params: { message: 'no money' } })
  .step('ship', { handler: 'noop' })
  .onFailure((h, error) =>
    h.step('alarm', {
      handler: 'log',
      params: { message: t`${error.path.orElse('?')} failed: ${error.message}` },
    }),
  )
  .onCancel((h) => h.step('note', { handler: 'log', params: { message: 'gone' } }));

const TIME_LIMITS = sequence<Handlers, { order: number }>('time-limits').tryCatch(
  'guarded',
  (b) =>
    b.step('inspect', {
      handler: 'inspect_goods',
      queue_timeout: 300_000,
      timeout: 60_000,
      deadline: 400,
      on_deadline_breach: {
        handler: 'log',
        params: ({ input }) => ({ message: t`order ${input.order} is late`, level: 'warn' }),
      },
    }),
  {
    timeout: 3_600_000,
    catch: (b, error) =>
      b.step('tell', { handler: 'log', params: { message: t`not inspected: ${error.code}` } }),
  },
);

type Made = Pick<typeof HOOKS, 'apply' | 'definition'>;

/** The example in code ends as the one in JSON does. */
async function roundTrip(name: string, made: Made, example: SequenceExample): Promise<void> {
  const tenant = api.tenant();
  const options = { url: api.url, apiKey: DEFAULT_API_KEY, tenant: tenant.name };
  const client = new Client({ ...options, namespace: 'test' });
  const checked = await client.sequences.validate(made.definition, { query: { strict: true } });
  assert.deepEqual(checked, { valid: true, warnings: [] }, name);
  await storeOthers(tenant, example);
  const applied = await made.apply(client);
  assert.deepEqual({ ...applied, id: '' }, { id: '', version: 1, changed: true, warnings: [] });
  assert.deepEqual((await client.sequences.get(applied.id)).blocks, made.definition.blocks);
  assert.deepEqual(await made.apply(client), { ...applied, changed: false });
  await playExample(tenant, applied.id, example, shopUrl);
}

/** An assertion tells its condition, in which code has the long names of what it reads. */
const { assert: asserted, ...others } = HANDLER_EXAMPLES;
const ASSERTED = JSON.parse(
  JSON.stringify(asserted).replaceAll('data.amount', 'context.data.amount'),
) as SequenceExample;

for (const [what, code, examples] of [
  ['block', KINDS, KIND_EXAMPLES],
  ['handler', HANDLERS, { ...others, assert: ASSERTED }],
] as const) {
  describe(`each ${what} in code is stored as it is and ends as its example in JSON`, () => {
    for (const [name, made] of Object.entries(code)) {
      test(name, () => roundTrip(name, made, examples[name as keyof typeof examples]));
    }
  });
}

test('a gate in code ends as its example in JSON', () => roundTrip('gate', GATE, GATE_EXAMPLE));
test('hooks in code end as their example in JSON', () => roundTrip('hooks', HOOKS, HOOKS_EXAMPLE));
test('limits of time in code end as their example in JSON', () =>
  roundTrip('time-limits', TIME_LIMITS, STEP_EXAMPLES['time-limits']));
