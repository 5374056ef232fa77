/** Parses the body of a request: by the schema of its route, or as it is. */

import { type BodyRouteId, ROUTES, type RouteId } from '../../schema/routes.js';
import { hasLists } from '../../schema/sequence.js';
import { createValidators } from '../../schema/validators.js';
import {
  type BodyInPieces,
  type BodyJudgement,
  type DoubtfulBody,
  parseAsJudged,
  parseBody,
  parseInPieces,
} from '../../src/http/body.js';

type Query = Readonly<Record<string, unknown>>;

export interface Parsers {
  /** @throws EngineError 400 */
  readonly parse: (text: string, query: Query) => unknown;
  /** For large texts; undefined for small ones. */
  readonly large?: LargeBodies;
}

export interface LargeBodies {
  /** @throws EngineError */
  readonly parse: (text: string) => BodyInPieces<unknown>;
  /** The job `judgeBody` for a body that is already parsed. */
  readonly doubt: (text: string, query: Query) => DoubtfulBody;
  /** @throws EngineError */
  readonly parseAs: (text: string, judgement: BodyJudgement) => BodyInPieces<unknown>;
}

/** Compiled once per thread, which takes a while: a simulation has many shards in one. */
const VALIDATORS = createValidators();

/** @param id of a route, or of an internal request of the front thread, whose body is not validated */
export function parsersOf(id: string): Parsers {
  if (!Object.hasOwn(ROUTES, id)) return { parse: parseOwn };
  if (ROUTES[id as RouteId].body === undefined) return { parse: () => undefined };
  const operation = id as BodyRouteId;
  return {
    parse: (text, query) => parseBody(VALIDATORS, operation, text, hasLists(id, query)),
    large: {
      parse: (text) => parseInPieces(VALIDATORS, operation, text),
      doubt: (text, query) => ({ operation, text, isListed: hasLists(id, query) }),
      parseAs: (text, judgement) => parseAsJudged(VALIDATORS, operation, text, judgement),
    },
  };
}

function parseOwn(text: string): unknown {
  return text === '' ? undefined : JSON.parse(text);
}
