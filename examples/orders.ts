/**
 * The order fulfilment of the demo: its sequence, the two handlers that a worker serves for it, and
 * what the outputs of a fulfilled order are.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { type HandlerFunction, RetryableError } from '../client/src/index.js';

export interface Order {
  readonly order: string;
  readonly item: string;
  readonly quantity: number;
  readonly total: number;
}

export const ORDERS: readonly Order[] = [
  { order: 'order-1001', item: 'lamp', quantity: 2, total: 89.8 },
  { order: 'order-1002', item: 'desk', quantity: 1, total: 349 },
  { order: 'order-1003', item: 'chair', quantity: 4, total: 516 },
];

const step = (id: string, handler: string, params: object, more: object = {}) => ({
  type: 'step',
  id,
  handler,
  params,
  ...more,
});

/** Names that are not built in, here `reserve_stock` and `charge_card`, go to workers. */
export const ORDER_BLOCKS = [
  step('received', 'log', { message: 'received {{data.order}}' }),
  step('price', 'transform', { total: '{{data.total}}', currency: 'EUR' }),
  step('reserve', 'reserve_stock', {
    order: '{{data.order}}',
    item: '{{data.item}}',
    quantity: '{{data.quantity}}',
  }),
  step(
    'charge',
    'charge_card',
    { order: '{{data.order}}', amount: '{{outputs.price.total}}' },
    { retry: { max_attempts: 5, initial_backoff: 500, max_backoff: 4_000 } },
  ),
  step('settle', 'sleep', { duration_ms: 800 }),
  step('receipt', 'transform', {
    order: '{{data.order}}',
    reservation: '{{outputs.reserve.reservation}}',
    charge: '{{outputs.charge.charge}}',
    total: '{{outputs.price.total}}',
  }),
  step('shipped', 'log', { message: 'shipped {{data.order}}' }),
];

/** How long the pretended work takes, so that there is something to watch. */
const WORK_MS = 350;

/** @param tell is told of what a reader of the demo should see */
export function orderHandlers(tell: (event: string) => void): {
  readonly reserve_stock: HandlerFunction;
  readonly charge_card: HandlerFunction;
} {
  return {
    async reserve_stock({ params }) {
      await wait(WORK_MS);
      return { reservation: `R-${params.order}` };
    },
    async charge_card({ params, attempt }) {
      tell(`charging ${params.order}, try ${attempt + 1}`);
      await wait(WORK_MS);
      if (attempt === 0) {
        tell(`the bank does not answer for ${params.order}: it will be tried again`);
        throw new RetryableError('the bank does not answer');
      }
      return { charge: `C-${params.order}`, tries: attempt + 1 };
    },
  };
}

/** The output of the step `receipt`, and on which attempt the card was charged. */
export function expectedReceipt({ order, total }: Order): Readonly<Record<string, unknown>> {
  return { order, reservation: `R-${order}`, charge: `C-${order}`, total };
}
export const EXPECTED_CHARGE_ATTEMPT = 1;
