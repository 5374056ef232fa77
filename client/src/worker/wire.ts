/** Sends the exchanges of a worker: by their own route, or one by one once a server turns out not to have it. */

import type { Client } from '../client/client.js';
import { EngineError } from '../client/errors.js';
import type { ExchangeTasks } from '../generated/types.js';
import type { SendExchange } from './exchanges.js';
import { exchangeOneByOne } from './single-calls.js';

/** @param onMissing called once, before the first single request */
export function sendExchangesBy(client: Client, onMissing: () => void): SendExchange {
  let isMissing = false;
  return async (text, { signal, timeoutMs }) => {
    // The worker decides itself what is resent, and when.
    const options = { signal, timeoutMs, totalTimeoutMs: timeoutMs, retries: 0 };
    if (!isMissing) {
      try {
        return await client.workers.exchange(text as unknown as ExchangeTasks, options);
      } catch (error) {
        if (!hasNoRoute(error)) throw error;
        if (!isMissing) onMissing();
        isMissing = true;
      }
    }
    return exchangeOneByOne(client, JSON.parse(text) as ExchangeTasks, options);
  };
}

function hasNoRoute(error: unknown): boolean {
  if (!(error instanceof EngineError) || error.code === 'CLIENT_NO_ENGINE') return false;
  return error.status === 404 || error.status === 405;
}
