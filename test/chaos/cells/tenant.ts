/**
 * One of many tenants under load: the client and the worker of a chaos run with a ledger of their own, at a pace that
 * leaves room for all others, through the proxy.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { type Client, NoReplyError, type Reply, requestsBy } from '../../helpers/client.js';
import { ChaosClient, type World } from '../clients.js';
import { Ledger } from '../ledger.js';
import { createRandom, type Random } from '../random.js';
import { storeSequences } from '../run.js';
import { shapes } from '../shapes.js';
import { startChaosWorker } from '../workers.js';

export interface LoadOptions {
  /** Through the proxy, without a tenant. */
  readonly client: Client;
  readonly sinkUrl: string;
  readonly seed: number;
  /** Between two requests of a client, and of a worker. */
  readonly paceMs: number;
  readonly instancesMax: number;
}

export interface TenantLoad {
  readonly name: string;
  readonly world: World;
  /** No more is begun; resolves when the client has its last answer. The worker goes on. */
  end(): Promise<void>;
  stop(): Promise<void>;
}

/** How often what is to be there before the load is asked for again: a cell may be without an owner. */
const SETUP_TRIES = 100;

export async function startTenant(
  name: string,
  stream: number,
  { client: root, sinkUrl, seed, paceMs, instancesMax }: LoadOptions,
): Promise<TenantLoad> {
  const client = doubting(root.with({ tenant: name }));
  const all = shapes(sinkUrl);
  const random = createRandom(seed, stream);
  let isOver = false;
  const world: World = {
    ledger: new Ledger(),
    client,
    tenant: name,
    gate: paced(paceMs, random, () => isOver),
    shapes: all,
    sequenceIds: await storeSequences(insisting(client), name, all),
    instancesMax,
    isOver: () => isOver,
  };
  const running = new ChaosClient(world, name, random).run();
  const worker = startChaosWorker(world, `${name}-w`, createRandom(seed, 10_000 + stream));
  return {
    name,
    world,
    end: async () => {
      isOver = true;
      await running;
    },
    stop: () => worker.stop(),
  };
}

/** In the place of the gate of a server that is down: the proxy is always there. */
const paced = (ms: number, random: Random, isOver: () => boolean) => ({
  open: () => undefined,
  close: () => undefined,
  // What is left to do when nothing more is begun is done without a pause.
  passed: async () => {
    if (!isOver()) await wait(ms * (0.5 + random.next()));
  },
});

/** Answers that the proxy gives when an engine is lost leave open what has become of the request. */
function doubting(client: Client): Client {
  return over(client, async (method, path, options) => {
    const reply = await client.request(method, path, options);
    if (reply.status === 502 || reply.status === 504) {
      throw new NoReplyError(`${method} ${path}`, new Error(`the proxy says ${reply.status}`));
    }
    return reply;
  });
}

/** Asks again while nobody serves, which has done nothing. */
function insisting(client: Client): Client {
  return over(client, async (method, path, options) => {
    for (let tries = 1; ; tries += 1) {
      const reply = await client.request(method, path, options);
      if (![421, 429, 503].includes(reply.status) || tries === SETUP_TRIES) return reply;
      await wait(100);
    }
  });
}

type Request = (...given: Parameters<Client['request']>) => Promise<Reply<unknown>>;

/** The same client with another way to make a request. */
function over(client: Client, request: Request): Client {
  return { ...client, ...requestsBy(request as Client['request']) };
}
