/**
 * The workers of the shop: what they answer follows from the data of an order, so that whoever places one knows
 * what becomes of it.
 */

import type { Client, HandlerFunction } from '../../../client/src/index.js';
import { FatalError, RetryableError, Worker } from '../../../client/src/index.js';

/** Cards and what the bank says to them. */
export const CARDS = {
  good: '4242 4242',
  /** Refused for good. */
  declined: '4000 0002',
  /** The bank answers at the second try. */
  slowBank: '4000 0077',
  /** The bank never answers. */
  deadBank: '4000 0119',
  /** The bank takes its time: until the workers stop. */
  thinking: '4000 9995',
} as const;

/** Every parcel arrives at this look. */
const LOOKS = 6;

export interface ShopWorkers {
  stop(): Promise<void>;
}

/** @param client of the tenant; one that may do what workers do */
export async function startWorkers(client: Client): Promise<ShopWorkers> {
  const looks = new Map<string, number>();
  const chargeCard: HandlerFunction = async (task, ctx) => {
    const { card, order } = task.params as { card?: string; order?: string };
    ctx.log.info(`charging ${order}, try ${task.attempt + 1}`);
    if (card === CARDS.declined) throw new FatalError('the card was declined');
    if (card === CARDS.deadBank || (card === CARDS.slowBank && task.attempt === 0)) {
      ctx.log.warn('no answer within 20 ms');
      throw new RetryableError('the bank does not answer');
    }
    if (card === CARDS.thinking) await aborted(ctx.signal);
    return { charge: `C-${order}` };
  };
  const workers = [
    worker(client, 'payments-1', '3.1.0', ['payments'], { charge_card: chargeCard }),
    worker(client, 'warehouse-1', '1.8.2', ['warehouse'], {
      pick_goods: async ({ params: { item } }) => {
        if (item === 'mirror') throw new FatalError('there is no mirror on the shelf');
        return { picked: item, shelf: 'B4' };
      },
    }),
    worker(client, 'back-office-1', '2.0.0', undefined, {
      send_mail: async ({ params }) => ({ mailed: params.to }),
      refund_card: async ({ params }) => ({ refunded: params.order }),
      parcel_status: async ({ params }) => {
        const parcel = String(params.parcel);
        const look = (looks.get(parcel) ?? 0) + 1;
        looks.set(parcel, look);
        return { status: look >= LOOKS ? 'delivered' : 'on its way' };
      },
    }),
  ];
  await Promise.all(workers.map((one) => one.start()));
  return { stop: async () => void (await Promise.all(workers.map((one) => one.stop()))) };
}

function worker(
  client: Client,
  workerId: string,
  version: string,
  queues: readonly string[] | undefined,
  handlers: Readonly<Record<string, HandlerFunction>>,
): Worker {
  return new Worker(client, {
    handlers,
    workerId,
    version,
    ...(queues === undefined ? {} : { queues }),
    stopTimeoutMs: 0,
    complainAfterMs: 0,
    logger: { info: () => undefined, warn: () => undefined },
  });
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
