/**
 * What a typical client sends, as one set of values for the micro benches and the load runs: an
 * order of three items with its metadata, and the sequences that it is created for.
 */

import { type InstanceRecord, newRecord } from '../../actors/instance/record.js';
import type { Block } from '../../schema/blocks.js';
import { createIdGenerator, type IdGenerator } from '../../src/base/ids.js';
import type { JsonObject } from '../../src/base/json.js';
import { compilePlan, type Plan } from '../../src/core/plan.js';

export const TENANT = 'bench';
export const NAMESPACE = 'default';

/** The handler of the sequence whose step is left to workers. */
export const EXTERNAL_HANDLER = 'pack_order';

/** A sequence that is in no database, for benches without a server. */
export const SEQUENCE_ID = '01932f2e-0000-7000-8000-000000000001';
export const NOW = 1_760_000_000_000;

const METADATA: JsonObject = {
  order_id: 'A-2025-0100042',
  source: 'web-shop',
  region: 'eu-central',
};

export const ORDER: JsonObject = {
  order: {
    id: 'A-2025-0100042',
    currency: 'EUR',
    total: 129.85,
    items: [
      { sku: 'lamp-17', quantity: 1, price: 79.9 },
      { sku: 'bulb-e27', quantity: 4, price: 7.5 },
      { sku: 'cable-3m', quantity: 1, price: 19.95 },
    ],
  },
  customer: { id: 'c-77812', name: 'Zoë Marković', email: 'zoe@example.org', tier: 'gold' },
  shipping: { street: 'Hauptstraße 5', city: 'Berlin', country: 'DE', express: false },
};

/** The body of `POST /instances`, some 600 bytes. */
export function createBody(sequenceId: string): JsonObject {
  return {
    sequence_id: sequenceId,
    tenant_id: TENANT,
    namespace: NAMESPACE,
    priority: 'normal',
    metadata: METADATA,
    context: { data: ORDER },
  };
}

/** Completes in the commit that creates the instance. */
export const NOOP_SEQUENCE = sequenceBody('bench-noop', [
  { type: 'step', id: 'only', handler: 'noop' },
]);

/** Waits for a worker once it is created. */
export const EXTERNAL_SEQUENCE = sequenceBody('bench-external', [
  {
    type: 'step',
    id: 'pack',
    handler: EXTERNAL_HANDLER,
    params: { order: '{{ data.order.id }}', items: '{{ data.order.items }}' },
  },
]);

/** The same under a concurrency key with a free slot: the keys differ by the number of the order. */
export const keyed = (sequence: JsonObject): JsonObject => ({
  ...sequence,
  name: `${sequence.name}-keyed`,
  concurrency: { key: '{{ data.n }}', limit: 1_000_000 },
});

export const EVENT_NAME = 'payment.settled';

/** Waits for an event whose key is the number of the instance, then for a worker. */
export const EVENT_SEQUENCE = sequenceBody('bench-event', [
  {
    type: 'step',
    id: 'settled',
    handler: 'wait_for_event',
    params: { name: EVENT_NAME, key: '{{ data.n }}' },
  },
  { type: 'step', id: 'pack', handler: EXTERNAL_HANDLER },
]);

/** Every step of the sequence below has this handler. */
export const STEPS_HANDLER = 'do_step';
export const STEPS = 20;

/** Steps for workers, one behind the other, which take nothing of the context. */
export const STEPS_SEQUENCE = sequenceBody(
  'bench-steps',
  Array.from({ length: STEPS }, (_, at) => ({
    type: 'step',
    id: `step-${at}`,
    handler: STEPS_HANDLER,
  })),
);

const step = (id: string, handler: string): JsonObject => ({ type: 'step', id, handler });

/** Blocks of a fulfilment, for the compiler of plans: composites of four kinds, nested three deep. */
export const FULFILMENT_BLOCKS: readonly JsonObject[] = [
  { ...step('reserve', 'reserve_stock'), params: { items: '{{ data.order.items }}' } },
  {
    type: 'router',
    id: 'route',
    routes: [{ condition: 'data.order.total > 100', blocks: [step('gift', 'add_gift')] }],
    default: [step('plain', 'noop')],
  },
  {
    type: 'parallel',
    id: 'prepare',
    branches: [
      [step('invoice', 'make_invoice')],
      [{ type: 'for_each', id: 'pick', collection: 'order.items', body: [step('item', 'pick')] }],
    ],
  },
  {
    type: 'try_catch',
    id: 'ship',
    try_block: [{ ...step('label', 'print_label'), timeout: 10_000 }],
    catch_block: [step('alert', 'noop')],
    finally_block: [step('done', 'noop')],
  },
];

export function sequenceBody(name: string, blocks: readonly JsonObject[]): JsonObject {
  return {
    tenant_id: TENANT,
    namespace: NAMESPACE,
    name,
    version: 1,
    blocks: [...blocks],
  };
}

/** @throws Error when the blocks do not compile, which would be a defect of the bench */
export function planOf(blocks: unknown): Plan {
  const compiled = compilePlan({ id: SEQUENCE_ID, blocks: blocks as readonly Block[] });
  if (!compiled.ok) throw new Error(compiled.message);
  return compiled.plan;
}

/** An instance made from the body above, as its actor first holds it. */
export function orderRecord(id: string): InstanceRecord {
  return newRecord(
    {
      id,
      body: {
        sequence_id: SEQUENCE_ID,
        tenant_id: TENANT,
        namespace: NAMESPACE,
        metadata: METADATA,
        context: { data: ORDER },
      },
    },
    NOW,
    undefined,
  );
}

/** A cheap source of random bits, 32 each time (xorshift). */
export function benchBits(): () => number {
  let state = 0x9e3779b9;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** Ids as the engine makes them. */
export function benchIds(): IdGenerator {
  return createIdGenerator(() => Date.now(), benchBits());
}
