/**
 * Requests of the front on the shard that received them: looks each up in the table of operations,
 * validates it once, and serves it or forwards it to the shard that its body determines. Parsing a large
 * body takes several turns, with other requests in between.
 */

import { type BodyRouteId, ROUTES, type RouteId } from '../../schema/routes.js';
import { hasLists } from '../../schema/sequence.js';
import { createValidators } from '../../schema/validators.js';
import type { Clock } from '../../src/base/clock.js';
import { EngineError, unavailable } from '../../src/base/errors.js';
import { shardOf } from '../../src/base/ids.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Offload } from '../../src/base/offload.js';
import type { Findings } from '../../src/core/lint/definition.js';
import {
  type BodyInPieces,
  LARGE_BODY,
  parseAsJudged,
  parseBody,
  parseInPieces,
} from '../../src/http/body.js';
import { JUDGE_BODY } from '../../src/http/body-jobs.js';
import type { Actions } from '../action/actions.js';
import { INTERNAL } from '../runtime/commit.js';
import type { Operation, Operations } from '../runtime/operation.js';
import type { Request } from '../runtime/protocol.js';
import type { ShardKernel } from './kernel.js';

export interface RequestsDeps
  extends Pick<
    ShardKernel,
    'shard' | 'shards' | 'log' | 'takeHints' | 'takeUp' | 'release' | 'schedule'
  > {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly offload: Offload;
  readonly actions: Pick<Actions, 'begin'>;
  readonly operations: Operations;
  /** Larger definitions are logged with a warning. */
  readonly callMsMax: number;
  /** Whether more work waits for the database than the shard may hold. */
  readonly isBehind: () => boolean;
}

type Query = Readonly<Record<string, unknown>>;

interface Row extends Operation {
  /** @throws EngineError 400 */
  readonly parse: (text: string, query: Query) => unknown;
  /** Undefined: the body is not validated. */
  readonly route: BodyRouteId | undefined;
}

/** Time that one turn spends on one large body. */
const SLICE_MS = LIMITS.turnMs / 2;

const NO_QUERY = {};

/** Compiled once per thread, since it takes a while: a simulation has many shards in one thread. */
const VALIDATORS = createValidators();

export class Requests {
  readonly #deps: RequestsDeps;
  readonly #rows: ReadonlyMap<string, Row>;
  /** Large bodies that are being parsed. */
  readonly #parsing = new WeakMap<Request, BodyInPieces<unknown>>();
  /** Of the checks of large definitions. */
  readonly #findings = new WeakMap<Request, Findings>();

  constructor(deps: RequestsDeps) {
    this.#deps = deps;
    this.#rows = new Map(
      Object.entries(deps.operations).map(([id, row]) => [id, { ...row, ...parserOf(id) }]),
    );
  }

  /** Errors become the reply. @returns whether the request continues in a later turn */
  handle(request: Request): boolean {
    try {
      const row = this.#rows.get(request.operation);
      if (row === undefined) throw new Error(`no room serves ${request.operation}`);
      if (row.isRead !== true && this.#deps.isBehind()) {
        throw unavailable('ENG_OVERLOADED', 'the database is behind');
      }
      if (row.route !== undefined && request.body.length > LARGE_BODY) {
        return this.#parseSome(request, row, row.route);
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

  #parseSome(request: Request, row: Row, route: BodyRouteId): boolean {
    const { clock, callMsMax } = this.#deps;
    const parsing = this.#parsing.get(request);
    if (parsing === undefined && row.isLookedThrough) {
      this.#judge(request, route, callMsMax);
      return false;
    }
    const until = clock.monotonic() + SLICE_MS;
    const pieces = parsing ?? parseInPieces(VALIDATORS, route, request.body);
    for (;;) {
      const { done, value } = pieces.next();
      if (done === true) {
        if (value === undefined) this.#judge(request, route);
        else this.#serve(request, row, value);
        return false;
      }
      if (clock.monotonic() < until) continue;
      this.#parsing.set(request, pieces);
      return true;
    }
  }

  /** @param callMsMax only for a definition, which the side thread checks too */
  #judge(request: Request, route: BodyRouteId, callMsMax?: number): void {
    const { offload, schedule, takeUp } = this.#deps;
    const { body: text, query = NO_QUERY, tenant } = request;
    const doubtful = { operation: route, text, isListed: hasLists(route, query), callMsMax };
    offload.run(tenant, JUDGE_BODY, doubtful).then(
      (judgement) =>
        schedule(() => {
          if (judgement.findings !== undefined) this.#findings.set(request, judgement.findings);
          this.#parsing.set(request, parseAsJudged(VALIDATORS, route, text, judgement));
          takeUp(request);
        }),
      (error: unknown) => schedule(() => this.#refuse(request, error)),
    );
  }

  #serve(request: Request, row: Row, parsed: unknown): void {
    const { shard, shards, takeHints, release, actions } = this.#deps;
    if (row.isBehindHints) takeHints();
    const body = parsed as never;
    const { id, tenant, target, body: text, query = NO_QUERY } = request;
    const { traceparent, maySeeSecrets, isBrief, by, groups } = request;
    const findings = row.isLookedThrough ? this.#findings.get(request) : undefined;
    const owner =
      typeof row.leadsTo === 'function' ? shardOf(row.leadsTo(body, tenant), shards) : shard;
    if (owner !== shard) {
      release([{ kind: 'peer', shard: owner, message: { kind: 'request', request } }]);
      return;
    }
    actions.begin(request, parsed);
    const call = {
      request: id,
      tenant,
      target,
      body,
      text,
      findings,
      traceparent,
      maySeeSecrets,
      isBrief,
      by,
      groups,
    };
    row.serve(call, query as never);
  }
}

/** @param id of a route, or of an internal request of the front thread, whose body is not validated */
export function parserOf(id: string): Pick<Row, 'parse' | 'route'> {
  if (!Object.hasOwn(ROUTES, id)) {
    return { parse: (text) => (text === '' ? undefined : JSON.parse(text)), route: undefined };
  }
  if (ROUTES[id as RouteId].body === undefined) return { parse: () => undefined, route: undefined };
  const route = id as BodyRouteId;
  return { parse: (text, query) => parseBody(VALIDATORS, route, text, hasLists(id, query)), route };
}
