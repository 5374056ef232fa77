/** The worker of the order pipeline: a bank, the mail and a store, all of them pretended. */

import {
  type Client,
  FatalError,
  RetryableError,
  Worker,
  type WorkerHandlers,
} from '../../client/src/index.js';
import type { Handlers } from './order.js';

/** @param tell is told what the bank has done */
export function orderWorker(client: Client, tell: (line: string) => void) {
  /** What the bank did, by the key that it was told: asked again, it charges nothing more. */
  const charges = new Map<string, string>();
  const handlers = {
    async 'charge-card'({ params: { order, amount }, attempt, idempotency_key: key }) {
      if (order.startsWith('slow') && attempt === 0) throw new RetryableError('the bank is down');
      if (!charges.has(key)) tell(`${order} pays ${amount}`);
      const charge = charges.get(key) ?? `ch-${order}`;
      charges.set(key, charge);
      return { charge };
    },
    async 'refund-card'({ params: { charge, why } }) {
      tell(`${charge} is paid back: ${why}`);
      return { refunded: charge };
    },
    'send-mail': async ({ params }) => ({ mailed: params.to }),
    async 'pick-goods'({ params: { item } }) {
      // Any other error would be tried again.
      if (item === 'unicorn') throw new FatalError('unicorns are sold out');
      return { picked: item };
    },
  } satisfies WorkerHandlers<Handlers>;
  return new Worker(client, { handlers });
}
