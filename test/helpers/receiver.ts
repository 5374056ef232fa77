/** A receiver of webhooks on loopback: keeps what arrives, and answers as the test says. */

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { after, before } from 'node:test';
import type { WebhookBody } from '../../schema/webhook.js';
import { serve } from './loopback.js';
import { standIn } from './stand-in.js';

export interface Arrival {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Byte for byte. */
  readonly text: string;
  readonly body: WebhookBody & { readonly data: Record<string, unknown> };
}

/** Answers one request; without an answer it hangs. */
export type Respond = (response: ServerResponse, arrival: Arrival) => void;

export interface Receiver {
  /** Of a path of its own, which the test may give an answer for. */
  url(path: string): string;
  /** From now on; the default is 200. */
  answer(path: string, respond: Respond): void;
  /** What came for an instance, in order. */
  of(instance: string): Arrival[];
  /** Resolves when so many requests have come for it. */
  until(instance: string, count: number): Promise<Arrival[]>;
  stop(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const arrivals: Arrival[] = [];
  const answers = new Map<string, Respond>();
  const waiting = new Set<() => void>();
  const { url: origin, stop } = await serve(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    const { url: path = '', headers } = request;
    const arrival: Arrival = { path, headers, text, body: JSON.parse(text) };
    arrivals.push(arrival);
    for (const look of waiting) look();
    const respond = answers.get(path) ?? statusOf(200);
    respond(response, arrival);
  });
  const of = (instance: string) => arrivals.filter(({ body }) => body.instance_id === instance);
  return {
    url: (path) => `${origin}${path}`,
    answer: (path, respond) => answers.set(path, respond),
    of,
    until: (instance, count) =>
      new Promise((resolve) => {
        const look = () => {
          const found = of(instance);
          if (found.length < count) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    stop,
  };
}

/** One that is there from the hooks of a test file on. */
export function useReceiver(): Receiver {
  let receiver: Receiver | undefined;
  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver?.stop());
  return standIn(() => receiver);
}

export const statusOf =
  (status: number, text = ''): Respond =>
  (response) =>
    response.writeHead(status).end(text);

/** One status after the other, the last one again and again. */
export function statuses(...list: readonly number[]): Respond {
  let next = 0;
  return (response) => {
    response.writeHead(list[Math.min(next, list.length - 1)] as number).end();
    next += 1;
  };
}
