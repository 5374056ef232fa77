/**
 * Requests of the front on the shard that received them: each is looked up in the table of operations,
 * validated once, and served or handed on to the shard that its body leads to. Parsing a large body takes
 * several turns, with other requests in between.
 */

import type { Clock } from '../../src/base/clock.js';
import { EngineError, unavailable } from '../../src/base/errors.js';
import { shardOf } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Logger } from '../../src/base/log.js';
import type { Offload } from '../../src/base/offload.js';
import type { Findings } from '../../src/core/lint/definition.js';
import { type BodyInPieces, LARGE_BODY } from '../../src/http/body.js';
import { JUDGE_BODY } from '../../src/http/body-jobs.js';
import { INTERNAL } from '../runtime/commit.js';
import type { Operation, Operations } from '../runtime/operation.js';
import type { Request } from '../runtime/protocol.js';
import type { Effect } from '../runtime/turn.js';
import { type LargeBodies, type Parsers, parsersOf } from './bodies.js';

export interface RequestsDeps {
  readonly shard: number;
  readonly shards: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly offload: Offload;
  /** Of all rooms. */
  readonly operations: Operations;
  /** Larger definitions are logged with a warning. */
  readonly callMsMax: number;
  /** More work waits for the database than the shard may hold. */
  readonly isBehind: () => boolean;
  /** Takes in messages that peers have posted but that are not delivered yet. */
  readonly takeHints: () => void;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
  /** Queues the request again. */
  readonly again: (request: Request) => void;
}

type Row = Operation & Parsers;

/** Limit of one turn for one large body. */
const SLICE_MS = LIMITS.turnMs / 2;

const NO_QUERY = {};

export class Requests {
  readonly #deps: RequestsDeps;
  readonly #rows: ReadonlyMap<string, Row>;
  /** Large bodies and their progress. */
  readonly #parsing = new WeakMap<Request, BodyInPieces<unknown>>();
  /** Of large definitions. */
  readonly #findings = new WeakMap<Request, Findings>();

  constructor(deps: RequestsDeps) {
    this.#deps = deps;
    this.#rows = new Map(
      Object.entries(deps.operations).map(([id, row]) => [id, { ...row, ...parsersOf(id) }]),
    );
  }

  /**
   * Every error becomes the reply; one that is not an EngineError is a defect.
   *
   * @returns whether the request continues in a later turn
   */
  handle(request: Request): boolean {
    try {
      const row = this.#rows.get(request.operation);
      if (row === undefined) throw new Error(`no room serves ${request.operation}`);
      if (row.isRead !== true && this.#deps.isBehind()) {
        throw unavailable('ENG_OVERLOADED', 'the database is behind');
      }
      if (row.large !== undefined && request.body.length > LARGE_BODY) {
        return this.#parseSome(request, row, row.large);
      }
      this.#serve(request, row, row.parse(request.body, request.query ?? NO_QUERY));
    } catch (thrown) {
      this.#refuse(request, thrown);
    }
    return false;
  }

  #refuse({ id, operation }: Request, thrown: unknown): void {
    let error = thrown;
    if (!(error instanceof EngineError)) {
      this.#deps.log.error({ err: error, operation }, 'defect');
      error = INTERNAL;
    }
    this.#deps.release([{ kind: 'error', request: id, error: error as EngineError }]);
  }

  #parseSome(request: Request, row: Row, large: LargeBodies): boolean {
    const { clock, callMsMax } = this.#deps;
    const parsing = this.#parsing.get(request);
    if (parsing === undefined && row.isLookedThrough) {
      this.#judge(request, large, callMsMax);
      return false;
    }
    const until = clock.monotonic() + SLICE_MS;
    const pieces = parsing ?? large.parse(request.body);
    for (;;) {
      const { done, value } = pieces.next();
      if (done === true) {
        if (value === undefined) this.#judge(request, large);
        else this.#serve(request, row, value);
        return false;
      }
      if (clock.monotonic() < until) continue;
      this.#parsing.set(request, pieces);
      return true;
    }
  }

  /** @param callMsMax of a definition that a side thread checks */
  #judge(request: Request, large: LargeBodies, callMsMax?: number): void {
    const { offload, schedule, again } = this.#deps;
    const { body: text, query = NO_QUERY, tenant } = request;
    offload.run(tenant, JUDGE_BODY, { ...large.doubt(text, query), callMsMax }).then(
      (judgement) =>
        schedule(() => {
          if (judgement.findings !== undefined) this.#findings.set(request, judgement.findings);
          this.#parsing.set(request, large.parseAs(text, judgement));
          again(request);
        }),
      (error: unknown) => schedule(() => this.#refuse(request, error)),
    );
  }

  #serve(request: Request, row: Row, given: unknown): void {
    const { shard, shards, takeHints, release } = this.#deps;
    if (row.isBehindHints) takeHints();
    const { id, tenant, target, traceparent, query = NO_QUERY, maySeeSecrets, by } = request;
    const body = given as never;
    const findings = row.isLookedThrough ? this.#findings.get(request) : undefined;
    const owner =
      typeof row.leadsTo === 'function' ? shardOf(row.leadsTo(body, tenant), shards) : shard;
    if (owner === shard)
      row.serve(
        {
          request: id,
          tenant,
          target,
          body,
          text: request.body,
          findings,
          traceparent,
          maySeeSecrets,
          by,
        },
        query as never,
      );
    else release([{ kind: 'peer', shard: owner, message: { kind: 'request', request } }]);
  }
}
