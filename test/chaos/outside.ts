/**
 * Those outside a chaos run whom the server calls, or who call it without a key: a worker endpoint in this process, to
 * which tasks are delivered, and a provider of webhooks, whose signed deliveries become events. A delivery of a task is
 * entered in the ledger as its claim, and the response as its end.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { EventReceipt } from '../../schema/event.js';
import type { WorkerTask } from '../../schema/worker.js';
import { type Client, expectStatus, type Reply } from '../helpers/client.js';
import { serve } from '../helpers/loopback.js';
import { standardWebhooks } from '../helpers/providers.js';
import type { Ledger } from './ledger.js';
import type { Random } from './random.js';
import { PAYMENT, PUBLISH, PUSHED_HANDLER } from './shapes.js';

export interface Outside {
  /** A payment for an order, by the provider: the same id is the same payment. */
  deliver(client: Client, order: string, id: string): Promise<Reply<EventReceipt>>;
  stop(): void;
}

const SECRET = `whsec_${Buffer.from('of the provider of the run').toString('base64')}`;
const ENDPOINT = 'chaos';
const CONCURRENCY = 8;
/** How long a task takes at most: some are under way at each kill. */
const WORK_MS_MAX = 40;
/** How many first attempts fail, by a response or by a connection that breaks. */
const FAILURE_CHANCE = 0.1;
const BREAK_CHANCE = 0.1;
/** A policy that allows eight tries is then never exhausted: a kill costs none. */
const FAILED_ATTEMPTS_MAX = 2;

export const slugOf = (tenant: string) => `${tenant}-payments`;
/** The `producer_event_id` of a delivery. */
export const eventOf = (tenant: string, delivery: string) =>
  `trigger:${slugOf(tenant)}:${delivery}`;

/** @param client that of the tenant */
export async function startOutside(
  client: Client,
  tenant: string,
  ledger: Ledger,
  random: Random,
): Promise<Outside> {
  const underWay = new Set<string>();
  let count = 0;
  const { url, stop } = await serve((request, response) => {
    void receive(request, response);
  });

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    try {
      for await (const piece of request) text += piece;
    } catch {
      // The server was killed while it sent the task.
      return;
    }
    const task = JSON.parse(text) as WorkerTask;
    if (underWay.has(task.id)) ledger.complain(`task ${task.id} was delivered twice at a time`);
    ledger.claimed(task);
    underWay.add(task.id);
    response.on('close', () => underWay.delete(task.id));
    await wait(random.integer(0, WORK_MS_MAX));
    respond(task, response);
  }

  function respond({ id, attempt, claim_epoch: epoch }: WorkerTask, response: ServerResponse) {
    const mayFail = attempt < FAILED_ATTEMPTS_MAX;
    if (mayFail && random.chance(BREAK_CHANCE)) {
      response.destroy();
    } else if (mayFail && random.chance(FAILURE_CHANCE)) {
      ledger.responded(id, { kind: 'fail', epoch, isRetryable: true });
      response.writeHead(500).end();
    } else {
      count += 1;
      const mark = `${ENDPOINT}-${count}`;
      ledger.responded(id, { kind: 'complete', epoch, isRetryable: false, mark });
      response.end(JSON.stringify({ mark }));
    }
  }

  const endpoint = { handlers: [PUSHED_HANDLER], url, secret: SECRET, concurrency: CONCURRENCY };
  expectStatus(await client.put(`/worker-endpoints/${ENDPOINT}`, endpoint), 200);
  const verify = { scheme: 'standard_webhooks', secret: SECRET };
  const trigger = { tenant_id: tenant, slug: slugOf(tenant), publish: PUBLISH, verify };
  expectStatus(await client.post('/triggers', trigger), 201);
  return {
    stop,
    deliver(to, order, id) {
      const raw = JSON.stringify({ type: PAYMENT, order, mark: id });
      const headers = standardWebhooks(SECRET, raw, id);
      const anyone = to.with({ apiKey: null, tenant: null });
      return anyone.request('POST', `/webhooks/${slugOf(tenant)}`, { raw, headers });
    },
  };
}
