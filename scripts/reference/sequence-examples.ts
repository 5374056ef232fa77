/**
 * A complete sequence for each kind of block and each built-in handler. The API test of these runs each of
 * them through a server to its end, with the answers of workers as they stand here.
 */

import type { Block } from '../../schema/blocks.js';
import type { BuiltinName } from '../../schema/handlers.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { code, flatJson, jsonBlock } from './markdown.js';

export interface SequenceExample {
  readonly blocks: readonly JsonObject[];
  /** Sequences that have to be there, by their names. */
  readonly others?: Readonly<Record<string, readonly JsonObject[]>>;
  /** context.data of the instance. */
  readonly data?: JsonObject;
  /** What workers answer by the handlers of their tasks: first, then, … */
  readonly answers?: Readonly<Record<string, readonly JsonObject[]>>;
  readonly ends: 'completed' | 'failed';
  /** The latest outputs of these blocks in the end. */
  readonly outputs: Readonly<Record<string, JsonValue>>;
}

export const KIND_EXAMPLES: { readonly [Kind in Block['type']]: SequenceExample } = {
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
    outputs: { nobody: { approved: false } },
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
        body: [
          {
            type: 'step',
            id: 'pack',
            handler: 'log',
            params: { message: '{{ data.line.count }} of {{ data.line.sku }}' },
          },
        ],
      },
    ],
    data: {
      items: [
        { sku: 'tea', count: 2 },
        { sku: 'milk', count: 1 },
      ],
    },
    ends: 'completed',
    outputs: { pack: { message: '1 of milk' } },
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
};

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

/** The body of `POST /sequences`. */
export function definitionOf(
  name: string,
  { blocks }: Pick<SequenceExample, 'blocks'>,
): JsonObject {
  return { tenant_id: 'demo', namespace: 'docs', name, version: 1, blocks: [...blocks] };
}

/** The definition, what the instance had, and how it ended. */
export function exampleText(name: string, example: SequenceExample): string {
  const { data = {}, answers = {}, others = {}, ends, outputs } = example;
  const start = Object.keys(data).length === 0 ? '' : `Started with ${dataText(data)}`;
  const workers = Object.entries(answers).map(([handler, given]) => {
    return `a worker of ${code(handler)} answers ${given.map((one) => code(flatJson(one))).join(', then ')}`;
  });
  const told = [start, ...workers].filter((part) => part !== '').join('; ');
  const end = `${told === '' ? 'The' : `${told}. The`} instance ends ${code(ends)}. Among its outputs:`;
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
