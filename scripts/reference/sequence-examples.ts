/**
 * A complete sequence for each kind of block and each built-in handler. The API test of these runs each of
 * them through a server to its end, with the answers of workers as they stand here.
 */

import type { HookList, KindName } from '../../schema/blocks.js';
import type { BuiltinName } from '../../schema/handlers.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { code, flatJson, jsonBlock } from './markdown.js';

export interface SequenceExample {
  readonly blocks: readonly JsonObject[];
  /** Lists of steps that run when it has come to a bad end. */
  readonly hooks?: { readonly [List in HookList]?: readonly JsonObject[] };
  /** Sequences that have to be there, by their names. */
  readonly others?: Readonly<Record<string, readonly JsonObject[]>>;
  /** context.data of the instance. */
  readonly data?: JsonObject;
  /** What workers answer by the handlers of their tasks: first, then, … */
  readonly answers?: Readonly<Record<string, readonly JsonObject[]>>;
  /** Bodies of `POST /events`, sent in this order. */
  readonly events?: readonly JsonObject[];
  /** What a person answers at the gates of these steps. */
  readonly says?: Readonly<Record<string, string>>;
  readonly ends: 'completed' | 'failed';
  /** The latest outputs of these blocks in the end. */
  readonly outputs: Readonly<Record<string, JsonValue>>;
}

export const KIND_EXAMPLES: { readonly [Kind in KindName]: SequenceExample } = {
  step: {
    blocks: [
      {
        type: 'step',
        id: 'pay',
        handler: 'charge_card',
        params: { amount: '{{ data.amount }}' },
        timeout: 60_000,
        retry: { max_attempts: 3, initial_backoff: 1_000 },
      },
      {
        type: 'step',
        id: 'thank',
        handler: 'log',
        when: 'data.amount > 0',
        params: { message: 'paid, receipt {{ outputs.pay.receipt }}' },
      },
    ],
    data: { amount: 42 },
    answers: { charge_card: [{ receipt: 'r-17' }] },
    ends: 'completed',
    outputs: { pay: { receipt: 'r-17' }, thank: { message: 'paid, receipt r-17' } },
  },
  parallel: {
    blocks: [
      {
        type: 'parallel',
        id: 'both',
        branches: [
          [
            {
              type: 'step',
              id: 'stock',
              handler: 'reserve_stock',
              params: { sku: '{{ data.sku }}' },
            },
          ],
          [{ type: 'step', id: 'price', handler: 'transform', params: { total: 42 } }],
        ],
      },
      {
        type: 'step',
        id: 'tell',
        handler: 'log',
        params: { message: 'shelf {{ outputs.stock.shelf }}, {{ outputs.price.total }} EUR' },
      },
    ],
    data: { sku: 'tea' },
    answers: { reserve_stock: [{ shelf: 'B4' }] },
    ends: 'completed',
    outputs: { price: { total: 42 }, tell: { message: 'shelf B4, 42 EUR' } },
  },
  race: {
    blocks: [
      {
        type: 'race',
        id: 'decision',
        semantics: 'first_to_resolve',
        branches: [
          [
            {
              type: 'step',
              id: 'ask',
              handler: 'ask_a_person',
              params: { order: '{{ data.order }}' },
            },
          ],
          [
            { type: 'step', id: 'patience', handler: 'sleep', params: { duration_ms: 500 } },
            { type: 'step', id: 'nobody', handler: 'transform', params: { approved: false } },
          ],
        ],
      },
    ],
    data: { order: 7 },
    ends: 'completed',
    outputs: {
      nobody: { approved: false },
      decision: { winner: 1, output: { approved: false } },
    },
  },
  router: {
    blocks: [
      {
        type: 'router',
        id: 'by_plan',
        routes: [
          {
            condition: 'plan == pro',
            blocks: [{ type: 'step', id: 'fast', handler: 'log', params: { message: 'at once' } }],
          },
          {
            condition: 'data.total > 100',
            blocks: [{ type: 'step', id: 'large', handler: 'log', params: { message: 'today' } }],
          },
        ],
        default: [{ type: 'step', id: 'normal', handler: 'log', params: { message: 'tomorrow' } }],
      },
    ],
    data: { plan: 'free', total: 120 },
    ends: 'completed',
    outputs: { large: { message: 'today' } },
  },
  try_catch: {
    blocks: [
      {
        type: 'try_catch',
        id: 'guarded',
        try_block: [
          { type: 'step', id: 'pay', handler: 'fail', params: { message: 'no money' } },
          { type: 'step', id: 'ship', handler: 'noop' },
        ],
        catch_block: [
          {
            type: 'step',
            id: 'undo',
            handler: 'log',
            params: { message: 'failed: {{ data._error.failed_blocks }}' },
          },
        ],
        finally_block: [{ type: 'step', id: 'tidy', handler: 'log', params: { message: 'done' } }],
      },
    ],
    ends: 'completed',
    outputs: { undo: { message: 'failed: ["pay"]' }, tidy: { message: 'done' } },
  },
  loop: {
    blocks: [
      {
        type: 'loop',
        id: 'until_sent',
        condition: 'data.status != sent',
        max_iterations: 20,
        body: [
          {
            type: 'step',
            id: 'look',
            handler: 'parcel_status',
            params: { parcel: '{{ data.parcel }}' },
          },
        ],
      },
      { type: 'step', id: 'tell', handler: 'log', params: { message: 'it is {{ data.status }}' } },
    ],
    data: { parcel: 'p-3', status: 'new' },
    answers: { parcel_status: [{ status: 'packed' }, { status: 'sent' }] },
    ends: 'completed',
    outputs: { look: { status: 'sent' }, tell: { message: 'it is sent' } },
  },
  for_each: {
    blocks: [
      {
        type: 'for_each',
        id: 'each_item',
        collection: 'items',
        item_var: 'line',
        index_var: 'number',
        concurrency: 2,
        body: [
          {
            type: 'step',
            id: 'pack',
            handler: 'log',
            params: { message: '{{ data.number }}: {{ data.line.count }} of {{ data.line.sku }}' },
          },
        ],
      },
      {
        type: 'step',
        id: 'tell',
        handler: 'transform',
        params: { first: '{{ outputs.each_item.0.message }}' },
      },
    ],
    data: {
      items: [
        { sku: 'tea', count: 2 },
        { sku: 'milk', count: 1 },
      ],
    },
    ends: 'completed',
    outputs: {
      each_item: [{ message: '0: 2 of tea' }, { message: '1: 1 of milk' }],
      tell: { first: '0: 2 of tea' },
    },
  },
  sub_sequence: {
    others: {
      'example-parcel': [
        {
          type: 'step',
          id: 'label',
          handler: 'transform',
          params: { text: 'to {{ data.city }}', weight: '{{ data.weight }}' },
        },
      ],
    },
    blocks: [
      {
        type: 'sub_sequence',
        id: 'parcel',
        sequence_name: 'example-parcel',
        input: { city: '{{ data.city }}', weight: 2 },
      },
      {
        type: 'step',
        id: 'tell',
        handler: 'log',
        params: { message: 'a parcel {{ outputs.parcel.0.output.text }}' },
      },
    ],
    data: { city: 'Rome' },
    ends: 'completed',
    outputs: { tell: { message: 'a parcel to Rome' } },
  },
  cancellation_scope: {
    blocks: [
      {
        type: 'cancellation_scope',
        id: 'whole',
        blocks: [
          {
            type: 'step',
            id: 'pay',
            handler: 'charge_card',
            params: { amount: '{{ data.amount }}' },
          },
          {
            type: 'step',
            id: 'book',
            handler: 'log',
            params: { message: 'booked under {{ outputs.pay.receipt }}' },
          },
        ],
      },
    ],
    data: { amount: 42 },
    answers: { charge_card: [{ receipt: 'r-17' }] },
    ends: 'completed',
    outputs: { book: { message: 'booked under r-17' } },
  },
  saga: {
    blocks: [
      {
        type: 'try_catch',
        id: 'guarded',
        try_block: [
          {
            type: 'saga',
            id: 'trip',
            steps: [
              {
                id: 'flight',
                action: {
                  type: 'step',
                  id: 'book_flight',
                  handler: 'transform',
                  params: { seat: '12A' },
                },
                compensation: {
                  type: 'step',
                  id: 'cancel_flight',
                  handler: 'log',
                  params: {
                    message:
                      'no {{ data._error.failed_step }}, back goes {{ outputs.book_flight.seat }}',
                  },
                },
              },
              {
                id: 'hotel',
                action: [
                  { type: 'step', id: 'look', handler: 'noop' },
                  {
                    type: 'step',
                    id: 'book_hotel',
                    handler: 'fail',
                    params: { message: 'no room' },
                  },
                ],
              },
            ],
          },
        ],
        catch_block: [
          {
            type: 'step',
            id: 'tell',
            handler: 'log',
            params: { message: '{{ data._error.failed_blocks }}: {{ data._error.message }}' },
          },
        ],
      },
    ],
    ends: 'completed',
    outputs: {
      cancel_flight: { message: 'no hotel, back goes 12A' },
      tell: { message: '["trip"]: no room' },
    },
  },
  ab_split: {
    blocks: [
      {
        type: 'ab_split',
        id: 'wording',
        variants: [
          {
            name: 'short',
            weight: 1,
            blocks: [{ type: 'step', id: 'hi', handler: 'log', params: { message: 'hi' } }],
          },
          { name: 'long', weight: 0, blocks: [{ type: 'step', id: 'dear', handler: 'noop' }] },
        ],
      },
    ],
    ends: 'completed',
    outputs: { wording: { variant: 'short', variant_index: 0 }, hi: { message: 'hi' } },
  },
};

export const HOOKS_EXAMPLE: SequenceExample = {
  blocks: [
    { type: 'step', id: 'pay', handler: 'fail', params: { message: 'no money' } },
    { type: 'step', id: 'ship', handler: 'noop' },
  ],
  hooks: {
    on_failure: [
      {
        type: 'step',
        id: 'alarm',
        handler: 'log',
        params: { message: '{{ data._error.path }} failed: {{ data._error.message }}' },
      },
    ],
    on_cancel: [{ type: 'step', id: 'note', handler: 'log', params: { message: 'gone' } }],
  },
  ends: 'failed',
  outputs: { alarm: { message: 'pay failed: no money' } },
};

/** What more there is to say of steps. */
export const STEP_EXAMPLES = {
  'time-limits': {
    blocks: [
      {
        type: 'try_catch',
        id: 'guarded',
        timeout: 3_600_000,
        try_block: [
          {
            type: 'step',
            id: 'inspect',
            handler: 'inspect_goods',
            queue_timeout: 300_000,
            timeout: 60_000,
            deadline: 400,
            on_deadline_breach: {
              handler: 'log',
              params: { message: 'order {{ data.order }} is late', level: 'warn' },
            },
          },
        ],
        catch_block: [
          {
            type: 'step',
            id: 'tell',
            handler: 'log',
            params: { message: 'not inspected: {{ data._error.code }}' },
          },
        ],
      },
    ],
    data: { order: 7 },
    ends: 'completed',
    outputs: { tell: { message: 'not inspected: deadline' } },
  },
} as const satisfies Readonly<Record<string, SequenceExample>>;

export const HANDLER_EXAMPLES: { readonly [Name in BuiltinName]: SequenceExample } = {
  noop: {
    blocks: [{ type: 'step', id: 'nothing', handler: 'noop' }],
    ends: 'completed',
    outputs: { nothing: {} },
  },
  log: {
    blocks: [
      {
        type: 'step',
        id: 'greet',
        handler: 'log',
        params: { message: 'hello {{ data.name }}', level: 'warn' },
      },
    ],
    data: { name: 'Ada' },
    ends: 'completed',
    outputs: { greet: { message: 'hello Ada' } },
  },
  sleep: {
    blocks: [
      { type: 'step', id: 'rest', handler: 'sleep', params: { duration_ms: 250 } },
      { type: 'step', id: 'wake', handler: 'noop' },
    ],
    ends: 'completed',
    outputs: { rest: { slept_ms: 250 } },
  },
  wait_for_event: {
    blocks: [
      {
        type: 'step',
        id: 'paid',
        handler: 'wait_for_event',
        params: {
          name: 'payment.settled',
          key: '{{ data.order }}',
          timeout_ms: 86_400_000,
          schema: { type: 'object', required: ['amount'] },
        },
      },
      {
        type: 'step',
        id: 'thank',
        handler: 'log',
        params: { message: 'received {{ outputs.paid.amount }}' },
      },
    ],
    data: { order: 'order-17' },
    events: [
      {
        event_name: 'payment.settled',
        producer_event_id: 'settlement-17',
        correlation_key: 'order-17',
        payload: { amount: 42 },
      },
    ],
    ends: 'completed',
    outputs: { paid: { amount: 42 }, thank: { message: 'received 42' } },
  },
  http_request: {
    blocks: [
      {
        type: 'step',
        id: 'order',
        handler: 'http_request',
        params: {
          url: '{{ data.shop }}/orders',
          method: 'POST',
          headers: { 'x-request': '{{ instance_id }}' },
          body: { sku: '{{ data.sku }}' },
          timeout_ms: 5_000,
        },
        retry: { max_attempts: 5 },
      },
      {
        type: 'step',
        id: 'tell',
        handler: 'log',
        params: { message: '{{ outputs.order.status }}: order {{ outputs.order.json.id }}' },
      },
    ],
    data: { shop: 'https://shop.example', sku: 'tea' },
    ends: 'completed',
    outputs: { tell: { message: '201: order 7' } },
  },
  fail: {
    blocks: [
      { type: 'step', id: 'check', handler: 'noop' },
      { type: 'step', id: 'stop', handler: 'fail', params: { message: 'not in this country' } },
    ],
    ends: 'failed',
    outputs: { check: {} },
  },
  transform: {
    blocks: [
      {
        type: 'step',
        id: 'address',
        handler: 'transform',
        params: { line: '{{ data.name | upper }}, {{ data.city }}', tags: '{{ data.tags }}' },
      },
    ],
    data: { name: 'Ada', city: 'Rome', tags: ['new'] },
    ends: 'completed',
    outputs: { address: { line: 'ADA, Rome', tags: ['new'] } },
  },
  assert: {
    blocks: [
      {
        type: 'step',
        id: 'check',
        handler: 'assert',
        params: { condition: 'data.amount > 0', message: 'nothing to pay' },
      },
    ],
    data: { amount: 42 },
    ends: 'completed',
    outputs: { check: { condition: 'data.amount > 0', passed: true } },
  },
};

export const GATE_EXAMPLE: SequenceExample = {
  blocks: [
    {
      type: 'step',
      id: 'approve',
      handler: 'noop',
      wait_for_input: {
        prompt: 'Refund {{ data.amount }} EUR to {{ data.name }}?',
        choices: [
          { label: 'Refund', value: 'refund' },
          { label: 'Refuse', value: 'refuse' },
        ],
        store_as: 'decision',
        allow_comment: true,
        timeout: 259_200_000,
      },
    },
    {
      type: 'router',
      id: 'decide',
      routes: [
        {
          condition: 'decision == refund',
          blocks: [
            {
              type: 'step',
              id: 'pay',
              handler: 'pay_back',
              params: { amount: '{{ data.amount }}' },
            },
          ],
        },
      ],
    },
  ],
  data: { amount: 42, name: 'Ada' },
  says: { approve: 'refund' },
  answers: { pay_back: [{ receipt: 'r-18' }] },
  ends: 'completed',
  outputs: { pay: { receipt: 'r-18' } },
};

/** The body of `POST /sequences`. */
export function definitionOf(
  name: string,
  { blocks, hooks }: Pick<SequenceExample, 'blocks' | 'hooks'>,
): JsonObject {
  const head = { tenant_id: 'demo', namespace: 'docs', name, version: 1 };
  return { ...head, blocks: [...blocks], ...(hooks as JsonObject | undefined) };
}

/** The definition, what the instance had, and how it ended. */
export function exampleText(name: string, example: SequenceExample): string {
  const { data = {}, says = {}, answers = {}, events = [], others = {}, ends, outputs } = example;
  const start = Object.keys(data).length === 0 ? '' : `Started with ${dataText(data)}`;
  const people = Object.entries(says).map(([block, value]) => {
    return `a person answers ${code(value)} at the step ${code(block)}`;
  });
  const workers = Object.entries(answers).map(([handler, given]) => {
    return `a worker of ${code(handler)} answers ${given.map((one) => code(flatJson(one))).join(', then ')}`;
  });
  const sent = events.map((event) => `${code('POST /events')} is sent ${code(flatJson(event))}`);
  const course = [start, ...people, ...workers, ...sent].filter((part) => part !== '').join('; ');
  const end = `${course === '' ? 'The' : `${course}. The`} instance ends ${code(ends)}. Among its outputs:`;
  const definitions = Object.entries(others).map(([other, blocks]) =>
    jsonBlock(definitionOf(other, { blocks })),
  );
  return [
    ...definitions,
    jsonBlock(definitionOf(name, example)),
    end,
    jsonBlock({ ...outputs }),
  ].join('\n\n');
}

const dataText = (data: JsonObject) => code(`context.data = ${flatJson(data)}`);
