/**
 * Requests of the front, on the shard that they came to: each is looked up in the table of operations,
 * its body is checked once, and it is handed on to the shard that the body leads to, or served.
 */

import { shardOf } from '../../src/core/ids.js';
import { EngineError, unavailable } from '../../src/errors.js';
import type { Logger } from '../../src/log.js';
import { INTERNAL } from '../runtime/commit.js';
import type { Request } from '../runtime/protocol.js';
import type { Effect } from '../runtime/turn.js';
import { type AnyOperation, OPERATIONS, type OperationParts } from './operations.js';

export interface RequestsDeps {
  readonly shard: number;
  readonly shards: number;
  readonly log: Logger;
  readonly parts: OperationParts;
  /** More waits for the database than the shard may hold. */
  readonly isBehind: () => boolean;
  /** Takes in what peers have posted and what has not been delivered yet. */
  readonly takeHints: () => void;
  readonly release: (effects: readonly Effect[]) => void;
}

const NO_QUERY = {};

export class Requests {
  readonly #deps: RequestsDeps;

  constructor(deps: RequestsDeps) {
    this.#deps = deps;
  }

  /** Every error becomes the answer; one that is not the caller's is a defect. */
  handle(request: Request): void {
    const { id, operation } = request;
    try {
      const row = OPERATIONS.get(operation);
      if (row === undefined) throw new Error(`no operation ${operation}`);
      this.#serve(request, row);
    } catch (thrown) {
      let error = thrown;
      if (!(error instanceof EngineError)) {
        this.#deps.log.error({ err: error, operation }, 'defect');
        error = INTERNAL;
      }
      this.#deps.release([{ kind: 'error', request: id, error: error as EngineError }]);
    }
  }

  #serve(request: Request, row: AnyOperation): void {
    const { parts, shard, shards, isBehind, takeHints, release } = this.#deps;
    if (row.isRead !== true && isBehind()) {
      throw unavailable('ENG_OVERLOADED', 'the database is behind');
    }
    if (row.isBehindHints) takeHints();
    const { id, tenant, target, traceparent, query = NO_QUERY, maySeeSecrets } = request;
    const body = row.parse(request.body, query) as never;
    const owner =
      typeof row.leadsTo === 'function' ? shardOf(row.leadsTo(body, tenant), shards) : shard;
    if (owner === shard)
      row.serve(
        parts,
        { request: id, tenant, target, body, text: request.body, traceparent, maySeeSecrets },
        query as never,
      );
    else release([{ kind: 'peer', shard: owner, message: { kind: 'request', request } }]);
  }
}
