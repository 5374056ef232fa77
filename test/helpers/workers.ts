/** Workers of the library in tests: each stops with its test, and what it sends, says and warns of is kept. */

import type { TestContext } from 'node:test';
import { Client, type Named, Worker, type WorkerOptions } from '../../client/src/index.js';
import type { ExchangeTasks, TasksExchanged } from '../../schema/worker.js';
import { DEFAULT_API_KEY } from './engine.js';
import { withResolvers } from './resolvers.js';

/** A request of the worker, with its answer once it has one. */
export interface Exchange {
  readonly route: string;
  readonly sent: ExchangeTasks;
  answer?: TasksExchanged;
}

/** What a test does in place of sending a request; `forward` sends it. */
export type Between = (
  exchange: Exchange,
  forward: () => Promise<Response>,
) => Promise<Response> | Response;

export interface Place {
  readonly url: string;
  readonly tenant: string;
  readonly apiKey?: string;
  readonly between?: Between;
}

export interface TestWorker<P extends Named, O> {
  readonly worker: Worker<P, O>;
  /** In the order of sending. */
  readonly exchanges: readonly Exchange[];
  readonly warnings: readonly string[];
}

/** Not started yet. */
export function testWorker<P extends Named, O = object>(
  t: TestContext,
  { url, tenant, apiKey = DEFAULT_API_KEY, between = (_, forward) => forward() }: Place,
  options: WorkerOptions<P, O>,
): TestWorker<P, O> {
  const exchanges: Exchange[] = [];
  const warnings: string[] = [];
  const client = new Client({
    url,
    apiKey,
    tenant,
    fetch: async (address, init) => {
      const route = new URL(address).pathname.replace('/api/v1', '');
      const exchange: Exchange = { route, sent: JSON.parse(String(init.body ?? '{}')) };
      exchanges.push(exchange);
      const response = await between(exchange, () => fetch(address, init));
      if (response.status === 200)
        exchange.answer = (await response.clone().json()) as TasksExchanged;
      return response;
    },
  });
  const worker = new Worker(client, {
    complainAfterMs: 0,
    logger: { info: () => undefined, warn: (line) => warnings.push(line) },
    ...options,
  });
  t.after(() => worker.stop());
  return { worker, exchanges, warnings };
}

/** The same, started. */
export async function runWorker<P extends Named, O = object>(
  t: TestContext,
  place: Place,
  options: WorkerOptions<P, O>,
): Promise<TestWorker<P, O>> {
  const made = testWorker(t, place, options);
  await made.worker.start();
  return made;
}

/** Requests with results of the kinds that end a task. */
export const reportsOf = (exchanges: readonly Exchange[]): readonly Exchange[] =>
  exchanges.filter(({ sent }) => sent.results?.some(({ kind }) => kind !== 'heartbeat'));

/** A promise that a test settles. */
export const signalled = <T = void>() => withResolvers<T>();
