/**
 * What a client of the API sees: a request goes to an engine and is answered, refused, or has an
 * unknown outcome because a connection, a thread or a process was lost. Stands for the HTTP server.
 * Every answer is checked at the moment at which it leaves the engine: what it promises must be
 * committed by then.
 */

import { EngineError } from '../../src/base/errors.js';
import { rateLimitId } from '../../src/base/ids.js';
import { isPattern } from '../../src/core/rate-patterns.js';
import type { ShardReply } from '../../src/http/shards.js';
import type { SimEngine } from './engine.js';
import type { Parts } from './parts.js';
import type { Mark } from './promises.js';

/** `status` 0: nobody knows what became of it. */
export interface ApiReply {
  readonly status: number;
  readonly body: unknown;
}

export interface Call {
  readonly operation: string;
  readonly tenant: string;
  readonly target: string;
  readonly body: object | undefined;
  /** The shard that is asked; undefined: the one that the router would choose. */
  readonly shard: number | undefined;
  /** With `wait_ms`: the answer may wait. */
  readonly query: { readonly wait_ms: number } | undefined;
}

interface ApiDeps extends Pick<Parts, 'world' | 'faults' | 'cluster'> {
  /** What is true when the request comes in; handed to `onAnswer` with its answer. */
  readonly onRequest: (call: Call) => Mark;
  /** Told of every answer when it leaves an engine. */
  readonly onAnswer: (call: Call, reply: ApiReply, engine: SimEngine, mark: Mark) => void;
}

const UNKNOWN: ApiReply = { status: 0, body: undefined };

/** A client does not wait longer than this: the engine gives up earlier. */
const PATIENCE_MS = 100_000;

export class Api {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Never rejects. */
  call(
    operation: string,
    tenant: string,
    target: string,
    body?: object,
    shard?: number,
    query?: Call['query'],
  ): Promise<ApiReply> {
    const { world } = this.#deps;
    const call = { operation, tenant, target, body, shard, query };
    return new Promise((resolve) => {
      world.at(world.now + world.latency(0.05, 2), () => this.#arrive(call, resolve));
    });
  }

  #arrive(call: Call, resolve: (reply: ApiReply) => void): void {
    const { world, faults, cluster, onRequest, onAnswer } = this.#deps;
    const engine = cluster.pick();
    let isSettled = false;
    const settle = (reply: ApiReply, delay = world.latency(0.05, 2)) => {
      if (isSettled) return;
      isSettled = true;
      world.at(world.now + delay, () => resolve(reply));
    };
    if (engine === undefined) {
      settle({ status: 503, body: undefined });
      return;
    }
    const mark = onRequest(call);
    const answer = (reply: ShardReply) => {
      const known = replyOf(reply);
      world.note(
        `${engine.name} answers ${call.operation} ${call.target}: ${known.status} ${known.status < 300 ? '' : known.body}`,
      );
      onAnswer(call, known, engine, mark);
      settle(faults.hits('reply.lost') ? UNKNOWN : known);
    };
    engine.front.whenDead(() => settle(UNKNOWN));
    world.at(world.now + PATIENCE_MS, () => settle(UNKNOWN, 0));
    const text = call.body === undefined ? '' : JSON.stringify(call.body);
    world.at(
      world.now,
      () => {
        try {
          const { client } = engine;
          const { operation, tenant, target, query } = call;
          const id = client.send(
            this.#shard(engine, call),
            {
              ...{ operation, tenant, target, body: text },
              ...(isPoll(operation) ? { maySeeSecrets: true } : {}),
              ...(query === undefined ? {} : { query }),
            },
            answer,
          );
          if (faults.hits('client.gone')) {
            world.at(
              world.now + world.latency(0.1, 2_000),
              () => {
                if (isPoll(operation) || query !== undefined) client.abort(id);
                settle(UNKNOWN);
              },
              engine.front,
            );
          }
        } catch (error) {
          if (!(error instanceof EngineError)) throw error;
          answer({ error });
        }
      },
      engine.front,
    );
  }

  /** As `src/http/router.ts` chooses it. */
  #shard({ client }: SimEngine, { operation, tenant, target, body, shard }: Call): number {
    if (shard !== undefined) return shard;
    if (/^(catalog|sequences|releases|workerEndpoints)\./.test(operation)) return 0;
    if (operation.startsWith('rateLimits.')) {
      return isPattern(target) ? 0 : client.shardOf(rateLimitId(tenant, target));
    }
    if (operation === 'instances.changeMany')
      return client.shardOf((body as { ids: string[] }).ids[0]!);
    return target === '' ? client.anyShard() : client.shardOf(target);
  }
}

function isPoll(operation: string): boolean {
  return operation.startsWith('workers.poll') || operation === 'workers.exchange';
}

function replyOf(reply: ShardReply): ApiReply {
  if ('error' in reply) return { status: reply.error.status, body: reply.error.message };
  return { status: reply.status, body: reply.body === '' ? undefined : JSON.parse(reply.body) };
}
